//! What is still untidy: a count for each rule and crate that may only fall.
//!
//! `debt.tsv` holds the counts. A rule without a row there allows nothing.

use std::collections::BTreeMap;

use super::Report;

const TABLE: &str = include_str!("debt.tsv");

/// Crates that `api` is split into are counted with it: code that moves takes its debt along.
const PARTS_OF_API: &[&str] = &[
    "app",
    "compaction",
    "contract",
    "documents",
    "inference",
    "interchange",
    "mcp",
    "net",
    "platform",
    "prompt",
    "remote",
    "secrets",
];

/// (rule, crate)
pub type Account<'a> = (&'a str, &'a str);

pub fn account(report: &Report) -> Account<'_> {
    let path = report.path.as_str();
    let folder = path.split('/').next().unwrap_or_default();
    let owner = match path.strip_prefix("src-tauri/crates/").and_then(|r| r.split('/').next()) {
        Some(name) if PARTS_OF_API.contains(&name) => "api",
        Some(name) => name,
        None if folder == "src-tauri" => "shell",
        None if folder == path => "root",
        None => folder,
    };
    (report.rule, owner)
}

pub fn count(reports: &[Report]) -> BTreeMap<Account<'_>, usize> {
    let mut counts = BTreeMap::new();
    for report in reports {
        *counts.entry(account(report)).or_default() += 1;
    }
    counts
}

pub fn allowed() -> BTreeMap<Account<'static>, usize> {
    parse(TABLE)
}

fn parse(table: &str) -> BTreeMap<Account<'_>, usize> {
    let rows = table.lines().filter(|l| !l.trim().is_empty());
    rows.map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [rule, owner, n] = fields[..] else { panic!("debt.tsv: three fields in {line:?}") };
        ((rule, owner), n.parse().unwrap_or_else(|_| panic!("debt.tsv: no number in {line:?}")))
    })
    .collect()
}

/// Accounts that hold more than their row allows.
pub fn overdrawn<'a>(
    counts: &BTreeMap<Account<'a>, usize>,
    allowed: &BTreeMap<Account<'_>, usize>,
) -> Vec<(Account<'a>, usize, usize)> {
    let limit = |account: &Account<'_>| allowed.get(account).copied().unwrap_or(0);
    let over = counts.iter().filter(|(a, n)| **n > limit(a));
    over.map(|(a, n)| (*a, *n, limit(a))).collect()
}

#[test]
fn counts_may_only_fall() {
    let report = |rule, path: &str| Report { rule, path: path.to_string(), line: 1, what: String::new() };
    let reports = [
        report("r", "src-tauri/crates/mcp/src/a.rs"),
        report("r", "src-tauri/crates/app/src/a.rs"),
        report("r", "README.md"),
        report("s", "ui/src/a.ts"),
    ];
    let counts = count(&reports);
    assert_eq!(overdrawn(&counts, &parse("r\tapi\t2\nr\troot\t3\ns\tui\t1\n")), []);
    assert_eq!(
        overdrawn(&counts, &parse("r\tapi\t1\nr\troot\t3\n")),
        [(("r", "api"), 2, 1), (("s", "ui"), 1, 0)]
    );
}
