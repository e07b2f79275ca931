//! The shards of one load: how they are opened, and how much was read.

use std::time::Duration;

use tensorfile::PathText;
use tracing::field::Empty;
use tracing::{Span, debug_span};

use super::files::Opener;
use super::options::Io;
use super::reader::ShardReader;
use super::stats::Counters;
use crate::Result;
use crate::threads::MAX_OPEN_FILES;
use crate::weights::index::{Index, ShardId};

/// The most shards open at the same time; each may be open once more for direct reads.
pub(super) const MAX_OPEN_SHARDS: usize = MAX_OPEN_FILES / 2;

/// Opens the shards of one load.
pub(super) struct ShardOpener<'a> {
    index: &'a Index,
    io: Io,
    /// The span of the load, parent of the shard spans.
    span: Span,
    /// What was read from closed shards.
    counters: Counters,
}

impl<'a> ShardOpener<'a> {
    pub(super) fn new(index: &'a Index, io: Io, span: Span) -> Self {
        Self { index, io, span, counters: Counters::default() }
    }

    /// What was read, by way; every shard is closed.
    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }
}

impl Opener for ShardOpener<'_> {
    type Shard = ShardId;
    type Reader = ShardReader;

    fn open(&self, shard: ShardId) -> tensorfile::Result<ShardReader> {
        let file = self.index.open_shard(shard)?;
        let span = debug_span!(
            parent: &self.span,
            "shard",
            path = %PathText(self.index[shard].path()),
            direct = Empty,
            buffered = Empty,
            gathered = Empty,
            seconds = Empty,
            gib_s = Empty,
        );
        Ok(ShardReader::new(file, self.io, span))
    }

    fn check(&self, shard: ShardId, reader: &ShardReader) -> Result<()> {
        let unchanged = reader.file().check_unchanged();
        // A shorter file names the first tensor that lost bytes; other changes name none.
        unchanged.map_err(|error| self.index.with_tensor(error.into(), shard, 0..0))
    }

    fn closed(&self, reader: &ShardReader, elapsed: Duration) {
        self.counters.add_all(&reader.counters);
        reader.counters.record(&reader.span, elapsed);
    }
}

#[cfg(test)]
mod tests {
    use tracing::Span;

    use super::super::files::OpenShards;
    use super::{Io, MAX_OPEN_SHARDS, ShardOpener};
    use crate::ModelDir;

    #[test]
    fn readers_share_a_file_and_the_last_one_closes_it() {
        let model = ModelDir::open(modeldir_fixtures::model("llama")).unwrap();
        let plan = model.plan();
        let shards = ShardOpener::new(&plan.index, Io::Auto, Span::none());
        let shards = OpenShards::new(shards, MAX_OPEN_SHARDS);
        let shard = plan.index.shards()[0].id();
        let (first, second) = (shards.open(shard).unwrap(), shards.open(shard).unwrap());
        assert!(std::ptr::eq(first.get(), second.get()));
        first.close().unwrap();
        assert_eq!(shards.num_open(), 1);
        drop(second);
        assert_eq!(shards.num_open(), 0);
    }
}
