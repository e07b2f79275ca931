//! A JSON object from which every field must be taken.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The fields of an object that are not taken yet.
pub(crate) struct Fields {
    place: String,
    left: Map<String, Value>,
}

impl Fields {
    /// Takes an object apart; `place` says in errors which it is.
    pub(crate) fn new(place: impl Into<String>, value: Value) -> Result<Self, String> {
        let place = place.into();
        match value {
            Value::Object(left) => Ok(Self { place, left }),
            other => Err(format!("{place}: expected an object, found {other}")),
        }
    }

    /// Takes a field that may be absent. `null` is a value, not absence.
    pub(crate) fn optional<T: DeserializeOwned>(&mut self, key: &str) -> Result<Option<T>, String> {
        let value = self.left.remove(key);
        let parsed = value.map(serde_json::from_value).transpose();
        parsed.map_err(|error| format!("{}: {key}: {error}", self.place))
    }

    /// Takes a field that must be there.
    pub(crate) fn required<T: DeserializeOwned>(&mut self, key: &str) -> Result<T, String> {
        self.optional(key)?.ok_or_else(|| format!("{}: no field {key:?}", self.place))
    }

    /// Takes a list that may be absent.
    pub(crate) fn list<T: DeserializeOwned>(&mut self, key: &str) -> Result<Vec<T>, String> {
        Ok(self.optional(key)?.unwrap_or_default())
    }

    /// Takes a flag that may be absent.
    pub(crate) fn flag(&mut self, key: &str) -> Result<bool, String> {
        Ok(self.optional(key)?.unwrap_or(false))
    }

    /// Takes fields that tell people something and say nothing that can be checked.
    pub(crate) fn remarks(&mut self, keys: &[&str]) {
        for key in keys {
            self.left.remove(*key);
        }
    }

    /// Refuses what was not taken.
    pub(crate) fn finish(self) -> Result<(), String> {
        match self.left.keys().next() {
            Some(key) => Err(format!("{}: the runner does not know the field {key:?}", self.place)),
            None => Ok(()),
        }
    }
}
