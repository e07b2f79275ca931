//! The files beside the weights by role; each is parsed on demand.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::beside::file_role::FileRole;
use crate::beside::versions::{newest_first, version};
use crate::json::MaxBytes;
use crate::{ErrorKind, Result, json};

/// The roles that hold a whole vocabulary, in order of preference.
const VOCABULARIES: [FileRole; 6] = [
    FileRole::Tokenizer,
    FileRole::Tekken,
    FileRole::SentencePiece,
    FileRole::Tiktoken,
    FileRole::VocabJson,
    FileRole::VocabText,
];

/// The tokenizer, processor and chat template files of a directory, by their roles.
///
/// A file is read only when a method returns its content, so a broken file affects no other.
///
/// ```
/// use modeldir::beside::{FileRole, TokenizerFiles};
///
/// let names = ["config.json", "merges.txt", "tokenizer_config.json", "vocab.json"];
/// let files = TokenizerFiles::find_in("models/gpt2", &names);
/// assert_eq!(files.path(FileRole::Tokenizer), None);
/// let (role, path) = files.vocabulary().expect("there is one");
/// assert_eq!(role, FileRole::VocabJson);
/// assert!(path.ends_with("models/gpt2/vocab.json"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenizerFiles {
    pub(super) directory: PathBuf,
    paths: BTreeMap<FileRole, PathBuf>,
    pub(super) max: MaxBytes,
}

impl TokenizerFiles {
    /// Assigns roles to the files of a directory by their names.
    ///
    /// Reads a file in one case only: if there is a versioned name such as `tokenizer.4.0.json`,
    /// the tokenizer's configuration decides whether it is used. JSON files may have 64 MiB.
    pub fn find_in(directory: impl Into<PathBuf>, names: &[impl AsRef<str>]) -> Self {
        Self::with_limit(directory.into(), names, MaxBytes::FIXED)
    }

    /// [`find_in`](Self::find_in) with JSON files of at most `max_bytes` bytes.
    pub(crate) fn with_max_bytes(
        directory: PathBuf,
        names: &[impl AsRef<str>],
        max_bytes: u64,
    ) -> Self {
        Self::with_limit(directory, names, MaxBytes::of_json(max_bytes))
    }

    fn with_limit(directory: PathBuf, names: &[impl AsRef<str>], max: MaxBytes) -> Self {
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        let found = |role: FileRole| Some((role, directory.join(role.find(&names)?)));
        let paths = FileRole::ALL.iter().copied().filter_map(found).collect();
        let mut files = Self { directory, paths, max };
        if let Some(name) = files.versioned_tokenizer(&names) {
            files.paths.insert(FileRole::Tokenizer, files.directory.join(name));
        }
        files
    }

    /// The path of the file of a role, if there is one.
    #[must_use]
    pub fn path(&self, role: FileRole) -> Option<&Path> {
        self.paths.get(&role).map(PathBuf::as_path)
    }

