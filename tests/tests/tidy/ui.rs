//! The folders of ui/: a feature imports no other feature, shared parts import only texts and wire types, components stay small.

use super::source::SourceFile;
use super::{Offence, Rule};

/// A component that needs more has a part with a name of its own.
const COMPONENT_LINES: usize = 200;

pub const RULES: &[Rule] = &[
    Rule {
        name: "no feature imports another feature",
        check: features,
        offends: &[
            ("ui/src/features/chat/Composer.svelte", "import Picker from '../models/ModelPicker.svelte';"),
            ("ui/src/features/chat/menu/A.svelte", "import { x } from '../../models/store.svelte';"),
            ("ui/src/features/chat/store.svelte.ts", "import type { Ui } from '../../app/ui-state.svelte';"),
            ("ui/src/features/chat/store.test.ts", "import { Files } from '../attachments/store.svelte';"),
            ("ui/src/features/chat/A.svelte", "import ChatView from '../../views/ChatView.svelte';"),
        ],
        passes: &[
            ("ui/src/features/chat/store.svelte.ts", "import { reduce } from './reducer';"),
            ("ui/src/features/chat/menu/A.svelte", "import { reduce } from '../reducer';"),
            ("ui/src/features/chat/Composer.svelte", "import { getApp } from '../../app/context';"),
            ("ui/src/features/chat/Composer.svelte", "import Icon from '../../shared/Icon.svelte';"),
            ("ui/src/views/ChatView.svelte", "import Composer from '../features/chat/Composer.svelte';"),
        ],
    },
    Rule {
        name: "shared parts import only texts and wire types",
        check: |s| {
            let mut found = imports(s, "ui/src/shared/", &["../"]);
            found.retain(|o| !o.what.contains("'../i18n'") && !o.what.contains("'../backend/bindings'"));
            found
        },
        offends: &[("ui/src/shared/Button.svelte", "import { chat } from '../features/chat/store.svelte';")],
        passes: &[
            ("ui/src/shared/Button.svelte", "import Icon from './Icon.svelte'; import x from 'marked';"),
            ("ui/src/shared/Button.svelte", "import { t } from '../i18n';"),
            ("ui/src/shared/Button.svelte", "import type { SettingRow } from '../backend/bindings';"),
            ("ui/src/features/chat/Composer.svelte", "import Button from '../../shared/Button.svelte';"),
        ],
    },
    Rule {
        name: "words stand below everything that shows them",
        check: |s| imports(s, "ui/src/i18n/", &["../shared", "../features", "../app", "../views"]),
        offends: &[("ui/src/i18n/index.ts", "import { bytes } from '../shared/format';")],
        passes: &[
            ("ui/src/i18n/localize.ts", "import type { SettingRow } from '../backend/bindings';"),
            ("ui/src/i18n/de/chat.ts", "import type { Messages } from '../types';"),
        ],
    },
    Rule {
        name: "only the backend speaks to the outside",
        check: |s| {
            let may = s.path.starts_with("ui/src/backend/") || !s.path.starts_with("ui/src/") || is_test(s);
            if may { Vec::new() } else { lines_with(s, OUTSIDE) }
        },
        offends: &[
            ("ui/src/features/chat/Composer.svelte", "await fetch('/api/send')"),
            ("ui/src/features/chat/store.svelte.ts", "import { invoke } from '@tauri-apps/api/core';"),
        ],
        passes: &[
            ("ui/src/backend/http.ts", "await fetch('/api/send')"),
            ("ui/src/features/chat/store.svelte.ts", "await this.#refetch(signal)"),
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
            "ui/src/features/chat/A.svelte",
            concat!(
                include_str!("seventy_lines.txt"),
                include_str!("seventy_lines.txt"),
                include_str!("seventy_lines.txt")
            ),
        )],
        passes: &[("ui/src/features/chat/A.svelte", "<p>short</p>")],
    },
];

const OUTSIDE: &[&str] =
    &[" fetch(", "(fetch(", "window.fetch", "@tauri-apps/", "XMLHttpRequest", "EventSource("];

/// Relative imports of a file in `features/<noun>/` that leave its folder for another feature, for a view, or for
/// more of `app/` than the context.
fn features(source: &SourceFile) -> Vec<Offence> {
    const FEATURES: &str = "ui/src/features/";
    let Some((feature, inner)) = source.path.strip_prefix(FEATURES).and_then(|p| p.split_once('/')) else {
        return Vec::new();
    };
    let up = "../".repeat(inner.matches('/').count() + 1);
    let is_offence = |import: &str| match import.strip_prefix(&up) {
        None => false,
        Some(rest) => match rest.strip_prefix("../") {
            None => rest.split('/').next() != Some(feature),
            Some(below_src) => {
                let inside = |folder: &str| below_src.starts_with(folder);
                inside("features/") || inside("views/") || (inside("app/") && below_src != "app/context")
            }
        },
    };
    let lines = source.text.lines().enumerate();
    lines
        .filter(|(_, line)| line.split('\'').skip(1).step_by(2).any(is_offence))
        .map(|(i, line)| Offence::new(i + 1, line.trim().to_string()))
        .collect()
}

fn is_test(source: &SourceFile) -> bool {
    source.path.contains(".test.") || source.path.contains("/test/")
}

fn imports(source: &SourceFile, folder: &str, forbidden: &[&str]) -> Vec<Offence> {
    if !source.path.starts_with(folder) || is_test(source) {
        return Vec::new();
    }
    let phrases: Vec<String> =
        forbidden.iter().flat_map(|f| [format!("from '{f}"), format!("from \"{f}")]).collect();
    lines_with(source, &phrases.iter().map(String::as_str).collect::<Vec<_>>())
}

fn lines_with(source: &SourceFile, phrases: &[&str]) -> Vec<Offence> {
    let lines = source.text.lines().enumerate();
    lines
        .filter(|(_, line)| !line.trim_start().starts_with("//") && phrases.iter().any(|p| line.contains(p)))
        .map(|(i, line)| Offence::new(i + 1, line.trim().to_string()))
        .collect()
}
