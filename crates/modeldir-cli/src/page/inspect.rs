//! The page of a model: bytes by module, shards, dtypes, configuration and tokenizer, the report.

use std::collections::BTreeMap;
use std::path::Path;

use modeldir::ModelDir;
use tensorfile::PathText;

use super::bar::legend;
use super::document::{Figure, document, end_section, list, paragraph, section};
use super::html::Html;
use super::kinds::Kinds;
use super::modules::Modules;
use super::table::{Counted, counted_table, plain_table};
use super::tree::Tree;
use super::treemap::Treemap;
use crate::contents::{beside_the_weights, tensor_groups};
use crate::output::{bytes, count};

/// Returns a page of all that opening a model shows.
pub(crate) fn model_page(model: &ModelDir) -> String {
    let mut html = Html::default();
    report(model, &mut html);
    modules(model, &mut html);
    section("Shards", &mut html);
    counted_table("file", &shards(model), &mut html);
    end_section(&mut html);
    section("Dtypes", &mut html);
    counted_table("dtype", &dtypes(model), &mut html);
    end_section(&mut html);
    section("Tensors", &mut html);
    paragraph("Those whose names differ in numbers alone share a row.", &mut html);
    plain_table(&tensor_groups(model), &mut html);
    end_section(&mut html);
    section("Beside the weights", &mut html);
    plain_table(&beside_the_weights(model), &mut html);
    end_section(&mut html);
    document(&title(model), &PathText(model.path()).to_string(), &figures(model), &html)
}

/// The name of a model: that of its directory.
pub(super) fn title(model: &ModelDir) -> String {
    let path = std::path::absolute(model.path()).unwrap_or_else(|_| model.path().to_owned());
    let name = path.file_name().map(Path::new);
    name.map_or_else(|| "model".to_owned(), |name| PathText(name).to_string())
}

fn figures(model: &ModelDir) -> [Figure; 4] {
    let elements: u64 = model
        .tensors()
        .map(|tensor| tensor.shape().iter().map(|len| *len as u64).product::<u64>())
        .fold(0, u64::saturating_add);
    [
        ("bytes", bytes(model.byte_len())),
        ("elements", count(elements)),
        ("tensors", count(model.len() as u64)),
        ("shards", count(model.shards().len() as u64)),
    ]
}

fn report(model: &ModelDir, html: &mut Html) {
    let text = model.report().to_string();
    if text.is_empty() {
        return;
    }
    section("Report", html);
    paragraph("What opening ignored or found odd, and did not refuse.", html);
    list(text.lines(), html);
    end_section(html);
}

fn modules(model: &ModelDir, html: &mut Html) {
    let kinds = Kinds::of(model.tensors().map(|t| (t.name(), t.byte_len() as u64)));
    let modules = Modules::of(model, &kinds);
    let tree = Tree::new(&modules);
    section("Bytes by module", html);
    if model.byte_len() > 0 {
        legend(&kinds, html);
        let map = Treemap { modules: &modules, listed: &tree.listed };
        map.draw(Modules::ROOT, 620.0, html);
        paragraph("A click on a rectangle opens its line in the list.", html);
    }
    tree.write(html);
    end_section(html);
}

fn shards(model: &ModelDir) -> Vec<Counted> {
    let mut rows: Vec<Counted> = model
        .shards()
        .iter()
        .map(|shard| Counted { name: PathText(shard.path()).to_string(), tensors: 0, bytes: 0 })
        .collect();
    for tensor in model.tensors() {
        let row = &mut rows[tensor.shard().position()];
        row.tensors += 1;
        row.bytes += tensor.byte_len() as u64;
    }
    rows
}

fn dtypes(model: &ModelDir) -> Vec<Counted> {
    let mut dtypes: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    for tensor in model.tensors() {
        let (tensors, bytes) = dtypes.entry(tensor.dtype()).or_default();
        *tensors += 1;
        *bytes += tensor.byte_len() as u64;
    }
    let row = |(dtype, (tensors, bytes))| {
        let _: modeldir::Dtype = dtype;
        Counted { name: dtype.to_string(), tensors, bytes }
    };
    dtypes.into_iter().map(row).collect()
}
