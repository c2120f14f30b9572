//! The project's rules, executed: ARCHITECTURE.md (Invariants) explains them, this test finds where they are broken.
//!
//! Every rule carries snippets that offend and snippets that pass; a rule that cannot fail is itself a failure.

mod access;
mod debt;
mod docs;
mod lexer;
mod lists;
mod manifest;
mod modules;
mod names;
mod prose;
mod shape;
mod source;
mod types;
mod ui;

use std::path::Path;

use inglenook_tests::workspace_root;
use source::{SourceFile, read_all};

/// One rule over one file.
pub struct Rule {
    pub name: &'static str,
    /// Line and what is wrong there.
    pub check: fn(&SourceFile) -> Vec<Offence>,
    /// (path, contents) pairs that must be caught.
    pub offends: &'static [(&'static str, &'static str)],
    /// (path, contents) pairs that must not.
    pub passes: &'static [(&'static str, &'static str)],
}

/// One rule over all files together.
pub struct TreeRule {
    pub name: &'static str,
    pub check: fn(&[SourceFile]) -> Vec<TreeOffence>,
    /// Trees of (path, contents) pairs that must be caught.
    pub offends: &'static [&'static [(&'static str, &'static str)]],
    /// Trees that must not.
    pub passes: &'static [&'static [(&'static str, &'static str)]],
}

#[derive(Debug)]
pub struct Offence {
    pub line: usize,
    pub what: String,
}

impl Offence {
    pub fn new(line: usize, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}

/// An offence of a rule over all files, with its file.
#[derive(Debug)]
pub struct TreeOffence {
    path: String,
    offence: Offence,
}

impl TreeOffence {
    pub fn new(source: &SourceFile, line: usize, what: impl Into<String>) -> Self {
        Self { path: source.path.clone(), offence: Offence::new(line, what) }
    }
}

/// An offence with all that is printed of it.
pub struct Report {
    pub rule: &'static str,
    pub path: String,
    pub line: usize,
    pub what: String,
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.what)
    }
}

fn rules() -> impl Iterator<Item = &'static Rule> {
    let first = manifest::RULES.iter().chain(names::RULES).chain(shape::RULES).chain(ui::RULES);
    let second = access::RULES.iter().chain(modules::RULES);
    first.chain(second).chain(prose::RULES).chain(types::RULES)
}

fn tree_rules() -> impl Iterator<Item = &'static TreeRule> {
    docs::TREE_RULES.iter().chain(modules::TREE_RULES).chain(types::TREE_RULES)
}

/// Every offence in the project, by file and line.
pub fn reports(root: &Path) -> Vec<Report> {
    let sources = read_all(root);
    assert!(sources.len() > 20, "only {} files found: looking in the wrong place", sources.len());
    let mut found = Vec::new();
    for rule in rules() {
        for source in &sources {
            let report = |o: Offence| Report {
                rule: rule.name,
                path: source.path.clone(),
                line: o.line,
                what: o.what,
            };
            found.extend((rule.check)(source).into_iter().map(report));
        }
    }
    for rule in tree_rules() {
        let report = |f: TreeOffence| Report {
            rule: rule.name,
            path: f.path,
            line: f.offence.line,
            what: f.offence.what,
        };
        found.extend((rule.check)(&sources).into_iter().map(report));
    }
    found.extend(lists::reports(&sources));
    found.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    found
}

/// The table of counts as it would have to stand now.
pub fn counts_as_table(reports: &[Report]) -> String {
    let counts = debt::count(reports);
    counts.into_iter().map(|((rule, owner), n)| format!("{rule}\t{owner}\t{n}\n")).collect()
}

#[test]
fn the_project_is_tidy() {
    let reports = reports(&workspace_root());
    let counts = debt::count(&reports);
    let over = debt::overdrawn(&counts, &debt::allowed());
    let mut text = String::new();
    for ((rule, owner), n, limit) in over {
        text += &format!("{owner}: {n} offences, {limit} allowed: {rule}\n");
        for report in reports.iter().filter(|r| debt::account(r) == (rule, owner)) {
            text += &format!("  {report}\n");
        }
    }
    assert!(text.is_empty(), "untidy:\n{text}\n{}", counts_as_table(&reports));
}

