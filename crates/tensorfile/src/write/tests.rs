//! Files as the reference writes them, and files refused.

use super::{Writer, WriterOptions};
use crate::{Buffer, Dtype, ErrorKind, Header, HeaderOptions, LimitOn, Tensor};
use proptest::prelude::*;
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// Name, dtype, shape, bytes.
type Given = (String, Dtype, Vec<usize>, Vec<u8>);

fn written(tensors: &[Given], metadata: Option<&[(&str, &str)]>) -> Vec<u8> {
    let mut writer = Writer::new();
    if let Some(metadata) = metadata {
        writer.extend_metadata(metadata.iter().copied());
    }
    for (name, dtype, shape, bytes) in tensors {
        writer.add(name, *dtype, shape, bytes).unwrap();
    }
    writer.to_bytes().unwrap()
}

fn by_reference(tensors: &[Given], metadata: Option<&[(&str, &str)]>) -> Vec<u8> {
    let views = tensors.iter().map(|(name, dtype, shape, bytes)| {
        let dtype = serde_json::from_value(dtype.name().into()).unwrap();
        let view = safetensors::tensor::TensorView::new(dtype, shape.clone(), bytes).unwrap();
        (name, view)
    });
    let metadata: Option<HashMap<String, String>> = metadata.map(|entries| {
        entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    });
    safetensors::serialize(views, metadata).unwrap()
}

fn given(name: &str, dtype: Dtype, shape: &[usize], fill: u8) -> Given {
    let byte_len = dtype.byte_len(shape.iter().product()).unwrap();
    (name.to_owned(), dtype, shape.to_vec(), vec![fill; byte_len])
}

fn default<T: Default>() -> T {
    T::default()
}

