//! The reader of files against the crate `safetensors` 0.8: the same verdict, the same bytes.

use std::collections::BTreeMap;

use safetensors::SafeTensors;
use tensorfile::{Error, ErrorKind, LimitOn, Metadata, TensorFile};

/// A way in which this project refuses on purpose what the reference takes.
#[derive(Debug)]
pub struct Exception {
    /// Why.
    pub reason: &'static str,
    /// Whether an error of this kind is of this exception.
    is_of: fn(&ErrorKind) -> bool,
}

/// Where we refuse on purpose what the reference takes; the one list of exceptions.
///
/// Three of them have two readings, and three are beyond limits that no published model comes near.
/// There is none of the other kind: what the reference refuses is refused.
pub const EXCEPTIONS: [Exception; 6] = [
    Exception {
        reason: "a tensor name given twice, after unescaping: the reference keeps the last",
        is_of: |kind| matches!(kind, ErrorKind::DuplicateTensor),
    },
    Exception {
        reason: "a metadata key given twice, after unescaping: the reference keeps the last",
        is_of: |kind| matches!(kind, ErrorKind::DuplicateMetadataKey { .. }),
    },
    Exception {
        reason: "a tensor written as a list of its fields: the format has objects",
        is_of: |kind| match kind {
            ErrorKind::InvalidTensor { message } => {
                message.contains("sequence, expected an object")
            }
            _ => false,
        },
    },
    Exception {
        reason: "a tensor name of more than 65,536 bytes",
        is_of: |kind| is_limit_on(LimitOn::NameBytes, kind),
    },
    Exception {
        reason: "a shape of more than 64 dimensions",
        is_of: |kind| is_limit_on(LimitOn::Dimensions, kind),
    },
    Exception {
        reason: "more than 1,000,000 tensors",
        is_of: |kind| is_limit_on(LimitOn::Tensors, kind),
    },
];

fn is_limit_on(what: LimitOn, kind: &ErrorKind) -> bool {
    matches!(kind, ErrorKind::Limit(limit) if limit.what == what)
}

/// How the two readers agree on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// Both take it and read the same.
    Accepted,
    /// Both refuse it.
    Refused,
    /// Only we refuse it, by the exception with this position in [`EXCEPTIONS`].
    Exception(usize),
}

/// Returns the exception that an error is of.
pub fn exception(error: &Error) -> Option<usize> {
    EXCEPTIONS.iter().position(|exception| (exception.is_of)(error.kind()))
}

/// Compares the verdicts on a file, and if both take it, everything in it.
///
/// # Errors
///
/// Says where the readers differ.
pub fn compare(bytes: &[u8]) -> Result<Agreement, String> {
    match (SafeTensors::deserialize(bytes), TensorFile::from_bytes(bytes)) {
        (Err(_), Err(_)) => Ok(Agreement::Refused),
        (Ok(theirs), Ok(ours)) => {
            compare_tensors(bytes, &theirs, &ours).map(|()| Agreement::Accepted)
        }
        (Ok(_), Err(error)) => match exception(&error) {
            Some(position) => Ok(Agreement::Exception(position)),
            None => Err(format!("only we refuse: {error}")),
        },
        (Err(error), Ok(_)) => Err(format!("only the reference refuses: {error}")),
    }
}

fn compare_tensors(
    bytes: &[u8],
    theirs: &SafeTensors<'_>,
    ours: &TensorFile<&[u8]>,
) -> Result<(), String> {
    let mut names = theirs.names();
    names.sort_unstable();
    equal("names", &names, &ours.names().collect())?;
    for (name, theirs) in theirs.iter() {
        let view = ours.view(name).map_err(|error| error.to_string())?;
        let read = ours.read(name).map_err(|error| error.to_string())?;
        equal(name, &theirs.dtype().to_string().as_str(), &view.dtype().name())?;
        equal(name, &theirs.shape(), &view.shape())?;
        equal(name, &theirs.data(), &view.bytes())?;
        equal(name, &theirs.data(), &read.bytes())?;
    }
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|error| error.to_string())?;
    let metadata = metadata.metadata().clone().map(BTreeMap::from_iter);
    equal("metadata", &metadata, &ours.metadata().map(Metadata::to_map))
}

/// Fails with both sides unless they are equal.
fn equal<T: PartialEq + std::fmt::Debug>(what: &str, theirs: &T, ours: &T) -> Result<(), String> {
    if theirs == ours {
        return Ok(());
    }
    Err(format!("{what:?}: the reference has {theirs:?}, we have {ours:?}"))
}

#[cfg(test)]
mod tests {
    use super::{Agreement, compare};

    #[test]
    fn every_exception_is_one_that_the_reference_takes() {
        // But for the last one, whose file would be 49 MB long.
        let name = "n".repeat(65_537);
        let long = format!(r#"{{"{name}":{{"dtype":"U8","shape":[],"data_offsets":[0,1]}}}}"#);
        let dims = "1,".repeat(64);
        let deep = format!(r#"{{"a":{{"dtype":"U8","shape":[{dims}1],"data_offsets":[0,1]}}}}"#);
        let files = [
            (
                r#"{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"\u0061":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#,
                4,
            ),
            (r#"{"__metadata__":{"a":"b","a":"c"}}"#, 0),
            (r#"{"a":["F32",[1],[0,4]]}"#, 4),
            (long.as_str(), 1),
            (deep.as_str(), 1),
        ];
        for (position, (header, data_len)) in files.into_iter().enumerate() {
            let header_len = u64::try_from(header.len()).unwrap().to_le_bytes();
            let bytes = [&header_len, header.as_bytes(), &vec![0; data_len]].concat();
            assert_eq!(compare(&bytes), Ok(Agreement::Exception(position)), "{header}");
        }
    }
}
