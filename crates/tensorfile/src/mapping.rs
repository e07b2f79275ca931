//! Maps files into memory; the only room that does.
#![expect(unsafe_code, reason = "only the caller can guarantee that a mapped file does not change")]

use std::fs::File;
use std::sync::Arc;

use memmap2::Mmap;

use crate::{Buffer, ErrorKind, Result, SourceFile, TensorFile};

impl TensorFile<SourceFile> {
    /// Maps the file into memory: the bytes of a tensor are read when they are first touched.
    ///
    /// ```
    /// # use tensorfile::{Dtype, TensorFile, Writer};
    /// # let dir = tempfile::tempdir().expect("a folder");
    /// # let path = dir.path().join("model.safetensors");
    /// # let mut writer = Writer::new();
    /// # writer.add("w", Dtype::U8, &[3], &[1, 2, 3])?;
    /// # writer.save(&path)?;
    /// let file = TensorFile::open(&path)?;
    /// // SAFETY: nothing writes to the file or shortens it while this process runs.
    /// let mapped = unsafe { file.map() }?;
    /// assert_eq!(mapped.tensor("w")?.bytes(), [1, 2, 3]);
    /// # Ok::<(), tensorfile::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if the operating system refuses, or if the file has changed since it was opened.
    ///
    /// # Safety
    ///
    /// While the result, a tensor of it, or a clone of either exists, no process may write to the
    /// file: the bytes would change behind a shared reference, which is undefined behaviour. No
    /// process may shorten it, and its medium may not fail: touching a missing byte raises SIGBUS,
    /// which by default kills the process. Replacing the file by a rename is harmless.
    pub unsafe fn map(&self) -> Result<TensorFile<Buffer>> {
        // SAFETY: our caller guarantees the same.
        let buffer =
            unsafe { self.source().map() }.map_err(|error| self.with_lost_tensor(error))?;
        Ok(TensorFile::from_parts(self.path().into(), buffer, self.shared_header()))
    }
}

/// The whole file as a shared, read-only mapping.
///
/// Costs one system call; bytes are read when they are first touched. The length is that of the
/// file now; [`SourceFile::map`] compares it with the length at opening.
///
/// # Errors
///
/// [`ErrorKind::NotMapped`] if the operating system refuses.
///
/// # Safety
///
/// While the buffer or a clone of it exists, no process may write to the file: the bytes would
/// change behind a shared reference, which is undefined behaviour. No process may shorten it:
/// touching a byte past the new end raises SIGBUS, which by default kills the process. The same
/// happens when the medium fails. Replacing the file by a rename is harmless: the mapping keeps the
/// old one.
unsafe fn map_file(file: &File) -> Result<Buffer, ErrorKind> {
    let metadata = file.metadata().map_err(|error| ErrorKind::io("read its metadata", error))?;
    let byte_len = metadata.len();
    // No system maps zero bytes.
    if byte_len == 0 {
        return Ok(Buffer::from_vec(Vec::new()));
    }
    // SAFETY: our caller guarantees that the file is neither written to nor shortened.
    let map = unsafe { Mmap::map(file) };
    let map = map.map_err(|error| ErrorKind::NotMapped { byte_len, source: Arc::new(error) })?;
    // Advice: the system then reads in larger steps and maps more pages per fault.
    #[cfg(target_os = "linux")]
    map.advise(memmap2::Advice::HugePage).ok();
    Ok(Buffer::from_file_map(map))
}

impl SourceFile {
    /// The whole file as a mapping, which stays valid when the file is closed.
    ///
    /// Bytes are read when they are first touched. The mapping has the length of the file at
    /// opening.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotMapped`] if the operating system refuses; [`ErrorKind::Changed`] if the file
    /// has changed since it was opened.
    ///
    /// # Safety
    ///
    /// While the buffer or a clone of it exists, no process may write to the file or shorten it.
    /// Bytes that change behind a shared reference are undefined behaviour; touching a byte past a
    /// new end raises SIGBUS, which by default kills the process, and so does a failing medium.
    pub unsafe fn map(&self) -> Result<Buffer> {
        // SAFETY: our caller guarantees the same.
        let mapped = unsafe { map_file(self.file()) };
        let buffer = mapped.map_err(|kind| kind.at(self.path()))?;
        // Now the mapping has the length against which offsets were checked.
        self.check_unchanged()?;
        Ok(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::map_file;
    use crate::{Dtype, ErrorKind, SourceFile, Tensor, Writer};
    use std::io::Write;

    fn map(bytes: &[u8]) -> crate::Buffer {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        // SAFETY: no other process has the file, and nothing writes to it again.
        unsafe { map_file(file.as_file()) }.unwrap()
    }

    #[test]
    fn maps_the_whole_file_and_outlives_its_name() {
        let buffer = map(b"some bytes");
        assert_eq!(&buffer[..], b"some bytes");
        assert_eq!(format!("{buffer:?}"), "Buffer { kind: file map, byte_len: 10 }");
    }

    #[test]
    fn an_empty_file_gives_an_empty_buffer() {
        assert!(map(b"").is_empty());
    }

    #[test]
    fn a_file_of_another_length_is_not_mapped() {
        let folder = tempfile::tempdir().unwrap();
        for len in [0, 9, 11] {
            let path = folder.path().join("x");
            std::fs::write(&path, b"some bytes").unwrap();
            let source = SourceFile::open(&path).unwrap();
            std::fs::File::options().write(true).open(&path).unwrap().set_len(len).unwrap();
            // SAFETY: nothing writes to the file again.
            let error = unsafe { source.map() }.unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Changed { before: 10, .. }), "{error}");
        }
    }

    #[test]
    fn a_refusal_says_how_much_was_to_be_mapped() {
        let folder = tempfile::tempdir().unwrap();
        let mut write_only = std::fs::File::create(folder.path().join("x")).unwrap();
        write_only.write_all(b"some bytes").unwrap();
        // SAFETY: no other process has the file, and nothing writes to it again.
        let error = unsafe { map_file(&write_only) }.unwrap_err();
        assert!(matches!(error, ErrorKind::NotMapped { byte_len: 10, .. }), "{error:?}");
        assert_eq!(error.to_string(), "cannot map its 10 bytes into memory (they can be read)");
    }

    #[test]
    fn tensors_can_be_saved_over_the_file_they_are_mapped_from() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.safetensors");
        std::fs::write(&path, b"abcdefgh").unwrap();
        let file = std::fs::File::open(&path).unwrap();
        // SAFETY: no other process has the file, and saving replaces it without writing to it.
        let buffer = unsafe { map_file(&file) }.unwrap();
        let tensor = Tensor::new("t", Dtype::U8, [8], buffer, 0..8).unwrap();
        let mut writer = Writer::new();
        writer.add_tensor(&tensor).unwrap();
        writer.save(&path).unwrap();
        assert_eq!(tensor.bytes(), b"abcdefgh");
        let saved = std::fs::read(&path).unwrap();
        let saved = safetensors::SafeTensors::deserialize(&saved).unwrap();
        assert_eq!(saved.tensor("t").unwrap().data(), b"abcdefgh");
    }
}
