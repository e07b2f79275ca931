//! The types of the fields of [`OpenOptions`](crate::OpenOptions),
//! [`LoadOptions`](crate::LoadOptions), [`MapOptions`](crate::MapOptions) and
//! [`SaveOptions`](crate::SaveOptions).

pub use tensorfile::{HeaderOptions, TrailingBytes, Unchanged};

pub use crate::load::{Io, MemoryCheck};
pub use crate::map::Populate;
pub use crate::open_options::{Family, IndexPolicy, MissingShards, Unindexed, Weights};
pub use crate::save::{Beside, Existing};
