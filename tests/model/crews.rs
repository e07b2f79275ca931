//! Crews that take jobs from a queue and share the shards that they have open.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::cancel::Cancel;
use super::crew::{Crew, Work, Worker};
use super::files::{OpenShard, OpenShards, Opener};
use super::queue::Queue;
use super::sync::{AtomicUsize, Ordering, assert_caught, count};
use crate::{Error, ErrorKind, Result};

/// A load: the shards of its jobs, and what happens in it.
#[derive(Clone, Copy, Debug)]
struct Load {
    shards: &'static [usize],
    /// Workers that copy, and workers while reads wait.
    workers: (usize, usize),
    /// Shards that may be open, and files that the process may have open.
    open: (usize, usize),
    /// Jobs whose reads wait.
    waits: &'static [usize],
    /// Jobs that fail, and jobs that panic.
    fails: &'static [usize],
    panics: &'static [usize],
    /// A shard that is found to have changed when it is closed.
    changed: Option<usize>,
    /// Whether a thread cancels the load.
    cancelled: bool,
    /// Whether workers hold a shard while they open another.
    holds: bool,
}

const LOAD: Load = Load {
    shards: &[0, 0, 1],
    workers: (2, 2),
    open: (8, 8),
    waits: &[],
    fails: &[],
    panics: &[],
    changed: None,
    cancelled: false,
    holds: false,
};

/// The files that a process has open.
#[derive(Clone)]
struct Files(Arc<AtomicUsize>);

/// An open file.
struct OpenFile(Files);

impl Drop for OpenFile {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Opens files as far as there may be more.
struct Disk {
    files: Files,
    load: Load,
}

impl Opener for Disk {
    type Shard = usize;
    type Reader = OpenFile;

    fn open(&self, _shard: usize) -> tensorfile::Result<OpenFile> {
        let more = |open: usize| (open < self.load.open.1).then_some(open + 1);
        let opened = self.files.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        match opened {
            Ok(_) => {
                let file = OpenFile(self.files.clone());
                // It takes its time, in which others may fail.
                self.files.0.load(Ordering::Relaxed);
                Ok(file)
            }
            Err(_) => {
                let source = io::Error::from_raw_os_error(24);
                Err(tensorfile::ErrorKind::io("open it", source).at(Path::new("m")))
            }
        }
    }

    fn check(&self, shard: usize, _reader: &OpenFile) -> Result<()> {
        if self.load.changed == Some(shard) { Err(failed(100 + shard)) } else { Ok(()) }
    }

    fn closed(&self, _reader: &OpenFile, _elapsed: Duration) {}
}

/// An error that says which job failed.
fn failed(number: usize) -> Error {
    ErrorKind::Threads { threads: number, message: "failed".into() }.at("m")
}

/// What the workers share.
struct Jobs {
    load: Load,
    files: OpenShards<Disk>,
    /// How often each job was done.
    done: Vec<AtomicUsize>,
    at_work: AtomicUsize,
}

impl Work<usize> for Jobs {
    fn worker<'w>(&'w self, before_waiting: &'w dyn Fn()) -> impl Worker<usize> + 'w {
        self.at_work.fetch_add(1, Ordering::Relaxed);
        Reading { jobs: self, before_waiting, open: None, has_waited: false }
    }
}

/// A worker of the model; it opens and closes as those of a load do.
struct Reading<'w> {
    jobs: &'w Jobs,
    before_waiting: &'w dyn Fn(),
    open: Option<OpenShard<'w, Disk>>,
    has_waited: bool,
}

impl Worker<usize> for Reading<'_> {
    fn turn_to(&mut self, job: &usize) -> Result<()> {
        let shard = self.jobs.load.shards[*job];
        if self.jobs.load.holds {
            return Ok(());
        }
        self.open.take_if(|open| open.shard != shard).map_or(Ok(()), OpenShard::close)
    }

    fn work(&mut self, job: usize) -> Result<()> {
        let load = &self.jobs.load;
        if load.waits.contains(&job) {
            self.has_waited = true;
            (self.before_waiting)();
        }
        let open = self.open.take_if(|open| open.shard == load.shards[job]);
        let open = open.map_or_else(|| self.jobs.files.open(load.shards[job]), Ok)?;
        let _file = open.get();
        self.open = Some(open);
        self.jobs.done[job].fetch_add(1, Ordering::Relaxed);
        if load.panics.contains(&job) {
            resume_unwind(Box::new(job));
        }
        if load.fails.contains(&job) { Err(failed(job)) } else { Ok(()) }
    }

    fn has_waited(&mut self) -> bool {
        std::mem::take(&mut self.has_waited)
    }

    fn finish(mut self) -> Result<()> {
        self.open.take().map_or(Ok(()), OpenShard::close)
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.jobs.at_work.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How a load ended: its jobs done, or the number of its error or panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Done,
    Failed(usize),
    Panicked(usize),
    Cancelled,
    OutOfFiles,
}

