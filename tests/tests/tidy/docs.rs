//! Public items have doc lines: the compiler checks them in the crates that ask for it, and clippy fails on its warnings.

use super::{TreeOffence, TreeRule};

/// Crates whose public items are read by others.
const DOCUMENTED: &[&str] =
    &["contract", "io", "weights", "kernels", "jinja", "vision", "engine", "session", "hub"];

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