fn names_in(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn every_dtype_is_laid_out_as_the_reference_does() {
    let mut tensors = Vec::new();
    for (fill, &dtype) in (0..).zip(Dtype::ALL) {
        tensors.push(given(&format!("b.{dtype}"), dtype, &[2, 4], fill));
        tensors.push(given(&format!("a.{dtype}"), dtype, &[3, 0], fill));
        if dtype.bits() >= 8 {
            tensors.push(given(&format!("c.{dtype}"), dtype, &[], fill));
        }
    }
    for metadata in [None, Some(&[][..]), Some(&[("format", "p\"t\n\u{e9}")][..])] {
        assert_eq!(written(&tensors, metadata), by_reference(&tensors, metadata));
    }
}

#[test]
fn files_without_tensors_are_as_the_reference_writes_them() {
    for metadata in [None, Some(&[("a", "b")][..])] {
        assert_eq!(written(&[], metadata), by_reference(&[], metadata));
    }
    assert_eq!(written(&[], None), b"\x08\0\0\0\0\0\0\0{}      ");
    // Here the reference closes the object first and writes `{},"__metadata__":{}}`.
    assert_eq!(&written(&[], Some(&[]))[8..], br#"{"__metadata__":{}}     "#);
}

/// Tensors of different names, in any order.
fn any_tensors() -> impl Strategy<Value = Vec<Given>> {
    let dtype = prop::sample::select(Dtype::ALL.to_vec());
    prop::collection::btree_map(any::<String>(), (dtype, 0..3usize, any::<u8>()), 0..12)
        .prop_map(|tensors| {
            let tensors = tensors.into_iter();
            tensors
                .map(|(name, (dtype, len, fill))| given(&name, dtype, &[len, 4], fill))
                .collect::<Vec<_>>()
        })
        .prop_shuffle()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_names_and_order_are_laid_out_as_the_reference_does(
        tensors in any_tensors(),
        value: String,
    ) {
        let metadata = [("key", value.as_str())];
        prop_assert_eq!(
            written(&tensors, Some(&metadata)),
            by_reference(&tensors, Some(&metadata))
        );
    }
}

#[test]
fn metadata_is_sorted_by_key() {
    let writer = Writer::new().with_metadata("b", "2").with_metadata("a", "1");
    let writer = writer.with_metadata("b", "3");
    let bytes = writer.to_bytes().unwrap();
    assert_eq!(&bytes[8..], br#"{"__metadata__":{"a":"1","b":"3"}}      "#);
}

#[test]
fn names_that_cannot_be_are_refused() {
    let mut writer = Writer::new();
    let reserved = writer.add("__metadata__", Dtype::U8, &[1], b"a").unwrap_err();
    assert!(matches!(reserved.kind(), ErrorKind::ReservedName), "{reserved}");
    writer.add("a", Dtype::U8, &[1], b"a").unwrap();
    let taken = writer.add("a", Dtype::I8, vec![1], b"b").unwrap_err();
    assert_eq!(taken.to_string(), r#"tensor "a": a tensor of this name was added before"#);
}

#[test]
fn bytes_that_do_not_fit_are_refused() {
    let mut writer = Writer::new();
    for (dtype, shape) in [(Dtype::F32, vec![2]), (Dtype::U8, vec![])] {
        let error = writer.add("a", dtype, shape, b"abc").unwrap_err();
        let kind = error.kind();
        assert!(matches!(kind, ErrorKind::SizeMismatch { found: 3, .. }), "{error}");
    }
    let error = writer.add("a", Dtype::F4, vec![3], b"abc").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::PartialByte { bits: 12, .. }), "{error}");
    assert_eq!(writer.to_bytes().unwrap().len(), 16);
}

#[test]
fn a_header_over_the_limit_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let options = WriterOptions { max_header_bytes: 55, ..WriterOptions::default() };
    let mut writer = Writer::with_options(options);
    writer.add("a", Dtype::U8, &[3], b"abc").unwrap();
    for error in [
        writer.to_bytes().unwrap_err(),
        writer.save(folder.path().join("x.safetensors")).unwrap_err(),
    ] {
        let says =
            "header of 56 bytes, the limit is 55 (WriterOptions::max_header_bytes raises it)";
        assert!(error.to_string().ends_with(&format!(": {says}")), "{error}");
        let named = error.path().unwrap();
        assert!(
            named == Path::new("<memory>") || *named == folder.path().join("x.safetensors"),
            "{error}"
        );
    }
    assert!(names_in(folder.path()).is_empty());
}

#[test]
fn what_is_read_by_default_is_what_is_written_by_default() {
    let (read, write) = (HeaderOptions::default(), WriterOptions::default());
    assert_eq!(read.max_header_bytes, write.max_header_bytes);
    assert_eq!(read.max_tensors, write.max_tensors);
    assert_eq!(read.max_name_bytes, write.max_name_bytes);
    assert_eq!(read.max_rank, write.max_rank);
}

#[test]
fn tensors_names_and_dimensions_over_the_limits_are_refused_and_no_others() {
    let options = WriterOptions { max_tensors: 2, max_name_bytes: 3, max_rank: 1, ..default() };
    let mut writer = Writer::with_options(options);
    let error = writer.add("four", Dtype::U8, &[1], b"a").unwrap_err();
    let ErrorKind::Limit(limit) = error.kind() else { panic!("{error}") };
    assert_eq!((limit.what, limit.found, limit.limit), (LimitOn::NameBytes, 4, 3));
    let error = writer.add("two", Dtype::U8, &[1, 1], b"a").unwrap_err();
    let says = r#"tensor "two": 2 dimensions, the limit is 1 (WriterOptions::max_rank raises it)"#;
    assert_eq!(error.to_string(), says);
    assert_eq!(error.tensor(), Some("two"));

    writer.add("one", Dtype::U8, &[1], b"a").unwrap();
    writer.add("two", Dtype::U8, &[1], b"a").unwrap();
    let limits = HeaderOptions { max_tensors: 2, max_name_bytes: 3, max_rank: 1, ..default() };
    let bytes = writer.to_bytes().unwrap();
    assert_eq!(Header::from_bytes(&bytes, &limits).unwrap().len(), 2);

    writer.add("six", Dtype::U8, &[1], b"a").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let error = writer.save(folder.path().join("x.safetensors")).unwrap_err();
    let says = "x.safetensors: 3 tensors, the limit is 2 (WriterOptions::max_tensors raises it)";
    assert!(error.to_string().ends_with(says), "{error}");
    assert!(names_in(folder.path()).is_empty());
}

#[test]
fn a_saved_file_is_the_one_in_memory_and_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.safetensors");
    let bytes: Vec<u8> = (0..=255).cycle().take(3 << 20).collect();
    let tensor =
        Tensor::new("t", Dtype::U8, [3 << 20], Buffer::from_vec(bytes), 0..3 << 20).unwrap();
    let mut writer = Writer::new();
    writer.add_tensor(&tensor).unwrap();
    fs::write(&path, b"the old file").unwrap();
    writer.save(&path).unwrap();
    assert!(fs::read(&path).unwrap() == writer.to_bytes().unwrap());
    assert_eq!(names_in(folder.path()), ["x.safetensors"]);
}