/// Runs a load, and checks what holds however it ends.
fn run(load: Load) -> End {
    let files = Files(Arc::new(AtomicUsize::new(0)));
    let disk = Disk { files: files.clone(), load };
    let done = load.shards.iter().map(|_| AtomicUsize::new(0)).collect();
    let shards = OpenShards::new(disk, load.open.0);
    let jobs = Jobs { load, files: shards, done, at_work: AtomicUsize::new(0) };
    let cancel = Cancel::default();
    let numbers = (0..load.shards.len()).collect();
    let queue = Queue::new(numbers, Path::new("m"), Some(&cancel));
    let crew = Crew::new(load.workers.0, load.workers.1);
    let (canceller, flag) = (load.cancelled, cancel.clone());
    let canceller = canceller.then(|| shuttle::thread::spawn(move || flag.cancel()));
    crew.run(&queue, &jobs).unwrap();
    canceller.map_or(Ok(()), shuttle::thread::JoinHandle::join).unwrap();
    let into_result = || queue.into_result().map_err(Error::into_kind);
    let end = match catch_unwind(AssertUnwindSafe(into_result)) {
        Ok(Ok(())) => End::Done,
        Ok(Err(ErrorKind::Cancelled)) => End::Cancelled,
        Ok(Err(ErrorKind::Threads { threads, .. })) => End::Failed(threads),
        Ok(Err(ErrorKind::File(tensorfile::ErrorKind::Io { .. }))) => End::OutOfFiles,
        Ok(Err(error)) => panic!("{error}"),
        Err(panic) => End::Panicked(*panic.downcast::<usize>().unwrap()),
    };
    let done: Vec<_> = jobs.done.iter().map(|done| done.load(Ordering::Relaxed)).collect();
    assert!(done.iter().all(|times| *times <= 1), "{done:?}");
    assert!(end != End::Done || done.iter().all(|times| *times == 1), "{done:?}");
    assert_eq!(jobs.at_work.load(Ordering::Relaxed), 0);
    assert!(crew.peak() <= load.workers.1);
    assert_eq!(files.0.load(Ordering::Relaxed), 0, "files are open");
    assert_eq!(jobs.files.num_open(), 0);
    end
}

#[test]
fn every_job_is_done_once_whatever_the_workers_do() {
    let mut orders = 0;
    let waiting = Load { waits: &[0, 2], workers: (1, 2), ..LOAD };
    for (title, load) in [("two workers", LOAD), ("workers that come and go", waiting)] {
        orders += count(title, move || assert_eq!(run(load), End::Done));
    }
    assert!(orders > 1_000, "{orders}");
}

#[test]
fn the_first_failure_by_order_is_told_and_a_panic_before_any() {
    let failing = Load { shards: &[0, 0, 0, 0], fails: &[1, 2, 3], ..LOAD };
    count("three jobs fail", move || assert_eq!(run(failing), End::Failed(1)));
    let panicking = Load { fails: &[0], panics: &[1], ..LOAD };
    count("a job fails and one panics", move || {
        let end = run(panicking);
        assert!([End::Panicked(1), End::Failed(0)].contains(&end), "{end:?}");
    });
    let panicking = Load { panics: &[0, 1], ..LOAD };
    count("two jobs panic", move || {
        let end = run(panicking);
        assert!([End::Panicked(0), End::Panicked(1)].contains(&end), "{end:?}");
    });
    let changed = Load { changed: Some(0), ..LOAD };
    count("a shard changes", move || assert_eq!(run(changed), End::Failed(100)));
}

#[test]
fn a_change_is_told_by_a_worker_that_goes_because_no_read_waits() {
    let shrinking = Load { shards: &[1, 0], waits: &[0], workers: (1, 2), ..LOAD };
    for shard in [0, 1] {
        let load = Load { changed: Some(shard), ..shrinking };
        count("a worker goes and a shard changes", move || {
            assert_eq!(run(load), End::Failed(100 + shard));
        });
    }
}

#[test]
fn a_cancelled_load_ends_or_is_done() {
    let cancelled = Load { shards: &[0, 1], cancelled: true, ..LOAD };
    count("a thread cancels", move || {
        let end = run(cancelled);
        assert!([End::Done, End::Cancelled].contains(&end), "{end:?}");
    });
}

#[test]
fn workers_wait_for_files_without_waiting_for_each_other() {
    let few = Load { shards: &[0, 1, 0], open: (1, 8), ..LOAD };
    count("one shard may be open", move || assert_eq!(run(few), End::Done));
    let few = Load { shards: &[0, 1, 2], open: (8, 1), ..LOAD };
    count("one file may be open", move || assert_eq!(run(few), End::Done));
    let none = Load { shards: &[0, 1], open: (1, 0), ..LOAD };
    count("no file may be open", move || assert_eq!(run(none), End::OutOfFiles));
    let none = Load { shards: &[0, 1, 0], open: (8, 0), ..LOAD };
    count("no file may be open of many", move || assert_eq!(run(none), End::OutOfFiles));
}

#[test]
fn a_worker_that_holds_a_shard_while_it_opens_another_is_caught() {
    let holding = Load { shards: &[0, 1, 1, 0], open: (1, 8), holds: true, ..LOAD };
    assert_caught("a worker holds a shard while it opens another", move || {
        run(holding);
    });
}
