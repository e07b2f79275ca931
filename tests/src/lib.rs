//! The runner of cases: folders with an input and an `expected.json` that says what is right.
//!
//! A case is opened and read in every way that the product has, and each way must give what
//! `expected.json` says. Nothing is passed over in silence: a field or a query that the runner does
//! not know, and a case without anything to check, are failures; a case that this machine cannot
//! run is skipped with the reason. `fixtures/README.md` documents the format.
//!
//! [`conformance`] reads the cases of the format and of sharded directories, which have one manifest
//! for all readers, as cases of the same form.
//!
//! Everything in a room below `check` is a plain comparison; `ways` alone opens and reads.

mod ask;
mod case;
mod check;
mod child;
mod conformance;
mod expected;
mod fields;
mod folder;
mod harmless;
mod host;
mod query;
mod refusal;
mod select;
mod ways;

pub use case::{Case, Outcome, cases_in};
pub use child::{CHILD_CASE, run_as_child};
pub use conformance::{FormatCase, conformance};
pub use harmless::{HARM, harm_in, is_harmful};
