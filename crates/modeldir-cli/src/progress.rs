//! Loads with a progress bar, on terminals only.

use std::num::NonZeroUsize;
use std::sync::Arc;

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use modeldir::{LoadOptions, LoadPlan, Progress, TensorStore};

/// Bytes of tensors in memory at a time, where each tensor is needed only once.
pub(crate) const PART_BYTES: u64 = 1 << 30;

/// Returns a bar that counts bytes on standard error, if that is a terminal; it disappears when
/// dropped.
pub(crate) fn progress_bar(bytes_total: u64) -> ProgressBar {
    let template = "{bar:40} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
    let style = ProgressStyle::with_template(template).expect("the template is well formed");
    ProgressBar::new(bytes_total).with_style(style).with_finish(ProgressFinish::AndClear)
}

/// Loads a plan with this many threads, or the default number, with a bar of its own.
///
/// # Errors
///
/// Those of the load.
pub(crate) fn load(
    plan: &LoadPlan,
    threads: Option<NonZeroUsize>,
) -> modeldir::Result<TensorStore> {
    advance(plan, threads, &progress_bar(plan.bytes_read()))
}

/// Loads one of several parts, and advances the bar that they share.
///
/// # Errors
///
/// Those of the load.
pub(crate) fn load_part(plan: &LoadPlan, bar: &ProgressBar) -> modeldir::Result<TensorStore> {
    advance(plan, None, bar)
}

fn advance(
    plan: &LoadPlan,
    threads: Option<NonZeroUsize>,
    bar: &ProgressBar,
) -> modeldir::Result<TensorStore> {
    let (start, bar) = (bar.position(), bar.clone());
    let advance = move |progress: Progress| bar.set_position(start + progress.bytes_done);
    plan.load_with(&LoadOptions {
        threads,
        progress: Some(Arc::new(advance)),
        ..LoadOptions::default()
    })
}
