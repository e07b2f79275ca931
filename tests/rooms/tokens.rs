//! Tokens of Rust source, and the paths among them, without what only tests compile.

use std::iter::Peekable;
use std::str::CharIndices;

/// A word, a string with its opening quote, `::`, or one other character; and its line.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
}

/// A path as it is written, and the name that it gets here: for `use`, that may be another.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) path: Vec<String>,
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) is_use: bool,
}

/// The tokens of a text, without comments and without items under `#[cfg(test)]`.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut all = Vec::new();
    let mut line = 1;
    let mut chars = text.char_indices().peekable();
    while let Some(&(start, first)) = chars.peek() {
        let end = end_of_token(text, start, first, &mut chars);
        let token = &text[start..end];
        let is_comment = token.starts_with("//") || token.starts_with("/*");
        if !is_comment && !first.is_whitespace() {
            all.push(Token { text: token.to_owned(), line });
        }
        line += token.matches('\n').count();
    }
    without_tests(&all)
}

/// Takes one token, comment or white space; returns where it ends.
fn end_of_token(text: &str, start: usize, first: char, chars: &mut Peekable<CharIndices>) -> usize {
    let rest = &text[start..];
    let len = if rest.starts_with("//") {
        rest.find('\n').unwrap_or(rest.len())
    } else if rest.starts_with("/*") {
        rest.find("*/").map_or(rest.len(), |at| at + 2)
    } else if let Some(closing) = raw_string(rest) {
        let opening = closing.len() + usize::from(first == 'b') + 1;
        rest[opening..].find(&closing).map_or(rest.len(), |at| opening + at + closing.len())
    } else if first == '"' {
        end_of_string(rest)
    } else if first == '\'' {
        end_of_quoted(rest)
    } else if first.is_alphanumeric() || first == '_' {
        rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
    } else if rest.starts_with("::") {
        2
    } else {
        first.len_utf8()
    };
    while chars.next_if(|(at, _)| *at < start + len).is_some() {}
    start + len
}

/// What closes the raw string that begins here, if one does.
fn raw_string(rest: &str) -> Option<String> {
    let hashes = rest.strip_prefix('b').unwrap_or(rest).strip_prefix('r')?;
    let quote = hashes.trim_start_matches('#');
    quote.starts_with('"').then(|| format!("\"{}", "#".repeat(hashes.len() - quote.len())))
}

/// The length of a string.
fn end_of_string(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    rest.len()
}

/// The length of a character or of the mark of a lifetime.
fn end_of_quoted(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, _))) => {
            rest[at + 1..].find('\'').map_or(rest.len(), |end| at + end + 2)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

/// The tokens outside of items that only tests compile.
fn without_tests(all: &[Token]) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < all.len() {
        let starts =
            |texts: &[&str]| texts.iter().zip(&all[at..]).all(|(text, token)| *text == token.text);
        let is_test = starts(&["#", "[", "cfg", "(", "test", ")"])
            || starts(&["#", "[", "cfg", "(", "all", "(", "test"])
            || starts(&["#", "[", "test", "]"]);
        if is_test {
            at = end_of_item(all, at);
        } else {
            kept.push(all[at].clone());
            at += 1;
        }
    }
    kept
}

/// The place after an item that begins at its attributes.
fn end_of_item(all: &[Token], mut at: usize) -> usize {
    while all[at].text == "#" {
        at = after_brackets(all, at + 1);
    }
    let is_use = all[at..].iter().take(2).any(|token| token.text == "use");
    loop {
        match all.get(at).map(|token| token.text.as_str()) {
            None => return at,
            Some(";") => return at + 1,
            Some("{") if !is_use => return after_brackets(all, at),
            Some("(" | "[" | "{") => at = after_brackets(all, at),
            Some(_) => at += 1,
        }
    }
}

/// The place after the bracket that closes the one at a place.
fn after_brackets(all: &[Token], mut at: usize) -> usize {
    let mut depth = 0;
    while let Some(token) = all.get(at) {
        at += 1;
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// Every path of two and more segments, and each leaf of `use`.
pub(crate) fn named(tokens: &[Token]) -> Vec<Named> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let next = tokens.get(at + 1).map_or("", |token| token.text.as_str());
        if token.text == "use" && next != "<" {
            at = tree(tokens, at + 1, &[], &mut found);
        } else if is_word(token) && (at == 0 || !matches!(tokens[at - 1].text.as_str(), "::" | "."))
        {
            let mut path = vec![token.text.clone()];
            while tokens.get(at + 1).is_some_and(|token| token.text == "::")
                && tokens.get(at + 2).is_some_and(is_word)
            {
                at += 2;
                path.push(tokens[at].text.clone());
            }
            if path.len() > 1 {
                found.push(Named { name: path[0].clone(), path, line: token.line, is_use: false });
            }
        }
        at += 1;
    }
    found
}

/// Reads a tree of `use`; returns the place after it.
fn tree(tokens: &[Token], mut at: usize, before: &[String], found: &mut Vec<Named>) -> usize {
    let mut path = before.to_vec();
    while let Some(token) = tokens.get(at) {
        match token.text.as_str() {
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token.text != "}") {
                    at = tree(tokens, at, &path, found);
                    at += usize::from(tokens.get(at).is_some_and(|token| token.text == ","));
                }
                return at + 1;
            }
            "::" => {}
            "self" if !path.is_empty() => {}
            text => path.push(text.to_owned()),
        }
        at += 1;
        let is_renamed = tokens.get(at).is_some_and(|token| token.text == "as");
        if is_renamed
            || tokens.get(at).is_none_or(|token| matches!(token.text.as_str(), "," | ";" | "}"))
        {
            let name = if is_renamed {
                tokens.get(at + 1).map(|token| token.text.clone())
            } else {
                path.last().cloned()
            };
            found.push(Named {
                name: name.unwrap_or_default(),
                path,
                line: token.line,
                is_use: true,
            });
            return at + 2 * usize::from(is_renamed);
        }
    }
    at
}

/// Whether a token is a word.
fn is_word(token: &Token) -> bool {
    token.text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

#[test]
fn paths_are_read_as_the_compiler_reads_them() {
    let text = r##"
        //! use not::this;
        use crate::{self as root, a::{self, B as C}, d::*}; /* use nor::this; */
        #[cfg(test)]
        use test_only::{X, Y};
        fn f<'a>(x: &'a str) -> impl Fn() + use<'a> {
            let s = (r#"no::path"#, "no\"::path", 'x', b'\'', '\u{1F600}');
            x.y::<u8>().z(std::fs::read(e::F))
        }
        #[cfg(all(test, unix))]
        mod tests { use tests::only; }
    "##;
    let found: Vec<_> = named(&tokens(text))
        .into_iter()
        .map(|path| (path.path.join("::"), path.name, path.line))
        .collect();
    let expected = [
        ("crate", "root", 3),
        ("crate::a", "a", 3),
        ("crate::a::B", "C", 3),
        ("crate::d::*", "*", 3),
        ("std::fs::read", "std", 8),
        ("e::F", "e", 8),
    ];
    assert_eq!(found, expected.map(|(path, name, line)| (path.to_owned(), name.to_owned(), line)));
}
