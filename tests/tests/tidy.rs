//! The project's rules, executed: ARCHITECTURE.md (Invariants) explains them, this test finds where they are broken.
//!
//! Every rule carries snippets that offend and snippets that pass; a rule that cannot fail is itself a failure.

mod lexer;
mod manifest;
mod names;
mod shape;
mod source;
mod ui;

use inglenook_tests::workspace_root;
use source::{Source, read_all};

/// One rule over one file.
pub struct Rule {
    pub name: &'static str,
    /// Line and what is wrong there.
    pub check: fn(&Source) -> Vec<Offence>,
    /// (path, contents) pairs that must be caught.
    pub offends: &'static [(&'static str, &'static str)],
    /// (path, contents) pairs that must not.
    pub passes: &'static [(&'static str, &'static str)],
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

fn rules() -> impl Iterator<Item = &'static Rule> {
    manifest::RULES.iter().chain(names::RULES).chain(shape::RULES).chain(ui::RULES)
}

#[test]
fn the_house_is_tidy() {
    let sources = read_all(&workspace_root());
    assert!(sources.len() > 20, "only {} files found: looking in the wrong place", sources.len());
    let mut found = Vec::new();
    for rule in rules() {
        for source in &sources {
            for offence in (rule.check)(source) {
                found.push(format!("{}:{}: {}: {}", source.path, offence.line, rule.name, offence.what));
            }
        }
    }
    assert!(found.is_empty(), "{} untidy places:\n{}", found.len(), found.join("\n"));
}

#[test]
fn every_shader_has_its_twin() {
    let paths: Vec<String> = read_all(&workspace_root()).into_iter().map(|s| s.path).collect();
    let alone = |paths: &[String]| -> Vec<String> {
        let twin = |p: &String| paths.contains(&format!("{}.rs", p.trim_end_matches(".wgsl")));
        paths.iter().filter(|p| p.ends_with(".wgsl") && !twin(p)).cloned().collect()
    };
    assert_eq!(alone(&paths), Vec::<String>::new());
    let lonely = ["a/x.wgsl".to_string(), "b/x.rs".to_string()];
    assert_eq!(alone(&lonely).len(), 1, "this check cannot fail");
}

#[test]
fn every_rule_can_fail_and_can_pass() {
    for rule in rules() {
        assert!(!rule.offends.is_empty() && !rule.passes.is_empty(), "{}: without examples", rule.name);
        for (path, text) in rule.offends {
            let offences = (rule.check)(&Source::new(path, text));
            assert!(!offences.is_empty(), "{}: misses {path}:\n{text}", rule.name);
        }
        for (path, text) in rule.passes {
            let offences = (rule.check)(&Source::new(path, text));
            assert!(offences.is_empty(), "{}: complains of {path}:\n{text}\n{offences:?}", rule.name);
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
