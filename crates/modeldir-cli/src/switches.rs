//! Messages of the library, with switches in place of the options of the library.

/// Options that messages name, and the switches that set them.
const SWITCHES: [(&str, &str); 4] = [
    ("Existing::Replace", "--replace"),
    ("Partition::unmatched is Error", "the rules say \"unmatched\": \"error\""),
    ("SaveOptions::max_shard_bytes", "--max-shard-bytes"),
    ("Weights::variant", "--variant"),
];

/// Returns a message of the library as this command says it.
pub(crate) fn with_switches(message: &str) -> String {
    let replace = |text: String, (option, switch): &(&str, &str)| text.replace(option, switch);
    SWITCHES.iter().fold(message.to_owned(), replace)
}
