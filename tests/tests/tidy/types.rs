//! What types and constants are called: unique in their crate, nouns that say something, `MAX_` and `MIN_`.

use std::collections::BTreeMap;

use super::lexer::{Kind, closing};
use super::source::SourceFile;
use super::{Offence, Rule, TreeOffence, TreeRule};

/// Names that may stand more than once in a crate: everyone knows what they mean where they stand.
const SHARED_NAMES: &[&str] = &["Error", "Result", "Args"];

/// (crate, type, why two are right).
const TWINS: &[(&str, &str, &str)] = &[];

/// Participles, adverbs and household nouns that say nothing about what a value is.
const EMPTY_NAMES: &[&str] = &[
    "After",
    "Again",
    "Ahead",
    "Alone",
    "Anew",
    "Answering",
    "Apart",
    "Appending",
    "Away",
    "Back",
    "Before",
    "Beginning",
    "Bell",
    "Beside",
    "Beyond",
    "Bringing",
    "Brought",
    "Chosen",
    "Closing",
    "Coming",
    "Continuing",
    "Counting",
    "Desk",
    "Doing",
    "Done",
    "Door",
    "Drawn",
    "Due",
    "Early",
    "Elsewhere",
    "Ending",
    "Few",
    "Finding",
    "Found",
    "Given",
    "Going",
    "Gone",
    "Growing",
    "Had",
    "Heard",
    "Held",
    "Here",
    "House",
    "Hurt",
    "Keeping",
    "Kept",
    "Known",
    "Laid",
    "Late",
    "Left",
    "Lent",
    "Less",
    "Lost",
    "Made",
    "Many",
    "Meant",
    "Met",
    "More",
    "Most",
    "Much",
    "News",
    "Now",
    "Once",
    "Other",
    "Over",
    "Owed",
    "Own",
    "Part",
    "Pending",
    "Place",
    "Putting",
    "Ran",
    "Rest",
    "Room",
    "Row",
    "Running",
    "Said",
    "Same",
    "Searching",
    "Seen",
    "Sent",
    "Serving",
    "Settling",
    "Several",
    "Shelf",
    "Shown",
    "Some",
    "Source",
    "Spent",
    "State",
    "Such",
    "Taken",
    "Taking",
    "Then",
    "There",
    "Thing",
    "Things",
    "Thrown",
    "Told",
    "Trying",
    "Turning",
    "Twice",
    "Waiting",
    "Wanted",
    "Way",
    "Whole",
    "Written",
];

/// Single words in `-ed` that are nouns.
const NOUNS_IN_ED: &[&str] = &["Bed", "Embed", "Feed", "Need", "Seed", "Shed", "Speed", "Thread"];

pub const RULES: &[Rule] = &[
    Rule {
        name: "no type is named by a bare participle, adverb or household noun",
        check: |s| {
            let empty = definitions(s).into_iter().filter(|d| says_nothing(&d.name));
            empty.map(|d| Offence::new(d.line, format!("{}: qualify it", d.name))).collect()
        },
        offends: &[
            ("src-tauri/crates/engine/src/a.rs", "struct Kept { n: usize }"),
            ("src-tauri/crates/engine/src/a.rs", "fn f() { enum Place { A } }"),
            ("src-tauri/crates/engine/src/a.rs", "pub type Requantized = u8;"),
            ("tests/tests/a.rs", "trait Told {}"),
        ],
        passes: &[
            ("src-tauri/crates/engine/src/a.rs", "struct KeptRows; struct Speed; struct GgufTensorRow;"),
            ("src-tauri/crates/engine/src/a.rs", "impl Iterator for A { type Item = u8; } // struct Kept"),
            ("src-tauri/crates/engine/src/a.rs", "enum A { Kept, Gone } fn f(x: Place) {}"),
        ],
    },
    Rule {
        name: "constants begin with MAX_ and MIN_, never with MOST_ and LEAST_",
        check: superlatives,
        offends: &[
            ("src-tauri/crates/hub/src/a.rs", "const MOST_BYTES: u64 = 1;"),
            ("src-tauri/crates/hub/src/a.rs", "pub(crate) static LEAST_ROWS: u64 = 1;"),
            ("tests/hub/a.py", "MOST_TWICE = 0.05\n"),
            ("ui/src/a.ts", "export const MOST_ROWS = 3;\n"),
        ],
        passes: &[
            ("src-tauri/crates/hub/src/a.rs", "const MAX_BYTES: u64 = 1; // MOST_BYTES"),
            ("tests/hub/a.py", "MAX_TWICE = 0.05\n"),
        ],
    },
];

pub const TREE_RULES: &[TreeRule] = &[TreeRule {
    name: "a type's name is unique in its crate",
    check: repeated,
    offends: &[
        &[
            ("src-tauri/crates/hub/src/a.rs", "struct Row1;"),
            ("src-tauri/crates/hub/src/b.rs", "fn f() { struct Row1; }"),
        ],
        &[("tests/tests/a.rs", "struct Case;"), ("tests/tests/b.rs", "enum Case { A }")],
    ],
    passes: &[
        &[
            ("src-tauri/crates/hub/src/a.rs", "struct Row1;"),
            ("src-tauri/crates/io/src/a.rs", "struct Row1;"),
        ],
        &[
            ("src-tauri/crates/hub/src/a.rs", "enum Error {}"),
            ("src-tauri/crates/hub/src/b.rs", "enum Error {}"),
        ],
        &[
            ("src-tauri/crates/hub/src/a.rs", "struct Row1;\n#[cfg(test)] mod tests { struct Row1; }"),
            ("src-tauri/crates/hub/src/b.rs", "impl A for B { type Row1 = u8; }"),
        ],
        &[("src-tauri/crates/io/src/a.rs", "#[cfg(unix)] struct Lock; #[cfg(not(unix))] pub struct Lock;")],
        &[
            ("src-tauri/crates/io/tests/a.rs", "struct Case;"),
            ("src-tauri/crates/io/tests/b.rs", "struct Case;"),
        ],
    ],
}];

