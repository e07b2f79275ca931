//! The entries of a model's folder, one level deep, classified by name.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use super::rank_files::is_rank_file;
use crate::formats::format_of;
use crate::weights::natural;
use crate::{Error, Result};

/// The entries of a folder in natural order. Names need not be UTF-8.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) entries: Vec<Entry>,
    /// The position of each entry.
    by_name: HashMap<OsString, usize>,
}

/// One entry of a folder.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: OsString,
    pub(super) kind: Kind,
    pub(super) role: Role,
}

/// The kind of an entry, links followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
    /// A link to nothing.
    Dangling,
    /// A FIFO, a socket, a device, or an entry whose metadata cannot be read.
    Special,
}

/// The role of an entry by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Safetensors weights.
    Weights,
    /// Safetensors weights of one rank.
    RankFile,
    /// An index of safetensors weights.
    Index,
    /// A weight file or an index whose name starts with a dot.
    Hidden,
    /// Part of a download, running or interrupted.
    Partial,
    /// The state of a training run.
    Training,
    /// Weights of another format.
    Legacy,
    /// A folder.
    Folder,
    /// Anything else: configuration, tokenizer, read-me.
    Other,
}

impl Listing {
    /// Lists a folder. Links are followed to find their kind; nothing is opened.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let error = |source| Error::from(tensorfile::ErrorKind::io("list", source)).at(folder);
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder).map_err(error)? {
            let entry = entry.map_err(error)?;
            let kind = kind(&entry);
            let name = entry.file_name();
            let role = role(&name, kind);
            entries.push(Entry { name, kind, role });
        }
        entries.sort_by(|a: &Entry, b| natural::compare_os(&a.name, &b.name));
        let names = entries.iter().enumerate();
        let by_name = names.map(|(position, entry)| (entry.name.clone(), position)).collect();
        Ok(Self { entries, by_name })
    }

    /// The listing of a folder that was not read.
    pub(super) fn none() -> Self {
        Self { entries: Vec::new(), by_name: HashMap::new() }
    }

    /// The UTF-8 names of all entries except folders. Irregular files and dangling links are
    /// included: they fail when opened, instead of giving way to another file of their role.
    pub(super) fn file_names(&self) -> Vec<String> {
        let files = self.entries.iter().filter(|entry| entry.kind != Kind::Folder);
        files.filter_map(|entry| entry.name.to_str().map(str::to_owned)).collect()
    }

    /// The entry of this name.
    pub(super) fn get(&self, name: &str) -> Option<&Entry> {
        self.by_name.get(OsStr::new(name)).and_then(|position| self.entries.get(*position))
    }

    /// Whether there is an entry of this name, of any kind.
    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The entries with a role.
    pub(super) fn of(&self, role: Role) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.role == role)
    }
}

/// The kind of an entry, links followed.
fn kind(entry: &fs::DirEntry) -> Kind {
    let plain = entry.file_type();
    let is_link = plain.as_ref().is_ok_and(fs::FileType::is_symlink);
    let followed =
        if is_link { fs::metadata(entry.path()).map(|meta| meta.file_type()) } else { plain };
    match followed {
        Ok(found) if found.is_file() => Kind::File,
        Ok(found) if found.is_dir() => Kind::Folder,
        Ok(_) => Kind::Special,
        Err(_) if is_link => Kind::Dangling,
        Err(_) => Kind::Special,
    }
}

/// Prefixes of files that hold the state of a training run.
const TRAINING: [&str; 7] = [
    "optimizer",
    "scheduler",
    "scaler",
    "rng_state",
    "random_states",
    "training_args",
    "trainer_state",
];

/// The role of an entry by its name.
pub(super) fn role(name: &OsStr, kind: Kind) -> Role {
    let text = name.to_string_lossy();
    let extension = Path::new(name).extension().unwrap_or_default().to_string_lossy();
    // Some systems write names in capitals; the content is the same.
    let is_weights = extension.eq_ignore_ascii_case("safetensors");
    let is_index = extension == "json" && text.contains(".safetensors.") && text.contains("index.");
    let is_legacy = format_of(Path::new(name)).is_some();
    if is_partial(&extension) {
        return Role::Partial;
    }
    if text.starts_with('.') {
        return if is_weights || is_index { Role::Hidden } else { Role::Other };
    }
    if kind == Kind::Folder {
        return Role::Folder;
    }
    if (is_weights || is_legacy) && TRAINING.iter().any(|start| text.starts_with(start)) {
        return Role::Training;
    }
    match () {
        () if is_weights && is_rank_file(&text) => Role::RankFile,
        () if is_weights => Role::Weights,
        () if is_index => Role::Index,
        () if is_legacy || is_legacy_index(&text) => Role::Legacy,
        () => Role::Other,
    }
}

