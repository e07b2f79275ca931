//! Every way of opening and reading, each giving a listing and tensors, or the product's errors.
#![expect(unsafe_code, reason = "mapping is one of the ways, and the caller answers for the file")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use modeldir::{LoadOptions, ModelDir, OpenOptions, Report, TensorStore};
use tensorfile::{Buffer, HeaderOptions, Metadata, ReadAt, Tensor, TensorFile, TensorInfo};

use crate::expected::OpenAs;
use crate::refusal::Refusal;

/// One way of opening and reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// `TensorFile::open`, then a read for each tensor.
    FileRead,
    /// `TensorFile` over bytes in memory, by views and by reads.
    FileBytes,
    /// `TensorFile::open`, then `map`.
    FileMapped,
    /// `ModelDir`, loaded by one thread.
    LoadOne,
    /// `ModelDir`, loaded by many threads.
    LoadMany,
    /// `ModelDir`, mapped.
    Mapped,
}

/// What a way gave.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) way: Way,
    pub(crate) listing: Result<Listing, Refusal>,
    /// The tensors that were read; none if nothing could be opened.
    pub(crate) tensors: BTreeMap<String, Result<Tensor, Refusal>>,
    /// The error of a step before the first read, such as mapping.
    pub(crate) before_reading: Option<Refusal>,
}

/// What is known of a target before its tensors are read.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) tensors: BTreeMap<String, Listed>,
    pub(crate) metadata: Option<BTreeMap<String, String>>,
    pub(crate) planned_bytes: u64,
    /// Of a model: what was ignored or odd.
    pub(crate) report: Report,
}

/// A tensor as headers declare it.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) dtype: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) byte_len: u64,
    pub(crate) file: PathBuf,
}

/// What to open and what to leave out.
pub(crate) struct Target<'a> {
    pub(crate) path: &'a Path,
    pub(crate) options: OpenOptions,
    pub(crate) unread: BTreeSet<&'a str>,
    /// Done between opening and reading.
    pub(crate) after_open: &'a dyn Fn() -> Result<(), String>,
}

/// More bytes than these are not read where nobody asks for them.
const MANY_BYTES: u64 = 256 << 20;

impl Way {
    /// The ways that suit a target. A lone file is a model as well, if it is not changed after
    /// opening: a loader opens it again, and may take the change for a fault.
    pub(crate) fn all(open_as: OpenAs, target: &Path, changes: bool) -> Vec<Self> {
        let file = [Self::FileRead, Self::FileBytes, Self::FileMapped];
        let model = [Self::LoadOne, Self::LoadMany, Self::Mapped];
        match open_as {
            OpenAs::Dir => model.to_vec(),
            OpenAs::File if changes => file.to_vec(),
            OpenAs::File if target.is_dir() => vec![Self::FileRead, Self::FileMapped],
            OpenAs::File => [file, model].concat(),
        }
    }

    /// Opens and reads the target; `None` where the way does not lead to it, because the fault lies
    /// in the file system. An error of this is one of the machine, or ways that contradict.
    pub(crate) fn attempt(self, target: &Target<'_>) -> Result<Option<Attempt>, String> {
        match self {
            Self::FileRead => Attempt::of_file(self, target).map(Some),
            Self::FileMapped => Attempt::of_mapped_file(self, target).map(Some),
            Self::FileBytes => match bytes_of(target.path) {
                Ok(bytes) => Attempt::of_bytes(self, target, &bytes).map(Some),
                Err(_) => Ok(None),
            },
            Self::LoadOne | Self::LoadMany | Self::Mapped => {
                Attempt::of_model(self, target).map(Some)
            }
        }
    }

    fn threads(self) -> NonZeroUsize {
        NonZeroUsize::new(if self == Self::LoadOne { 1 } else { 4 }).unwrap_or(NonZeroUsize::MIN)
    }

    /// Runs a plan in this way.
    pub(crate) fn run(self, plan: &modeldir::LoadPlan) -> Result<TensorStore, modeldir::Error> {
        if self == Self::Mapped {
            // SAFETY: cases lie in folders of their own, and the runner, which alone changes them,
            // does not map a file that it shortens.
            return unsafe { plan.map() };
        }
        plan.load_with(&LoadOptions { threads: Some(self.threads()), ..LoadOptions::default() })
    }
}

impl Attempt {
    fn refused(way: Way, error: impl Into<Refusal>) -> Self {
        Self { way, listing: Err(error.into()), tensors: BTreeMap::new(), before_reading: None }
    }

    fn opened(way: Way, listing: Listing) -> Self {
        Self { way, listing: Ok(listing), tensors: BTreeMap::new(), before_reading: None }
    }

    fn of_file(way: Way, target: &Target<'_>) -> Result<Self, String> {
        let file = match TensorFile::open(target.path) {
            Ok(file) => file,
            Err(error) => return Ok(Self::refused(way, error)),
        };
        let mut attempt = Self::opened(way, Listing::of_file(&file));
        (target.after_open)()?;
        attempt.read_each(target, |name| file.read(name));
        Ok(attempt)
    }

    fn of_mapped_file(way: Way, target: &Target<'_>) -> Result<Self, String> {
        let file = match TensorFile::open(target.path) {
            Ok(file) => file,
            Err(error) => return Ok(Self::refused(way, error)),
        };
        let byte_len = file.source().opened_bytes();
        let mut attempt = Self::opened(way, Listing::of_file(&file));
        (target.after_open)()?;
        match map_file(&file) {
            Err(error) => attempt.before_reading = Some(error.into()),
            Ok(_) if fs::metadata(target.path).is_ok_and(|now| now.len() < byte_len) => {
                return Err("a file that had been shortened was mapped".to_owned());
            }
            Ok(file) => attempt.read_each(target, |name| file.tensor(name)),
        }
        Ok(attempt)
    }

