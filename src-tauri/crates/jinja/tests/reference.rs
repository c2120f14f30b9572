//! Expressions and statements against what jinja2 in Python makes of them (`fixtures/make.py`).

use jinja::{Limits, Template, Variable};
use serde_json::Value;

/// Far more than any of the cases needs.
fn limits() -> Limits {
    Limits::new(32 << 20, 1 << 24)
}

#[test]
fn every_case_is_as_in_python() {
    let table: Value = serde_json::from_str(include_str!("fixtures/jinja2.json")).expect("a table");
    let variables: Vec<(&str, Variable<'_>)> = table["variables"]
        .as_object()
        .expect("variables")
        .iter()
        .map(|(name, value)| (name.as_str(), Variable::Json(value)))
        .collect();
    let cases = table["cases"].as_array().expect("cases");
    let mut wrong = Vec::new();
    for case in cases {
        let source = case["source"].as_str().expect("a source");
        let parsed = Template::parse(source).map_err(|error| error.to_string());
        let rendered = parsed.and_then(|template| {
            template
                .render(&variables, &limits())
                .map(|it| it.text)
                .map_err(|error| error.failure.to_string())
        });
        let is_right = match (&rendered, case["expected"].as_str()) {
            (Ok(text), Some(expected)) => text == expected,
            (Err(message), None) => !message.is_empty(),
            _ => false,
        };
        if !is_right {
            let expected = case.get("expected").or(case.get("error"));
            wrong.push(format!("{source}: {rendered:?} for {expected:?}"));
        }
    }
    assert!(cases.len() > 600, "{} cases", cases.len());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn errors_name_their_line() {
    let line = |source: &str| match Template::parse(source) {
        Err(error) => error.line,
        Ok(template) => template.render(&[], &limits()).expect_err("fails").line,
    };
    assert_eq!(line("a\n{{ 'x' }}\n{{ none + 1 }}"), 3);
    assert_eq!(line("a\n{% if %}"), 2);
    assert_eq!(line("{% for x in [1] %}\n\n{{ x.y.z }}{% endfor %}"), 3);
}

#[test]
fn variables_are_those_that_are_read_before_they_are_set() {
    let read = |source: &str| {
        let mut names: Vec<String> =
            Template::parse(source).expect("parses").variables().into_iter().collect();
        names.sort();
        names
    };
    assert_eq!(read("{% set a = b %}{{ a }}{{ c.d }}"), ["b", "c"]);
    assert_eq!(read("{% if a %}{% set b = a %}{% endif %}{{ b }}"), ["a", "b"]);
    assert_eq!(read("{% for x in xs %}{{ x }}{{ loop.index }}{% endfor %}{{ x }}"), ["x", "xs"]);
    assert_eq!(read("{% macro m(p) %}{{ p }}{{ q }}{% endmacro %}{{ m(tools is defined) }}"), ["q", "tools"]);
}
