//! Messages of the library, with switches in place of the options of the library.

/// What messages of the library say about options, and what a person at a terminal can do.
const SWITCHES: [(&str, &str); 13] = [
    ("Existing::Replace", "--replace"),
    ("IndexPolicy::Ignore", "--ignore-index"),
    ("Misaligned::Cover takes", "rules with \"misaligned\": \"cover\" take"),
    ("Partition::unmatched is Error", "the rules say \"unmatched\": \"error\""),
    ("Unchanged::ByteLen", "--by-length"),
    ("Uneven::Balanced", "--uneven balanced"),
    ("Uneven::Chunk", "--uneven chunk"),
    ("Weights::Files", "--file"),
    ("Weights::Named::index", "--ignore-index"),
    ("Weights::Named::variant", "--variant"),
    ("Weights::OfRank", "--of-rank"),
    ("Weights::family opens one", "the path of a file or index opens one"),
    ("Weights::variant", "--variant"),
];

/// Returns a message of the library as this command says it.
pub(crate) fn with_switches(message: &str) -> String {
    let replace = |text: String, (option, switch): &(&str, &str)| text.replace(option, switch);
    SWITCHES.iter().fold(message.to_owned(), replace)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::SWITCHES;

    /// The lines of all files of a folder, without the breaks in long texts.
    fn source(folder: &Path, text: &mut String) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                source(&path, text);
            } else {
                let file = fs::read_to_string(path).unwrap();
                text.extend(file.lines().map(|line| line.trim().trim_end_matches('\\')));
            }
        }
    }

    #[test]
    fn the_library_says_what_is_replaced() {
        let mut text = String::new();
        source(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../modeldir/src"), &mut text);
        for (option, _) in SWITCHES {
            assert!(text.contains(option), "{option}");
        }
    }
}