    fn of_bytes(way: Way, target: &Target<'_>, bytes: &[u8]) -> Result<Self, String> {
        let unnamed = TensorFile::from_bytes(bytes);
        let named = TensorFile::from_source(target.path, bytes, &HeaderOptions::default());
        let (unnamed, named) = match (unnamed, named) {
            (Ok(unnamed), Ok(named)) => (unnamed, named),
            (Err(unnamed), Err(named)) => {
                let (unnamed, named) = (Refusal::from(unnamed), Refusal::from(named));
                let same = unnamed.variants == named.variants;
                let differ = || format!("from_bytes says {}", unnamed.text);
                return same.then(|| Self::refused(way, named)).ok_or_else(differ);
            }
            _ => return Err("one of from_bytes and from_source refuses".to_owned()),
        };
        let mut attempt = Self::opened(way, Listing::of_file(&named));
        (target.after_open)()?;
        attempt.read_each(target, |name| named.read(name));
        for (name, read) in &attempt.tensors {
            let Ok(read) = read else { continue };
            let view = unnamed.view(name).map_err(|error| Refusal::from(error).text)?;
            let (view, read) = (
                (view.dtype(), view.shape(), view.bytes()),
                (read.dtype(), read.shape(), read.bytes()),
            );
            if view != read {
                return Err(format!("{name}: view and read differ"));
            }
        }
        Ok(attempt)
    }

    fn of_model(way: Way, target: &Target<'_>) -> Result<Self, String> {
        let options = OpenOptions { threads: Some(way.threads()), ..target.options.clone() };
        let model = match ModelDir::open_with(target.path, &options) {
            Ok(model) => model,
            Err(error) => return Ok(Self::refused(way, error)),
        };
        let mut attempt = Self::opened(way, Listing::of_model(&model));
        (target.after_open)()?;
        let names = attempt.wanted(target);
        let all = model.plan();
        let plan = if names.len() == all.len() {
            all
        } else {
            all.filter(|tensor| names.contains(tensor.name()))
        };
        match way.run(&plan) {
            Err(error) => attempt.before_reading = Some(error.into()),
            Ok(store) if !store.names().eq(names.iter()) => {
                return Err("the store does not hold the names of its plan".to_owned());
            }
            Ok(store) => {
                let get = |name: &str| store.get(name).cloned().map_err(Refusal::from);
                attempt.tensors = names
                    .into_iter()
                    .map(|name| {
                        let t = get(&name);
                        (name, t)
                    })
                    .collect();
            }
        }
        Ok(attempt)
    }

    fn read_each(
        &mut self,
        target: &Target<'_>,
        read: impl Fn(&str) -> Result<Tensor, tensorfile::Error>,
    ) {
        for name in self.wanted(target) {
            let tensor = read(&name).map_err(Refusal::from);
            self.tensors.insert(name, tensor);
        }
    }

    /// The names to read: all, but for those that must not be read and those that are too much.
    fn wanted(&self, target: &Target<'_>) -> BTreeSet<String> {
        let listed = self.listing.iter().flat_map(|listing| &listing.tensors);
        let wanted = listed.filter(|(name, listed)| {
            !target.unread.contains(name.as_str()) && listed.byte_len < MANY_BYTES
        });
        wanted.map(|(name, _)| name.clone()).collect()
    }
}

impl Listing {
    fn of_file<R: ReadAt>(file: &TensorFile<R>) -> Self {
        let path = file.path().file_name().map(PathBuf::from).unwrap_or_default();
        let infos = file.header().tensors();
        Self {
            tensors: infos.iter().map(|info| Listed::named(info, &path)).collect(),
            metadata: file.metadata().map(Metadata::to_map),
            planned_bytes: infos.iter().map(|info| info.byte_len() as u64).sum(),
            report: Report::default(),
        }
    }

    fn of_model(model: &ModelDir) -> Self {
        let mut metadata = None;
        for shard in model.shards() {
            if let Some(entries) = shard.metadata() {
                metadata.get_or_insert_with(BTreeMap::new).extend(entries.to_map());
            }
        }
        let tensors = model.tensors();
        Self {
            tensors: tensors.map(|t| Listed::named(t.info(), t.shard().path())).collect(),
            metadata,
            planned_bytes: model.plan().bytes_selected(),
            report: model.report().clone(),
        }
    }
}

impl Listed {
    fn named(info: &TensorInfo, file: &Path) -> (String, Self) {
        let listed = Self {
            dtype: info.dtype().name().to_owned(),
            shape: info.shape().to_vec(),
            byte_len: info.byte_len() as u64,
            file: file.to_owned(),
        };
        (info.name().to_owned(), listed)
    }
}

/// Maps an open file.
pub(crate) fn map_file(file: &TensorFile) -> Result<TensorFile<Buffer>, tensorfile::Error> {
    // SAFETY: as in `Way::run`; what is mapped after a shortening is dropped untouched.
    unsafe { file.map() }
}

/// The bytes of a regular file, mapped if they are many.
pub(crate) fn bytes_of(path: &Path) -> std::io::Result<Box<dyn Deref<Target = [u8]>>> {
    if fs::metadata(path)?.len() < MANY_BYTES / 16 {
        return Ok(Box::new(fs::read(path)?));
    }
    // SAFETY: as in `Way::run`; this copy is read before the file is changed.
    Ok(Box::new(unsafe { memmap2::Mmap::map(&File::open(path)?)? }))
}
