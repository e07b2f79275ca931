//! What the library tells `tracing`: the spans of opening, planning and loading, and their fields.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use modeldir::{LoadOptions, ModelDir};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};

use crate::alone::{is_alone, run_alone};
use crate::loading::threads;

/// A span as it was told.
#[derive(Clone, Debug)]
struct Told {
    id: Id,
    name: &'static str,
    level: Level,
    parent: Option<&'static str>,
    fields: Fields,
}

/// Fields by name, as text.
#[derive(Clone, Debug, Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

/// Keeps every span, in the order in which they begin.
#[derive(Clone, Debug, Default)]
struct Recorder(Arc<Mutex<Vec<Told>>>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Recorder {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let span = context.span(id).unwrap();
        let parent = span.parent().map(|parent| parent.name());
        let (name, level) = (span.name(), *span.metadata().level());
        self.0.lock().unwrap().push(Told { id: id.clone(), name, level, parent, fields });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _context: Context<'_, S>) {
        let mut told = self.0.lock().unwrap();
        values.record(&mut told.iter_mut().rfind(|told| told.id == *id).unwrap().fields);
    }
}

impl Told {
    fn number(&self, field: &str) -> u64 {
        self.fields.0[field].parse().unwrap()
    }
}

#[test]
fn spans_tell_what_was_opened_planned_and_loaded() {
    // The threads of a load see the subscriber of the process, not that of a thread.
    if !is_alone() {
        return run_alone("spans::spans_tell_what_was_opened_planned_and_loaded", &[]);
    }
    let recorder = Recorder::default();
    let subscriber = Registry::default().with(recorder.clone());
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let path = modeldir_fixtures::model("llama");
    let model = ModelDir::open(&path).unwrap();
    let plan = model.plan().filter(|tensor| !tensor.name().starts_with("lm_head"));
    let options = LoadOptions { threads: threads(2), ..LoadOptions::default() };
    let store = plan.load_with(&options).unwrap();
    let told = recorder.0.lock().unwrap().clone();
    let span = |name: &str| told.iter().rfind(|told| told.name == name).unwrap();
    let (shards, tensors) = (model.shards().len() as u64, model.len() as u64);

    let open = span("open");
    assert_eq!(open.fields.0["path"], path.display().to_string());
    assert_eq!((open.number("files"), open.number("tensors")), (shards, tensors));
    assert_eq!(open.number("bytes"), model.byte_len());
    let index = span("index");
    assert_eq!((index.parent, index.number("shards")), (Some("open"), shards));
    assert_eq!(index.number("tensors"), tensors);
    let planned = span("plan");
    let (tensors, bytes) = (plan.len() as u64, plan.bytes_selected());
    assert_eq!((planned.number("tensors"), planned.number("bytes")), (tensors, bytes));
    assert_eq!(planned.number("requests"), plan.requests().len() as u64);
    let load = span("load");
    assert_eq!((load.number("tensors"), load.number("bytes")), (tensors, plan.bytes_read()));
    assert_eq!(load.number("threads"), store.stats().threads as u64);
    let seconds: f64 = load.fields.0["seconds"].parse().unwrap();
    assert!(seconds > 0.0 && seconds <= store.stats().elapsed.as_secs_f64(), "{seconds}");
    let read_shards: Vec<_> = told.iter().filter(|told| told.name == "shard").collect();
    assert!(read_shards.iter().all(|shard| shard.parent == Some("load")));
    assert!(
        read_shards.iter().any(|shard| shard.fields.0["path"].ends_with("-of-00004.safetensors"))
    );
    for span in [&[load][..], &read_shards].concat() {
        assert!(span.fields.0["gib_s"].parse::<f64>().unwrap() > 0.0);
        assert_eq!(span.number("gathered"), 0);
    }
    let sum = |field: &str| read_shards.iter().map(|shard| shard.number(field)).sum::<u64>();
    assert_eq!(load.number("direct"), sum("direct"));
    assert_eq!(load.number("buffered"), sum("buffered"));
    assert_eq!(sum("direct") + sum("buffered"), plan.bytes_read());
    assert!([open, index, planned, load].iter().all(|told| told.level == Level::DEBUG));

    // One for each request, and nothing for each tensor.
    let requests: Vec<_> = told.iter().filter(|told| told.level == Level::TRACE).collect();
    assert!(requests.iter().all(|told| (told.name, told.parent) == ("request", Some("shard"))));
    assert_eq!(requests.len(), plan.requests().len());
    let read: u64 = requests.iter().map(|told| told.number("end") - told.number("start")).sum();
    assert_eq!(read, plan.bytes_read());
}
