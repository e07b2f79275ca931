//! The progress bar.

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};

/// A bar that counts bytes on standard error; it is not there unless that is a terminal, and goes
/// when it is dropped.
pub fn progress_bar(bytes_total: u64) -> ProgressBar {
    let template = "{bar:40} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
    let style = ProgressStyle::with_template(template).expect("the template is well formed");
    ProgressBar::new(bytes_total).with_style(style).with_finish(ProgressFinish::AndClear)
}
