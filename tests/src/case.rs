//! A case: an input and what must come of it.

use std::fs;
use std::path::{Path, PathBuf};

use modeldir::OpenOptions;
use serde_json::Value;

use crate::ask::{ask, check_config};
use crate::check::{Tensors, check, check_agreement, check_digests};
use crate::child;
use crate::expected::{Expected, Kind, read_expected};
use crate::folder::{Copy, listing, mutate};
use crate::host::Need;
use crate::ways::{Attempt, Target, Way};

/// A folder with an input and an `expected.json`, or an input of which a manifest says the same.
#[derive(Clone, Debug)]
pub struct Case {
    source: &'static str,
    /// The folder, or the one file that the case is.
    root: PathBuf,
    /// What must come of it; `None`: the folder's `expected.json` says it.
    expected: Option<Value>,
}

/// How a case that did not fail ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was as it must be.
    Passed,
    /// This machine cannot run the case, for this reason.
    Skipped(String),
}

/// The cases in the folders of `dir`, by name. `source` is the first part of their names.
///
/// # Errors
///
/// Says what is wrong if the folder cannot be read or holds no case at all.
pub fn cases_in(source: &'static str, dir: &Path) -> Result<Vec<Case>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", dir.display());
    let mut cases = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_type().map_err(failed)?.is_dir() {
            cases.push(Case::new(source, &entry.path()));
        }
    }
    if cases.is_empty() {
        return Err(format!("{}: no cases here", dir.display()));
    }
    cases.sort_by(|a, b| a.root.cmp(&b.root));
    Ok(cases)
}

impl Case {
    /// The case in a folder.
    #[must_use]
    pub fn new(source: &'static str, folder: &Path) -> Self {
        Self { source, root: folder.to_owned(), expected: None }
    }

    /// The case in a folder or of one file, with what else would be its `expected.json`.
    #[must_use]
    pub fn of(source: &'static str, root: &Path, expected: Value) -> Self {
        Self { source, root: root.to_owned(), expected: Some(expected) }
    }

    /// The case with something else that must come of it.
    #[must_use]
    pub fn expecting(self, expected: Value) -> Self {
        Self { expected: Some(expected), ..self }
    }

    /// Source and name of the folder, or of the file without its ending.
    #[must_use]
    pub fn name(&self) -> String {
        let id = if self.root.is_dir() { self.root.file_name() } else { self.root.file_stem() };
        format!("{}/{}", self.source, Path::new(id.unwrap_or_default()).display())
    }

    /// What `expected.json` says, or the manifest.
    ///
    /// # Errors
    ///
    /// Says why it cannot be read.
    pub fn expected(&self) -> Result<Value, String> {
        match &self.expected {
            Some(expected) => Ok(expected.clone()),
            None => read_expected(&self.root),
        }
    }

    /// Runs the case, in a process of its own where it asks for one.
    ///
    /// # Errors
    ///
    /// Says what was not as it must be.
    pub fn run(&self) -> Result<Outcome, String> {
        let expected = self.parsed()?;
        if let Some(reason) = expected.needs.iter().find_map(|need| need.lacking()) {
            return Ok(Outcome::Skipped(reason.to_owned()));
        }
        let as_nobody = expected.needs.contains(&Need::NonRoot) && child::is_root();
        match expected.nofile {
            Some(_) if as_nobody => {
                Err("limits of another user are not known to the runner".to_owned())
            }
            Some(nofile) => child::run_with_nofile(&self.root, nofile),
            None if as_nobody => child::run_as_nobody(&self.root),
            None => self.run_here().map(|()| Outcome::Passed),
        }
    }

    /// Runs the case in this process.
    pub(crate) fn run_here(&self) -> Result<(), String> {
        let expected = self.parsed()?;
        let before = self.listing()?;
        let old = match expected.mutations.is_empty() {
            true => None,
            false => Some(self.unchanged_tensors(&expected)?),
        };
        let mut first: Option<Attempt> = None;
        let changes = old.is_some();
        for way in Way::all(expected.open_as, &expected.target_in(&self.root), changes) {
            let in_way = |wrong: String| format!("{way:?}: {wrong}");
            let attempt = self.attempt(&expected, way, old.as_ref()).map_err(in_way)?;
            match (&first, attempt) {
                (Some(first), Some(attempt)) if old.is_none() => {
                    check_agreement(first, &attempt).map_err(in_way)?;
                }
                (None, attempt) => first = attempt,
                _ => {}
            }
        }
        for query in &expected.queries {
            let in_query = |wrong: String| format!("{query:?}: {wrong}");
            ask(&expected, query, &self.root).map_err(in_query)?;
        }
        for (pointer, wanted) in &expected.config {
            check_config(&expected, &self.root, pointer, wanted)?;
        }
        let after = self.listing()?;
        if expected.no_new_files && before != after {
            return Err(format!("files before: {before:?}, after: {after:?}"));
        }
        Ok(())
    }

    /// What must come of the case, understood.
    fn parsed(&self) -> Result<Expected, String> {
        let id = self.root.file_name().filter(|_| self.expected.is_none());
        Expected::parse(self.expected()?, id)
    }

    /// The files of the case; none if it is one file.
    fn listing(&self) -> Result<Vec<PathBuf>, String> {
        let files = if self.root.is_dir() { listing(&self.root) } else { Ok(Vec::new()) };
        files.map_err(|error| error.to_string())
    }

    /// Opens and reads in one way, on a copy if files are to be changed, and checks what came.
    fn attempt(
        &self,
        expected: &Expected,
        way: Way,
        old: Option<&Tensors>,
    ) -> Result<Option<Attempt>, String> {
        let copied = |error| format!("copying the case: {error}");
        let copy = old.map(|_| Copy::of(&self.root)).transpose().map_err(copied)?;
        let root = copy.as_ref().map_or(self.root.as_path(), Copy::path);
        let attempt = way.attempt(&Target {
            path: &expected.target_in(root),
            options: OpenOptions::default(),
            unread: expected.unread(),
            after_open: &|| mutate(root, &expected.mutations),
        })?;
        match &attempt {
            Some(attempt) => check(expected, attempt, root, old)?,
            None if matches!(expected.kind, Kind::Error(_)) => {}
            None => return Err("the file cannot be read".to_owned()),
        }
        Ok(attempt)
    }

    /// The tensors as they are before the files are changed.
    fn unchanged_tensors(&self, expected: &Expected) -> Result<Tensors, String> {
        let target = expected.target_in(&self.root);
        let ways = Way::all(expected.open_as, &target, true);
        let attempt = ways[0].attempt(&Target {
            path: &target,
            options: OpenOptions::default(),
            unread: expected.unread(),
            after_open: &|| Ok(()),
        })?;
        let tensors = attempt.map(|attempt| attempt.tensors).unwrap_or_default();
        check_digests(expected, &tensors)?;
        Ok(tensors)
    }
}
