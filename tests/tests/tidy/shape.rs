//! How a file is built: its head, its length, its functions, its unsafe code, its failures.

use super::lexer::{Kind, closing};
use super::source::SourceFile;
use super::{Offence, Rule};

/// Longer and it holds two things: read by people, on one screen and a few scrolls.
const FILE_LINES: usize = 500;
/// A function that needs more has a part with a name of its own.
const FUNCTION_LINES: usize = 70;
/// How far above its `unsafe` a SAFETY comment may begin.
const SAFETY_REACH: usize = 12;

/// Where `unsafe` may stand. All else says `#![forbid(unsafe_code)]`.
const UNSAFE_ROOMS: &[&str] = &[
    "src-tauri/crates/weights/src/mmap.rs",
    "src-tauri/crates/kernels/src/cpu/",
    "src-tauri/crates/kernels/src/f16_convert.rs",
    // An allocator that counts is unsafe by its trait.
    "src-tauri/crates/engine/tests/allocation.rs",
    "src-tauri/crates/engine/tests/memory.rs",
    "src-tauri/crates/kernels/tests/allocation.rs",
    "src-tauri/crates/vision/tests/mutated.rs",
    "tests/fuzz/src/limited_allocator.rs",
    "src-tauri/crates/kernels/src/gpu/adapter.rs",
    "src-tauri/crates/kernels/src/gpu/device.rs",
    "src-tauri/crates/kernels/src/gpu/pipeline.rs",
    // SQLite's file systems are C.
    "src-tauri/crates/session/tests/common/fault_vfs.rs",
    // Functions and pointers of C.
    "src-tauri/crates/capi/src/exports/",
    // Engines of others are C; what a processor does at most is told by its instructions.
    "tests/peers/src/llama/image.rs",
    "tests/peers/src/llama/runner.rs",
    "tests/peers/src/machine/integers.rs",
];
/// Crates with an unsafe room: their roots deny, and allow it module by module.
const UNSAFE_CRATES: &[&str] = &["weights", "kernels", "capi", "tests"];

/// Crates, files and folders that the lists above name.
pub fn listed() -> Vec<(&'static str, &'static str)> {
    let files = UNSAFE_ROOMS.iter().map(|entry| ("UNSAFE_ROOMS", *entry));
    files.chain(UNSAFE_CRATES.iter().map(|entry| ("UNSAFE_CRATES", *entry))).collect()
}

