//! The files of a crate, and what each of them touches: crates, kinds of I/O, other files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::slice::from_ref;

use crate::tokens::{Named, Token, named, tokens};

/// Methods of `Path` that ask the file system.
const ASKING: [&str; 6] =
    ["exists", "try_exists", "read_dir", "canonicalize", "symlink_metadata", "read_link"];

/// The types with which `tensorfile` opens, reads and writes files.
const OPENING: [&str; 4] = ["TensorFile", "SourceFile", "ReadAt", "Writer"];

/// What of `std::io` is the terminal.
const TERMINAL: [&str; 7] =
    ["stdin", "stdout", "stderr", "Stdin", "Stdout", "Stderr", "IsTerminal"];

/// The macros that print to the terminal.
const PRINTING: [&str; 4] = ["print", "println", "eprint", "eprintln"];

/// Something that a file touches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Touch {
    /// A crate, or a kind of I/O, by its word in the column.
    Outside(String),
    /// Another file of the crate, by its path in `src`.
    File(String),
}

/// What a file touches, and where it says so.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) touch: Touch,
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) path: String,
}

/// A module: its file, its paths, the modules below it.
#[derive(Debug)]
struct Module {
    file: String,
    named: Vec<Named>,
    children: BTreeSet<String>,
    code: Vec<Token>,
}

/// What a path leads to: a module, or something that the module defines.
#[derive(Debug)]
struct Target {
    module: Vec<String>,
    is_module: bool,
}

/// The modules of a crate by their names, such as `["load", "crew"]`.
#[derive(Debug)]
pub(crate) struct House {
    modules: BTreeMap<Vec<String>, Module>,
    crates: BTreeMap<String, String>,
}

impl House {
    /// Reads a crate from its folder.
    pub(crate) fn read(folder: &Path) -> Self {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        let root =
            ["lib.rs", "main.rs"].into_iter().find(|file| folder.join("src").join(file).exists());
        let mut house = Self { modules: BTreeMap::new(), crates: dependencies(&manifest) };
        house.add(&folder.join("src"), &[], Path::new(root.expect("a root")));
        house
    }

    /// Adds a module and those below it.
    fn add(&mut self, source: &Path, name: &[String], file: &Path) {
        let text = fs::read_to_string(source.join(file)).expect("a file for every `mod`");
        let code = tokens(&text);
        let folder: PathBuf = name.iter().collect();
        let mut children = BTreeSet::new();
        for (at, window) in code.windows(3).enumerate() {
            let [word, child, end] = window else { continue };
            if word.text == "mod" && end.text == ";" {
                let path = given_path(&code[..at]).unwrap_or_else(|| format!("{}.rs", child.text));
                self.add(source, &[name, from_ref(&child.text)].concat(), &folder.join(path));
                children.insert(child.text.clone());
            }
        }
        let file = file.to_string_lossy().into_owned();
        self.modules.insert(name.to_vec(), Module { file, named: named(&code), children, code });
    }

    /// What each file touches, by its path in `src`; but for the root, which only lists.
    pub(crate) fn seen(&self) -> BTreeMap<String, Vec<Seen>> {
        let files = self.modules.iter().filter(|(name, _)| !name.is_empty());
        files.map(|(name, module)| (module.file.clone(), self.seen_in(name, module))).collect()
    }

    /// What one file touches.
    fn seen_in(&self, name: &[String], module: &Module) -> Vec<Seen> {
        let mut found = Vec::new();
        let mut see =
            |touch, line, path| found.push(Seen { touch, file: module.file.clone(), line, path });
        for Named { path, line, .. } in &module.named {
            if let Some(word) = self.outside(path) {
                see(Touch::Outside(word), *line, path.join("::"));
            } else if let Some(target) = self.resolve(name, path, 0) {
                see(Touch::File(self.modules[&target.module].file.clone()), *line, path.join("::"));
            }
        }
        for window in module.code.windows(3) {
            let [before, word, after] = window else { continue };
            let is_one_of = |names: &[&str]| names.contains(&word.text.as_str());
            let kind = match (before.text.as_str(), after.text.as_str()) {
                (".", "(") if is_one_of(&ASKING) => "files",
                (_, "!") if is_one_of(&PRINTING) => "terminal",
                _ if word.text == "unsafe_code" => "unsafe",
                _ => continue,
            };
            see(Touch::Outside(kind.to_owned()), word.line, word.text.clone());
        }
        found
    }

    /// The word in the column for a path that leads out of the crate, if there is one.
    fn outside(&self, path: &[String]) -> Option<String> {
        let has = |name: &str| path.iter().any(|segment| segment == name);
        let (first, second) = (path.first()?.as_str(), path.get(1).map_or("", String::as_str));
        let word = match (first, second) {
            ("std", "fs" | "os") => "files",
            ("std", "env") => "environment",
            ("std", "thread") => "threads",
            ("std", "process") if has("Command") => "processes",
            ("std", "net") => "network",
            ("std", "io") if TERMINAL.iter().any(|name| has(name)) => "terminal",
            ("std", "time") if has("Instant") || has("SystemTime") => "clock",
            ("modeldir", _) => return None,
            ("tensorfile", _) if !OPENING.iter().any(|name| has(name)) => return None,
            _ => self.crates.get(first)?,
        };
        Some(word.to_owned())
    }

    /// What a path in a module leads to; re-exports are followed.
    fn resolve(&self, from: &[String], path: &[String], depth: usize) -> Option<Target> {
        let ups = path.iter().take_while(|segment| *segment == "super").count();
        match path.first()?.as_str() {
            "crate" => self.walk(&[], &path[1..], true, depth),
            "self" => self.walk(from, &path[1..], true, depth),
            "super" => {
                self.walk(from.get(..from.len().checked_sub(ups)?)?, &path[ups..], true, depth)
            }
            _ => self.walk(from, path, false, depth),
        }
    }

    /// Follows a path from a module. What the module neither imports nor has below it is its own,
    /// if the path says that it is here.
    fn walk(
        &self,
        here: &[String],
        path: &[String],
        is_here: bool,
        depth: usize,
    ) -> Option<Target> {
        let module = self.modules.get(here)?;
        let Some((first, rest)) = path.split_first() else {
            return Some(Target { module: here.to_vec(), is_module: true });
        };
        if module.children.contains(first) {
            return self.walk(&[here, from_ref(first)].concat(), rest, true, depth);
        }
        let import = module.named.iter().find(|named| named.is_use && named.name == *first);
        let Some(import) = import.filter(|import| depth < 16 && import.path != path) else {
            return is_here.then(|| Target { module: here.to_vec(), is_module: false });
        };
        let target = self.resolve(here, &import.path, depth + 1)?;
        if target.is_module {
            self.walk(&target.module, rest, true, depth + 1)
        } else {
            Some(target)
        }
    }
}

/// The dependencies in a manifest, as code writes them and as the manifest does.
fn dependencies(manifest: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut is_inside = false;
    for line in manifest.lines() {
        let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
        if line.starts_with('[') {
            is_inside = line.ends_with("dependencies]") && !line.contains("dev-dependencies");
        } else if is_inside && !name.is_empty() {
            found.insert(name.replace('-', "_"), name.to_owned());
        }
    }
    found
}

/// The path in the attributes before a `mod`, if one is given.
fn given_path(before: &[Token]) -> Option<String> {
    let from = before.iter().rposition(|token| matches!(token.text.as_str(), ";" | "}"));
    let attributes = &before[from.map_or(0, |at| at + 1)..];
    let at = attributes.iter().position(|token| token.text == "path")?;
    Some(attributes.get(at + 2)?.text.trim_matches('"').to_owned())
}
