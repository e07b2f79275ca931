//! Writing tensors to one file, all of it or nothing.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use crate::format::{
    IN_MEMORY, MAX_HEADER_BYTES, MAX_NAME_BYTES, MAX_RANK, MAX_TENSORS, METADATA_KEY, PREFIX_LEN,
};
use crate::limit::{Limit, LimitOn};
use crate::{Dtype, ErrorKind, Result, Tensor, reserve, shape};

/// Collects tensors and writes them as one file, with the layout of the reference writer.
///
/// Tensors are sorted by dtype, widest first, then by name; the header is padded with spaces so
/// that the data starts at a multiple of 8 bytes. The same tensors give the same bytes, whatever
/// the order they were added in. Bytes are borrowed until they are written, and never copied
/// together in memory by [`save`](Self::save).
///
/// ```
/// use tensorfile::{Dtype, Writer};
///
/// let mut writer = Writer::new().with_metadata("format", "pt");
/// writer.add("bias", Dtype::U8, &[3], b"abc")?;
/// let bytes = writer.to_bytes()?;
/// assert!(bytes.ends_with(b"abc"));
///
/// let folder = tempfile::tempdir().expect("a folder to write to");
/// writer.save(folder.path().join("model.safetensors"))?;
/// # Ok::<(), tensorfile::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Writer<'a> {
    options: WriterOptions,
    metadata: Option<BTreeMap<String, String>>,
    tensors: BTreeMap<Cow<'a, str>, Entry<'a>>,
}

/// How a file is written: by default only what is read by default, so the limits are those of
/// [`HeaderOptions`](crate::HeaderOptions).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterOptions {
    /// The longest header that is written, in bytes; 100,000,000 by default, and never more than
    /// 4,294,967,295.
    pub max_header_bytes: u64,
    /// Tensors that a file may have; 1,000,000 by default.
    pub max_tensors: usize,
    /// Bytes that the name of a tensor may have; 65,536 by default.
    pub max_name_bytes: usize,
    /// Dimensions that a shape may have; 64 by default.
    pub max_rank: usize,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            max_header_bytes: MAX_HEADER_BYTES,
            max_tensors: MAX_TENSORS,
            max_name_bytes: MAX_NAME_BYTES,
            max_rank: MAX_RANK,
        }
    }
}

/// A tensor to be written, but for its name.
#[derive(Clone)]
struct Entry<'a> {
    dtype: Dtype,
    shape: Cow<'a, [usize]>,
    bytes: &'a [u8],
}

impl<'a> Writer<'a> {
    /// A writer of a file without tensors.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`new`](Self::new), with these options.
    #[must_use]
    pub fn with_options(options: WriterOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// The same writer with one more entry of metadata, or another value for the key.
    ///
    /// Entries are written in the order of their keys.
    #[must_use]
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.get_or_insert_default().insert(key.into(), value.into());
        self
    }

    /// Adds these entries to the metadata; from no entries, empty metadata is written.
    pub fn extend_metadata<K, V>(&mut self, entries: impl IntoIterator<Item = (K, V)>)
    where
        K: Into<String>,
        V: Into<String>,
    {
        let entries = entries.into_iter().map(|(key, value)| (key.into(), value.into()));
        self.metadata.get_or_insert_default().extend(entries);
    }

    /// Adds a tensor; its bytes are as they shall be in the file, little-endian and row-major.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ReservedName`] for the name `__metadata__`, [`ErrorKind::NameTaken`] for one that
    /// was added before, [`ErrorKind::Limit`] for a name or a shape over the limits,
    /// [`ErrorKind::SizeMismatch`] if there are not as many bytes as dtype and shape need.
    pub fn add(
        &mut self,
        name: impl Into<Cow<'a, str>>,
        dtype: Dtype,
        shape: impl Into<Cow<'a, [usize]>>,
        bytes: &'a [u8],
    ) -> Result<()> {
        let (name, entry) = (name.into(), Entry { dtype, shape: shape.into(), bytes });
        match self.check(&name, &entry) {
            Ok(()) => {
                self.tensors.insert(name, entry);
                Ok(())
            }
            Err(kind) => Err(kind.in_tensor(name)),
        }
    }