pub const RULES: &[Rule] = &[
    Rule {
        name: "at most 500 lines in a file",
        check: |s| {
            let lines = s.text.lines().count();
            if lines <= FILE_LINES || generated(s) {
                return Vec::new();
            }
            vec![Offence::new(lines, format!("{lines} lines"))]
        },
        offends: &[("src-tauri/crates/app/src/a.rs", LONG_FILE), ("ui/src/a.ts", LONG_FILE)],
        passes: &[
            ("src-tauri/crates/app/src/a.rs", "//! Short.\n"),
            ("ui/src/backend/bindings.ts", LONG_FILE),
        ],
    },
    Rule {
        name: "at most 70 lines in a function",
        check: functions,
        offends: &[(
            "src-tauri/crates/app/src/a.rs",
            concat!("fn f() {", include_str!("seventy_lines.txt"), "}"),
        )],
        passes: &[
            ("src-tauri/crates/app/src/a.rs", "fn f() {\n}\ntrait T { fn g(); }\n"),
            (
                "src-tauri/crates/app/src/a.rs",
                concat!("trait T { fn g(x: [u8; 4]); } struct S {", include_str!("seventy_lines.txt"), "}"),
            ),
        ],
    },
    Rule {
        name: "`//!` opens each file",
        check: |s| {
            let opened = s.text.lines().find(|l| !l.trim().is_empty()).is_none_or(|l| l.starts_with("//!"));
            if !s.is_rust() || opened { Vec::new() } else { vec![Offence::new(1, "says not what it is")] }
        },
        offends: &[("src-tauri/crates/app/src/a.rs", "use x;\n"), ("tests/tests/a.rs", "// A.\n")],
        passes: &[("src-tauri/crates/app/src/a.rs", "//! A.\nuse x;\n")],
    },
    Rule {
        name: "unsafe only in its rooms",
        check: |s| if unsafe_room(s) { Vec::new() } else { unsafes(s) },
        offends: &[
            ("src-tauri/crates/engine/src/a.rs", "fn f() { unsafe { g() } }"),
            ("src-tauri/crates/weights/src/file.rs", "unsafe impl Send for X {}"),
            ("src-tauri/crates/kernels/src/graph.rs", "#[cfg(test)] mod t { unsafe fn f() {} }"),
        ],
        passes: &[
            ("src-tauri/crates/weights/src/mmap.rs", "fn f() { unsafe { g() } }"),
            ("src-tauri/crates/engine/src/a.rs", "#![forbid(unsafe_code)]\n// unsafe\nfn f() { \"unsafe\" }"),
        ],
    },
    Rule {
        name: "every unsafe block has its SAFETY comment",
        check: unargued,
        offends: &[
            ("src-tauri/crates/weights/src/mmap.rs", "fn f() { unsafe { g() } }"),
            ("src-tauri/crates/kernels/src/cpu/a.rs", "pub unsafe fn f() {}"),
            ("src-tauri/crates/kernels/src/cpu/a.rs", "trait T {\nunsafe fn f(); }"),
            ("src-tauri/crates/kernels/src/cpu/a.rs", "impl T for S { unsafe fn f() { unsafe { g() } } }"),
        ],
        passes: &[
            (
                "src-tauri/crates/weights/src/mmap.rs",
                "fn f() {\n// SAFETY: the map outlives g.\nunsafe { g() } }",
            ),
            (
                "src-tauri/crates/kernels/src/cpu/a.rs",
                "/// # Safety\n/// AVX2 is present.\npub unsafe fn f() {}",
            ),
        ],
    },
    Rule {
        name: "unsafe is forbidden at the root",
        check: roots,
        offends: &[
            ("src-tauri/crates/engine/src/lib.rs", "//! E.\n#![deny(unsafe_code)]\n"),
            ("src-tauri/crates/cli/src/main.rs", "//! C.\n"),
            ("src-tauri/crates/weights/src/lib.rs", "//! W.\n"),
        ],
        passes: &[
            ("src-tauri/crates/engine/src/lib.rs", "//! E.\n#![forbid(unsafe_code)]\n"),
            ("src-tauri/crates/weights/src/lib.rs", "//! W.\n#![deny(unsafe_code)]\n"),
            ("src-tauri/crates/engine/src/arch/mod.rs", "//! A.\n"),
        ],
    },
    Rule {
        name: "no unwrap outside tests; `expect` says why it can't fail",
        check: unwraps,
        offends: &[
            ("src-tauri/crates/engine/src/a.rs", "fn f() { x.unwrap(); }"),
            ("src-tauri/crates/engine/src/a.rs", "fn f() { x.expect(\"\"); }"),
            ("src-tauri/crates/engine/src/a.rs", "fn f() { todo!() }"),
        ],
        passes: &[
            (
                "src-tauri/crates/engine/src/a.rs",
                "fn f() { x.unwrap_or(1); x.expect(\"the table has a row for each\"); }",
            ),
            ("src-tauri/crates/engine/src/a.rs", "#[cfg(test)] mod tests { fn f() { x.unwrap(); } }"),
        ],
    },
];

const LONG_FILE: &str = concat!(
    "//! Long.\n",
    include_str!("seventy_lines.txt"),
    include_str!("seventy_lines.txt"),
    include_str!("seventy_lines.txt"),
    include_str!("seventy_lines.txt"),
    include_str!("seventy_lines.txt"),
    include_str!("seventy_lines.txt"),
    include_str!("seventy_lines.txt"),
    include_str!("seventy_lines.txt"),
);

fn generated(source: &SourceFile) -> bool {
    source.path.starts_with("ui/src/backend/bindings") || source.path.ends_with(".toml") || source.is_prose()
}

fn functions(source: &SourceFile) -> Vec<Offence> {
    let mut found = Vec::new();
    for (at, token) in source.tokens.iter().enumerate() {
        let name = source.tokens.get(at + 1).filter(|t| t.kind == Kind::Word);
        let (true, Some(name)) = (token.kind == Kind::Word && token.text == "fn", name) else { continue };
        let Some(open) = body(source, at) else { continue };
        let lines = source.tokens[closing(&source.tokens, open)].line - token.line + 1;
        if lines > FUNCTION_LINES {
            found.push(Offence::new(token.line, format!("{} has {lines} lines", name.text)));
        }
    }
    found
}