/// Shaders here fuse several operations: their twin is the sequence of those, as the planner has it.
const FUSED_SHADERS: &str = "src-tauri/crates/kernels/src/plan/";

#[test]
fn every_shader_has_its_twin() {
    let paths: Vec<String> = read_all(&workspace_root()).into_iter().map(|s| s.path).collect();
    let alone = |paths: &[String]| -> Vec<String> {
        let twin = |p: &String| paths.contains(&format!("{}.rs", p.trim_end_matches(".wgsl")));
        let single = |p: &&String| p.ends_with(".wgsl") && !p.starts_with(FUSED_SHADERS);
        paths.iter().filter(single).filter(|p| !twin(p)).cloned().collect()
    };
    assert_eq!(alone(&paths), Vec::<String>::new());
    assert!(paths.iter().any(|p| p.starts_with(FUSED_SHADERS)), "no fused shaders");
    let lonely = ["a/x.wgsl".to_string(), "b/x.rs".to_string()];
    assert_eq!(alone(&lonely).len(), 1, "this check cannot fail");
}

#[test]
fn every_rule_can_fail_and_can_pass() {
    for rule in rules() {
        assert!(!rule.offends.is_empty() && !rule.passes.is_empty(), "{}: without examples", rule.name);
        for (path, text) in rule.offends {
            let offences = (rule.check)(&SourceFile::new(path, text));
            assert!(!offences.is_empty(), "{}: misses {path}:\n{text}", rule.name);
        }
        for (path, text) in rule.passes {
            let offences = (rule.check)(&SourceFile::new(path, text));
            assert!(offences.is_empty(), "{}: complains of {path}:\n{text}\n{offences:?}", rule.name);
        }
    }
    let tree = |files: &[(&str, &str)]| files.iter().map(|(p, t)| SourceFile::new(p, t)).collect::<Vec<_>>();
    for rule in tree_rules() {
        assert!(!rule.offends.is_empty() && !rule.passes.is_empty(), "{}: without examples", rule.name);
        for files in rule.offends {
            assert!(!(rule.check)(&tree(files)).is_empty(), "{}: misses {files:#?}", rule.name);
        }
        for files in rule.passes {
            let offences = (rule.check)(&tree(files));
            assert!(offences.is_empty(), "{}: complains of {files:#?}\n{offences:?}", rule.name);
        }
    }
}

#[test]
fn the_lexer_sees_code_only() {
    let cases: &[(&str, &[&str])] = &[
        ("a /* unsafe /* b */ */ c // d", &["a", "c"]),
        (
            r##"x("unsafe \" { }", r#"y " {"#, b'\'', '{', 'a')"##,
            &["x", "(", "unsafe \\\" { }", ",", "y \" {", ",", "b'\\''", ",", "'{'", ",", "'a'", ")"],
        ),
        (
            "fn f<'a>(x: &'a str) {}",
            &["fn", "f", "<", "'a", ">", "(", "x", ":", "&", "'a", "str", ")", "{", "}"],
        ),
        (
            "r#type '\\u{1F600}' 1.0e-5 0..n",
            &["r", "#", "type", "'\\u{1F600}'", "1", ".", "0e", "-", "5", "0", ".", ".", "n"],
        ),
    ];
    for (source, expected) in cases {
        let got: Vec<String> = lexer::lex(source).0.into_iter().map(|t| t.text).collect();
        assert_eq!(got, *expected, "{source}");
    }
}

#[test]
fn the_lexer_knows_tests_from_shipped_code() {
    let source = "fn a() {} #[cfg(test)] mod tests { fn b() {} } #[test] #[ignore] fn c() {} fn d() {}";
    let words = |test| {
        let tokens = lexer::lex(source).0;
        let names: Vec<String> =
            tokens.into_iter().filter(|t| t.test == test && t.text.len() == 1).map(|t| t.text).collect();
        names.into_iter().filter(|t| t.chars().all(char::is_alphabetic)).collect::<String>()
    };
    assert_eq!((words(false), words(true)), ("ad".to_string(), "bc".to_string()));
}
