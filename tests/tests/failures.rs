//! The failure cases F01 to F81: `tests/failure-cases.tsv` names the tests that show each, `make faults` runs them.
//!
//! Here is the check of that table, and the cases that no other test shows.

mod downloads;
mod machine;
mod models;
mod server;
mod stored;

use std::collections::BTreeMap;

use inglenook_tests::workspace_root;

/// Cases that must be shown.
const N_CASES: usize = 81;

/// A row of the table.
struct CaseRow<'a> {
    number: usize,
    file: &'a str,
    test: &'a str,
}

/// The columns: case, what the test shows, file, test, and a note on what it cannot show.
fn parse_row(line: &str) -> Result<CaseRow<'_>, String> {
    let columns: Vec<&str> = line.split('\t').collect();
    let &[case, shows, file, test, _note] = columns.as_slice() else {
        return Err(format!("{} columns instead of 5: {line}", columns.len()));
    };
    let number = case.strip_prefix('F').filter(|digits| digits.len() == 2).and_then(|it| it.parse().ok());
    match number {
        Some(number) if (1..=N_CASES).contains(&number) && !shows.is_empty() => {
            Ok(CaseRow { number, file, test })
        }
        _ => Err(format!("no case, or nothing that is shown: {line}")),
    }
}

/// Whether a source file has this test.
fn has_test(file: &str, source: &str, test: &str) -> bool {
    match file.rsplit('.').next() {
        Some("rs") => {
            let Some(at) = source.find(&format!("fn {test}(")) else { return false };
            // The attributes stand between the end of what came before and the function.
            let before = source[..at].trim_end_matches(|c: char| c.is_alphabetic() || c == ' ');
            let attributes = before.rsplit(['}', ';']).next().unwrap_or_default();
            attributes.contains("#[test]") || attributes.contains("#[tokio::test]")
        }
        Some("py") => source.contains(&format!("\ndef {test}(")),
        Some("mjs") => source.contains(&format!("function {test}(")),
        Some("ts") => source.contains(&format!("'{test}'")),
        _ => false,
    }
}

/// What is wrong with a table. `read` gives the text of a file.
fn table_errors(table: &str, read: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let mut errors = Vec::new();
    let mut numbered: BTreeMap<usize, bool> = (1..=N_CASES).map(|number| (number, false)).collect();
    for line in table.lines().skip(1) {
        let row = match parse_row(line) {
            Ok(row) => row,
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        let exists = read(row.file).is_some_and(|source| has_test(row.file, &source, row.test));
        if !exists {
            errors.push(format!("F{:02}: {} has no test {}", row.number, row.file, row.test));
        } else if row.test.starts_with(&format!("f{:02}", row.number)) {
            numbered.insert(row.number, true);
        }
    }
    let missing = numbered.iter().filter(|(_, is_shown)| !**is_shown);
    errors.extend(missing.map(|(number, _)| format!("F{number:02}: no test begins with its number")));
    errors
}

#[test]
fn every_case_has_a_test_that_exists() {
    let root = workspace_root();
    let table = std::fs::read_to_string(root.join("tests/failure-cases.tsv")).expect("the table is there");
    let errors = table_errors(&table, &|file| std::fs::read_to_string(root.join(file)).ok());
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

#[test]
fn a_wrong_table_is_seen() {
    let read = |file: &str| match file {
        "a.rs" => Some("fn f01_helper() {}\n#[test]\nfn f01_one() {}\n".to_owned()),
        "a.ts" => Some("it('f02 two', () => {});".to_owned()),
        _ => None,
    };
    let errors = |rows: &str| table_errors(&format!("case\n{rows}"), &read);
    let n_without = |rows: &str| errors(rows).iter().filter(|it| it.ends_with("with its number")).count();
    assert_eq!(n_without(""), N_CASES);
    let good = "F01\tshown\ta.rs\tf01_one\t\nF02\tshown\ta.ts\tf02 two\tnearest";
    assert_eq!((n_without(good), errors(good).len()), (N_CASES - 2, N_CASES - 2));
    for (row, words) in [
        ("F01\tshown\ta.rs\tf01_helper\t", "has no test f01_helper"),
        ("F01\tshown\tb.rs\tf01_one\t", "b.rs has no test"),
        ("F01\tshown\ta.rs\tf01_one", "4 columns"),
        ("F82\tshown\ta.rs\tf01_one\t", "no case"),
        ("F01\t\ta.rs\tf01_one\t", "no case"),
    ] {
        assert!(errors(row)[0].contains(words), "{row}: {}", errors(row)[0]);
    }
}
