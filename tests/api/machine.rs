//! What the machine does to a load: few open files, FIFOs, files that change after opening.

use std::env;
use std::fs::{self, File};
use std::num::NonZeroU64;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, SystemTime};

use modeldir::error::MemoryLimit;
use modeldir::options::{Io, MemoryCheck, Unchanged};
use modeldir::{Error, ErrorKind, LoadOptions, ModelDir, OpenOptions, TensorStore};
use modeldir_fixtures::{ShardedModel, Tensor as Made, file, shard_name};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Resource, Rlimit, setrlimit};
use tensorfile::{ErrorKind as FileErrorKind, FileKind, TensorFile};

use crate::alone::run_alone;
use crate::loading::{threads, written};

/// Longer than any of these calls may take, and shorter than anyone would wait.
const PATIENCE: Duration = Duration::from_secs(20);

/// Names the folder of the model for the process that may open few files.
const MODEL: &str = "MODELDIR_TESTS_MODEL";

fn tensor(name: &str) -> Made {
    Made::random(name, "U8", &[4096])
}

fn one_each(count: usize) -> ShardedModel {
    (1..=count).fold(ShardedModel::new(count), |model, i| model.tensor(i, tensor(&format!("t{i}"))))
}

#[test]
fn three_hundred_shards_load_with_sixty_four_open_files_whatever_the_threads() {
    if let Some(folder) = env::var_os(MODEL) {
        let limit = Rlimit { current: Some(64), maximum: Some(64) };
        setrlimit(Resource::Nofile, limit).unwrap();
        for threads in [None, threads(128)] {
            let options = OpenOptions { threads, ..OpenOptions::default() };
            let plan = ModelDir::open_with(&folder, &options).unwrap().plan();
            let options = LoadOptions { threads, ..LoadOptions::default() };
            let store = plan.load_with(&options).unwrap();
            assert_eq!(store.len(), 300);
            assert_eq!(store.get("t300").unwrap().bytes(), tensor("t300").data);
        }
        return;
    }
    let folder = written(&one_each(300));
    let this = "machine::three_hundred_shards_load_with_sixty_four_open_files_whatever_the_threads";
    run_alone(this, &[(MODEL, folder.path().as_os_str())]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_load_goes_on_with_three_files_where_no_more_may_be_open() {
    if let Some(folder) = env::var_os(MODEL) {
        let plan = ModelDir::open(&folder).unwrap().plan();
        // The listing has one open itself.
        let open = fs::read_dir("/proc/self/fd").unwrap().count() - 1;
        let limit = Some(open as u64 + 3);
        setrlimit(Resource::Nofile, Rlimit { current: limit, maximum: limit }).unwrap();
        for io in [Io::Auto, Io::Buffered, Io::Direct] {
            let options = LoadOptions { threads: threads(16), io, ..LoadOptions::default() };
            let store = plan.load_with(&options).unwrap();
            assert_eq!(store.get("t100").unwrap().bytes(), tensor("t100").data);
        }
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    one_each(100).write(folder.path()).unwrap();
    let this = "machine::a_load_goes_on_with_three_files_where_no_more_may_be_open";
    run_alone(this, &[(MODEL, folder.path().as_os_str())]);
}

fn fifo(path: &Path) {
    let _absent = fs::remove_file(path);
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
}

/// Runs something that must not block. Where it panics, this panics as it did.
pub(crate) fn at_once<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = mpsc::channel();
    let worker = thread::spawn(move || send.send(work()));
    match receive.recv_timeout(PATIENCE) {
        Ok(done) => done,
        Err(RecvTimeoutError::Disconnected) => {
            resume_unwind(worker.join().expect_err("only a panic drops the sender unused"))
        }
        Err(error @ RecvTimeoutError::Timeout) => unreachable!("the call blocks: {error}"),
    }
}

#[test]
#[should_panic(expected = "said by the closure")]
fn a_panic_is_not_taken_for_a_call_that_blocks() {
    at_once(|| assert!(Path::new("").exists(), "said by the closure"));
}

#[test]
fn a_fifo_never_blocks() {
    let folder = written(&one_each(2).file("config.json", "{}").file("tokenizer.json", "{}"));
    let path = folder.path().to_owned();
    fifo(&path.join("config.json"));
    fifo(&path.join("tokenizer.json"));
    let model = path.clone();
    at_once(move || {
        let model = ModelDir::open(model).unwrap();
        assert_eq!(model.load().unwrap().len(), 2);
        assert!(model.config().unwrap_err().to_string().contains("config.json"));
    });

    let shard = path.join(shard_name(2, 2));
    fifo(&shard);
    let error = at_once(move || TensorFile::open(shard).unwrap_err());
    let kind = FileKind::Fifo;
    assert!(
        matches!(error.kind(), FileErrorKind::NotARegularFile { kind: found } if *found == kind)
    );
    let model = path.clone();
    let error = at_once(move || ModelDir::open(model).unwrap_err().to_string());
    assert!(error.contains(&shard_name(2, 2)) && error.contains("FIFO"), "{error}");

    let index = path.join("model.safetensors.index.json");
    fifo(&index);
    let error = at_once(move || ModelDir::open(path).unwrap_err().to_string());
    assert!(error.contains("index.json") && error.contains("FIFO"), "{error}");
}

#[test]
fn devices_are_refused() {
    let error = at_once(|| TensorFile::open("/dev/zero").unwrap_err());
    let kind = FileKind::Device;
    assert!(
        matches!(error.kind(), FileErrorKind::NotARegularFile { kind: found } if *found == kind)
    );
}

/// Opens two shards, does something to the second, and gives the error of loading, which opens the
/// shards again and so must see it.
fn refused_after(change: impl Fn(&Path)) -> FileErrorKind {
    let folder = written(&one_each(2));
    let model = ModelDir::open(folder.path()).unwrap();
    change(&folder.path().join(shard_name(2, 2)));
    let error = model.load().unwrap_err();
    assert!(error.to_string().contains(&shard_name(2, 2)), "{error}");
    match error.into_kind() {
        ErrorKind::File(kind) => kind,
        error => unreachable!("an error of a file, not {error:?}"),
    }
}

/// Writes a shard of the same length in place and gives it another time, for clocks are coarse.
fn rewrite(path: &Path) {
    fs::write(path, file(&[Made::tagged("new", "t2", "U8", &[4096])])).unwrap();
    let later = SystemTime::now() + Duration::from_secs(9);
    File::options().write(true).open(path).unwrap().set_modified(later).unwrap();
}

#[test]
fn a_shard_rewritten_after_opening_has_changed() {
    let kind = refused_after(rewrite);
    assert!(matches!(kind, FileErrorKind::Changed { .. }), "{kind}");
}

#[test]
fn a_shard_shortened_after_opening_has_changed() {
    let kind = refused_after(|path| {
        File::options().write(true).open(path).unwrap().set_len(100).unwrap();
    });
    assert!(matches!(kind, FileErrorKind::Changed { .. }), "{kind}");
}

#[test]
fn a_shortened_shard_names_the_first_tensor_that_lost_bytes() {
    let names = ["a", "b", "c"];
    let files =
        names.iter().fold(ShardedModel::new(1), |files, name| files.tensor(1, tensor(name)));
    for (kept, lost) in [(4095, "a"), (4096, "b"), (8191, "b"), (8192, "c"), (3 * 4096 - 1, "c")] {
        let folder = written(&files);
        let model = ModelDir::open(folder.path()).unwrap();
        let data_start = model.info("a").unwrap().file_range().start;
        let path = model.path().join(model.shards()[0].path());
        File::options().write(true).open(path).unwrap().set_len(data_start + kept).unwrap();
        let error = model.load().unwrap_err();
        let is_change = matches!(error.kind(), ErrorKind::File(FileErrorKind::Changed { .. }));
        assert!(is_change, "{error:?}");
        assert_eq!(error.tensor(), Some(lost), "{error:?}");
    }
}

#[test]
fn a_shard_replaced_after_opening_has_changed() {
    let kind = refused_after(|path| {
        let next = path.with_extension("next");
        fs::write(&next, file(&[Made::tagged("new", "t2", "U8", &[4096])])).unwrap();
        fs::rename(next, path).unwrap();
    });
    assert!(matches!(kind, FileErrorKind::Changed { .. }), "{kind}");
}

/// Opens two shards, changes the second, and loads both ways: with the length as proof and without.
fn loads_after(change: impl Fn(&Path)) -> [Result<TensorStore, Error>; 2] {
    let folder = written(&one_each(2));
    let by_length = OpenOptions { unchanged: Unchanged::ByteLen, ..OpenOptions::default() };
    let models = [OpenOptions::default(), by_length]
        .map(|options| ModelDir::open_with(folder.path(), &options).unwrap());
    change(&folder.path().join(shard_name(2, 2)));
    models.map(|model| model.load())
}

#[cfg(unix)]
#[test]
fn a_shard_whose_permissions_or_names_change_is_loaded() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    // Until the time of the last change differs: the clock of a file system is coarse.
    let until_changed = |path: &Path, change: &dyn Fn()| {
        let now = || fs::metadata(path).map(|it| (it.ctime(), it.ctime_nsec())).unwrap();
        let before = now();
        while now() == before {
            change();
        }
    };
    let chmod = |path: &Path| {
        let set = || fs::set_permissions(path, fs::Permissions::from_mode(0o640)).unwrap();
        until_changed(path, &set);
    };
    let link = |path: &Path| {
        let link = path.with_extension("link");
        let set = || {
            fs::remove_file(&link).ok();
            fs::hard_link(path, &link).unwrap();
        };
        until_changed(path, &set);
    };
    for loaded in loads_after(chmod).into_iter().chain(loads_after(link)) {
        assert_eq!(loaded.unwrap().len(), 2);
    }
}

#[test]
fn a_shard_of_another_time_is_loaded_by_its_length_on_request() {
    let touch = |path: &Path| {
        let later = SystemTime::now() + Duration::from_secs(9);
        File::options().write(true).open(path).unwrap().set_modified(later).unwrap();
    };
    let [refused, loaded] = loads_after(touch);
    let error = refused.unwrap_err().to_string();
    assert!(error.contains(&shard_name(2, 2)), "{error}");
    assert!(error.contains("Unchanged::ByteLen"), "the error names the option: {error}");
    assert_eq!(loaded.unwrap().len(), 2);
    let shorten = |path: &Path| {
        File::options().write(true).open(path).unwrap().set_len(100).unwrap();
    };
    for refused in loads_after(shorten) {
        let kind = refused.unwrap_err().into_kind();
        assert!(matches!(kind, ErrorKind::File(FileErrorKind::Changed { .. })), "{kind}");
    }
}

#[test]
fn a_shard_removed_after_opening_is_not_found() {
    let kind = refused_after(|path| fs::remove_file(path).unwrap());
    assert!(matches!(kind, FileErrorKind::NotFound), "{kind}");
}

#[test]
fn an_open_file_keeps_its_bytes_when_another_takes_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let (path, next) = (folder.path().join("a.safetensors"), folder.path().join("b.safetensors"));
    fs::write(&path, file(&[tensor("t")])).unwrap();
    fs::write(&next, file(&[Made::tagged("new", "t", "U8", &[4096])])).unwrap();
    let open = TensorFile::open(&path).unwrap();
    fs::rename(next, &path).unwrap();
    assert_eq!(open.read("t").unwrap().bytes(), tensor("t").data);
}

