//! Chat templates, from whichever file of the directory holds them.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tensorfile::Lookalike;

use crate::beside::file_role::FileRole;
use crate::beside::tokenizer::TokenizerFiles;
use crate::io_error::io_error;
use crate::json::JsonError;
use crate::{ErrorKind, Result, json};

/// The name of the template used when a request names none.
const DEFAULT: &str = "default";

/// A Jinja template that turns a conversation into text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChatTemplate {
    /// The purpose of the template: `default`, or a name such as `tool_use`.
    pub name: String,
    /// The template itself.
    pub text: String,
    /// The file that it was read from.
    pub path: PathBuf,
}

impl TokenizerFiles {
    /// Reads the chat templates: the one named `default` first, the others by name. May be empty.
    ///
    /// Template files (`chat_template.jinja`, `additional_chat_templates/*.jinja`) win over
    /// `chat_template` in the tokenizer's configuration, which wins over `chat_template.json`.
    ///
    /// # Errors
    ///
    /// An error that names the file if one cannot be read or holds no template;
    /// [`ErrorKind::Ambiguous`] if two templates exist and neither takes precedence.
    pub fn chat_templates(&self) -> Result<Vec<ChatTemplate>> {
        let templates = from_own_files(self)?;
        if !templates.is_empty() {
            return Ok(templates);
        }
        for role in [FileRole::TokenizerConfig, FileRole::ChatTemplateJson] {
            let Some(path) = self.path(role) else { continue };
            let templates = from_json(path, self.read(role)?.get("chat_template"))?;
            if !templates.is_empty() {
                return Ok(templates);
            }
        }
        Ok(Vec::new())
    }
}

/// The templates in files of their own.
fn from_own_files(files: &TokenizerFiles) -> Result<Vec<ChatTemplate>> {
    let directory = &files.directory;
    let main = files.path(FileRole::ChatTemplate);
    let others = additional(directory)?;
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let main_again = main.and_then(|_| others.iter().find(|path| stem(path) == DEFAULT));
    let other = main.is_none().then(|| others.first()).flatten();
    let rival = main.or_else(|| files.path(FileRole::ChatTemplateJson));
    if let (Some(rival), Some(other)) = (rival, main_again.or(other)) {
        let reason = "two chat templates, and neither takes precedence (remove one)";
        let candidates = vec![rival.to_owned(), other.clone()];
        return Err(ErrorKind::Ambiguous { reason, candidates }.at(directory));
    }
    let main = main.map(|path| (DEFAULT.to_owned(), path.to_owned()));
    let named = main.into_iter().chain(others.into_iter().map(|path| (stem(&path), path)));
    let mut templates = BTreeMap::new();
    for (name, path) in named {
        let text = json::read(&path, files.max)?;
        check(&text).map_err(|kind| kind.at(&path))?;
        templates.insert(name, (text, path));
    }
    Ok(default_first(templates))
}

/// The templates under `chat_template` of a JSON file.
fn from_json(path: &Path, value: Option<&Value>) -> Result<Vec<ChatTemplate>> {
    let named: Option<Vec<(&str, &str)>> = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(text)) => Some(vec![(DEFAULT, text.as_str())]),
        Some(Value::Array(list)) => list
            .iter()
            .map(|item| Some((item.get("name")?.as_str()?, item.get("template")?.as_str()?)))
            .collect(),
        Some(Value::Object(map)) => {
            map.iter().map(|(name, text)| Some((name.as_str(), text.as_str()?))).collect()
        }
        Some(_) => None,
    };
    let Some(named) = named else {
        let wrong = JsonError::FieldType {
            field: "chat_template",
            expected: "a template or a list of objects with name and template",
            found: value.map(json::kind).unwrap_or_default().into(),
        };
        return Err(ErrorKind::Json(wrong).at(path));
    };
    let owned = |(name, text): (&str, &str)| (name.to_owned(), (text.to_owned(), path.to_owned()));
    Ok(default_first(named.into_iter().map(owned).collect()))
}

/// The files of the templates beside the main one, sorted by name.
pub(crate) fn additional(directory: &Path) -> Result<Vec<PathBuf>> {
    jinja_files(&directory.join("additional_chat_templates"))
}

/// The `.jinja` files of a folder, sorted by name; empty if the folder does not exist.
fn jinja_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let error = |source| io_error(folder, "list the folder", source);
    let entries = match fs::read_dir(folder) {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        entries => entries.map_err(error)?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let name = entry.map_err(error)?.file_name();
        let shown = name.to_string_lossy();
        if shown.ends_with(".jinja") && !shown.starts_with('.') {
            files.push(folder.join(&name));
        }
    }
    files.sort();
    Ok(files)
}