/// The brace that opens the body of the function whose `fn` stands at `at`.
fn body(source: &SourceFile, at: usize) -> Option<usize> {
    let mut i = at;
    while i < source.tokens.len() {
        match (source.tokens[i].kind, source.text_at(i)) {
            (Kind::Sign, "(" | "[") => i = closing(&source.tokens, i),
            (Kind::Sign, ";") => return None,
            (Kind::Sign, "{") => return Some(i),
            _ => {}
        }
        i += 1;
    }
    None
}

fn unsafes(source: &SourceFile) -> Vec<Offence> {
    let word = source.tokens.iter().filter(|t| t.kind == Kind::Word && t.text == "unsafe");
    word.map(|t| Offence::new(t.line, "unsafe")).collect()
}

fn unsafe_room(source: &SourceFile) -> bool {
    source.within(UNSAFE_ROOMS) || simd_module(&source.path)
}

/// The SIMD modules of kernels: the fast products, and whatever is named after its level or lies in a folder so named.
fn simd_module(path: &str) -> bool {
    let Some(rest) = path.strip_prefix("src-tauri/crates/kernels/src/") else { return false };
    if rest.starts_with("matmul/") {
        return rest != "matmul/generic.rs";
    }
    rest.split('/').any(|part| {
        let stem = part.trim_end_matches(".rs");
        ["simd", "avx2", "avx512", "neon"].iter().any(|l| stem == *l || stem.ends_with(&format!("_{l}")))
    })
}

fn unargued(source: &SourceFile) -> Vec<Offence> {
    let mut found = Vec::new();
    for (at, token) in source.tokens.iter().enumerate() {
        let opens = ["{", "fn", "impl", "extern"].contains(&source.text_at(at + 1));
        // `unsafe fn(…)` as a type carries no promise of its own.
        let is_type = source.reads(at + 1, &["fn", "("]);
        if token.kind != Kind::Word || token.text != "unsafe" || !opens || is_type {
            continue;
        }
        let promised = source.text_at(at + 1) == "fn" && promised_by_trait(source, at);
        if !argued_near(source, token.line) && !promised {
            found.push(Offence::new(token.line, "why is it sound?"));
        }
    }
    found
}

fn argued_near(source: &SourceFile, line: usize) -> bool {
    let near = line.saturating_sub(SAFETY_REACH)..=line;
    let argued = |text: &str| text.contains("SAFETY:") || text.contains("# Safety");
    source.comments.iter().any(|c| near.contains(&c.line) && argued(&c.text))
}

/// A method's contract is its trait's: said once above a trait for all its functions, and not again in an `impl … for`.
fn promised_by_trait(source: &SourceFile, at: usize) -> bool {
    let Some(open) = (0..at).rev().find(|&i| {
        source.tokens[i].kind == Kind::Sign && source.tokens[i].text == "{" && closing(&source.tokens, i) > at
    }) else {
        return false;
    };
    let end = |i: &usize| source.tokens[*i].kind == Kind::Sign && ["}", ";"].contains(&source.text_at(*i));
    let head = (0..open).rev().find(end).map_or(0, |i| i + 1);
    let says = |word: &str| source.tokens[head..open].iter().any(|t| t.kind == Kind::Word && t.text == word);
    if says("trait") {
        return source.tokens[head..open].iter().any(|t| t.text == "trait" && argued_near(source, t.line));
    }
    says("impl") && says("for")
}

fn roots(source: &SourceFile) -> Vec<Offence> {
    let is_root = source.path.ends_with("/src/lib.rs") || source.path.ends_with("/src/main.rs");
    let Some(name) = source.crate_name().filter(|_| is_root) else { return Vec::new() };
    let level = if UNSAFE_CRATES.contains(&name) { "deny" } else { "forbid" };
    let said = (0..source.tokens.len()).any(|at| {
        source.reads(at, &["#", "!", "[", level, "(", "unsafe_code"])
            || source.reads(at, &["#", "!", "[", "forbid", "(", "unsafe_code"])
    });
    if said { Vec::new() } else { vec![Offence::new(1, format!("wants #![{level}(unsafe_code)]"))] }
}

fn unwraps(source: &SourceFile) -> Vec<Offence> {
    let mut found = Vec::new();
    for (at, token) in source.shipped() {
        let silent = source.reads(at, &[".", "unwrap", "("])
            || source.reads(at, &[".", "expect", "(", "", ")"])
            || source.reads(at, &["todo", "!"])
            || source.reads(at, &["unimplemented", "!"]);
        if silent && source.path.starts_with("src-tauri/") {
            found.push(Offence::new(token.line, "a failure without a word"));
        }
    }
    found
}
