//! What opening a directory says: reports, all faults at once, aliases, variants, choices.

use std::fs;
use std::path::Path;

use modeldir::error::Fault;
use modeldir::options::{MissingShards, Unindexed, Weights};
use modeldir::report::AliasRule;
use modeldir::{Error, ErrorKind, ModelDir, OpenOptions};
use modeldir_fixtures::{ShardedModel, Tensor as Made, file, shard_name};
use tensorfile::{ErrorKind as FileErrorKind, HeaderOptions, TrailingBytes};

use crate::loading::{threads, written};

fn tensor(name: &str) -> Made {
    Made::random(name, "F16", &[4, 4])
}

/// One tensor in each of so many shards.
fn one_each(count: usize) -> ShardedModel {
    (1..=count).fold(ShardedModel::new(count), |model, i| model.tensor(i, tensor(&format!("t{i}"))))
}

#[test]
fn every_fault_of_a_directory_is_in_one_error() {
    let files = one_each(6)
        .missing(2)
        .pointer(3)
        .truncated(4, 5)
        .replaced(5, b"PK\x03\x04 a zip archive, it seems".as_slice())
        .map("gone", &shard_name(1, 6));
    let folder = written(&files);
    fs::write(folder.path().join(format!("{}.incomplete", shard_name(2, 6))), [0; 9]).unwrap();
    let error = ModelDir::open(folder.path()).unwrap_err();
    let ErrorKind::Incomplete { faults, .. } = error.kind() else { panic!("{error}") };
    let is = |wanted: &str, found: fn(&Fault) -> bool| {
        assert_eq!(faults.iter().filter(|fault| found(fault)).count(), 1, "{wanted}: {error}");
    };
    is(
        "missing",
        |fault| matches!(fault, Fault::MissingShard { tensors, .. } if tensors.len() == 1),
    );
    is("pointer", |fault| {
        matches!(fault, Fault::UnusableShard { error, tensors, .. }
            if matches!(error.kind(), FileErrorKind::LfsPointer { .. }) && tensors.len() == 1)
    });
    is("short", |fault| {
        matches!(fault, Fault::UnusableShard { error, .. }
            if matches!(error.kind(), FileErrorKind::Truncated { .. }))
    });
    is("zip", |fault| {
        matches!(fault, Fault::UnusableShard { error, .. }
            if matches!(error.kind(), FileErrorKind::NotSafetensors { .. }))
    });
    is("absent", |fault| matches!(fault, Fault::NotInShard { tensor, .. } if &**tensor == "gone"));
    assert_eq!(faults.len(), 5, "{error}");
    for i in 2..6 {
        assert!(error.to_string().contains(&shard_name(i, 6)), "{error}");
    }
}

#[test]
fn the_order_of_faults_does_not_depend_on_threads() {
    let folder = written(&one_each(20).missing(3).missing(17).truncated(9, 1).pointer(12));
    let open = |count| {
        let options = OpenOptions { threads: threads(count), ..OpenOptions::default() };
        ModelDir::open_with(folder.path(), &options).unwrap_err().to_string()
    };
    let text = open(1);
    assert!((2..9).all(|count| open(count) == text), "{text}");
}

