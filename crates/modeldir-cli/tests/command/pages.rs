//! The pages that `inspect` and `ranks` write. `tests/page/run` opens them in a browser.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::llama;
use crate::program::{run, stdout};

/// Runs a sub-command that writes a page of a model, and returns the page.
fn page(name: &str, model: &Path, options: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    let mut args = vec![model.as_os_str(), "--html".as_ref(), file.as_os_str()];
    args.extend(options.iter().map(std::ffi::OsStr::new));
    let output = run(name, &args);
    assert!(output.status.success(), "{output:?}");
    let page = fs::read_to_string(&file).unwrap();
    assert!(stdout(&output).ends_with(&format!("page.html: page of {} bytes\n", page.len())));
    page
}

#[test]
fn inspect_draws_modules_and_lists_shards() {
    let page = page("inspect", &llama(), &[]);
    for text in [
        "<title>llama</title>",
        "<title>lm_head.weight\n40.00 KiB, 11.4 %, BF16 [320, 64]</title>",
        "<title>model.layers.1\n",
        "model-00004-of-00004.safetensors",
        "LlamaForCausalLM",
    ] {
        assert!(page.contains(text), "{text}");
    }
    // Each link leads to a line of the list.
    for link in page.split("<a href=\"#").skip(1) {
        let id = link.split('"').next().unwrap();
        assert!(page.contains(&format!("<li id=\"{id}\">")), "{id}");
    }
}

#[test]
fn ranks_draws_a_bar_for_each_rank() {
    let page = page("ranks", &llama(), &["--tp=2", "--pp=2"]);
    assert!(page.contains("<title>llama on 4 ranks</title>"));
    for place in ["tp 0/2, pp 0/2", "tp 1/2, pp 1/2"] {
        assert_eq!(page.matches(place).count(), 2, "{place}");
    }
    assert!(page.contains("title=\"mlp: "));
}

#[test]
fn a_page_fetches_nothing_and_runs_nothing() {
    for page in [page("inspect", &llama(), &[]), page("ranks", &llama(), &[])] {
        assert!(page.contains("content=\"default-src 'none'; style-src 'unsafe-inline'\""));
        for harm in ["<script", "http:", "https:", "src=", "@import", "url("] {
            assert!(!page.contains(harm), "{harm}");
        }
    }
}

#[test]
fn names_in_a_page_stay_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let names = [
        "<script>harm()</script>",
        "a.\"><img src=x onerror=harm()>.weight",
        "layers.0.</title></svg><b>.weight",
        "layers.1.' onclick='harm()",
        "\u{202e}\u{1b}]0;title\u{7}",
    ];
    let mut writer = tensorfile::Writer::new();
    for name in names {
        writer.add(name, tensorfile::Dtype::F32, &[64], &[0; 256]).unwrap();
    }
    writer.save(&path).unwrap();
    let rules = folder.path().join("rules.json");
    fs::write(&rules, r#"{"rules": [{"match": "<i>never", "tp": "col"}]}"#).unwrap();
    let rules = format!("--rules={}", rules.display());
    for page in [page("inspect", folder.path(), &[]), page("ranks", folder.path(), &[&rules])] {
        for harm in ["<script", "<img", "<b>", "<i>", "onclick='", "\u{202e}", "\u{1b}", "\u{7}"] {
            assert!(!page.contains(harm), "{harm:?}");
        }
        assert!(page.contains("&lt;script&gt;harm()&lt;/script&gt;"));
    }
}

#[test]
fn a_page_that_cannot_be_written_is_an_error() {
    let args = |file: &str, more: &str| -> Output {
        run("inspect", &[llama().as_os_str(), "--html".as_ref(), file.as_ref(), more.as_ref()])
    };
    let folder = tempfile::tempdir().unwrap();
    let absent = folder.path().join("absent/page.html");
    let output = run("inspect", &[llama().as_os_str(), "--html".as_ref(), absent.as_os_str()]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(args("page.html", "--json").status.code(), Some(2));
    assert_eq!(args("page.html", "--all").status.code(), Some(2));
}

#[test]
fn a_model_without_bytes_has_a_page_too() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = tensorfile::Writer::new();
    writer.add("empty.weight", tensorfile::Dtype::F32, &[0], &[]).unwrap();
    writer.save(folder.path().join("model.safetensors")).unwrap();
    assert!(page("inspect", folder.path(), &[]).contains("empty.weight"));
}