#[test]
fn an_open_file_that_is_shortened_is_an_error_that_names_the_tensor() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.safetensors");
    fs::write(&path, file(&[tensor("first"), tensor("second")])).unwrap();
    let open = TensorFile::open(&path).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(5000).unwrap();
    let error = open.read("second").unwrap_err().to_string();
    assert!(error.contains("a.safetensors") && error.contains("second"), "{error}");
}

/// A control group of this test below the one that the tests run in; it is removed at the end.
#[cfg(target_os = "linux")]
struct Group(std::path::PathBuf);

#[cfg(target_os = "linux")]
impl Group {
    /// A group that may have so many bytes, or `None` where this process may make none.
    fn new(limit: u64) -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = |start: &str| own.lines().find_map(|line| Some(line.split_once(start)?.1));
        let (folder, file) = match own(":memory:") {
            Some(group) => (format!("/sys/fs/cgroup/memory{group}"), "memory.limit_in_bytes"),
            None => (format!("/sys/fs/cgroup{}", own("0::")?), "memory.max"),
        };
        let group = Self(Path::new(&folder).join(format!("modeldir-{}", std::process::id())));
        fs::create_dir(&group.0).ok()?;
        fs::write(group.0.join(file), limit.to_string()).ok()?;
        Some(group)
    }
}

