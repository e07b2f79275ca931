//! The manifest of the conformance corpus, read as cases of this runner's form.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::case::Case;
use crate::fields::Fields;

/// A file of the corpus, and what the manifest says that the reference makes of it.
#[derive(Clone, Debug)]
pub struct FormatCase {
    /// The name of the case.
    pub id: String,
    /// The file.
    pub path: PathBuf,
    /// Whether this project takes the file.
    pub accepted: bool,
    /// Whether the reference takes it.
    pub reference_accepts: bool,
}

/// The cases of a conformance corpus, and those of the format once more for the reference.
///
/// # Errors
///
/// Says what is wrong with the manifest.
pub fn conformance(dir: &Path) -> Result<(Vec<Case>, Vec<FormatCase>), String> {
    let path = dir.join("manifest.json");
    let text = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let manifest =
        serde_json::from_slice(&text).map_err(|error| format!("manifest.json: {error}"))?;
    let mut fields = Fields::new("manifest.json", manifest)?;
    let [format, directories]: [Vec<Value>; 2] =
        [fields.required("format")?, fields.required("directories")?];
    match fields.required("version")? {
        1_u8 => fields.remarks(&["licence", "reference"]),
        other => return Err(format!("manifest.json: the runner does not know version {other}")),
    }
    fields.finish()?;
    let (mut cases, mut files) = (Vec::new(), Vec::new());
    for row in format {
        let (case, file) = format_case(dir, row)?;
        cases.push(case);
        files.push(file);
    }
    for row in directories {
        cases.push(directory_case(dir, row)?);
    }
    Ok((cases, files))
}

/// Reads the row of one file.
fn format_case(dir: &Path, row: Value) -> Result<(Case, FormatCase), String> {
    let mut row = Row::new(row)?;
    let path = dir.join(row.fields.required::<String>("file")?);
    let file = FormatCase {
        id: row.id.clone(),
        path: path.clone(),
        accepted: row.accepted,
        reference_accepts: accepts(&row.fields.required::<String>("reference")?)?,
    };
    row.set("open_as", json!("file"));
    row.set("target", json!(""));
    if row.accepted {
        row.take("metadata")?;
    }
    row.take_optional("values")?;
    Ok((Case::of("conformance", &path, row.finish()?), file))
}

/// Reads the row of a directory.
fn directory_case(dir: &Path, row: Value) -> Result<Case, String> {
    let mut row = Row::new(row)?;
    let folder = format!("directories/{}", row.id);
    let open: String = row.fields.required("open")?;
    let target = open.strip_prefix(&format!("{folder}/"));
    let target = target.ok_or_else(|| format!("{}: {open} is not below {folder}", row.id))?;
    row.set("target", json!(target));
    row.set("open_as", json!("dir"));
    row.take("needs")?;
    row.fields.remarks(&["reference"]);
    Ok(Case::of("conformance", &dir.join(folder), row.finish()?))
}

/// A row of the manifest, and what it becomes.
struct Row {
    id: String,
    accepted: bool,
    fields: Fields,
    expected: Map<String, Value>,
}

impl Row {
    /// Takes what rows of both kinds have.
    fn new(row: Value) -> Result<Self, String> {
        let mut fields = Fields::new("manifest.json", row)?;
        let id: String = fields.required("id")?;
        let accepted = accepts(&fields.required::<String>("verdict")?)?;
        fields.remarks(&["reason"]);
        let own: Map<String, Value> = fields.required("modeldir")?;
        let mut row = Self { id, accepted, fields, expected: own };
        row.set("kind", json!(if accepted { "ok" } else { "error" }));
        if accepted {
            row.take("tensors")?;
            row.set("complete", json!(true));
        } else {
            row.set("stage", json!("open"));
        }
        Ok(row)
    }

    fn set(&mut self, key: &str, value: Value) {
        self.expected.insert(key.to_owned(), value);
    }

    /// Takes over a field that must be there.
    fn take(&mut self, key: &str) -> Result<(), String> {
        let value = self.fields.required(key)?;
        self.set(key, value);
        Ok(())
    }

    /// Takes over a field that may be absent.
    fn take_optional(&mut self, key: &str) -> Result<(), String> {
        if let Some(value) = self.fields.optional(key)? {
            self.set(key, value);
        }
        Ok(())
    }

    /// What `expected.json` would say.
    fn finish(self) -> Result<Value, String> {
        self.fields.finish()?;
        Ok(self.expected.into())
    }
}

/// Understands a verdict.
fn accepts(verdict: &str) -> Result<bool, String> {
    match verdict {
        "accept" => Ok(true),
        "reject" => Ok(false),
        other => Err(format!("manifest.json: the runner does not know the verdict {other:?}")),
    }
}
