//! How the bytes of a load come: from the page cache or past it, into new memory, old memory or the
//! caller's.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use modeldir::options::{Io, Populate};
use modeldir::{Cancel, ErrorKind, LoadOptions, MapOptions, ModelDir, TensorStore};
use modeldir_fixtures::{ShardedModel, Tensor as Made};
use rustix::fs::{Advice, fadvise, fsync};
use tempfile::TempDir;
use tensorfile::SourceFile;

use crate::loading::threads;

/// Folders that may lie on a file system with direct reads, as that of temporary files may not.
fn folders() -> Vec<PathBuf> {
    vec![env!("CARGO_TARGET_TMPDIR").into(), "/var/tmp".into(), std::env::temp_dir()]
}

/// A folder on a file system with direct reads; if there is none, says so.
fn folder() -> TempDir {
    let folders = folders();
    let found = folders.iter().find_map(|folder| {
        let folder = tempfile::tempdir_in(folder).ok()?;
        let path = folder.path().join("probe");
        std::fs::write(&path, [0; 4096]).unwrap();
        let has_direct_reads = SourceFile::open(&path).unwrap().reopen_direct().is_some();
        std::fs::remove_file(path).unwrap();
        has_direct_reads.then_some(folder)
    });
    found.unwrap_or_else(|| {
        // Not by a macro, whose text nobody sees of a test that passes.
        let message = format!("NOT RUN: direct reads, which none of {folders:?} has\n");
        std::io::stderr().write_all(message.as_bytes()).unwrap();
        tempfile::tempdir_in(&folders[0]).unwrap()
    })
}

/// A model where direct reads are, if they are anywhere.
fn on_disk() -> (TempDir, Vec<Made>) {
    let made = vec![
        Made::random("odd", "U8", &[3]),
        Made::random("long", "F32", &[5, 1 << 20]),
        Made::random("short", "F16", &[100]),
        Made::random("wide", "BF16", &[300, 4096]),
        Made::random("none", "F64", &[0, 7]),
    ];
    let model = made
        .iter()
        .enumerate()
        .fold(ShardedModel::new(2), |model, (i, tensor)| model.tensor(1 + i % 2, tensor.clone()));
    let folder = folder();
    model.write(folder.path()).unwrap();
    (folder, made)
}

/// Makes the page cache forget a model, where it can.
pub(crate) fn forget(model: &ModelDir) {
    for shard in model.shards() {
        let file = File::open(model.path().join(shard.path())).unwrap();
        fsync(&file).unwrap();
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    }
}

fn assert_holds(store: &TensorStore, made: &[Made]) {
    assert_eq!(store.len(), made.len());
    for tensor in made {
        let loaded = store.get(&tensor.name).unwrap();
        assert!(loaded.bytes() == tensor.data, "{}", tensor.name);
        let align = loaded.dtype().align();
        assert_eq!(loaded.bytes().as_ptr().align_offset(align), 0, "{}", tensor.name);
    }
}

