//! Who may reach what: the application's state, settings, the features of the page; and how a test says it can't run.

use super::lexer::{Kind, closing};
use super::source::SourceFile;
use super::{Offence, Rule};

/// Where settings are declared and their typed accessors stand.
const SETTINGS: &[&str] = &["/settings/", "/settings.rs", "/preferences.rs"];

/// The nouns of the application: each has a module with its service and a folder with its use cases.
const NOUNS: &[&str] = &[
    "context",
    "conversations",
    "downloads",
    "models",
    "network",
    "retrieval",
    "settings",
    "tools",
    "tunes",
    "turns",
    "updates",
    "window_state",
];

pub const RULES: &[Rule] = &[
    Rule {
        name: "each service owns its state: `impl App` in its root and the service modules only",
        check: shared_state,
        offends: &[
            ("src-tauri/crates/app/src/backups.rs", "impl App { fn f() {} }"),
            ("src-tauri/crates/app/src/services.rs", "impl crate::App { fn f() {} }"),
            ("src-tauri/crates/app/src/lib.rs", "impl Shared { fn f() {} }"),
            ("src-tauri/crates/app/src/turns.rs", "impl State {}"),
        ],
        passes: &[
            ("src-tauri/crates/app/src/lib.rs", "impl App { fn f() {} }"),
            ("src-tauri/crates/app/src/turns.rs", "impl App { fn f() {} }"),
            ("src-tauri/crates/app/src/tools/rounds.rs", "impl crate::App { fn f() {} }"),
            ("src-tauri/crates/engine/src/a.rs", "impl State {}"),
        ],
    },
    Rule {
        name: "a setting is read through its typed accessor",
        check: settings_by_name,
        offends: &[
            ("src-tauri/crates/app/src/a.rs", "fn f() { self.settings_get(\"offline\")?; }"),
            ("src-tauri/crates/cli/src/a.rs", "fn f() { app.setting(\"kv\"); }"),
        ],
        passes: &[
            ("src-tauri/crates/app/src/settings/read.rs", "fn f() { self.setting(\"offline\")?; }"),
            ("src-tauri/crates/cli/src/a.rs", "fn f() { app.settings_get(&key); }"),
            ("src-tauri/crates/app/src/a.rs", "#[test] fn f() { app.settings_get(\"kv\"); }"),
        ],
    },
    Rule {
        name: "a test that cannot run says `skip!`",
        check: silent_skips,
        offends: &[
            ("tests/tests/a.rs", "#[test] fn f() { if small() { eprintln!(\"no data\"); return; } g(); }"),
            ("src-tauri/crates/io/src/a.rs", "#[test]\nfn f() { let Some(x) = g() else { return }; }"),
        ],
        passes: &[
            ("tests/tests/a.rs", "#[test] fn f() { if small() { skip!(\"no data\"); } g(); }"),
            ("tests/tests/a.rs", "#[test] fn f() { h(|x| { if x { return; } g(x) }); }"),
            ("tests/tests/a.rs", "fn f() { if small() { return; } }"),
        ],
    },
    Rule {
        name: "a feature of the page imports no other feature",
        check: features,
        offends: &[
            ("ui/src/features/chat/A.svelte", "<script>\nimport { models } from '../models/store.svelte';\n"),
            ("ui/src/features/chat/a.ts", "import type { M } from \"../../features/models/types\";"),
            ("ui/src/features/chat/parts/a.ts", "export { m } from '../../models/m';"),
        ],
        passes: &[
            ("ui/src/features/chat/A.svelte", "import { reduce } from './reducer';"),
            (
                "ui/src/features/chat/parts/a.ts",
                "import { x } from '../../../shared/x'; // from '../../models/m'",
            ),
            ("ui/src/features/chat/parts/a.ts", "import { x } from '../store.svelte';"),
            ("ui/src/app/palette.ts", "import { models } from '../features/models/store.svelte';"),
        ],
    },
];

