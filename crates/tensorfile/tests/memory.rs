//! The peak memory of a hostile header is within the documented bound. A binary of its own, whose
//! tests take turns, because it counts the allocations of all threads.

use std::fmt::Write;
use std::sync::Mutex;

use peak_alloc::PeakAlloc;
use tensorfile::{HeaderOptions, TensorFile};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The least length of each header, a little more than the capacity of lists that grow by doubling.
const HEADER_LEN: usize = (2 << 20) + (1 << 15);

/// The bounds in the docs of `HeaderOptions::max_header_bytes`, with default limits and with
/// `max_rank` raised.
const MAX_FACTORS: [f64; 2] = [6.0, 11.0];

/// Enough parts for a header, between `start` and `end`; each gets its number.
fn repeated(start: &str, end: &str, mut part: impl FnMut(&mut String, usize)) -> String {
    let mut json = String::with_capacity(HEADER_LEN + 1024);
    json.push_str(start);
    for number in 0.. {
        part(&mut json, number);
        if json.len() + end.len() >= HEADER_LEN {
            break;
        }
        json.push(',');
    }
    json + end
}

/// Writes the name of this number, in three characters, so that a header has as many as possible.
fn push_name(json: &mut String, number: usize, order: Order) {
    // 64 characters that need no escape: from the colon on, without the backslash.
    let digit = |place: usize| {
        let c = b':' + u8::try_from(number >> (6 * place) & 63).expect("less than 64");
        char::from(if c < b'\\' { c } else { c + 1 })
    };
    let places = if order == Order::Ascending { [2, 1, 0] } else { [0, 1, 2] };
    json.extend(places.map(digit));
}

/// The order of names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Ascending,
    Scattered,
}

/// The text before and after the dimensions of a tensor `w`; `shape` begins its shape.
fn tensor(shape: &str) -> (String, String) {
    let (dtype, offsets) = (r#""dtype":"U8""#, r#""data_offsets":[0,0]"#);
    (format!(r#"{{"w":{{{dtype},{offsets},"shape":{shape}"#), "]}}".to_owned())
}

/// Headers that take as much memory as possible, each with a name.
fn hostile_headers() -> Vec<(&'static str, String)> {
    let entry = r#"{"dtype":"U8","shape":[0],"data_offsets":[0,0]}"#;
    let deep_entry = r#"{"dtype":"U8","shape":[0,1,1,1,1],"data_offsets":[0,0]}"#;
    let tensors = |start: &str, entry: &str| {
        repeated(start, "}", |json, number| {
            json.push('"');
            push_name(json, number, Order::Scattered);
            json.extend(["\":", entry]);
        })
    };
    let metadata = |start: &str, order: Order| {
        repeated(start, "}}", |json, number| {
            json.push('"');
            push_name(json, number, order);
            json.push_str("\":\"\"");
        })
    };
    let dims = |(start, end): (String, String), dim: &str| {
        repeated(&start, &end, |json, _| json.push_str(dim))
    };
    let escapes = |start: &str, end: &str| {
        let count = HEADER_LEN / 6;
        format!("{start}{}{end}", "\\u00e9".repeat(count))
    };
    let after_string = format!(r#":{entry}}}"#);
    let twice = metadata(r#"{"__metadata__":{"#, Order::Ascending);
    let twice = twice.replace("}}", r#","zzz":"","zzz":""}}"#);
    let listed_first = entry.replace("[0,0]", "[1,1]");
    let listed_last = r#"},"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#;
    let out_of_order = tensors("{", &listed_first).replace("}}", listed_last);
    vec![
        ("many tensors", tensors("{", entry)),
        ("many tensors, not plain", tensors("{ ", entry)),
        ("many tensors of five dimensions", tensors("{", deep_entry)),
        ("tensors not in the order of their bytes", out_of_order),
        ("the last tensor is wrong", tensors("{", entry).replace("}}", r#"},"x":{}}"#)),
        ("many dimensions", dims(tensor("[0,"), "1")),
        ("many dimensions, not plain", dims(tensor(" [0,"), "1")),
        ("many dimensions of a wrong size", dims(tensor("["), "1")),
        ("many dimensions that overflow", dims(tensor("["), "9")),
        ("metadata in order", metadata(r#"{"__metadata__":{"#, Order::Ascending)),
        ("metadata out of order", metadata(r#"{"__metadata__":{"#, Order::Scattered)),
        ("metadata, not plain", metadata(r#"{ "__metadata__":{"#, Order::Ascending)),
        ("metadata with a key twice", twice),
        ("a long name", escapes("{\"", &("\"".to_owned() + &after_string))),
        ("a long key", escapes(r#"{"__metadata__":{""#, r#"":""}}"#)),
        ("a long value", escapes(r#"{"__metadata__":{"k":""#, r#""}}"#)),
        ("a long dtype", escapes(r#"{"w":{"dtype":""#, r#""}}"#)),
        ("a long field", escapes(r#"{"w":{""#, r#"":0}}"#)),
        ("a long text for a shape", escapes(r#"{"w":{"shape":""#, r#""}}"#)),
    ]
}

/// Held by the test that counts.
static COUNTING: Mutex<()> = Mutex::new(());

/// Opens a file of this header; returns the result and the peak memory, as a multiple of the
/// header's length.
fn open(json: &str, options: &HeaderOptions) -> (tensorfile::Result<usize>, f64) {
    let file = [&(json.len() as u64).to_le_bytes(), json.as_bytes()].concat();
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let opened = TensorFile::from_source("m", &file[..], options);
    let peak = ALLOCATOR.peak_usage() - before;
    (opened.map(|file| file.len()), peak as f64 / json.len() as f64)
}

#[test]
fn a_header_takes_memory_in_proportion_to_its_length() {
    let _alone = COUNTING.lock().unwrap();
    for (name, json) in hostile_headers() {
        let raised = HeaderOptions { max_rank: usize::MAX, ..HeaderOptions::default() };
        for (options, max_factor) in [HeaderOptions::default(), raised].iter().zip(MAX_FACTORS) {
            let (_, factor) = open(&json, options);
            println!("{factor:5.2} {name}");
            assert!(factor <= max_factor, "{name}: {factor}");
        }
    }
}

#[test]
fn two_million_tensors_and_forty_million_dimensions_do_too() {
    let _alone = COUNTING.lock().unwrap();
    let default = HeaderOptions::default();
    let raised = HeaderOptions {
        max_header_bytes: 1 << 30,
        max_tensors: usize::MAX,
        max_rank: usize::MAX,
        ..default
    };
    let mut tensors = String::from("{");
    for number in 0..2_000_000_u32 {
        let (comma, name) = (if number == 0 { "" } else { "," }, number.reverse_bits());
        let entry = r#"{"dtype":"U8","shape":[0],"data_offsets":[0,0]}"#;
        write!(tensors, "{comma}\"{name:x}\":{entry}").unwrap();
    }
    tensors.push('}');
    let (start, end) = tensor("[0");
    let dims = format!("{start}{}{end}", ",1".repeat(40_000_000));
    for (json, count, [max, max_raised]) in
        [(tensors, 2_000_000, [0.1, MAX_FACTORS[0]]), (dims, 1, MAX_FACTORS)]
    {
        let (refused, factor) = open(&json, &default);
        println!("{factor:5.2} {} bytes, refused", json.len());
        assert!(refused.is_err() && factor <= max, "{factor}, {refused:?}");
        let (opened, factor) = open(&json, &raised);
        println!("{factor:5.2} {} bytes, opened", json.len());
        assert!(opened.is_ok_and(|len| len == count) && factor <= max_raised, "{factor}");
    }
}