    /// The files present, in the order of [`FileRole::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (FileRole, &Path)> {
        self.paths.iter().map(|(role, path)| (*role, path.as_path()))
    }

    /// The file that defines the tokenizer, and its role.
    ///
    /// The first one present of `tokenizer.json`, `tekken.json`, sentencepiece, tiktoken,
    /// `vocab.json` (with `merges.txt`) and `vocab.txt`.
    #[must_use]
    pub fn vocabulary(&self) -> Option<(FileRole, &Path)> {
        VOCABULARIES.into_iter().find_map(|role| Some((role, self.path(role)?)))
    }

    /// Reads the whole tokenizer (`tokenizer.json`).
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn json(&self) -> Result<Value> {
        self.read(FileRole::Tokenizer)
    }

    /// Reads the tokenizer's configuration (`tokenizer_config.json`).
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn tokenizer_config(&self) -> Result<Value> {
        self.read(FileRole::TokenizerConfig)
    }

    /// Reads the JSON file of a role.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoFile`] if there is none. The other errors name the file: [`ErrorKind::File`]
    /// if it cannot be read, is empty or is a Git LFS pointer; [`ErrorKind::Json`] if it is not
    /// JSON; [`ErrorKind::Limit`] if it is too long.
    pub fn read(&self, role: FileRole) -> Result<Value> {
        let path = self.existing(role)?;
        json::parse(&json::read(path, self.max)?).map_err(|error| error.at(path))
    }

    /// Checks that the file of a role exists, is not empty and is no Git LFS pointer.
    ///
    /// Meant for files that another library reads, such as sentencepiece models.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoFile`] if there is none, else [`ErrorKind::File`].
    pub fn check(&self, role: FileRole) -> Result<()> {
        json::check_is_there(self.existing(role)?)
    }

    fn existing(&self, role: FileRole) -> Result<&Path> {
        let what = role.name();
        self.path(role).ok_or_else(|| ErrorKind::NoFile { what }.at(&self.directory))
    }

    /// The newest versioned tokenizer file that is present and named by the configuration.
    fn versioned_tokenizer<'n>(&self, names: &[&'n str]) -> Option<&'n str> {
        names.iter().find(|name| version(name, "tokenizer").is_some())?;
        // A broken configuration is reported by the call that returns it.
        let config = self.tokenizer_config().ok()?;
        let newest = newest_first(config.get("fast_tokenizer_files"), "tokenizer");
        newest.iter().find_map(|name| names.iter().copied().find(|listed| listed == name))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::TokenizerFiles;
    use crate::ErrorKind;
    use crate::beside::file_role::FileRole;
    use crate::json::JsonError;

    #[test]
    fn the_vocabulary_is_chosen_by_kind() {
        let cases: [(&[&str], Option<FileRole>); 7] = [
            (&["tokenizer.json", "tokenizer.model", "vocab.json"], Some(FileRole::Tokenizer)),
            (&["tekken.json", "tokenizer.model.v3"], Some(FileRole::Tekken)),
            (&["spiece.model", "vocab.txt"], Some(FileRole::SentencePiece)),
            (&["qwen.tiktoken", "tokenizer_config.json"], Some(FileRole::Tiktoken)),
            (&["merges.txt", "vocab.json"], Some(FileRole::VocabJson)),
            (&["vocab.txt"], Some(FileRole::VocabText)),
            (&["tokenizer_config.json", "merges.txt"], None),
        ];
        for (names, role) in cases {
            let files = TokenizerFiles::find_in("m", names);
            assert_eq!(files.vocabulary().map(|(role, _)| role), role, "{names:?}");
        }
    }

    #[test]
    fn of_each_pair_of_vocabularies_the_first_wins() {
        let names = [
            ("tokenizer.json", FileRole::Tokenizer),
            ("tekken.json", FileRole::Tekken),
            ("spm.model", FileRole::SentencePiece),
            ("tiktoken.model", FileRole::Tiktoken),
            ("vocab.json", FileRole::VocabJson),
            ("vocab.txt", FileRole::VocabText),
        ];
        for (i, (first, role)) in names.into_iter().enumerate() {
            for (other, _) in names.into_iter().skip(i + 1) {
                for both in [[first, other], [other, first]] {
                    let files = TokenizerFiles::find_in("m", &both);
                    let found = files.vocabulary().map(|(role, _)| role);
                    assert_eq!(found, Some(role), "{both:?}");
                }
            }
        }
    }

    #[test]
    fn a_translation_model_has_both_of_its_vocabularies() {
        let names = ["source.spm", "target.spm", "vocab.json", "target_vocab.json"];
        let files = TokenizerFiles::find_in("m", &names);
        assert_eq!(files.iter().count(), 4);
        let (role, path) = files.vocabulary().unwrap();
        assert!(role == FileRole::SentencePiece && path.ends_with("source.spm"));
    }

    #[test]
    fn files_are_listed_in_the_order_of_roles() {
        let names = ["vocab.txt", "modules.json", "tokenizer.json", "._tokenizer.json"];
        let files = TokenizerFiles::find_in("m", &names);
        let roles: Vec<FileRole> = files.iter().map(|(role, _)| role).collect();
        assert_eq!(roles, [FileRole::Tokenizer, FileRole::VocabText, FileRole::Modules]);
    }

    #[test]
    fn versioned_names_count_where_the_configuration_names_them() {
        let dir = tempfile::tempdir().unwrap();
        let names = ["tokenizer.4.0.json", "tokenizer.json", "tokenizer_config.json"];
        let chosen = |config: &str| {
            fs::write(dir.path().join("tokenizer_config.json"), config).unwrap();
            let files = TokenizerFiles::find_in(dir.path(), &names);
            let path = files.path(FileRole::Tokenizer).unwrap();
            path.file_name().unwrap().to_owned()
        };
        let named = r#"{"fast_tokenizer_files": ["tokenizer.json", "tokenizer.4.0.json", "tokenizer.9.json"]}"#;
        assert_eq!(chosen(named), "tokenizer.4.0.json");
        assert_eq!(chosen("{}"), "tokenizer.json");
        assert_eq!(chosen("{"), "tokenizer.json");
    }

    #[test]
    fn files_for_other_libraries_can_be_checked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokenizer.model");
        let files = TokenizerFiles::find_in(dir.path(), &["tokenizer.model"]);
        let check = || files.check(FileRole::SentencePiece);
        let refused = || check().unwrap_err().into_kind();
        fs::write(&path, [0xff, 0]).unwrap();
        assert!(check().is_ok());
        fs::write(&path, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
            .unwrap();
        assert!(matches!(refused(), ErrorKind::File(tensorfile::ErrorKind::LfsPointer { .. })));
        fs::write(&path, "").unwrap();
        assert!(matches!(refused(), ErrorKind::File(tensorfile::ErrorKind::Empty)));
        assert_eq!(check().unwrap_err().path(), Some(&*path));
        let absent = files.check(FileRole::Tekken).unwrap_err();
        assert!(matches!(absent.kind(), ErrorKind::NoFile { .. }), "{absent}");
    }

    #[test]
    fn a_broken_file_stops_only_the_call_that_needs_it() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("tokenizer.json"), "404: Not Found").unwrap();
        fs::write(dir.path().join("tokenizer_config.json"), r#"{"model_max_length": 1e30}"#)
            .unwrap();
        let names = ["tokenizer.json", "tokenizer_config.json"];
        let files = TokenizerFiles::find_in(dir.path(), &names);
        let refused = || files.json().unwrap_err().into_kind();
        assert!(matches!(refused(), ErrorKind::Json(JsonError::NotJson { .. })));
        assert_eq!(files.tokenizer_config().unwrap(), json!({ "model_max_length": 1e30 }));
        let absent = files.read(FileRole::Processor).unwrap_err();
        let what = "processor_config.json";
        assert!(matches!(absent.kind(), ErrorKind::NoFile { what: of } if *of == what), "{absent}");
        assert_eq!(absent.path(), Some(dir.path()));
        fs::write(dir.path().join("tokenizer.json"), "").unwrap();
        assert!(matches!(refused(), ErrorKind::File(tensorfile::ErrorKind::Empty)));
        fs::write(dir.path().join("tokenizer.json"), "\"Not Found\"").unwrap();
        let error = files.json().unwrap_err().to_string();
        assert!(error.ends_with("expected an object or a list, found a string"), "{error}");
    }
}
