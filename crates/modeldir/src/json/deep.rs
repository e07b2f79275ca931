//! Enough stack for the recursive parser, whatever the caller's stack.

use crate::{ErrorKind, Result};

/// The nesting depth for which any stack is assumed to suffice: a level takes 2 KiB in a debug
/// build, and no known file has a dozen.
const SHALLOW: usize = 24;

/// The stack for 128 levels of nesting, the parser's limit: eight times what they take in a debug
/// build.
const STACK_BYTES: usize = 2 << 20;

/// Runs a parser that recurses up to its limit: on the caller's stack, or on a thread of its own if
/// the text nests deep, as the caller's stack may be small.
///
/// # Errors
///
/// [`ErrorKind::Threads`] if the text nests deep and no thread can be started.
pub(super) fn on_enough_stack<R: Send>(text: &str, parse: impl FnOnce() -> R + Send) -> Result<R> {
    if nests_deeper(text, SHALLOW) {
        return on_stack_of(STACK_BYTES, parse);
    }
    Ok(parse())
}

/// Runs a parser on a thread with a stack of this many bytes.
fn on_stack_of<R: Send>(stack_bytes: usize, parse: impl FnOnce() -> R + Send) -> Result<R> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("modeldir".into()).stack_size(stack_bytes);
        match thread.spawn_scoped(scope, parse).map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(parsed)) => Ok(parsed),
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => {
                Err(ErrorKind::Threads { threads: 1, message: error.to_string().into() }.into())
            }
        }
    })
}

/// Whether a JSON text nests deeper than `max` levels. For malformed text the answer is
/// approximate.
fn nests_deeper(text: &str, max: usize) -> bool {
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    text.bytes().any(|byte| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_string,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth = depth.saturating_add(1),
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > max
    })
}

#[cfg(test)]
mod tests {
    use super::{ErrorKind, SHALLOW, nests_deeper, on_enough_stack, on_stack_of};

    #[test]
    fn brackets_count_outside_strings_until_they_close() {
        for (text, depth) in [
            ("", 0),
            ("1", 0),
            ("[]", 1),
            ("[[],{},[0]]", 2),
            (r#"{"a":{"b":"[[[["}}"#, 2),
            (r#"["\"[[[",{}]"#, 2),
            (r#"["\\",[{"#, 3),
            ("]]][", 1),
        ] {
            assert!(!nests_deeper(text, depth), "{text}");
            assert!(depth == 0 || nests_deeper(text, depth - 1), "{text}");
        }
    }

    #[test]
    fn only_deep_texts_get_a_thread() {
        let here = std::thread::current().id();
        for (levels, is_here) in [(SHALLOW, true), (SHALLOW + 1, false)] {
            let text = "[".repeat(levels);
            let ran = on_enough_stack(&text, || std::thread::current().id()).unwrap();
            assert_eq!(ran == here, is_here, "{levels}");
        }
    }

    #[test]
    fn a_thread_that_cannot_start_is_an_error() {
        // No address space is that large.
        let error = on_stack_of(usize::MAX / 2, || ()).unwrap_err();
        assert!(error.to_string().starts_with("cannot start 1 threads: "), "{error}");
        assert!(matches!(error.kind(), ErrorKind::Threads { threads: 1, .. }), "{error:?}");
    }
}
