//! The page of a model: bytes by module, shards, dtypes, configuration and tokenizer, the report.

use modeldir::ModelDir;

use super::bar::legend;
use super::document::{Figure, document, list, model_name, paragraph, section};
use super::html::Html;
use super::kinds::Kinds;
use super::modules::Modules;
use super::table::{plain_table, tally_table};
use super::tree::Tree;
use super::treemap::Treemap;
use crate::contents::{Tally, beside_the_weights, tensor_groups};
use crate::output::{bytes, count};

/// Returns a page of all that opening a model shows.
pub(crate) fn model_page(model: &ModelDir) -> String {
    let mut html = Html::default();
    report(model, &mut html);
    section("Bytes by module", &mut html, |html| modules(model, html));
    section("Shards", &mut html, |html| tally_table(&Tally::by_shard(model.tensors()), html));
    section("Dtypes", &mut html, |html| tally_table(&Tally::by_dtype(model.tensors()), html));
    section("Tensors", &mut html, |html| {
        paragraph("Tensors whose names differ only in numbers share a row.", html);
        plain_table(&tensor_groups(model), html);
    });
    section("Beside the weights", &mut html, |html| plain_table(&beside_the_weights(model), html));
    document(&model_name(model), model, &figures(model), &html)
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
    if !text.is_empty() {
        section("Report", html, |html| {
            paragraph("What opening ignored or found odd, and did not refuse.", html);
            list(text.lines(), html);
        });
    }
}

fn modules(model: &ModelDir, html: &mut Html) {
    let kinds = Kinds::of(model);
    let modules = Modules::of(model, &kinds);
    let tree = Tree::new(&modules);
    if model.byte_len() > 0 {
        legend(&kinds, html);
        let map = Treemap { modules: &modules, listed: &tree.listed };
        map.draw(Modules::ROOT, 620.0, html);
        paragraph("A click on a rectangle opens its line in the list.", html);
    }
    tree.write(html);
}