#[test]
fn the_report_lists_what_was_ignored_or_odd() {
    let files = one_each(2)
        .unmapped(1, tensor("extra"))
        .unmapped(2, Made::tagged("old", "t1", "F16", &[4, 4]))
        .index_metadata(r#"{"total_size": 12345}"#)
        .file("adapter_model.safetensors", file(&[tensor("lora")]))
        .file("._model.safetensors", b"\x00\x05\x16\x07".as_slice());
    let folder = written(&files);
    let model = ModelDir::open(folder.path()).unwrap();
    let report = model.report();
    let ignored: Vec<_> = report.ignored_files.iter().map(|ignored| &*ignored.path).collect();
    assert!(ignored.contains(&Path::new("adapter_model.safetensors")), "{ignored:?}");
    assert!(ignored.contains(&Path::new("._model.safetensors")), "{ignored:?}");
    let unindexed: Vec<_> = report.unindexed.iter().map(|stray| &*stray.tensor).collect();
    assert_eq!(unindexed, ["extra"]);
    let [stale] = &report.stale[..] else { panic!("{report}") };
    assert_eq!((&*stale.tensor, &*stale.shard), ("t1", Path::new(&shard_name(2, 2))));
    let total = report.total_size.as_ref().unwrap();
    assert_eq!((&*total.declared, total.is_exact()), ("12345", false));
    assert!(!report.is_clean());
    for part in ["adapter_model.safetensors", "extra", "t1", "12345"] {
        assert!(report.to_string().contains(part), "{report}");
    }
    assert_eq!(model.load().unwrap().get("t1").unwrap().bytes(), tensor("t1").data);
}

#[test]
fn a_right_directory_has_a_clean_report() {
    for name in modeldir_fixtures::models() {
        let model = ModelDir::open(modeldir_fixtures::model(&name)).unwrap();
        // One of them holds a second set on purpose.
        assert_eq!(model.report().is_clean(), name != "variants", "{name}: {}", model.report());
    }
}

#[test]
fn tensors_that_the_index_does_not_name_are_for_the_caller_to_judge() {
    let folder = written(&one_each(2).unmapped(2, tensor("extra")));
    let open = |unindexed| {
        ModelDir::open_with(folder.path(), &OpenOptions { unindexed, ..OpenOptions::default() })
    };
    assert!(open(Unindexed::Include).unwrap().names().eq(["extra", "t1", "t2"]));
    assert!(open(Unindexed::Ignore).unwrap().names().eq(["t1", "t2"]));
    let error = open(Unindexed::Error).unwrap_err();
    let ErrorKind::Incomplete { faults, .. } = error.kind() else { panic!("{error}") };
    assert!(matches!(&faults[..], [Fault::Unindexed { tensor, .. }] if &**tensor == "extra"));
}

#[test]
fn missing_shards_are_skipped_for_those_who_ask() {
    let folder = written(&one_each(3).missing(2));
    let options = OpenOptions { missing_shards: MissingShards::Skip, ..OpenOptions::default() };
    let model = ModelDir::open_with(folder.path(), &options).unwrap();
    assert!(model.names().eq(["t1", "t3"]));
    let skipped = &model.report().skipped;
    let [Fault::MissingShard { tensors, .. }] = &skipped[..] else { panic!("{skipped:?}") };
    assert_eq!(tensors.len(), 1);
    assert_eq!(model.load().unwrap().len(), 2);
}

#[test]
fn only_missing_shards_are_skipped_and_not_all_of_them() {
    let options = OpenOptions { missing_shards: MissingShards::Skip, ..OpenOptions::default() };
    let faults =
        |folder: &Path| match ModelDir::open_with(folder, &options).map_err(Error::into_kind) {
            Err(ErrorKind::Incomplete { faults, .. }) => faults,
            other => panic!("{other:?}"),
        };
    let damaged = written(&one_each(3).missing(2).truncated(3, 1));
    let found = faults(damaged.path());
    assert!(matches!(&found[..], [Fault::UnusableShard { .. }]), "{found:?}");
    let gone = written(&one_each(2).missing(1).missing(2));
    let found = faults(gone.path());
    assert!(
        matches!(&found[..], [Fault::MissingShard { .. }, Fault::MissingShard { .. }]),
        "{found:?}"
    );
}

#[test]
fn a_stale_index_is_refused_and_can_be_ignored() {
    let single = file(&[tensor("t1"), tensor("t2")]);
    let folder = written(&one_each(2).missing(1).missing(2).file("model.safetensors", single));
    let error = ModelDir::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains(&shard_name(1, 2)) && error.contains("model.safetensors"), "{error}");
    let options = Weights::without_index().into();
    assert_eq!(ModelDir::open_with(folder.path(), &options).unwrap().len(), 2);
}

#[test]
fn folder_index_and_file_are_opened_alike() {
    let folder = written(&one_each(2));
    let from_folder = ModelDir::open(folder.path()).unwrap();
    let from_index = ModelDir::open(folder.path().join("model.safetensors.index.json")).unwrap();
    assert!(from_folder.names().eq(from_index.names()));
    let from_file = ModelDir::open(folder.path().join(shard_name(1, 2))).unwrap();
    assert!(from_file.names().eq(["t1"]));
    assert_eq!(from_file.load().unwrap().get("t1").unwrap().bytes(), tensor("t1").data);
}

#[test]
fn chosen_files_are_opened_and_no_others() {
    let folder = written(&one_each(3).missing(2).file("other.safetensors", file(&[tensor("x")])));
    let files = vec![shard_name(3, 3).into(), "other.safetensors".into()];
    let options = Weights::Files(files).into();
    assert!(ModelDir::open_with(folder.path(), &options).unwrap().names().eq(["t3", "x"]));
}

#[test]
fn trailing_bytes_are_refused_and_can_be_allowed() {
    let mut bytes = file(&[tensor("t")]);
    bytes.extend([0; 37]);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("model.safetensors"), bytes).unwrap();
    let error = ModelDir::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("37"), "{error}");
    let header = HeaderOptions { trailing_bytes: TrailingBytes::Allow, ..HeaderOptions::default() };
    let options = OpenOptions { header, ..OpenOptions::default() };
    let model = ModelDir::open_with(folder.path(), &options).unwrap();
    assert_eq!(model.report().trailing_bytes, [("model.safetensors".into(), 37)]);
    assert_eq!(model.load().unwrap().get("t").unwrap().bytes(), tensor("t").data);
}