/// Whether an extension is that of a partial download.
pub(super) fn is_partial(extension: &str) -> bool {
    matches!(extension, "incomplete" | "lock" | "aria2" | "crdownload" | "download" | "tmp")
        || extension.starts_with("part")
}

/// Whether a name is that of an index of another format.
pub(super) fn is_legacy_index(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".index.json") else { return false };
    format_of(Path::new(stem)).is_some()
}

#[cfg(test)]
mod tests {
    use super::{Kind, Listing, Role, role};
    use std::ffi::OsStr;
    use std::fs;

    #[test]
    fn roles_are_told_by_name() {
        for (name, expected) in [
            ("model.safetensors", Role::Weights),
            ("a b.safetensors", Role::Weights),
            ("MODEL.SAFETENSORS", Role::Weights),
            ("model0-mp8.safetensors", Role::RankFile),
            ("rank0.safetensors", Role::RankFile),
            ("MODEL.GGUF", Role::Legacy),
            ("model-q4k.uqff", Role::Legacy),
            ("__0_0.distcp", Role::Legacy),
            ("scheduler_model.safetensors", Role::Training),
            ("optimizer.safetensors", Role::Training),
            ("optimizer.bin", Role::Training),
            ("rng_state_0.pth", Role::Training),
            ("training_args.bin", Role::Training),
            ("trainer_state.json", Role::Other),
            ("scheduler_config.json", Role::Other),
            ("model.safetensors.index.json", Role::Index),
            ("model.safetensors.index.fp16.json", Role::Index),
            ("model.safetensors.fp16.index.json", Role::Index),
            ("._model.safetensors", Role::Hidden),
            ("._model.safetensors.index.json", Role::Hidden),
            (".gitattributes", Role::Other),
            (".safetensors", Role::Other),
            ("model.safetensors.part", Role::Partial),
            ("model-00034-of-00162.safetensors.part_aa", Role::Partial),
            (".model.safetensors.incomplete", Role::Partial),
            ("model.safetensors.lock", Role::Partial),
            ("pytorch_model.bin", Role::Legacy),
            ("pytorch_model.bin.index.json", Role::Legacy),
            ("tf_model.h5", Role::Legacy),
            ("model-q4.gguf", Role::Legacy),
            ("config.json", Role::Other),
            ("tokenizer.model", Role::Other),
            ("README.md", Role::Other),
            ("safetensors", Role::Other),
        ] {
            assert_eq!(role(OsStr::new(name), Kind::File), expected, "{name}");
        }
        assert_eq!(role(OsStr::new("x.safetensors"), Kind::Folder), Role::Folder);
        assert_eq!(role(OsStr::new("x.safetensors"), Kind::Dangling), Role::Weights);
    }

    #[test]
    fn entries_come_in_natural_order_and_are_not_looked_into() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b-10.safetensors", "b-9.safetensors", "a.json"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        fs::create_dir_all(dir.path().join("original/deep")).unwrap();
        let listing = Listing::read(dir.path()).unwrap();
        let names: Vec<_> = listing.entries.iter().map(|e| e.name.to_str().unwrap()).collect();
        assert_eq!(names, ["a.json", "b-9.safetensors", "b-10.safetensors", "original"]);
        assert_eq!(listing.get("original").unwrap().kind, Kind::Folder);
        assert!(!listing.has("deep"));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_names_need_not_be_text() {
        use std::os::unix::ffi::OsStrExt;
        use std::os::unix::fs::symlink;

        let dir = tempfile::tempdir().unwrap();
        let odd = OsStr::from_bytes(b"\xff.safetensors");
        fs::write(dir.path().join(odd), "").unwrap();
        symlink(odd, dir.path().join("link.safetensors")).unwrap();
        symlink("nothing", dir.path().join("dangling.safetensors")).unwrap();
        let _socket =
            std::os::unix::net::UnixListener::bind(dir.path().join("socket.safetensors")).unwrap();
        let listing = Listing::read(dir.path()).unwrap();
        let kind = |name| listing.get(name).unwrap().kind;
        assert_eq!(kind("link.safetensors"), Kind::File);
        assert_eq!(kind("dangling.safetensors"), Kind::Dangling);
        assert_eq!(kind("socket.safetensors"), Kind::Special);
        assert!(listing.of(Role::Weights).any(|entry| entry.name == odd));
    }
}