    /// Adds a tensor under its own name.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn add_tensor(&mut self, tensor: &'a Tensor) -> Result<()> {
        self.add(tensor.name(), tensor.dtype(), tensor.shape(), tensor.bytes())
    }

    /// The file in memory.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Limit`] for what is over the limits, [`ErrorKind::OutOfMemory`] if there is no
    /// memory for the file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.in_memory().map_err(|kind| kind.at(Path::new(IN_MEMORY)))
    }

    fn in_memory(&self) -> Result<Vec<u8>, ErrorKind> {
        let (head, tensors) = self.layout()?;
        let data_len = tensors.iter().map(|entry| entry.bytes.len());
        let mut bytes = reserve::list(data_len.fold(head.len(), usize::saturating_add))?;
        bytes.extend_from_slice(&head);
        for entry in tensors {
            bytes.extend_from_slice(entry.bytes);
        }
        Ok(bytes)
    }

    /// Writes the file, replacing what is at `path`; blocks until it is on the disk.
    ///
    /// The bytes go to a hidden temporary file in the same folder, which takes the name when it
    /// is complete and synced. Whatever fails until then, the old file stays as it was and the
    /// temporary file is removed; only a process that is killed leaves one behind. One thing can
    /// fail afterwards: syncing the folder. Then the new file is in its place, complete and synced,
    /// but its name may be lost with the power, and the error's action is `sync its folder after
    /// replacing the file`; a folder that cannot be synced at all is no error. The old file is not
    /// written to, so tensors mapped from it can be saved over it, and stay valid. A symbolic link is
    /// replaced, not followed. The mode of the file is 0666 less the umask, whatever the mode of
    /// the old file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Limit`] before anything is written; [`ErrorKind::Io`] otherwise.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        self.save_as(path).map_err(|kind| kind.at(path))
    }

    fn save_as(&self, path: &Path) -> Result<(), ErrorKind> {
        let (head, tensors) = self.layout()?;
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let failed = |action| move |source| ErrorKind::io(action, source);
        let mut file = temporary_file(folder).map_err(failed("create a file beside it"))?;
        write_all(file.as_file_mut(), &head, &tensors).map_err(failed("write"))?;
        file.persist(path).map_err(|error| failed("replace")(error.error))?;
        sync_folder(folder).map_err(failed("sync its folder after replacing the file"))
    }

    /// Refuses a tensor that cannot be in the file, or that readers would refuse.
    fn check(&self, name: &str, entry: &Entry<'_>) -> Result<(), ErrorKind> {
        if name == METADATA_KEY {
            return Err(ErrorKind::ReservedName);
        }
        if self.tensors.contains_key(name) {
            return Err(ErrorKind::NameTaken);
        }
        let (found, max) = (name.len() as u64, self.options.max_name_bytes as u64);
        Limit::check(LimitOn::NameBytes, found, max, "WriterOptions::max_name_bytes")?;
        let (found, max) = (entry.shape.len() as u64, self.options.max_rank as u64);
        Limit::check(LimitOn::Dimensions, found, max, "WriterOptions::max_rank")?;
        shape::check(entry.dtype, &entry.shape, entry.bytes.len() as u64)
    }

    /// The bytes before the data, and the tensors in the order of the file.
    fn layout(&self) -> Result<(Vec<u8>, Vec<&Entry<'a>>), ErrorKind> {
        let (found, max) = (self.tensors.len() as u64, self.options.max_tensors as u64);
        Limit::check(LimitOn::Tensors, found, max, "WriterOptions::max_tensors")?;
        let mut tensors: Vec<_> = self.tensors.iter().collect();
        tensors.sort_by_key(|(_, entry)| Reverse(entry.dtype));
        let mut head = vec![0; PREFIX_LEN];
        push_header(&mut head, self.metadata.as_ref(), &tensors)
            .expect("a vector takes every byte");
        head.resize(head.len().next_multiple_of(8), b' ');
        let header_len = u64::try_from(head.len() - PREFIX_LEN).unwrap_or(u64::MAX);
        let (max, option) = (self.options.max_header_bytes, "WriterOptions::max_header_bytes");
        Limit::check_header(header_len, max, option)?;
        let (length, _) = head.split_at_mut(PREFIX_LEN);
        length.copy_from_slice(&header_len.to_le_bytes());
        Ok((head, tensors.into_iter().map(|(_, entry)| entry).collect()))
    }
}

impl fmt::Debug for Writer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("options", &self.options)
            .field("metadata", &self.metadata)
            .field("tensors", &self.tensors.keys())
            .finish()
    }
}

/// Appends the header, in the very form that the reference writer gives it.
fn push_header(
    out: &mut Vec<u8>,
    metadata: Option<&BTreeMap<String, String>>,
    tensors: &[(&Cow<'_, str>, &Entry<'_>)],
) -> io::Result<()> {
    let mut separator = "{";
    if let Some(metadata) = metadata {
        write!(out, "{{\"{METADATA_KEY}\":")?;
        serde_json::to_writer(&mut *out, metadata)?;
        separator = ",";
    }
    let mut begin: u64 = 0;
    for (name, entry) in tensors {
        let byte_len = u64::try_from(entry.bytes.len()).unwrap_or(u64::MAX);
        let end = begin.saturating_add(byte_len);
        out.write_all(separator.as_bytes())?;
        serde_json::to_writer(&mut *out, name.as_ref())?;
        write!(out, ":{{\"dtype\":\"{}\",\"shape\":", entry.dtype)?;
        serde_json::to_writer(&mut *out, entry.shape.as_ref())?;
        write!(out, ",\"data_offsets\":[{begin},{end}]}}")?;
        begin = end;
        separator = ",";
    }
    let is_empty = separator == "{";
    out.write_all(if is_empty { b"{}" } else { b"}" })
}

/// A file without a name that anyone looks for, which is removed when it is dropped.
fn temporary_file(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tensorfile-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

fn write_all(file: &mut File, head: &[u8], tensors: &[&Entry<'_>]) -> io::Result<()> {
    let mut out = io::BufWriter::with_capacity(1 << 20, &mut *file);
    out.write_all(head)?;
    for entry in tensors {
        out.write_all(entry.bytes)?;
    }
    out.flush()?;
    drop(out);
    file.sync_all()
}

/// Makes the new name of the file outlive a loss of power, where the system can.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Folders that may be written to but not read, and file systems that cannot sync one.
        Err(error) if is_unsupported(error.kind()) => Ok(()),
        synced => synced,
    }
}

#[cfg(unix)]
const fn is_unsupported(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    matches!(kind, InvalidInput | PermissionDenied | Unsupported)
}

#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
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
        assert_eq!(taken.to_string(), r#"tensor "a": a tensor of this name is already there"#);
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
                named == "<memory>" || *named == folder.path().join("x.safetensors"),
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
        let says =
            r#"tensor "two": 2 dimensions, the limit is 1 (WriterOptions::max_rank raises it)"#;
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
        let says =
            "x.safetensors: 3 tensors, the limit is 2 (WriterOptions::max_tensors raises it)";
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
        // No process can fill a disk politely; one that may not write long files meets the same.
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
}
