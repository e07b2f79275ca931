//! Tests of the public API, by area. The cases of folders have a binary of their own.
#![expect(clippy::unwrap_used, reason = "what helpers meet fails the test that calls them")]

// One file against the reference reader: the same verdict, the same bytes.
mod differential;
// Parts of tensors against an oracle and against the reference reader.
mod slicing;
// Files that are written, read back by the reference reader and by ours.
mod writer;
// Every shipped model, in every way of loading, against the digests of the library that wrote it.
mod digests;
// What opening says of a directory: reports, faults, aliases, variants.
mod directory;
// Files beside the weights: tokenizers by role, chat templates, generation, quantization.
mod beside;
// Every field of every configuration, under each of its names.
mod fields;
// The hub's cache: from a repository and a revision to tensors.
mod hub;
// Plans and loads: filters, threads, progress, stores.
mod loading;
// How bytes come: cached or not, past the cache or through it, into whose memory.
mod reading;
// Mappings whose bytes are all brought in at once.
mod mapping;
// Tensors that become another float type as they are read.
mod casting;
// Streams of tensors in bounded memory.
mod streaming;
// Loading from async code.
mod asynchronous;
// Parts of tensors in a plan: the same bytes as cutting one file, and few reads.
mod parts;
// What each rank takes of shipped models, against what transformers itself put there.
mod ranks;
// Spans for `tracing`, and what their fields tell.
mod spans;
// Nests of values at every place of every JSON text.
mod nests;
// Hostile names and values in all that is said.
mod hostile;
// What the machine does: few open files, FIFOs, files that change after opening.
mod machine;
// What a save asks of the system, in which order.
mod durable;
// The case runner itself: a changed expectation fails.
mod runner;
// How a test runs in a process of its own.
mod alone;
