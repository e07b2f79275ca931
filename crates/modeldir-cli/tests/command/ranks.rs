//! What the sub-commands do for one rank, or for all of a job.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use modeldir::{ModelDir, Selection};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::llama;
use crate::program::{command, run, stderr, stdout};

#[test]
fn digest_prints_what_a_rank_holds() {
    let model = ModelDir::open(modeldir_fixtures::model("llama")).unwrap();
    let whole = stdout(&run("digest", &[llama()]));
    for rank in 0..4 {
        let lines = stdout(&run(
            "digest",
            &[llama().as_os_str(), "--tp".as_ref(), format!("{rank}/4").as_ref()],
        ));
        assert_eq!(lines.lines().count(), 30);
        let line = |text: &str, end: &str| {
            text.lines().find(|line| line.ends_with(end)).map(str::to_owned)
        };
        let norm = "  model.norm.weight BF16 [64]";
        assert!(line(&lines, norm).is_some() && line(&lines, norm) == line(&whole, norm));
        for (name, shape, dim, range) in [
            ("lm_head.weight", "[80, 64]", 0, rank * 80..rank * 80 + 80),
            ("model.layers.2.mlp.down_proj.weight", "[64, 44]", 1, rank * 44..rank * 44 + 44),
        ] {
            let part = model.read_selection(name, &Selection::all().with_range(dim, range));
            let sha256 = Sha256::digest(part.unwrap().bytes());
            let line = line(&lines, &format!("  {name} BF16 {shape}"));
            assert!(line.is_some_and(|line| line.starts_with(&format!("{sha256:x}"))), "{name}");
        }
    }
}

#[test]
fn digest_takes_rules_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules.json");
    fs::write(&rules, r#"{"rules": [{"match": "**.intermediate.dense.*", "tp": "col"}]}"#).unwrap();
    let bert = modeldir_fixtures::model("bert");
    let rules = [bert.as_os_str(), "--tp=1/3".as_ref(), "--rules".as_ref(), rules.as_os_str()];

    let uneven = stderr(&run("digest", &rules));
    for said in ["intermediate.dense.bias", "128", "2, 4, 8"] {
        assert!(uneven.contains(said), "{uneven}");
    }
    let output = run("digest", &[&rules[..], &["--uneven=balanced".as_ref()]].concat());
    let line = "encoder.layer.0.intermediate.dense.weight F16 [43, 64]";
    assert!(stdout(&output).contains(line), "{output:?}");
    let output =
        run("digest", &[&rules[..], &["--uneven=chunk", "--json"].map(OsStr::new)].concat());
    let found: BTreeMap<String, Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["encoder.layer.1.intermediate.dense.bias"]["shape"], serde_json::json!([43]));
}

#[test]
fn digest_says_what_it_lacks_to_take_a_part() {
    let [bert, plain, llama] = ["bert", "numbered", "llama"].map(modeldir_fixtures::model);
    let absent = [bert.as_os_str(), "--tp=0/2".as_ref(), "--rules=no.json".as_ref()];
    for (args, said) in [
        (&[bert.as_os_str(), "--tp=0/2".as_ref()][..], "no rules for model type \"bert\""),
        (&[plain.as_os_str(), "--tp=0/2".as_ref()], "no rules for model type"),
        (&absent, "no.json: no such file"),
        (
            &[llama.as_os_str(), "--tp=0/3".as_ref()],
            "176 elements along the inputs over 3 ranks; 2, 4, 8",
        ),
    ] {
        let output = run("digest", args);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    }
    let output = run("digest", &[llama.as_os_str(), "--uneven=chunk".as_ref()]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("--tp <R/N>"), "{}", stderr(&output));
}