#[test]
fn every_way_brings_the_same_bytes_cached_or_not() {
    let (folder, made) = on_disk();
    let model = ModelDir::open(folder.path()).unwrap();
    for io in [Io::Auto, Io::Buffered, Io::Direct] {
        for count in [None, threads(1), threads(3)] {
            for is_cached in [true, false] {
                if !is_cached {
                    forget(&model);
                }
                let options = LoadOptions { io, threads: count, ..LoadOptions::default() };
                let store = model.plan().load_with(&options).unwrap();
                assert_holds(&store, &made);
                let stats = store.stats();
                assert_eq!(stats.bytes_read, model.byte_len());
                assert!(stats.bytes_direct <= stats.bytes_read, "{stats:?}");
                assert!(io != Io::Buffered || stats.bytes_direct == 0, "{stats:?}");
            }
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_to_be_read_past_the_cache_is() {
    let (folder, made) = on_disk();
    let model = ModelDir::open(folder.path()).unwrap();
    let options = LoadOptions { io: Io::Direct, ..LoadOptions::default() };
    let stats = model.plan().load_with(&options).unwrap().stats();
    let most = made.iter().map(Made::byte_len).max().unwrap() as u64;
    assert!(stats.bytes_direct >= most, "no direct reads in any of {:?}: {stats:?}", folders());
}

#[test]
fn parts_of_rows_are_the_same_in_every_way() {
    let (folder, made) = on_disk();
    let model = ModelDir::open(folder.path()).unwrap();
    let wide = made.iter().find(|tensor| tensor.name == "wide").unwrap();
    let columns = 1000..3000;
    let rows = wide.data.chunks(4096 * 2).map(|row| &row[columns.start * 2..columns.end * 2]);
    let wanted = rows.collect::<Vec<_>>().concat();
    let plan = model.plan().select(|tensor| {
        let part = modeldir::Selection::all().with_range(1, columns.clone());
        (tensor.name() == "wide").then_some(part)
    });
    let plan = plan.unwrap();
    for io in [Io::Auto, Io::Buffered, Io::Direct] {
        forget(&model);
        let store = plan.load_with(&LoadOptions { io, ..LoadOptions::default() }).unwrap();
        assert!(store.get("wide").unwrap().bytes() == wanted, "{io:?}");
        assert_eq!(store.stats().bytes_gathered, plan.bytes_read(), "{io:?}");
    }
}

#[test]
fn memory_that_a_store_gave_up_is_filled_again() {
    let (folder, made) = on_disk();
    let plan = ModelDir::open(folder.path()).unwrap().plan();
    let options = LoadOptions::default();
    let first = plan.load_with(&options).unwrap();
    let address = |store: &TensorStore| store.get("long").unwrap().bytes().as_ptr();
    let before = address(&first);
    let memory = first.into_memory();
    assert!(memory.byte_len() >= plan.bytes_selected());
    let second = plan.load_reusing_with(memory, &options).unwrap();
    assert_eq!(address(&second), before);
    assert_holds(&second, &made);

    // A tensor that is still somewhere keeps its memory and its bytes.
    let kept = second.get("long").unwrap().clone();
    let third = plan.load_reusing_with(second.into_memory(), &options).unwrap();
    assert_ne!(address(&third), kept.bytes().as_ptr());
    assert!(kept.bytes() == made[1].data);
    assert_holds(&third, &made);
}

#[test]
fn mapped_tensors_give_no_memory_to_be_filled() {
    let (folder, _) = on_disk();
    let plan = ModelDir::open(folder.path()).unwrap().plan();
    // SAFETY: nothing writes to the folder of this test.
    #[expect(unsafe_code, reason = "mapping is what is tested")]
    let store = unsafe { plan.map() }.unwrap();
    assert_eq!(store.into_memory().byte_len(), 0);
}

#[test]
fn a_populated_mapping_holds_the_bytes() {
    let (folder, made) = on_disk();
    let model = ModelDir::open(folder.path()).unwrap();
    forget(&model);
    let options = MapOptions { populate: Populate::AtOnce, ..MapOptions::default() };
    // SAFETY: nothing writes to the folder of this test.
    #[expect(unsafe_code, reason = "mapping is what is tested")]
    let store = unsafe { model.plan().map_with(&options) }.unwrap();
    for tensor in &made {
        assert!(store.get(&tensor.name).unwrap().bytes() == tensor.data, "{}", tensor.name);
    }
    assert!(store.stats().threads >= 1);
}

#[test]
fn the_callers_memory_is_filled_wherever_it_lies() {
    let (folder, made) = on_disk();
    let model = ModelDir::open(folder.path()).unwrap();
    for io in [Io::Auto, Io::Direct] {
        for shift in [0, 1, 8] {
            forget(&model);
            let place = |tensor: &Made| vec![0xee; tensor.byte_len() + shift];
            let mut places: Vec<Vec<u8>> = made.iter().map(place).collect();
            let named = made.iter().zip(&mut places);
            let named = named.map(|(tensor, place)| (&tensor.name, &mut place[shift..]));
            let options = LoadOptions { io, ..LoadOptions::default() };
            let stats = model.plan().load_into_with(named, &options).unwrap();
            assert_eq!(stats.bytes_read, model.byte_len());
            for (tensor, place) in made.iter().zip(&places) {
                assert!(place[shift..] == tensor.data, "{} {io:?} {shift}", tensor.name);
                assert!(place[..shift].iter().all(|byte| *byte == 0xee));
            }
        }
    }
}

#[test]
fn places_that_do_not_suit_the_plan_are_refused_before_anything_is_read() {
    let (folder, _) = on_disk();
    let plan = ModelDir::open(folder.path()).unwrap().plan().only(["odd", "short"]).unwrap();
    let load = |places: Vec<(&str, usize)>| {
        let mut memory: Vec<Vec<u8>> = places.iter().map(|(_, len)| vec![7; *len]).collect();
        let named = places.iter().zip(&mut memory).map(|((name, _), to)| (name, &mut to[..]));
        let error = plan.load_into(named).unwrap_err();
        assert!(memory.iter().flatten().all(|byte| *byte == 7));
        error
    };
    let error = load(vec![("odd", 3)]);
    assert!(error.to_string().ends_with(
        r#"tensor "short": expected one place of 200 bytes to load it into, found none"#
    ));
    let model = ModelDir::open(folder.path()).unwrap();
    let shard = model.info("short").unwrap().shard();
    assert_eq!(error.path(), Some(&*folder.path().join(shard.path())));
    let error = load(vec![("odd", 3), ("short", 200), ("short", 200)]);
    assert!(
        matches!(error.kind(), ErrorKind::Destination { found, .. } if **found == [200, 200]),
        "{error}"
    );
    let error = load(vec![("odd", 3), ("short", 199)]);
    assert!(
        matches!(error.kind(), ErrorKind::Destination { needed: 200, found, .. } if **found == [199]),
        "{error}"
    );
    for len in [201, 400, 1 << 20] {
        let error = load(vec![("odd", 3), ("short", len)]);
        assert!(
            matches!(error.kind(), ErrorKind::Destination { needed: 200, found, .. } if **found == [len]),
            "{error}"
        );
    }
    let error = load(vec![("odd", 3), ("short", 200), ("long", 20 << 20)]);
    assert!(matches!(error.kind(), ErrorKind::NotPlanned), "{error}");
    let error = load(vec![("odd", 3), ("short", 200), ("longer", 1)]);
    assert!(matches!(error.kind(), ErrorKind::TensorNotFound { .. }), "{error}");
}

#[test]
fn a_cancelled_load_ends_with_an_error() {
    let (folder, _) = on_disk();
    let model = ModelDir::open(folder.path()).unwrap();
    let cancel = Cancel::default();
    cancel.cancel();
    for count in [1, 4] {
        let (threads, cancel) = (threads(count), Some(cancel.clone()));
        let options = LoadOptions { threads, cancel, ..LoadOptions::default() };
        let error = model.plan().load_with(&options).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Cancelled), "{error}");
        assert_eq!(error.path(), Some(folder.path()));
    }
    assert!(cancel.is_cancelled());
    // The flag of one load is no business of another.
    model.plan().load().unwrap();
}
