//! What must hold for any input: the bodies of the fuzz targets, and the exceptions from agreement
//! with the reference.
//!
//! Each property takes bytes and says what is wrong, if anything is. The fuzz targets give them
//! bytes of libFuzzer, the tests bytes of proptest, of the conformance corpus, and of every input
//! that once failed.

mod differential;

pub use differential::{Agreement, EXCEPTIONS, Exception, compare, exception};