#[test]
fn a_tied_head_is_its_target_wherever_a_name_is_asked_for() {
    let embedding = tensor("model.embed_tokens.weight");
    let files = ShardedModel::new(1)
        .tensor(1, embedding.clone())
        .file("config.json", r#"{"tie_word_embeddings": true}"#);
    let folder = written(&files);
    let model = ModelDir::open(folder.path()).unwrap();
    let [alias] = &model.report().aliases[..] else { panic!("{}", model.report()) };
    assert_eq!((&*alias.name, alias.rule), ("lm_head.weight", AliasRule::TiedEmbedding));
    let mut store = model.load().unwrap();
    assert_eq!(store.get("lm_head.weight").unwrap().bytes(), embedding.data);
    assert_eq!(store.len(), 1);
    assert_eq!(model.info("lm_head.weight").unwrap().name(), embedding.name);
    assert_eq!(model.read("lm_head.weight").unwrap().name(), embedding.name);

    let only = model.plan().only(["lm_head.weight"]).unwrap();
    assert!(only.names().eq(["model.embed_tokens.weight"]));
    assert_eq!(only.get("lm_head.weight").unwrap().name(), embedding.name);

    assert_eq!(store.remove("lm_head.weight").unwrap().name(), embedding.name);
    for name in ["lm_head.weight", &embedding.name] {
        assert!(!store.contains(name));
        let error = store.get(name).unwrap_err();
        assert_eq!(error.tensor(), Some(name));
    }
    let error = store.remove("lm_head.weight").unwrap_err().to_string();
    let says = "tied to \"model.embed_tokens.weight\", which is not here";
    assert!(error.contains(says), "{error}");
}

#[test]
fn a_partial_load_has_no_alias_of_what_it_left_out() {
    let files = ShardedModel::new(1)
        .tensor(1, tensor("model.embed_tokens.weight"))
        .tensor(1, tensor("model.norm.weight"))
        .file("config.json", r#"{"tie_word_embeddings": true}"#);
    let folder = written(&files);
    let model = ModelDir::open(folder.path()).unwrap();
    let without = model.plan().only(["model.norm.weight"]).unwrap().load().unwrap();
    assert_eq!(without.aliases().count(), 0);
    assert!(!without.contains("lm_head.weight"));
    let with = model.plan().only(["lm_head.weight"]).unwrap().load().unwrap();
    assert_eq!(with.aliases().count(), 1);

    let saved = tempfile::tempdir().unwrap();
    let file = without.save(saved.path()).unwrap().shards.remove(0);
    let metadata = tensorfile::TensorFile::open(file).unwrap().metadata().unwrap().to_map();
    assert!(metadata.keys().eq(["format"]), "{metadata:?}");
}

#[test]
fn what_the_index_places_in_a_lost_shard_is_not_taken_for_tied() {
    let files = ShardedModel::new(2)
        .tensor(1, tensor("model.embed_tokens.weight"))
        .tensor(2, tensor("lm_head.weight"))
        .missing(2);
    let folder = written(&files);
    let options = OpenOptions { missing_shards: MissingShards::Skip, ..OpenOptions::default() };
    let model = ModelDir::open_with(folder.path(), &options).unwrap();
    assert_eq!(model.report().aliases.len(), 0);
    assert!(!model.contains("lm_head.weight"));
}

#[test]
fn an_alias_never_hides_a_stored_tensor() {
    let head = tensor("lm_head.weight");
    let files = ShardedModel::new(1)
        .tensor(1, tensor("model.embed_tokens.weight"))
        .tensor(1, head.clone())
        .file("config.json", r#"{"tie_word_embeddings": true}"#);
    let folder = written(&files);
    let aliases = vec![("lm_head.weight".into(), "model.embed_tokens.weight".into())];
    let options = OpenOptions { aliases, ..OpenOptions::default() };
    let store = ModelDir::open_with(folder.path(), &options).unwrap().load().unwrap();
    assert_eq!(store.get("lm_head.weight").unwrap().bytes(), head.data);
}

#[test]
fn declared_aliases_serve_names_without_prefix() {
    let folder = written(&one_each(1));
    let aliases = vec![("model.t1".to_owned(), "t1".to_owned())];
    let options = OpenOptions { aliases, ..OpenOptions::default() };
    let store = ModelDir::open_with(folder.path(), &options).unwrap().load().unwrap();
    assert_eq!(store.get("model.t1").unwrap().bytes(), tensor("t1").data);
    let error = store.get("model.t2").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::TensorNotFound { .. }));
}

#[test]
fn a_broken_config_stops_only_the_call_that_needs_it() {
    let folder = written(&one_each(1).file("config.json", "{\n\"hidden_size\": }"));
    let model = ModelDir::open(folder.path()).unwrap();
    assert_eq!(model.load().unwrap().len(), 1);
    let error = model.config().unwrap_err().to_string();
    assert!(error.contains("config.json") && error.contains("line 2"), "{error}");
}

#[test]
fn a_shard_path_that_leaves_the_folder_is_refused_before_anything_is_opened() {
    for value in
        ["../x.safetensors", "/x.safetensors", "a/../../x.safetensors", "a\\x.safetensors", ""]
    {
        let folder = written(&one_each(2).missing(2).map("t2", value));
        let error = ModelDir::open(folder.path()).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::ShardPath { .. }), "{error}");
        assert_eq!(error.tensor(), Some("t2"));
        assert_eq!(error.path(), Some(&*folder.path().join("model.safetensors.index.json")));
    }
}
