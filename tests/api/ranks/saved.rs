//! The part of a rank, saved as a directory of its own: whose it is, and who may load it.
#![expect(unsafe_code, reason = "the part of a rank is mapped too")]

use std::path::Path;

use modeldir::options::{Beside, Existing};
use modeldir::partition::PartitionError;
use modeldir::{
    ErrorKind, Float, LoadPlan, ModelDir, Partition, Rank, SaveOptions, TensorStore, Topology,
};

fn rank(rank: usize) -> Topology {
    Topology::tensor_parallel(Rank::new(rank, 2).unwrap())
}

fn llama() -> (ModelDir, Partition) {
    let model = ModelDir::open(modeldir_fixtures::model("llama")).unwrap();
    let rules = Partition::for_config(model.config().unwrap()).unwrap();
    (model, rules)
}

/// Saves as several files, so that the record is in an index, or as one.
fn save(store: &TensorStore, to: &Path, max_shard_bytes: u64) {
    let existing = Existing::Replace;
    let options = SaveOptions { max_shard_bytes, existing, ..SaveOptions::default() };
    let saved = store.save_with(to, &options).unwrap();
    assert_eq!(saved.index.is_some(), max_shard_bytes < 1 << 20);
}

fn is_equal(a: &LoadPlan, b: &LoadPlan) -> bool {
    let (a, b) = (a.load().unwrap(), b.load().unwrap());
    let bytes = |store: &TensorStore| {
        store.iter().map(|(name, t)| (name.to_owned(), t.bytes().to_vec())).collect::<Vec<_>>()
    };
    bytes(&a) == bytes(&b)
}

#[test]
fn a_saved_part_is_loaded_by_its_rank_alone() {
    let (model, rules) = llama();
    let folder = tempfile::tempdir().unwrap();
    for max_shard_bytes in [100_000, 5_000_000_000] {
        let plan = model.plan_for(&rules, &rank(1)).unwrap();
        save(&plan.load().unwrap(), folder.path(), max_shard_bytes);
        let part = ModelDir::open(folder.path()).unwrap();
        let found = part.rank_part().unwrap().unwrap();
        assert_eq!((&found.topology, &found.rules), (&rank(1), &rules));
        assert_eq!(Path::new(&found.source), model.path());
        assert_eq!(part.partition().unwrap(), rules, "no configuration is there");
        assert!(is_equal(&part.plan_for(&rules, &rank(1)).unwrap(), &plan));
        let whole = Topology::single();
        for other in [rank(0), whole, Topology::tensor_parallel(Rank::new(1, 4).unwrap())] {
            let error = part.plan_for(&rules, &other).unwrap_err();
            let ErrorKind::Partition(PartitionError::OtherPart { holds, asked }) = error.kind()
            else {
                panic!("{error:?}");
            };
            assert_eq!((&**holds, &**asked), (&rank(1), &other));
            assert_eq!(error.path(), Some(part.path()));
        }
        let error = part.plan_for(&rules, &rank(0)).unwrap_err().to_string();
        assert!(error.contains("holds the part of rank 1/2, not that of rank 0/2"), "{error}");
        let error = part.plan_for(&Partition::default(), &rank(1)).unwrap_err();
        let kind = error.kind();
        let is_rules = matches!(kind, ErrorKind::Partition(PartitionError::OtherRules { .. }));
        assert!(is_rules, "{error:?}");
    }
}

#[test]
fn a_part_stays_a_part_when_it_is_narrowed_cast_loaded_and_saved_again() {
    let (model, rules) = llama();
    let plan = model.plan_for(&rules, &rank(0)).unwrap();
    let narrowed = plan.filter(|tensor| tensor.name() != "lm_head.weight").cast(Float::F32);
    // SAFETY: nothing writes to the fixtures.
    let mapped = unsafe { model.plan_for(&rules, &Topology::single()).unwrap().map() }.unwrap();
    let [once, twice, single] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    narrowed.load().unwrap().save(once.path()).unwrap();
    ModelDir::open(once.path()).unwrap().load().unwrap().save(twice.path()).unwrap();
    mapped.save(single.path()).unwrap();
    for (folder, topology) in [(&once, rank(0)), (&twice, rank(0)), (&single, Topology::single())] {
        let found = ModelDir::open(folder.path()).unwrap().rank_part().unwrap().unwrap();
        assert_eq!(found.topology, topology);
    }
}

#[test]
fn a_whole_model_is_the_part_of_no_rank() {
    let (model, _) = llama();
    assert_eq!(model.rank_part().unwrap(), None);
    let folder = tempfile::tempdir().unwrap();
    let options = SaveOptions { beside: Beside::Copy, ..SaveOptions::default() };
    model.load().unwrap().save_with(folder.path(), &options).unwrap();
    let copy = ModelDir::open(folder.path()).unwrap();
    assert_eq!(copy.rank_part().unwrap(), None);
    let header = copy.shards()[0].metadata().unwrap();
    assert_eq!(header.iter().collect::<Vec<_>>(), [("format", "pt")]);
}

#[test]
fn a_record_that_no_save_writes_is_an_error_of_the_part_alone() {
    let (model, rules) = llama();
    let folder = tempfile::tempdir().unwrap();
    let keys = ["modeldir.rank", "modeldir.rules", "modeldir.source"];
    let metadata = keys.map(|key| (key.to_owned(), "[".repeat(100_000))).into();
    let options = SaveOptions { metadata, ..SaveOptions::default() };
    model.load().unwrap().save_with(folder.path(), &options).unwrap();
    let copy = ModelDir::open(folder.path()).unwrap();
    assert_eq!(copy.load().unwrap().len(), model.len());
    for error in [copy.rank_part().unwrap_err(), copy.plan_for(&rules, &rank(0)).unwrap_err()] {
        let is_record = matches!(error.kind(), ErrorKind::PartRecord { .. });
        assert!(is_record && error.path() == Some(copy.path()), "{error}");
    }
}
