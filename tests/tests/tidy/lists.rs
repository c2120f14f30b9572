//! Lists of crates, files and folders that rules allow something: each entry must exist.

use std::collections::BTreeSet;

use super::source::SourceFile;
use super::{Report, manifest, names, shape};

/// (list, entry): a path with a `/` in it, else a crate.
fn entries() -> Vec<(&'static str, &'static str)> {
    [manifest::listed(), names::listed(), shape::listed()].concat()
}

/// Entries that name nothing in the project.
fn absent<'a>(sources: &[SourceFile], entries: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let crates: BTreeSet<&str> = sources
        .iter()
        .filter(|s| s.path.ends_with("Cargo.toml"))
        .filter_map(SourceFile::crate_name)
        .collect();
    let exists = |entry: &str| match entry {
        crate_name if !crate_name.contains('/') => crates.contains(crate_name),
        folder if folder.ends_with('/') => sources.iter().any(|s| s.path.starts_with(folder)),
        file => sources.iter().any(|s| s.path == file),
    };
    entries.iter().filter(|(_, entry)| !exists(entry)).copied().collect()
}

pub const RULE: &str = "an allow-list names only what exists";

/// What the lists name and the project lacks.
pub fn reports(sources: &[SourceFile]) -> Vec<Report> {
    let absent = absent(sources, &entries()).into_iter();
    let report = |(list, entry)| Report {
        rule: RULE,
        path: "tests/tests/tidy".to_string(),
        line: 1,
        what: format!("{list}: {entry}"),
    };
    absent.map(report).collect()
}

#[test]
fn a_list_that_names_nothing_is_seen() {
    let sources = [
        SourceFile::new("src-tauri/crates/io/Cargo.toml", ""),
        SourceFile::new("src-tauri/crates/io/src/a.rs", ""),
    ];
    let good = [("x", "io"), ("x", "src-tauri/crates/io/src/"), ("x", "src-tauri/crates/io/src/a.rs")];
    assert_eq!(absent(&sources, &good), []);
    let bad = [("x", "capi"), ("x", "src-tauri/crates/io/src/b/"), ("x", "src-tauri/crates/io/src/b.rs")];
    assert_eq!(absent(&sources, &bad), bad);
}