#[test]
fn a_save_that_fails_leaves_everything_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let occupied = folder.path().join("x.safetensors");
    fs::create_dir(&occupied).unwrap();
    fs::write(occupied.join("inside"), b"").unwrap();
    let error = Writer::new().save(&occupied).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Io { action: "replace", .. }), "{error}");
    assert_eq!(names_in(folder.path()), ["x.safetensors"]);

    let nowhere = folder.path().join("no/such/folder/x.safetensors");
    let error = Writer::new().save(&nowhere).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Io { .. }), "{error}");
    assert_eq!(error.path(), Some(&*nowhere));
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_full_leaves_everything_as_it_was() {
    const FOLDER: &str = "TENSORFILE_TESTS_FULL_DISK";
    const THIS_TEST: &str = "write::tests::a_disk_that_is_full_leaves_everything_as_it_was";
    if let Some(folder) = std::env::var_os(FOLDER) {
        let bytes = vec![7; 3 << 20];
        let mut writer = Writer::new();
        writer.add("t", Dtype::U8, &[3 << 20], &bytes).unwrap();
        let error = writer.save(Path::new(&folder).join("x.safetensors")).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Io { action: "write", .. }), "{error:?}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.safetensors");
    fs::write(&path, b"the old file").unwrap();
    // A limit on the length of files stands in for a full disk.
    let limited = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 1024; exec \"$0\" --exact \"$1\""])
        .args([std::env::current_exe().unwrap().as_os_str(), THIS_TEST.as_ref()])
        .env(FOLDER, folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&limited.stdout);
    assert!(limited.status.success() && said.contains("1 passed"), "{limited:?}");
    assert_eq!(fs::read(&path).unwrap(), b"the old file");
    assert_eq!(names_in(folder.path()), ["x.safetensors"]);
}

#[cfg(unix)]
#[test]
fn the_mode_is_that_of_any_new_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (saved, plain) = (folder.path().join("saved"), folder.path().join("plain"));
    fs::write(&plain, b"").unwrap();
    fs::write(&saved, b"").unwrap();
    fs::set_permissions(&saved, fs::Permissions::from_mode(0o600)).unwrap();
    Writer::new().save(&saved).unwrap();
    let modes = [saved, plain].map(|path| fs::metadata(path).unwrap().permissions().mode());
    assert_eq!(modes[0], modes[1]);
}

#[cfg(unix)]
#[test]
fn a_link_is_replaced_and_its_target_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (link, blob) = (folder.path().join("x.safetensors"), folder.path().join("blob"));
    fs::write(&blob, b"the old file").unwrap();
    std::os::unix::fs::symlink("blob", &link).unwrap();
    Writer::new().save(&link).unwrap();
    assert_eq!(fs::read(&blob).unwrap(), b"the old file");
    assert!(fs::symlink_metadata(&link).unwrap().is_file());
}

#[test]
fn debug_shows_names_but_no_bytes() {
    let mut writer = Writer::new();
    writer.add("a", Dtype::U8, &[3], b"abc").unwrap();
    let shown = format!("{writer:?}");
    assert!(shown.contains(r#"tensors: ["a"]"#) && !shown.contains("97"), "{shown}");
}
