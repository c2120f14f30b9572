//! What a public item says of itself.

use super::lexer::Kind;
use super::source::SourceFile;
use super::{Offence, Rule, TreeOffence, TreeRule};

/// Crates whose public items are read by others.
const DOCUMENTED: &[&str] = &["contract", "io", "weights", "kernels", "engine", "session", "hub"];
const ITEMS: &[&str] =
    &["fn", "struct", "enum", "trait", "type", "const", "static", "union", "unsafe", "async"];

pub const RULES: &[Rule] = &[Rule {
    name: "a public item has a doc line",
    check: undocumented,
    offends: &[
        ("src-tauri/crates/hub/src/a.rs", "pub fn f() {}"),
        ("src-tauri/crates/io/src/a.rs", "/// A.\npub struct A;\n\n#[derive(Debug)]\npub enum B { C }"),
    ],
    passes: &[
        (
            "src-tauri/crates/hub/src/a.rs",
            "/// Does.\n#[inline]\npub fn f() {}\npub(crate) fn g() {} fn h() {}",
        ),
        ("src-tauri/crates/app/src/a.rs", "pub fn f() {}"),
        ("src-tauri/crates/hub/src/a.rs", "#[cfg(test)] mod tests { pub fn f() {} }"),
    ],
}];

pub const TREE_RULES: &[TreeRule] = &[TreeRule {
    name: "a documented crate warns of missing docs",
    check: |sources| {
        let roots = sources.iter().filter(|s| s.in_crates(DOCUMENTED) && s.path.ends_with("/src/lib.rs"));
        let silent = roots.filter(|s| {
            !(0..s.tokens.len()).any(|at| {
                s.reads(at + 1, &["(", "missing_docs"]) && ["warn", "deny", "forbid"].contains(&s.text_at(at))
            })
        });
        silent.map(|s| TreeOffence::new(s, 1, "wants #![warn(missing_docs)]")).collect()
    },
    offends: &[&[("src-tauri/crates/hub/src/lib.rs", "//! Hub.\n")]],
    passes: &[
        &[("src-tauri/crates/hub/src/lib.rs", "//! Hub.\n#![warn(missing_docs)]\n")],
        &[("src-tauri/crates/cli/src/lib.rs", "//! Cli.\n")],
    ],
}];

fn undocumented(source: &SourceFile) -> Vec<Offence> {
    if !source.in_crates(DOCUMENTED) || source.path.contains("/tests/") {
        return Vec::new();
    }
    let lines: Vec<&str> = source.text.lines().collect();
    let public = source
        .shipped()
        .filter(|(at, t)| t.kind == Kind::Word && t.text == "pub" && ITEMS.contains(&source.text_at(at + 1)));
    public
        .filter(|(_, token)| !documented_above(&lines, token.line))
        .map(|(at, token)| {
            let name = [2, 3, 4].map(|i| source.text_at(at + i)).into_iter().find(|t| !ITEMS.contains(t));
            Offence::new(token.line, name.unwrap_or_default())
        })
        .collect()
}

/// A doc comment stands above `line`, attributes between them passed over.
fn documented_above(lines: &[&str], line: usize) -> bool {
    let mut inside = 0i32;
    for above in lines[..line.saturating_sub(1)].iter().rev() {
        let text = above.trim();
        if text.starts_with("///") || text.starts_with("#[doc") || text.ends_with("*/") {
            return true;
        }
        inside += text.matches(']').count() as i32 - text.matches('[').count() as i32;
        let attribute = text.starts_with("#[") || inside > 0;
        if !attribute && !text.starts_with("//") {
            return false;
        }
    }
    false
}