struct Definition {
    name: String,
    line: usize,
    /// Stands under a `#[cfg(…)]`: the other platform has its own.
    conditional: bool,
    test: bool,
}

/// Every struct, enum, trait, union and free-standing alias of a file.
fn definitions(source: &SourceFile) -> Vec<Definition> {
    let mut found = Vec::new();
    let mut aliases_from = 0;
    for (at, token) in source.tokens.iter().enumerate().filter(|(_, t)| t.kind == Kind::Word) {
        if ["impl", "trait"].contains(&token.text.as_str()) && at >= aliases_from {
            aliases_from = end_of_body(source, at).unwrap_or(aliases_from);
        }
        let defines = match token.text.as_str() {
            "struct" | "enum" | "trait" | "union" => true,
            "type" => at >= aliases_from,
            _ => false,
        };
        let Some(name) = source.tokens.get(at + 1).filter(|t| defines && t.kind == Kind::Word) else {
            continue;
        };
        if name.text.starts_with(char::is_uppercase) {
            let conditional = is_conditional(source, at);
            found.push(Definition {
                name: name.text.clone(),
                line: name.line,
                conditional,
                test: token.test,
            });
        }
    }
    found
}

/// Where the body of the `impl` or `trait` at `at` ends; `None` for `impl Trait` in a signature.
fn end_of_body(source: &SourceFile, at: usize) -> Option<usize> {
    let before = at.checked_sub(1).map_or("", |i| source.text_at(i));
    if [":", "->", "<", "(", ",", "&", "=", "+"].contains(&before) {
        return None;
    }
    let open = (at..source.tokens.len())
        .find(|&i| source.tokens[i].kind == Kind::Sign && ["{", ";"].contains(&source.text_at(i)))?;
    (source.text_at(open) == "{").then(|| closing(&source.tokens, open))
}

fn is_conditional(source: &SourceFile, at: usize) -> bool {
    let start = source.tokens[..at]
        .iter()
        .rposition(|t| t.kind == Kind::Sign && ["{", "}", ";"].contains(&t.text.as_str()))
        .map_or(0, |i| i + 1);
    (start..at).any(|i| source.reads(i, &["#", "[", "cfg", "("]))
}

fn says_nothing(name: &str) -> bool {
    let one_word = name.chars().skip(1).all(char::is_lowercase);
    EMPTY_NAMES.contains(&name)
        || (one_word && name.len() > 3 && name.ends_with("ed") && !NOUNS_IN_ED.contains(&name))
}

fn superlatives(source: &SourceFile) -> Vec<Offence> {
    let bad = |name: &str| name.starts_with("MOST_") || name.starts_with("LEAST_");
    if source.is_rust() {
        let consts = source
            .tokens
            .iter()
            .enumerate()
            .filter(|(_, t)| t.kind == Kind::Word && ["const", "static"].contains(&t.text.as_str()));
        let named = consts.filter(|(at, _)| bad(source.text_at(at + 1)));
        return named.map(|(at, t)| Offence::new(t.line, source.text_at(at + 1))).collect();
    }
    if source.is_prose() {
        return Vec::new();
    }
    let lines = source.text.lines().enumerate();
    lines
        .filter_map(|(i, line)| {
            let line = line.trim_start();
            let line = line.strip_prefix("export ").unwrap_or(line);
            let line = line.strip_prefix("const ").unwrap_or(line);
            bad(line).then(|| Offence::new(i + 1, line.split([' ', ':', '=']).next().unwrap_or(line)))
        })
        .collect()
}

fn repeated(sources: &[SourceFile]) -> Vec<TreeOffence> {
    let mut seen: BTreeMap<(&str, String), Vec<(&SourceFile, usize)>> = BTreeMap::new();
    for source in sources.iter().filter(|s| s.is_rust() && s.is_in_crate()) {
        let Some(owner) = source.crate_name() else { continue };
        let counts = |d: &Definition| !d.conditional && (owner == "tests" || !d.test);
        for definition in definitions(source).into_iter().filter(counts) {
            let excused = TWINS.iter().any(|(c, n, _)| *c == owner && *n == definition.name);
            if !SHARED_NAMES.contains(&definition.name.as_str()) && !excused {
                seen.entry((owner, definition.name)).or_default().push((source, definition.line));
            }
        }
    }
    let twice = seen.into_iter().filter(|(_, places)| places.len() > 1);
    twice
        .flat_map(|((_, name), places)| {
            let first = format!("{}:{}", places[0].0.path, places[0].1);
            let others = places.into_iter().skip(1);
            let found =
                others.map(move |(s, line)| TreeOffence::new(s, line, format!("{name}: also at {first}")));
            found.collect::<Vec<_>>()
        })
        .collect()
}
