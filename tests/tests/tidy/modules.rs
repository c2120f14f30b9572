//! Modules: one style of file, and no import cycle.
//!
//! An import is followed through re-exports to the module that defines the item. Imports between a module and the
//! modules inside it are free.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::lexer::{Kind, closing};
use super::source::SourceFile;
use super::{Offence, Rule, TreeOffence, TreeRule};

/// Re-exports of re-exports that are followed.
const MAX_HOPS: usize = 8;

pub const RULES: &[Rule] = &[Rule {
    name: "one style of module: `foo.rs` beside `foo/`, no `mod.rs`",
    check: |s| {
        // Cargo would build `tests/common.rs` as a test program.
        let shared_by_tests = s.path.starts_with("src-tauri/") && s.path.contains("/tests/");
        let bad = s.path.ends_with("/mod.rs") && !shared_by_tests;
        if bad { vec![Offence::new(1, "mod.rs")] } else { Vec::new() }
    },
    offends: &[("src-tauri/crates/hub/src/a/mod.rs", "//! A.\n"), ("tests/tests/a/mod.rs", "//! A.\n")],
    passes: &[
        ("src-tauri/crates/hub/src/a.rs", "//! A.\n"),
        ("src-tauri/crates/io/tests/common/mod.rs", "//! A.\n"),
    ],
}];

pub const TREE_RULES: &[TreeRule] = &[TreeRule {
    name: "no import cycle except between a module and its children",
    check: cycles,
    offends: &[
        &[
            ("src-tauri/crates/hub/src/lib.rs", "mod a; mod b;"),
            ("src-tauri/crates/hub/src/a.rs", "use crate::b::B; struct A;"),
            ("src-tauri/crates/hub/src/b.rs", "use super::a; struct B; fn f(_: a::A) {}"),
        ],
        // Through a re-export in the parent of one of them.
        &[
            ("src-tauri/crates/hub/src/lib.rs", "mod a; mod b; pub use a::c::C;"),
            ("src-tauri/crates/hub/src/a.rs", "mod c;"),
            ("src-tauri/crates/hub/src/a/c.rs", "use crate::b::B; pub struct C;"),
            ("src-tauri/crates/hub/src/b.rs", "fn f(_: crate::C) {} struct B;"),
        ],
        &[
            ("src-tauri/crates/hub/src/lib.rs", "mod a; mod b; mod c;"),
            ("src-tauri/crates/hub/src/a.rs", "use crate::{b::{self, B}, x::Y}; struct A;"),
            ("src-tauri/crates/hub/src/b.rs", "use crate::c::*; struct B;"),
            ("src-tauri/crates/hub/src/c.rs", "fn f() { crate::a::g(); }"),
        ],
    ],
    passes: &[
        &[
            ("src-tauri/crates/hub/src/lib.rs", "mod a; mod b; pub use a::A; pub struct Root;"),
            ("src-tauri/crates/hub/src/a.rs", "mod c; use c::C; use crate::Root; use crate::b::B; struct A;"),
            ("src-tauri/crates/hub/src/a/c.rs", "use super::A; pub struct C;"),
            (
                "src-tauri/crates/hub/src/b.rs",
                "use crate::Root; struct B; #[cfg(test)] mod tests { use crate::a::A; }",
            ),
        ],
        &[
            ("src-tauri/crates/hub/src/a.rs", "use io::b::B;"),
            ("src-tauri/crates/io/src/b.rs", "use std::a::A;"),
        ],
    ],
}];

type Path = Vec<String>;

/// One crate's files by module path, and what each of them imports.
struct Crate<'a> {
    files: BTreeMap<Path, Vec<&'a SourceFile>>,
    bindings: BTreeMap<Path, BTreeMap<String, Path>>,
}

struct Import {
    path: Path,
    alias: Option<String>,
    line: usize,
}

fn cycles(sources: &[SourceFile]) -> Vec<TreeOffence> {
    let mut crates: BTreeMap<&str, BTreeMap<Path, Vec<&SourceFile>>> = BTreeMap::new();
    for source in sources.iter().filter(|s| s.is_rust() && s.is_in_crate()) {
        let (Some(name), Some(path)) = (source.crate_name(), module_path(&source.path)) else { continue };
        crates.entry(name).or_default().entry(path).or_default().push(source);
    }
    crates.into_values().flat_map(|files| cycles_of(&Crate::new(files))).collect()
}

