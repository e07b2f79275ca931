//! Typed look-up of fields in JSON objects; a field of the wrong type is absent, with a note.

use serde_json::{Map, Value};

/// Objects in which fields are looked up in order, and notes on fields of the wrong type.
pub(crate) struct Fields<'a> {
    scopes: Vec<(String, &'a Map<String, Value>)>,
    notes: Vec<String>,
}

impl<'a> Fields<'a> {
    /// Looks fields up in `object`; `notes` are notes made before.
    pub(crate) fn new(object: &'a Map<String, Value>, notes: Vec<String>) -> Self {
        Self { scopes: vec![(String::new(), object)], notes }
    }

    /// Also looks fields up in the objects at these dotted paths, after the objects before.
    pub(crate) fn with_nested(mut self, paths: &[&str]) -> Self {
        let Some(&(_, root)) = self.scopes.first() else { return self };
        for path in paths {
            match at(root, path) {
                Some(Value::Object(object)) => self.scopes.push((format!("{path}."), object)),
                Some(Value::Null) | None => {}
                Some(other) => self.notes.push(wrong("", path, "an object", other)),
            }
        }
        self
    }

    /// The notes: one for each field of the wrong type that was looked up.
    pub(crate) fn into_notes(self) -> Vec<String> {
        self.notes
    }

    /// The first field of these names that is a whole number and not negative.
    pub(crate) fn usize(&mut self, names: &[&str]) -> Option<usize> {
        self.find(names, "a whole number", |v| usize::try_from(whole(v)?).ok())
    }

    /// The first field of these names that is a whole number.
    pub(crate) fn i64(&mut self, names: &[&str]) -> Option<i64> {
        self.find(names, "a whole number", whole)
    }

    /// The first field of these names that is a number, infinities included.
    pub(crate) fn f64(&mut self, names: &[&str]) -> Option<f64> {
        self.find(names, "a number", float)
    }

    /// The first field of these names that is `true` or `false`.
    pub(crate) fn bool(&mut self, names: &[&str]) -> Option<bool> {
        self.find(names, "true or false", Value::as_bool)
    }

    /// The first field of these names that is a string.
    pub(crate) fn string(&mut self, names: &[&str]) -> Option<&'a str> {
        self.find(names, "a string", Value::as_str)
    }

    /// The strings of the first field of these names that is a list of strings.
    pub(crate) fn strings(&mut self, names: &[&str]) -> Option<Vec<String>> {
        let read =
            |v: &Value| v.as_array()?.iter().map(|s| s.as_str().map(str::to_owned)).collect();
        self.find(names, "a list of strings", read)
    }

    /// The numbers of the first field of these names that is a list of whole numbers.
    pub(crate) fn usizes(&mut self, names: &[&str]) -> Option<Vec<usize>> {
        let read =
            |v: &Value| v.as_array()?.iter().map(|n| usize::try_from(whole(n)?).ok()).collect();
        self.find(names, "a list of whole numbers", read)
    }

    /// The token ids of the first field of these names that is one id or a list of them.
    pub(crate) fn token_ids(&mut self, names: &[&str]) -> Vec<u32> {
        let id = |v: &Value| u32::try_from(whole(v)?).ok();
        let read = |v: &Value| match v {
            Value::Array(list) => list.iter().map(id).collect(),
            // Old configurations write -1 for no token.
            one if one.as_i64() == Some(-1) => Some(Vec::new()),
            one => id(one).map(|id| vec![id]),
        };
        self.find(names, "a token id or a list of them", read).unwrap_or_default()
    }

    /// The first field of these names that is present and not `null`, of any type.
    pub(crate) fn value(&self, names: &[&str]) -> Option<&'a Value> {
        self.present(names).into_iter().next().map(|(_, _, value)| value)
    }

    /// The first field of these names that `read` accepts; refused ones before it are noted.
    pub(crate) fn find<T>(
        &mut self,
        names: &[&str],
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Option<T> {
        for (prefix, name, value) in self.present(names) {
            if let Some(found) = read(value) {
                return Some(found);
            }
            let note = wrong(&prefix, name, expected, value);
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        None
    }

    /// The fields of these names that are present and not `null`: by object, then by name.
    fn present<'n>(&self, names: &[&'n str]) -> Vec<(String, &'n str, &'a Value)> {
        let mut found = Vec::new();
        for (prefix, object) in &self.scopes {
            for name in names {
                if let Some(value) = at(object, name).filter(|v| !v.is_null()) {
                    found.push((prefix.clone(), *name, value));
                }
            }
        }
        found
    }
}