#[test]
fn ranks_adds_up_and_says_what_is_odd() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules.json");
    let text =
        r#"{"rules": [{"match": "lm_haed.*", "tp": "col"}, {"match": "lm_head.*", "tp": "skip"}]}"#;
    fs::write(&rules, text).unwrap();
    let (llama, numbers) = (llama(), ["--tp=2", "--pp=2", "--rules"].map(OsStr::new));
    let args = [&[llama.as_os_str()], &numbers[..], &[rules.as_os_str()]].concat();

    let output = run("ranks", &[&args[..], &["--json".as_ref()]].concat());
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let sum = |field: &str| -> u64 {
        found["ranks"].as_array().unwrap().iter().map(|rank| rank[field].as_u64().unwrap()).sum()
    };
    for field in ["tensors", "bytes_selected", "bytes_replicated", "bytes_read", "reads"] {
        assert_eq!(found["sum"][field], sum(field), "{field}");
    }
    // The head is nowhere, and the seven norms of 128 bytes are on both ranks of their stage.
    let (whole, norms) = (found["bytes"].as_u64().unwrap(), 7 * 128);
    assert_eq!(sum("bytes_selected"), whole - 320 * 64 * 2 + norms);
    assert_eq!(sum("bytes_replicated"), 2 * norms);
    assert_eq!(found["left_out"], serde_json::json!(["lm_head.weight"]));
    assert_eq!(found["unused_rules"], serde_json::json!(["lm_haed.*"]));

    let lines = stdout(&run("ranks", &args));
    for line in ["1 tensor on no rank: lm_head.weight", "1 unused rule: lm_haed.*"] {
        assert!(lines.lines().any(|found| found == line), "{lines}");
    }
}