/// Module path of a file within its crate; `None` for what is no module of it.
fn module_path(path: &str) -> Option<Path> {
    let inner = match path.strip_prefix("tests/tests/") {
        Some(rest) => rest,
        None => path.split_once("/src/")?.1,
    };
    let stem = inner.strip_suffix(".rs")?;
    let mut parts: Path = stem.split('/').map(str::to_string).collect();
    if ["mod", "lib", "main", "all"].contains(&parts.last()?.as_str()) {
        parts.pop();
    }
    Some(parts)
}

impl<'a> Crate<'a> {
    fn new(files: BTreeMap<Path, Vec<&'a SourceFile>>) -> Self {
        let mut this = Self { files, bindings: BTreeMap::new() };
        let mut bindings: BTreeMap<Path, BTreeMap<String, Path>> = BTreeMap::new();
        for (module, sources) in &this.files {
            for source in sources {
                for (place, import) in imports(source, module) {
                    let Some(absolute) = this.absolute(&import.path, &place, None) else { continue };
                    let name = import.alias.or_else(|| import.path.last().cloned()).unwrap_or_default();
                    bindings.entry(module.clone()).or_default().entry(name).or_insert(absolute);
                }
            }
        }
        this.bindings = bindings;
        this
    }

    /// A path as written in `place`, from the root of the crate; `None` if it leads out of it.
    fn absolute(
        &self,
        path: &[String],
        place: &[String],
        names: Option<&BTreeMap<String, Path>>,
    ) -> Option<Path> {
        let (first, rest) = path.split_first()?;
        let mut start = match first.as_str() {
            "crate" => Vec::new(),
            "self" => place.to_vec(),
            "super" => {
                let (_, parent) = place.split_last()?;
                return self.absolute(&[&["self".to_string()], rest].concat(), parent, None);
            }
            name => match names.and_then(|n| n.get(name)) {
                Some(bound) => bound.clone(),
                None => {
                    let child = [place, &[name.to_string()]].concat();
                    self.files.contains_key(&child).then_some(child)?
                }
            },
        };
        let mut rest = rest;
        while let Some((next, after)) = rest.split_first().filter(|(n, _)| *n == "super") {
            debug_assert_eq!(next, "super");
            start.pop();
            rest = after;
        }
        start.extend(rest.iter().cloned());
        Some(start)
    }

    /// The file that defines what `path` names; `None` if it names a module as such.
    fn definer(&self, path: &[String]) -> Option<Path> {
        let mut path = path.to_vec();
        for _ in 0..MAX_HOPS {
            let depth = (0..=path.len()).rev().find(|d| self.files.contains_key(&path[..*d]))?;
            let (module, rest) = path.split_at(depth);
            let name = rest.first()?;
            let onward = self.bindings.get(module).and_then(|b| b.get(name));
            match onward {
                Some(target) if target[..] != path[..=depth] => {
                    path = [target, &rest[1..]].concat();
                }
                _ => return Some(module.to_vec()),
            }
        }
        None
    }

    /// Modules that each module imports from, with the first line where it does.
    fn edges(&self) -> BTreeMap<Path, BTreeMap<Path, usize>> {
        let mut edges: BTreeMap<Path, BTreeMap<Path, usize>> = BTreeMap::new();
        let none = BTreeMap::new();
        for (module, sources) in &self.files {
            let names = self.bindings.get(module).unwrap_or(&none);
            for source in sources {
                let written =
                    imports(source, module).into_iter().map(|(place, i)| (place, i.path, i.line, None));
                let inline =
                    inline_paths(source, module).into_iter().map(|(p, i)| (p, i.path, i.line, Some(names)));
                for (place, path, line, names) in written.chain(inline) {
                    let Some(target) = self.absolute(&path, &place, names).and_then(|p| self.definer(&p))
                    else {
                        continue;
                    };
                    if !target.starts_with(module) && !module.starts_with(&target) {
                        edges.entry(module.clone()).or_default().entry(target).or_insert(line);
                    }
                }
            }
        }
        edges
    }
}

/// Inline modules of a file: (first token, last token, path).
fn inline_modules(source: &SourceFile, module: &[String]) -> Vec<(usize, usize, Path)> {
    let mut found: Vec<(usize, usize, Path)> = Vec::new();
    for at in 0..source.tokens.len() {
        if source.text_at(at) == "mod" && source.text_at(at + 2) == "{" {
            let outer = found.iter().rev().find(|(from, to, _)| (*from..*to).contains(&at));
            let mut path = outer.map_or_else(|| module.to_vec(), |(_, _, p)| p.clone());
            path.push(source.text_at(at + 1).to_string());
            found.push((at, closing(&source.tokens, at + 2), path));
        }
    }
    found
}