/// Refuses a text without any Jinja tag, such as an error page saved in place of the file. The
/// first bytes do not suffice: a template may start like an HTML page.
fn check(text: &str) -> Result<(), ErrorKind> {
    if ["{{", "{%"].iter().any(|tag| text.contains(tag)) {
        return Ok(());
    }
    let (looks_like, start) = (Lookalike::of(text.as_bytes()), json::start_of(text));
    Err(ErrorKind::NotATemplate { looks_like, start })
}

/// The templates as a list, `default` first.
fn default_first(mut templates: BTreeMap<String, (String, PathBuf)>) -> Vec<ChatTemplate> {
    let default = templates.remove_entry(DEFAULT);
    let all = default.into_iter().chain(templates);
    all.map(|(name, (text, path))| ChatTemplate { name, text, path }).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use crate::beside::tokenizer::TokenizerFiles;
    use crate::{ErrorKind, Result};

    /// Name and text of a file.
    type File<'a> = (&'a str, &'a str);

    /// Writes these files and shows the templates read as `name=text@file`.
    fn templates(files: &[File<'_>]) -> Result<Vec<String>> {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
        let templates = TokenizerFiles::find_in(dir.path(), &names).chat_templates()?;
        let file = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        let shown = templates.iter().map(|t| format!("{}={}@{}", t.name, t.text, file(&t.path)));
        Ok(shown.collect())
    }

    const JINJA: File<'static> = ("chat_template.jinja", "{{J}}");
    const TOOLS: File<'static> = ("additional_chat_templates/tool_use.jinja", "{{T}}");
    const STRING: File<'static> = ("tokenizer_config.json", r#"{"chat_template": "S"}"#);
    const LEGACY: File<'static> = ("chat_template.json", r#"{"chat_template": "L"}"#);

    #[test]
    fn places_have_an_order() {
        let list = r#"{"chat_template": [{"name": "a", "template": "A"}, {"name": "default", "template": "D"}]}"#;
        let list = ("tokenizer_config.json", list);
        let null = ("tokenizer_config.json", r#"{"chat_template": null}"#);
        let hidden = ("additional_chat_templates/._tool_use.jinja", "\0\x05\x16\x07");
        let cases: [(&[File<'_>], &[&str]); 10] = [
            // A side-car of macOS is no template.
            (&[hidden, TOOLS], &["tool_use={{T}}@tool_use.jinja"]),
            (&[hidden, STRING], &["default=S@tokenizer_config.json"]),
            (&[JINJA, STRING, LEGACY], &["default={{J}}@chat_template.jinja"]),
            (
                &[JINJA, TOOLS, LEGACY],
                &["default={{J}}@chat_template.jinja", "tool_use={{T}}@tool_use.jinja"],
            ),
            (&[TOOLS, STRING], &["tool_use={{T}}@tool_use.jinja"]),
            (&[STRING, LEGACY], &["default=S@tokenizer_config.json"]),
            (&[list], &["default=D@tokenizer_config.json", "a=A@tokenizer_config.json"]),
            (&[null, LEGACY], &["default=L@chat_template.json"]),
            (&[null], &[]),
            (&[], &[]),
        ];
        for (files, expected) in cases {
            assert_eq!(templates(files).unwrap(), expected, "{files:?}");
        }
    }

    #[test]
    fn two_without_an_order_are_refused() {
        let again = ("additional_chat_templates/default.jinja", "D");
        for files in [&[TOOLS, LEGACY], &[JINJA, again]] {
            let error = templates(files).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Ambiguous { .. }), "{files:?}: {error}");
        }
    }

    #[test]
    fn what_is_no_template_is_refused_by_name() {
        let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n";
        let cases = [
            (("chat_template.jinja", ""), "chat_template.jinja: empty file"),
            (("chat_template.jinja", pointer), "chat_template.jinja: is a Git LFS pointer"),
            (("chat_template.jinja", "404: Not Found"), "not a chat template: it looks like text"),
            (("chat_template.jinja", "<!DOCTYPE html>"), "it looks like a web page"),
            (("chat_template.jinja", "{\"error\": 1}"), "it looks like JSON text"),
            (("tokenizer_config.json", "{"), "tokenizer_config.json: line 1 column 1: EOF"),
            (
                ("chat_template.json", r#"{"chat_template": 1}"#),
                "chat_template.json: chat_template: expected",
            ),
            (("chat_template.json", r#"{"chat_template": [{"name": "a"}]}"#), "found a list"),
        ];
        for (file, message) in cases {
            let error = templates(&[file]).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn a_template_may_start_as_a_page_or_json_does() {
        for text in ["<|im_start|>{{ x }}", "<s>{% if x %}{% endif %}", "{{ x }}", "[{{ x }}]"] {
            assert_eq!(templates(&[("chat_template.jinja", text)]).unwrap().len(), 1, "{text}");
        }
    }
}
