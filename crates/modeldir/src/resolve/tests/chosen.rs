//! Weights that options or the configuration choose.

use super::{
    EMPTY_INDEX, INDEX, M1, M2, MODEL, family, folder, ignored, ignoring_the_index, paths, resolve,
    resolve_with, variant,
};
use crate::open_options::{Family, Weights};
use crate::resolve::IgnoreReason;
use crate::{Error, ErrorKind, ModelConfig, OpenOptions};

#[test]
fn choices_that_a_person_should_know_of_are_told() {
    let bare = "model.safetensors.index.json={\"a\": \"model.safetensors\"}";
    let lone = "x.safetensors.index.json={\"weight_map\":{\"a\":\"m.safetensors\"}}";
    let told = |files: &[&str], options: &OpenOptions| {
        let resolved = resolve_with(files, options).unwrap();
        (resolved.notes, resolved.remarks)
    };
    let broken = "mod\u{1b}el.safetensors.index.json={\"weight_map\":{\"a\":\"m.safetensors\"}}";
    let plain = OpenOptions::default();
    for (files, options, says) in [
        (&[M1, M2][..], &plain, "no index: 2 numbered files"),
        (&["x.safetensors"], &plain, "the only weight file"),
        (&[bare, MODEL], &plain, "bare weight map"),
        (&[lone, "m.safetensors"], &plain, "the only index"),
        (&[broken, "m.safetensors"], &plain, "mod\\u{1b}el.safetensors.index.json: is the only"),
        (&[INDEX, MODEL], &ignoring_the_index(), "model.safetensors.index.json: not read"),
    ] {
        let (notes, remarks) = told(files, options);
        assert!(notes.is_empty(), "{notes:?}");
        assert!(matches!(&*remarks, [remark] if remark.contains(says)), "{remarks:?}");
    }
    let (notes, remarks) = told(&[EMPTY_INDEX, MODEL], &plain);
    assert!(remarks.is_empty(), "{remarks:?}");
    let says = "names no tensor, model.safetensors is opened";
    assert!(matches!(&*notes, [note] if note.contains(says)), "{notes:?}");
    for files in [&[MODEL][..], &[INDEX, M1, M2]] {
        assert_eq!(told(files, &plain), (vec![], vec![]), "{files:?}");
    }
}

#[test]
fn listed_files_of_the_folder_may_be_given_by_their_whole_path() {
    let dir = folder(&[MODEL, "x.safetensors"]);
    let path = dir.path().join(MODEL);
    let options = Weights::Files(vec![path.clone()]).into();
    let resolved = resolve(dir.path(), &options, None).unwrap();
    assert_eq!(resolved.shards, [path]);
    assert_eq!(ignored(&resolved), [("x.safetensors", IgnoreReason::OtherSet)]);
}

#[test]
fn listed_files_are_taken_as_they_are() {
    let listed = |files: &[&str]| Weights::Files(paths(files)).into();
    let files = [MODEL, M1, "sub/x.bin"];
    let resolved = resolve_with(&files, &listed(&["sub/x.bin", M1, M1])).unwrap();
    assert_eq!(resolved.shards, paths(&[M1, "sub/x.bin"]));
    assert_eq!(ignored(&resolved), [(MODEL, IgnoreReason::OtherSet)]);
}

#[test]
fn options_that_choose_among_what_is_chosen_are_refused_by_name() {
    let dir = folder(&[INDEX, M1, M2]);
    let listed = |files: &[&str]| OpenOptions::from(Weights::Files(paths(files)));
    let (file, index) = (M1, "model.safetensors.index.json");
    for (name, options, expected) in [
        (file, variant("fp16"), "Weights::Named::variant"),
        (file, family(Family::Model), "Weights::Named::family"),
        (file, listed(&[M1]), "Weights::Files"),
        (index, variant("fp16"), "Weights::Named::variant"),
        (index, family(Family::Model), "Weights::Named::family"),
        (index, listed(&[M1]), "Weights::Files"),
        (index, ignoring_the_index(), "Weights::Named::index"),
        ("", listed(&[]), "Weights::Files"),
    ] {
        match resolve(&dir.path().join(name), &options, None).map_err(Error::into_kind) {
            Err(ErrorKind::UnusableOption { option, .. }) => assert_eq!(option, expected, "{name}"),
            other => panic!("{name} {expected}: {other:?}"),
        }
    }
    let file = resolve(&dir.path().join(file), &ignoring_the_index(), None).unwrap();
    assert_eq!(file.shards, paths(&[M1]));
}

#[test]
fn the_configuration_may_name_the_weights() {
    let dir = folder(&[
        MODEL,
        "w/x.safetensors",
        "w/x.safetensors.index.json={\"weight_map\":{\"a\":\"w/x.safetensors\"}}",
    ]);
    let config = |value: &str| {
        let json = serde_json::json!({ "transformers_weights": value }).to_string();
        ModelConfig::from_json(dir.path().join("config.4.9.json"), json.as_bytes()).unwrap()
    };
    let configured = |value| resolve(dir.path(), &OpenOptions::default(), Some(&config(value)));
    let by_file = configured("./w/x.safetensors").unwrap();
    let by_index = configured("w/x.safetensors.index.json").unwrap();
    assert!(by_file.index.is_none() && by_index.index.is_some());
    assert_eq!(
        (&by_file.shards, &by_index.shards),
        (&paths(&["w/x.safetensors"]), &by_file.shards)
    );
    for value in ["../x.safetensors", "/x.safetensors", "x.bin", "", "../x.safetensors.index.json"]
    {
        let refused = configured(value).unwrap_err();
        let ErrorKind::WeightsPath { .. } = refused.kind() else { panic!("{value}: {refused:?}") };
        assert!(refused.path().unwrap().ends_with("config.4.9.json"), "{refused:?}");
    }
    assert_eq!(
        by_file.remarks,
        ["config.4.9.json: transformers_weights names w/x.safetensors".to_owned()]
    );
    let value = config("w/x.safetensors.index.json");
    let ignored = resolve(dir.path(), &ignoring_the_index(), Some(&value)).unwrap();
    assert_eq!(ignored.shards, paths(&[MODEL]));
    assert!(ignored.remarks.iter().any(|remark| remark.ends_with("index.json: not read")));
    let asked = resolve(dir.path(), &family(Family::Model), Some(&config("w/x.safetensors")));
    let asked = asked.unwrap();
    assert_eq!(asked.shards, paths(&[MODEL]));
}