fn shared_state(source: &SourceFile) -> Vec<Offence> {
    if !source.in_crates(&["app"]) {
        return Vec::new();
    }
    let rest = source.path.split_once("/src/").map_or("", |(_, rest)| rest);
    // One folder per noun holds its service and its use cases; the rest of the crate is plumbing.
    let service = NOUNS.iter().any(|noun| rest.starts_with(noun)) || ["lib.rs", "calls.rs"].contains(&rest);
    let mut found = Vec::new();
    for (at, token) in source.shipped().filter(|(_, t)| t.kind == Kind::Word && t.text == "impl") {
        let at = if source.reads(at + 1, &["crate", "::"]) { at + 3 } else { at + 1 };
        let name = source.text_at(at);
        let barred = match name {
            "App" => !service,
            "Shared" | "State" => true,
            _ => false,
        };
        if barred && source.text_at(at + 1) == "{" {
            found.push(Offence::new(token.line, format!("impl {name}")));
        }
    }
    found
}

fn settings_by_name(source: &SourceFile) -> Vec<Offence> {
    if SETTINGS.iter().any(|place| source.path.contains(place)) || !source.path.starts_with("src-tauri/") {
        return Vec::new();
    }
    let named = source.shipped().filter(|(at, t)| {
        t.kind == Kind::Word
            && ["setting", "settings_get"].contains(&t.text.as_str())
            && source.text_at(at + 1) == "("
            && source.tokens.get(at + 2).is_some_and(|t| t.kind == Kind::Text)
    });
    named.map(|(at, t)| Offence::new(t.line, format!("\"{}\"", source.text_at(at + 2)))).collect()
}

/// A bare `return` at the level of a test's own body (closures and inner functions left out).
fn silent_skips(source: &SourceFile) -> Vec<Offence> {
    let mut found = Vec::new();
    for at in 0..source.tokens.len() {
        if !source.reads(at, &["#", "[", "test", "]"]) {
            continue;
        }
        let Some(start) = (at..source.tokens.len()).find(|&i| source.text_at(i) == "fn") else { continue };
        let Some(open) = (start..source.tokens.len()).find(|&i| source.text_at(i) == "{") else { continue };
        let end = closing(&source.tokens, open);
        let mut i = open + 1;
        while i < end {
            let token = &source.tokens[i];
            match (token.kind, token.text.as_str()) {
                // A closure's body, or an inner function's.
                (Kind::Sign, "|") if source.text_at(i + 1) == "{" => i = closing(&source.tokens, i + 1),
                (Kind::Word, "fn") => {
                    let body = (i..end).find(|&j| source.text_at(j) == "{");
                    i = body.map_or(i, |b| closing(&source.tokens, b));
                }
                (Kind::Word, "return") if [";", "}"].contains(&source.text_at(i + 1)) => {
                    found.push(Offence::new(token.line, format!("{} ends early", source.text_at(start + 1))));
                }
                _ => {}
            }
            i += 1;
        }
    }
    found
}

fn features(source: &SourceFile) -> Vec<Offence> {
    let Some(inner) = source.path.strip_prefix("ui/src/features/") else { return Vec::new() };
    let Some((own, _)) = inner.split_once('/') else { return Vec::new() };
    let folder: Vec<&str> = source.path.split('/').collect();
    let mut found = Vec::new();
    for (i, line) in source.text.lines().enumerate().filter(|(_, l)| !l.trim_start().starts_with("//")) {
        let code = line.split(" // ").next().unwrap_or(line);
        for quoted in code.split(" from ").skip(1).chain(code.split("import(").skip(1)) {
            let path = quoted.trim_start().trim_start_matches(['\'', '"']);
            let path = path.split(['\'', '"']).next().unwrap_or_default();
            let absolute = match path.strip_prefix("$features/") {
                Some(rest) => format!("ui/src/features/{rest}"),
                None => joined(&folder[..folder.len() - 1], path),
            };
            let other = absolute.strip_prefix("ui/src/features/").and_then(|r| r.split('/').next());
            if other.is_some_and(|o| o != own) {
                found.push(Offence::new(i + 1, path));
            }
        }
    }
    found
}

fn joined(folder: &[&str], path: &str) -> String {
    if !path.starts_with('.') {
        return path.to_string();
    }
    let mut parts = folder.to_vec();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}
