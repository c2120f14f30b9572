//! The rooms of ui/: stores import no stores, shared parts import nothing of ours but words, components stay small.

use super::source::Source;
use super::{Offence, Rule};

/// A component that needs more has a part with a name of its own.
const COMPONENT_LINES: usize = 200;

pub const RULES: &[Rule] = &[
    Rule {
        name: "no store imports a store",
        check: stores,
        offends: &[
            ("ui/src/lib/state/chat.svelte.ts", "import { models } from './models.svelte';"),
            ("ui/src/lib/state/chat.svelte.ts", "import { models } from \"$lib/state/models.svelte\";"),
        ],
        passes: &[
            ("ui/src/lib/state/chat.svelte.ts", "import { backend } from '../backend/backend';"),
            ("ui/src/lib/state/chat.svelte.ts", "import { fold } from './fold';"),
            ("ui/src/lib/state/chat.test.ts", "import { Chat } from './chat.svelte';"),
            ("ui/src/views/Chat.svelte", "import { chat } from '../lib/state/chat.svelte';"),
        ],
    },
    Rule {
        name: "shared parts import nothing of ours but words",
        check: |s| {
            let mut found = imports(s, "ui/src/lib/shared/", &["../", "$lib/"]);
            found.retain(|o| !o.what.contains("'../i18n'"));
            found
        },
        offends: &[("ui/src/lib/shared/Button.svelte", "import { chat } from '../state/chat.svelte';")],
        passes: &[
            ("ui/src/lib/shared/Button.svelte", "import Icon from './Icon.svelte'; import x from 'marked';"),
            ("ui/src/lib/shared/Button.svelte", "import { t } from '../i18n';"),
            ("ui/src/lib/chat/Composer.svelte", "import Button from '../shared/Button.svelte';"),
        ],
    },
    Rule {
        name: "words stand below everything that shows them",
        check: |s| imports(s, "ui/src/lib/i18n/", &["../shared", "../state", "../app", "../../"]),
        offends: &[("ui/src/lib/i18n/index.ts", "import { bytes } from '../shared/format';")],
        passes: &[
            ("ui/src/lib/i18n/settings.ts", "import type { SettingRow } from '../backend/bindings';"),
            ("ui/src/lib/i18n/de/chat.ts", "import type { Messages } from '../types';"),
        ],
    },
    Rule {
        name: "only the backend speaks to the outside",
        check: |s| {
            let may =
                s.path.starts_with("ui/src/lib/backend/") || !s.path.starts_with("ui/src/") || is_test(s);
            if may { Vec::new() } else { lines_with(s, OUTSIDE) }
        },
        offends: &[
            ("ui/src/lib/chat/Composer.svelte", "await fetch('/api/send')"),
            ("ui/src/lib/state/chat.svelte.ts", "import { invoke } from '@tauri-apps/api/core';"),
        ],
        passes: &[
            ("ui/src/lib/backend/http.ts", "await fetch('/api/send')"),
            ("ui/src/lib/state/chat.svelte.ts", "await this.#refetch(signal)"),
        ],
    },
    Rule {
        name: "at most 200 lines in a component",
        check: |s| {
            let lines = s.text.lines().count();
            if !s.path.ends_with(".svelte") || lines <= COMPONENT_LINES {
                return Vec::new();
            }
            vec![Offence::new(lines, format!("{lines} lines"))]
        },
        offends: &[(
            "ui/src/lib/chat/A.svelte",
            concat!(
                include_str!("seventy_lines.txt"),
                include_str!("seventy_lines.txt"),
                include_str!("seventy_lines.txt")
            ),
        )],
        passes: &[("ui/src/lib/chat/A.svelte", "<p>short</p>")],
    },
];

const OUTSIDE: &[&str] =
    &[" fetch(", "(fetch(", "window.fetch", "@tauri-apps/", "XMLHttpRequest", "EventSource("];

/// A store is a `.svelte.ts` file of state/; folds and types beside it are plain functions that all may use.
fn stores(source: &Source) -> Vec<Offence> {
    let found = imports(source, "ui/src/lib/state/", &["./", "../state", "$lib/state"]);
    found.into_iter().filter(|o| o.what.contains(".svelte")).collect()
}

fn is_test(source: &Source) -> bool {
    source.path.contains(".test.") || source.path.contains("/test/")
}

fn imports(source: &Source, room: &str, forbidden: &[&str]) -> Vec<Offence> {
    if !source.path.starts_with(room) || is_test(source) {
        return Vec::new();
    }
    let phrases: Vec<String> =
        forbidden.iter().flat_map(|f| [format!("from '{f}"), format!("from \"{f}")]).collect();
    lines_with(source, &phrases.iter().map(String::as_str).collect::<Vec<_>>())
}

fn lines_with(source: &Source, phrases: &[&str]) -> Vec<Offence> {
    let lines = source.text.lines().enumerate();
    lines
        .filter(|(_, line)| !line.trim_start().starts_with("//") && phrases.iter().any(|p| line.contains(p)))
        .map(|(i, line)| Offence::new(i + 1, line.trim().to_string()))
        .collect()
}
