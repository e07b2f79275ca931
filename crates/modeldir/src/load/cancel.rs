//! A flag that ends a load from another thread.

use std::sync::Arc;

use super::sync::{AtomicBool, Ordering};

/// Ends loads; cheap to clone, and all clones are one flag.
///
/// ```
/// use modeldir::{Cancel, Error, ErrorKind, LoadOptions, ModelDir};
///
/// # let path = modeldir_fixtures::model("llama");
/// let plan = ModelDir::open(path)?.plan();
/// let cancel = Cancel::default();
/// let options = LoadOptions { cancel: Some(cancel.clone()), ..Default::default() };
/// cancel.cancel(); // from any thread, before or while it loads
/// let error = plan.load_with(&options).unwrap_err();
/// assert!(matches!(error.kind(), ErrorKind::Cancelled));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<Flag>);

#[derive(Debug, Default)]
struct Flag {
    is_set: AtomicBool,
    parent: Option<Cancel>,
}

impl Cancel {
    /// A new flag that is also set when this one is.
    pub(crate) fn child_of(parent: Option<&Self>) -> Self {
        Self(Arc::new(Flag { is_set: AtomicBool::new(false), parent: parent.cloned() }))
    }

    /// Ends every load that has this flag: each of its threads stops within one request, of at most
    /// 8 MiB. It cannot be undone.
    pub fn cancel(&self) {
        self.0.is_set.store(true, Ordering::Relaxed);
    }

    /// Whether [`cancel`](Self::cancel) was called.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        let parent = || self.0.parent.as_ref().is_some_and(Self::is_cancelled);
        self.0.is_set.load(Ordering::Relaxed) || parent()
    }
}
