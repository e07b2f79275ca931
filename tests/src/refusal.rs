//! What an error of the product says, and whether it says what it should.

use std::fmt::Debug;
use std::path::Path;

use modeldir::ErrorKind;
use modeldir::error::Fault;
use modeldir::partition::PartitionError;
use tensorfile::ErrorKind as FileErrorKind;

/// An error of the product, as text and as variants.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// The message and its sources.
    pub(crate) text: String,
    /// The variants of its kind, outer ones first: an error may hold others. What is within a kind of
    /// a file has the name of the kind before its own, as in `SelectionRange` and `LimitTensors`.
    pub(crate) variants: Vec<String>,
}

impl Refusal {
    fn new(error: &(dyn std::error::Error + 'static), variant: String) -> Self {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        Self { text, variants: vec![variant] }
    }
}

impl From<&tensorfile::Error> for Refusal {
    fn from(error: &tensorfile::Error) -> Self {
        Self::new(error, file_variant(error.kind()))
    }
}

impl From<tensorfile::Error> for Refusal {
    fn from(error: tensorfile::Error) -> Self {
        Self::from(&error)
    }
}

impl From<modeldir::Error> for Refusal {
    fn from(error: modeldir::Error) -> Self {
        let mut refusal = Self::new(&error, leading_name(error.kind()));
        match error.kind() {
            ErrorKind::File(kind) => refusal.variants.push(file_variant(kind)),
            ErrorKind::Json(inner) => refusal.variants.push(leading_name(inner)),
            ErrorKind::Launch(inner) => refusal.variants.push(leading_name(inner)),
            ErrorKind::Limit(limit) => {
                refusal.variants.push(leading_name(&limit.what));
            }
            ErrorKind::Partition(inner) => {
                refusal.variants.push(leading_name(inner));
                if let PartitionError::Cut { misfit, .. } = inner {
                    refusal.variants.push(leading_name(misfit));
                }
            }
            ErrorKind::Incomplete { faults, .. } => {
                for fault in faults {
                    refusal.variants.push(leading_name(fault));
                    match fault {
                        Fault::MissingShard { cause, .. } => {
                            refusal.variants.push(leading_name(cause));
                        }
                        Fault::UnusableShard { error, .. } => {
                            refusal.variants.extend(Self::from(error).variants);
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        refusal
    }
}

/// The name of what was wrong with a file.
fn file_variant(kind: &FileErrorKind) -> String {
    let within = match kind {
        FileErrorKind::Limit(limit) => leading_name(&limit.what),
        FileErrorKind::Selection(fault) => leading_name(fault),
        _ => String::new(),
    };
    leading_name(kind) + &within
}

/// The name with which the `Debug` form of an enum value starts.
fn leading_name(value: &impl Debug) -> String {
    format!("{value:?}").chars().take_while(|c| c.is_alphanumeric()).collect()
}

/// What an error must say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mentions {
    pub(crate) all: Vec<String>,
    /// Of each of these lists, one.
    pub(crate) any: Vec<Vec<String>>,
    pub(crate) variant: Option<String>,
    /// A name that must be offered in place of the one that was asked for.
    pub(crate) suggests: Option<Suggestion>,
}

/// A name that was asked for and one that an error should offer in its place.
#[derive(Clone, Debug)]
pub(crate) struct Suggestion {
    pub(crate) asked: String,
    pub(crate) offered: String,
}

impl Mentions {
    /// Whether nothing is asked of the error but that it comes.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty() && self.any.is_empty() && self.variant.is_none()
    }

    /// Adds what `other` asks for.
    pub(crate) fn and(&self, other: &Self) -> Self {
        Self {
            all: self.all.iter().chain(&other.all).cloned().collect(),
            any: self.any.iter().chain(&other.any).cloned().collect(),
            variant: other.variant.clone().or_else(|| self.variant.clone()),
            suggests: other.suggests.clone().or_else(|| self.suggests.clone()),
        }
    }

    /// Checks an error about something in the folder `root`, whose own path does not count.
    pub(crate) fn check(&self, refusal: &Refusal, root: &Path) -> Result<(), String> {
        let text = without_root(&refusal.text, root).to_lowercase();
        let failed = |what: String| Err(format!("the error {what}: {}", refusal.text));
        let file = root.file_name().filter(|_| root.is_file());
        if file.is_some_and(|name| !refusal.text.contains(&*name.to_string_lossy())) {
            return failed("does not name the file".to_owned());
        }
        for wanted in &self.all {
            if !mentions(&text, wanted) {
                return failed(format!("does not mention {wanted:?}"));
            }
        }
        for wanted in &self.any {
            if !wanted.iter().any(|wanted| mentions(&text, wanted)) {
                return failed(format!("mentions none of {wanted:?}"));
            }
        }
        if let Some(variant) = &self.variant {
            if !refusal.variants.contains(variant) {
                return failed(format!("is {}, not {variant}", refusal.variants.join(" of ")));
            }
        }
        if let Some(Suggestion { asked, offered }) = &self.suggests {
            if !mentions(&text.replace(&asked.to_lowercase(), ""), offered) {
                return failed(format!("does not suggest {offered:?}"));
            }
        }
        Ok(())
    }
}

/// The text without the path of the case's folder, some of whose words it may be asked for.
fn without_root(text: &str, root: &Path) -> String {
    let text = text.replace(&root.display().to_string(), "");
    match root.canonicalize() {
        Ok(real) => text.replace(&real.display().to_string(), ""),
        Err(_) => text,
    }
}

/// Whether the text, in small letters, has this in it. A number must not be part of a longer one.
fn mentions(text: &str, wanted: &str) -> bool {
    let wanted = wanted.to_lowercase();
    if wanted.is_empty() || !wanted.bytes().all(|b| b.is_ascii_digit()) {
        return text.contains(&wanted);
    }
    text.split(|c: char| !c.is_ascii_digit()).any(|number| number == wanted)
}

#[cfg(test)]
mod tests {
    use super::mentions;

    #[test]
    fn a_number_is_not_part_of_a_longer_one() {
        assert!(mentions("4 bytes, 40 are needed", "4"));
        assert!(!mentions("40 bytes", "4"));
        assert!(mentions("shape [-1, 4]", "-1"));
        assert!(mentions("is a git lfs pointer", "LFS"));
    }
}
