//! The weights: the index, the headers of shards, and the shard of each tensor.

pub(crate) mod alias;
pub(crate) mod index;
pub(crate) mod index_text;
pub(crate) mod join;
pub(crate) mod natural;
pub(crate) mod shard_path;
pub(crate) mod tied;
pub(crate) mod weight_map;