#[cfg(target_os = "linux")]
impl Drop for Group {
    fn drop(&mut self) {
        fs::remove_dir(&self.0).ok();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_load_that_needs_more_than_its_control_group_may_have_is_refused() {
    const GROUP: &str = "MODELDIR_TESTS_GROUP";
    if let Some(group) = env::var_os(GROUP) {
        fs::write(Path::new(&group).join("cgroup.procs"), "0").unwrap();
        let plan = ModelDir::open(env::var_os(MODEL).unwrap()).unwrap().plan();
        let memory_check = MemoryCheck::Available;
        let options = LoadOptions { memory_check, ..LoadOptions::default() };
        let error = plan.load_with(&options).unwrap_err();
        let ErrorKind::NotEnoughMemory { needed, available, limit } = error.kind() else {
            unreachable!("{error}")
        };
        assert_eq!(error.path(), Some(Path::new(&env::var_os(MODEL).unwrap())));
        assert!(*needed >= 100 << 20 && *available <= 64 << 20, "{error}");
        assert_eq!(*limit, MemoryLimit::ControlGroup(group.into()));
        let ended = plan.stream_with(&options, |_| Ok(()));
        assert!(
            matches!(&ended, Err(error) if matches!(error.kind(), ErrorKind::NotEnoughMemory { .. })),
            "{ended:?}"
        );
        let max_bytes_in_flight = NonZeroU64::new(8 << 20);
        let little = LoadOptions { max_bytes_in_flight, ..options.clone() };
        plan.stream_with(&little, |_| Ok(())).unwrap();
        assert_eq!(plan.only(["t9"]).unwrap().load_with(&options).unwrap().len(), 1);
        return;
    }
    let Some(group) = Group::new(64 << 20) else {
        let message = "NOT RUN: limits of control groups, of which this user may make none\n";
        // Not by a macro, whose text nobody sees of a test that passes.
        return std::io::Write::write_all(&mut std::io::stderr(), message.as_bytes()).unwrap();
    };
    let large = |i: usize| Made::new(&format!("t{i}"), "U8", &[1 << 20], vec![7; 1 << 20]);
    let files = (0..100).fold(ShardedModel::new(2), |files, i| files.tensor(1 + i % 2, large(i)));
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    files.write(folder.path()).unwrap();
    let this = "machine::a_load_that_needs_more_than_its_control_group_may_have_is_refused";
    run_alone(this, &[(MODEL, folder.path().as_os_str()), (GROUP, group.0.as_os_str())]);
}