/// The value at a dotted path.
fn at<'a>(object: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    match path.split_once('.') {
        Some((outer, inner)) => at(object.get(outer)?.as_object()?, inner),
        None => object.get(path),
    }
}

/// The note for a field of the wrong type.
fn wrong(prefix: &str, name: &str, expected: &str, found: &Value) -> String {
    format!("{prefix}{name}: expected {expected}, found {}", kind(found))
}

/// The value as a whole number, also if written `4096.0`.
fn whole(value: &Value) -> Option<i64> {
    if let Some(number) = value.as_i64() {
        return Some(number);
    }
    let number = value.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 9e15)?;
    format!("{number:.0}").parse().ok()
}

/// The value as a number; transformers writes non-finite ones as `{"__float__": "NaN"}`.
pub(crate) fn float(value: &Value) -> Option<f64> {
    let Value::Object(object) = value else { return value.as_f64() };
    match object.get("__float__").filter(|_| object.len() == 1)?.as_str()? {
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        _ => None,
    }
}

/// The kind of a value, for notes and errors.
pub(crate) fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Fields, float};

    fn with<T>(value: &Value, read: impl FnOnce(&mut Fields<'_>) -> T) -> (T, Vec<String>) {
        let object = value.as_object().unwrap();
        let mut fields = Fields::new(object, Vec::new()).with_nested(&["text_config", "a.b"]);
        let read = read(&mut fields);
        (read, fields.into_notes())
    }

    #[test]
    fn a_wrong_type_is_absent_and_noted_and_the_next_place_is_tried() {
        let value = json!({ "n": "8", "d": [1], "text_config": { "n": -1, "d": 4096.0 } });
        let (found, notes) =
            with(&value, |f| (f.usize(&["n"]), f.usize(&["n", "d"]), f.f64(&["x"])));
        assert_eq!(found, (None, Some(4096), None));
        assert_eq!(
            notes,
            [
                "n: expected a whole number, found a string",
                "text_config.n: expected a whole number, found the number -1",
                "d: expected a whole number, found a list",
            ]
        );
    }

    #[test]
    fn null_is_absent_without_a_note() {
        let value = json!({ "n": null, "text_config": null, "a": { "b": { "n": 2 } } });
        assert_eq!(with(&value, |f| f.usize(&["n"])), (Some(2), vec![]));
    }

    #[test]
    fn an_outer_object_of_the_wrong_type_is_noted() {
        let (_, notes) = with(&json!({ "text_config": "llama" }), |f| f.usize(&["n"]));
        assert_eq!(notes, ["text_config: expected an object, found a string"]);
    }

    #[test]
    fn token_ids_are_one_or_many() {
        let cases = [(json!(2), vec![2]), (json!([1, 106]), vec![1, 106]), (json!(-1), vec![])];
        for (ids, expected) in cases {
            assert_eq!(with(&json!({ "eos": ids }), |f| f.token_ids(&["eos"])), (expected, vec![]));
        }
    }

    #[test]
    fn huge_numbers_are_no_sizes() {
        let value = json!({ "n": 1e30, "m": u64::MAX, "f": 0.5 });
        let (found, notes) = with(&value, |f| (f.usize(&["n"]), f.usize(&["m"]), f.usize(&["f"])));
        assert_eq!((found, notes.len()), ((None, None, None), 3));
    }

    #[test]
    fn floats_may_be_spelled_as_objects() {
        assert_eq!(float(&json!({ "__float__": "-Infinity" })), Some(f64::NEG_INFINITY));
        assert!(float(&json!({ "__float__": "NaN" })).unwrap().is_nan());
        for value in [json!({ "__float__": "x" }), json!({ "__float__": 1, "a": 2 }), json!("NaN")]
        {
            assert_eq!(float(&value), None);
        }
    }
}