fn place_of(at: usize, inline: &[(usize, usize, Path)], module: &[String]) -> Path {
    let inner = inline.iter().rev().find(|(from, to, _)| (*from..*to).contains(&at));
    inner.map_or_else(|| module.to_vec(), |(_, _, p)| p.clone())
}

/// What a file's `use` declarations name, with the module they stand in.
fn imports(source: &SourceFile, module: &[String]) -> Vec<(Path, Import)> {
    let inline = inline_modules(source, module);
    let mut found = Vec::new();
    for (at, token) in source.shipped().filter(|(_, t)| t.kind == Kind::Word && t.text == "use") {
        let mut tree = Vec::new();
        use_tree(source, at + 1, &[], token.line, &mut tree);
        let place = place_of(at, &inline, module);
        found.extend(tree.into_iter().map(|import| (place.clone(), import)));
    }
    found
}

/// Reads one branch of a `use` tree from `at`; the index after it.
fn use_tree(
    source: &SourceFile,
    mut at: usize,
    prefix: &[String],
    line: usize,
    into: &mut Vec<Import>,
) -> usize {
    let mut path = prefix.to_vec();
    loop {
        match source.text_at(at) {
            "{" => {
                let end = closing(&source.tokens, at);
                let mut inner = at + 1;
                while inner < end {
                    inner = use_tree(source, inner, &path, line, into).max(inner + 1);
                    if source.text_at(inner) == "," {
                        inner += 1;
                    }
                }
                return end + 1;
            }
            "*" => {
                path.push("*".to_string());
                at += 1;
            }
            "::" => at += 1,
            "as" => {
                let alias = source.text_at(at + 1).to_string();
                into.push(Import { path, alias: Some(alias), line });
                return at + 2;
            }
            "self" if !path.is_empty() => at += 1,
            "," | ";" | "}" | "" => {
                if !path.is_empty() {
                    into.push(Import { path, alias: None, line });
                }
                return at;
            }
            word => {
                path.push(word.to_string());
                at += 1;
            }
        }
    }
}

/// Paths in code: `crate::a::b`, `a::b`.
fn inline_paths(source: &SourceFile, module: &[String]) -> Vec<(Path, Import)> {
    let inline = inline_modules(source, module);
    let mut found = Vec::new();
    for (at, token) in source.shipped().filter(|(_, t)| t.kind == Kind::Word) {
        if source.text_at(at + 1) != "::" || at > 0 && ["::", "use"].contains(&source.text_at(at - 1)) {
            continue;
        }
        let mut path = vec![token.text.clone()];
        let mut next = at + 1;
        while source.text_at(next) == "::"
            && source.tokens.get(next + 1).is_some_and(|t| t.kind == Kind::Word)
        {
            path.push(source.text_at(next + 1).to_string());
            next += 2;
        }
        if path.len() > 1 {
            found.push((place_of(at, &inline, module), Import { path, alias: None, line: token.line }));
        }
    }
    found
}

/// One finding for each module that stands in a cycle, with the shortest one through it.
fn cycles_of(krate: &Crate) -> Vec<TreeOffence> {
    let edges = krate.edges();
    let mut found = Vec::new();
    for (module, sources) in &krate.files {
        let Some(way) = shortest_cycle(&edges, module) else { continue };
        let line = edges[module][&way[1]];
        let names: Vec<String> = way.iter().map(|m| m.join("::")).collect();
        found.push(TreeOffence::new(sources[0], line, names.join(" → ")));
    }
    found
}

fn shortest_cycle(edges: &BTreeMap<Path, BTreeMap<Path, usize>>, start: &Path) -> Option<Vec<Path>> {
    let mut queue = VecDeque::from([vec![start.clone()]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = queue.pop_front() {
        for next in edges.get(way.last()?).into_iter().flat_map(BTreeMap::keys) {
            let longer = [&way[..], std::slice::from_ref(next)].concat();
            if next == start {
                return Some(longer);
            }
            if seen.insert(next.clone()) {
                queue.push_back(longer);
            }
        }
    }
    None
}
