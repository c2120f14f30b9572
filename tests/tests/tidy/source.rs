//! The files that the rules read.

use std::fs;
use std::path::Path;

use super::lexer::{Comment, Token, lex};

pub struct SourceFile {
    /// Relative to the workspace root, with `/`.
    pub path: String,
    pub text: String,
    /// Empty unless it is Rust.
    pub tokens: Vec<Token>,
    pub comments: Vec<Comment>,
}

impl SourceFile {
    pub fn new(path: &str, text: &str) -> Self {
        let (mut tokens, comments) = if path.ends_with(".rs") { lex(text) } else { (Vec::new(), Vec::new()) };
        if is_test_file(path) {
            tokens.iter_mut().for_each(|t| t.test = true);
        }
        Self { path: path.to_string(), text: text.to_string(), tokens, comments }
    }

    /// A document for people.
    pub fn is_prose(&self) -> bool {
        self.path.ends_with(".md")
    }

    /// Part of a crate itself: its own integration tests are programs apart.
    pub fn is_in_crate(&self) -> bool {
        self.path.starts_with("tests/")
            && self.path.ends_with(".rs")
            && !self.path.starts_with("tests/peers/")
            || self.path.starts_with("src-tauri/") && self.path.contains("/src/")
    }

    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The crate this file belongs to: `engine`, `shell` for the window, `tests`; `None` outside.
    pub fn crate_name(&self) -> Option<&str> {
        if let Some(rest) = self.path.strip_prefix("src-tauri/crates/") {
            return rest.split('/').next();
        }
        if self.path.starts_with("src-tauri/") {
            return Some("shell");
        }
        self.path.starts_with("tests/").then_some("tests")
    }

    pub fn in_crates(&self, names: &[&str]) -> bool {
        self.crate_name().is_some_and(|c| names.contains(&c))
    }

    /// True if the path is one of these files, or lies under one of these folders (ending in `/`).
    pub fn within(&self, places: &[&str]) -> bool {
        places.iter().any(|p| self.path == *p || (p.ends_with('/') && self.path.starts_with(p)))
    }

    /// Tokens that ship: tests left out.
    pub fn shipped(&self) -> impl Iterator<Item = (usize, &Token)> {
        self.tokens.iter().enumerate().filter(|(_, t)| !t.test)
    }

    /// The texts of the tokens from `at` on match `pattern`.
    pub fn reads(&self, at: usize, pattern: &[&str]) -> bool {
        pattern.iter().enumerate().all(|(i, p)| self.text_at(at + i) == *p)
    }

    pub fn text_at(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |t| t.text.as_str())
    }
}

/// Rust's own convention: `tests.rs`, `x_tests.rs`, or anything in a `tests` folder. Examples and build scripts
/// don't ship either.
fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs")
        || path.ends_with("_tests.rs")
        || path.contains("/examples/")
        || path.ends_with("/build.rs")
        || path.contains("/tests/")
        || path.starts_with("tests/")
}

const FOLDERS: [&str; 4] = ["docs", "src-tauri", "tests", "ui"];
const ENDINGS: [&str; 9] = ["rs", "toml", "ts", "svelte", "wgsl", "css", "mjs", "py", "md"];
const NOT_OURS: [&str; 8] =
    ["target", "node_modules", "dist", "gen", "reference", "fixtures", "__pycache__", "test-results"];

pub fn read_all(root: &Path) -> Vec<SourceFile> {
    let mut sources = Vec::new();
    for folder in FOLDERS {
        walk(root, &root.join(folder), &mut sources);
    }
    if let Ok(text) = fs::read_to_string(root.join("README.md")) {
        sources.push(SourceFile::new("README.md", &text));
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources
}

fn walk(root: &Path, dir: &Path, into: &mut Vec<SourceFile>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let has_rules = path.extension().is_some_and(|e| ENDINGS.iter().any(|w| e == *w));
        if path.is_dir() && !NOT_OURS.contains(&name.as_str()) && !name.starts_with('.') {
            walk(root, &path, into);
        } else if has_rules && path.is_file() {
            let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let inside = path.strip_prefix(root).expect("walked from the root");
            into.push(SourceFile::new(&inside.to_string_lossy().replace('\\', "/"), &text));
        }
    }
}
