//! Files that are written: as the reference writes them, and read back with the same tensors.

use std::collections::HashMap;
use std::fs;

use modeldir_fixtures::Tensor as Made;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype as TheirDtype, TensorView as TheirView, serialize};
use tensorfile::{Dtype, ErrorKind, LimitOn, Metadata, Remedy, TensorFile, Writer, WriterOptions};

fn writer_of(tensors: &[Made]) -> Writer<'_> {
    let mut writer = Writer::new();
    for tensor in tensors {
        let dtype = Dtype::from_name(&tensor.dtype).unwrap();
        writer.add(&*tensor.name, dtype, &*tensor.shape, &tensor.data).unwrap();
    }
    writer
}

/// What the reference writes.
fn reference(tensors: &[Made], metadata: Option<HashMap<String, String>>) -> Vec<u8> {
    let named = tensors.iter().map(|tensor| {
        let dtype: TheirDtype = serde_json::from_value(tensor.dtype.clone().into()).unwrap();
        let view = TheirView::new(dtype, tensor.shape.clone(), &tensor.data).unwrap();
        (tensor.name.clone(), view)
    });
    serialize(named, metadata).unwrap()
}

fn tensors() -> impl Strategy<Value = Vec<Made>> {
    let tensor = (select(&modeldir_fixtures::DTYPES[..]), vec(0_usize..4, 0..4));
    btree_map("[ -~\u{e9}\u{2028}\n]{0,6}", tensor, 0..6).prop_map(|tensors| {
        let made = tensors.into_iter().map(|(name, ((dtype, bits), mut shape))| {
            if shape.iter().product::<usize>() * bits % 8 != 0 {
                shape.push(8);
            }
            Made::random(&name, dtype, &shape)
        });
        made.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn files_are_those_of_the_reference_to_the_byte(
        tensors in tensors(),
        metadata in proptest::option::of(("[a-z\"\\\\]{0,4}", "\\PC{0,5}")),
    ) {
        let mut writer = writer_of(&tensors);
        if let Some((key, value)) = &metadata {
            writer = writer.with_metadata(key, value);
        }
        let written = writer.to_bytes().unwrap();
        // One entry at most: the reference writes more of them in the order of a hash map.
        let theirs = reference(&tensors, metadata.map(|entry| HashMap::from([entry])));
        prop_assert_eq!(&written, &theirs);

        let read = SafeTensors::deserialize(&written).unwrap();
        prop_assert_eq!(read.len(), tensors.len());
        for tensor in &tensors {
            prop_assert_eq!(read.tensor(&tensor.name).unwrap().data(), tensor.data.as_slice());
        }
    }
}

#[test]
fn a_shipped_file_is_written_again_as_it_was() {
    let path = modeldir_fixtures::model("gpt2").join("model.safetensors");
    let file = TensorFile::open(&path).unwrap();
    let tensors: Vec<_> = file.names().map(|name| file.read(name).unwrap()).collect();
    let mut writer = Writer::new();
    writer.extend_metadata(file.metadata().into_iter().flat_map(Metadata::iter));
    tensors.iter().try_for_each(|tensor| writer.add_tensor(tensor)).unwrap();
    assert_eq!(writer.to_bytes().unwrap(), fs::read(&path).unwrap());
}

#[test]
fn saving_over_an_open_file_leaves_the_open_one_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let (old, new) = (Made::random("a", "F32", &[64]), Made::tagged("new", "a", "F32", &[64]));
    writer_of(std::slice::from_ref(&old)).save(&path).unwrap();
    let open = TensorFile::open(&path).unwrap();
    writer_of(std::slice::from_ref(&new)).save(&path).unwrap();
    assert_eq!(open.read("a").unwrap().bytes(), old.data);
    assert_eq!(TensorFile::open(&path).unwrap().read("a").unwrap().bytes(), new.data);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_save_that_fails_leaves_nothing_and_harms_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    fs::create_dir(&path).unwrap();
    let tensor = Made::random("a", "U8", &[4]);
    let error = writer_of(std::slice::from_ref(&tensor)).save(&path).unwrap_err();
    assert!(error.to_string().contains("model.safetensors"), "{error}");
    assert!(path.is_dir());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn what_no_reader_takes_is_not_written() {
    let bytes = [0; 8];
    let mut writer = Writer::new();
    let reserved = writer.add("__metadata__", Dtype::U8, vec![8], &bytes).unwrap_err();
    assert!(matches!(reserved.kind(), ErrorKind::ReservedName));
    writer.add("a", Dtype::U8, vec![8], &bytes).unwrap();
    let taken = writer.add("a", Dtype::I64, vec![1], &bytes).unwrap_err();
    assert!(matches!(taken.kind(), ErrorKind::NameTaken));
    let short = writer.add("b", Dtype::F32, vec![3], &bytes).unwrap_err();
    assert!(matches!(short.kind(), ErrorKind::SizeMismatch { found: 8, needed: 12, .. }));

    let mut capped =
        Writer::with_options(WriterOptions { max_header_bytes: 16, ..WriterOptions::default() });
    capped.add("a", Dtype::U8, vec![8], &bytes).unwrap();
    let too_large = capped.to_bytes().unwrap_err();
    let ErrorKind::Limit(limit) = too_large.kind() else { panic!("{too_large}") };
    assert_eq!((limit.what, limit.limit), (LimitOn::HeaderBytes, 16));
    assert_eq!(limit.remedy, Some(Remedy::Raise("WriterOptions::max_header_bytes")));
}