#[test]
fn tensors_without_a_rule_are_said_with_their_share() {
    let rules = tempfile::NamedTempFile::new().unwrap();
    fs::write(rules.path(), r#"{"rules": [{"match": "**.word_embeddings.*", "tp": "vocab"}]}"#)
        .unwrap();
    let model = ModelDir::open(modeldir_fixtures::model("bert")).unwrap();
    let without = |name: &str| !name.contains(".word_embeddings.");
    let names: Vec<_> = model.names().filter(|name| without(name)).collect();
    let byte_len: usize = names.iter().map(|name| model.info(name).unwrap().byte_len()).sum();
    let arg = rules.path().as_os_str();
    let load = |more: &[&str]| {
        let mut load = command("rank-load");
        load.arg(model.path()).arg("--rank=1/2").arg("--rules").arg(arg).args(more);
        load.output().unwrap()
    };
    let (text, json) = (load(&[]), load(&["--json"]));
    for output in [&text, &json] {
        let said = stderr(output);
        let expected = format!(
            "note: rank 1 of 2: {} tensors without a rule, whole on every rank of a stage: ",
            names.len()
        );
        assert!(said.starts_with(&expected) && said.ends_with(" % of a rank\n"), "{said}");
    }
    let found: Value = serde_json::from_str(&stdout(&json)).unwrap();
    let share = byte_len as f64 / found["bytes_selected"].as_u64().unwrap() as f64;
    let expected = json!({"tensors": names.len(), "bytes": byte_len, "share": share});
    assert_eq!(found["without_rule"], expected);

    let args = [model.path().as_os_str(), "--tp=2".as_ref(), "--rules".as_ref(), arg];
    let ranks = stdout(&run("ranks", &[&args[..], &["--json".as_ref()]].concat()));
    let ranks: Value = serde_json::from_str(&ranks).unwrap();
    assert_eq!(ranks["ranks"][1]["without_rule"], expected);
    assert_eq!(ranks["unmatched"], json!(names));
    let lines = stdout(&run("ranks", &args));
    assert!(lines.contains(" without a rule, whole on every rank of a stage, "), "{lines}");
    // A single rank holds everything anyway.
    let single = command("rank-load").arg(llama()).arg("--rank=0/1").output().unwrap();
    assert_eq!(stderr(&single), "");
}

#[test]
fn rules_of_a_file_need_no_number_that_they_do_not_use() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::copy(llama().join("model-00001-of-00004.safetensors"), path("model.safetensors")).unwrap();
    fs::write(path("config.json"), r#"{"model_type": "llama"}"#).unwrap();
    let args = [folder.path().as_os_str(), "--tp=2".as_ref()];
    let said = stderr(&run("ranks", &args));
    assert!(said.contains("its rules need num_attention_heads"), "{said}");
    let rules = r#"{"rules": [{"match": "**.self_attn.*_proj.*", "tp": "replicate"}]}"#;
    fs::write(path("rules.json"), rules).unwrap();
    let rules = path("rules.json");
    let output = run("ranks", &[&args[..], &["--rules".as_ref(), rules.as_os_str()]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn rank_load_is_the_rank_that_a_launcher_says() {
    for (launcher, [rank, size]) in [
        ("torchrun", ["RANK", "WORLD_SIZE"]),
        ("Open MPI", ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"]),
        ("Slurm", ["SLURM_PROCID", "SLURM_STEP_NUM_TASKS"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut rank_load = command("rank-load");
        rank_load.env(rank, "2").env(size, "4").arg(llama());
        rank_load.args(["--json", "--save"]).arg(folder.path());
        let output = rank_load.output().unwrap();
        let again = rank_load.output().unwrap();
        assert_eq!(again.status.code(), Some(1), "{again:?}");
        assert!(stderr(&again).contains("(--replace replaces"), "{}", stderr(&again));
        let text = stdout(&output);
        assert_eq!((text.lines().count(), stderr(&output)), (1, String::new()));
        let found: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(found["rank"], 2);
        assert_eq!(found["size"], 4);
        assert_eq!(found["launcher"], launcher);

        rank_load.arg("--replace");
        assert!(rank_load.output().unwrap().status.success());

        // What was saved is what `digest` prints of the part and of the saved directory.
        let part = run("digest", &[llama().as_os_str(), "--tp=2/4".as_ref()]).stdout;
        assert_eq!(found["digest"], format!("{:x}", Sha256::digest(&part)));
        assert_eq!(run("digest", &[folder.path().join("rank-2-of-4")]).stdout, part);
        let ranks =
            run("ranks", &[llama().as_os_str(), "--tp=4".as_ref(), "--json".as_ref()]).stdout;
        let ranks: Value = serde_json::from_slice(&ranks).unwrap();
        for field in ["bytes_selected", "bytes_read", "reads", "tensors"] {
            assert_eq!(found[field], ranks["ranks"][2][field], "{field}");
        }
        assert_eq!(found["bytes_planned"], found["bytes_read"]);
    }
}

#[test]
fn rank_load_is_no_rank_by_default() {
    let output = run("rank-load", &[llama()]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()));
    assert!(stderr(&output).contains("mpirun, torchrun or srun"), "{}", stderr(&output));

    let half = command("rank-load").arg(llama()).env("RANK", "0").output().unwrap();
    assert!(stderr(&half).contains("WORLD_SIZE is not"), "{half:?}");
    let run = |args: &[&str]| command("rank-load").arg(llama()).args(args).output().unwrap();
    let more = run(&["--rank=0/4", "--tp=2", "--pp=4"]);
    assert!(stderr(&more).contains("make 8 ranks, and there are 4"), "{more:?}");
    let staged = run(&["--rank=3/4", "--tp=2", "--pp=2"]);
    assert!(stdout(&staged).starts_with("rank 3 of 4 (--rank): 11 tensors, "), "{staged:?}");
}

#[test]
fn a_saved_part_is_loaded_by_its_rank_and_refused_to_another() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules.json");
    fs::write(&rules, r#"{"rules": [{"match": "model.norm.weight", "tp": "col"}]}"#).unwrap();
    let to = folder.path().join("parts");
    let load = |path: &Path, rank: &str, more: &[&OsStr]| {
        let rank = ["--rank", rank].map(OsStr::new);
        run("rank-load", &[&[path.as_os_str()], &rank[..], more].concat())
    };
    let part = to.join("rank-1-of-2");
    let digest =
        |output| stdout(&output).split(" digest ").nth(1).map(|text| text[..64].to_owned());
    for more in [vec![], vec![OsStr::new("--rules"), rules.as_os_str()]] {
        let saving = [&more[..], &["--replace", "--save"].map(OsStr::new), &[to.as_os_str()]];
        let saved = digest(load(&llama(), "1/2", &saving.concat()));
        assert!(saved.is_some());
        assert_eq!(digest(load(&part, "1/2", &more)), saved);
        let error = stderr(&load(&part, "0/2", &more));
        assert!(error.contains("holds the part of rank 1/2, not that of rank 0/2"), "{error}");
    }
    let uneven = stderr(&load(&part, "1/2", &["--uneven=chunk".as_ref()]));
    assert!(uneven.contains("cut by other rules"), "{uneven}");
}
