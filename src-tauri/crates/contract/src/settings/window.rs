//! The settings of the window: what it opens with, its size, and its keys.

use serde_json::json;

use super::{GENERAL, Setting, THINKING, choice, integer};
use crate::types::SettingKind;

const LOOK: &str = "Display";
const WRITING: &str = "Writing";
const READING: &str = "Reading";

/// The rows of this section.
pub static ROWS: &[Setting] = &[
    Setting {
        key: "language",
        section: GENERAL,
        label: "Language",
        help: "Language of the interface. Models answer in the language you write in.",
        // Each in its own words; `ui/src/i18n` has a catalogue for each.
        kind: || {
            choice(&[
                ("system", "System"),
                ("en", "English"),
                ("de", "Deutsch"),
                ("ja", "日本語"),
                ("ar", "العربية"),
            ])
        },
        default: || json!("system"),
    },
    Setting {
        key: "start_with",
        section: GENERAL,
        label: "Open at start",
        help: "What the window shows when it opens.",
        kind: || choice(&[("new", "New chat"), ("last", "Last open chat")]),
        default: || json!("new"),
    },
    Setting {
        key: "theme",
        section: LOOK,
        label: "Theme",
        help: "Light, dark or the same as the system.",
        kind: || choice(&[("system", "System"), ("light", "Light"), ("dark", "Dark")]),
        default: || json!("system"),
    },
    Setting {
        key: "accent",
        section: LOOK,
        label: "Accent color",
        help: "Color of buttons, links and what is selected.",
        kind: || {
            choice(&[
                ("ember", "Ember"),
                ("blue", "Blue"),
                ("green", "Green"),
                ("violet", "Violet"),
                ("rose", "Rose"),
                ("gray", "Gray"),
            ])
        },
        default: || json!("ember"),
    },
    Setting {
        key: "text_size",
        section: LOOK,
        label: "Text size",
        help: "Size of all texts. The window's other parts keep their size.",
        kind: || {
            choice(&[("small", "Small"), ("normal", "Normal"), ("large", "Large"), ("larger", "Extra large")])
        },
        default: || json!("normal"),
    },
    Setting {
        key: "send_key",
        section: WRITING,
        label: "Send with",
        help: "The other combination inserts a line break.",
        kind: || choice(&[("enter", "Enter"), ("mod_enter", "Ctrl+Enter (⌘+Enter on Mac)")]),
        default: || json!("enter"),
    },
    Setting {
        key: "wide",
        section: LOOK,
        label: "Wide chats",
        help: "Uses the full width of the window instead of a comfortable line length.",
        kind: || SettingKind::Toggle,
        default: || json!(false),
    },
    Setting {
        key: "code_wrap",
        section: LOOK,
        label: "Wrap lines in code",
        help: "Breaks long lines of code blocks instead of scrolling. Each block has a button for it, too.",
        kind: || SettingKind::Toggle,
        default: || json!(false),
    },
    Setting {
        key: "follow",
        section: READING,
        label: "Follow answers",
        help: "Scrolls along while an answer is generated, until you scroll up.",
        kind: || SettingKind::Toggle,
        default: || json!(true),
    },
    Setting {
        key: "thinking_open",
        section: THINKING,
        label: "Show thinking",
        help: "Expands the model's thinking above its answers.",
        kind: || SettingKind::Toggle,
        default: || json!(false),
    },
    Setting {
        key: "notify",
        section: GENERAL,
        label: "Notify me when a long answer is done",
        help: "Only if the window is in the background and the answer took at least ten seconds.",
        kind: || SettingKind::Toggle,
        default: || json!(true),
    },
    Setting {
        key: "tray",
        section: GENERAL,
        label: "Show in system tray",
        help: "Closing the window hides it in the tray. Answers and downloads continue.",
        kind: || SettingKind::Toggle,
        default: || json!(false),
    },
    Setting {
        key: "welcome",
        section: GENERAL,
        label: "Welcome tour",
        help: "Shows the welcome tour when the window opens and there are no chats yet.",
        kind: || SettingKind::Toggle,
        default: || json!(true),
    },
    Setting {
        key: "zoom",
        section: LOOK,
        label: "Zoom (%)",
        help: "Size of everything in the window.",
        kind: || integer(50, 300, None),
        default: || json!(100),
    },
    Setting {
        key: "prompts",
        section: WRITING,
        label: "Own prompts",
        help: "Texts that the message box inserts: type / and a name.",
        kind: || SettingKind::Prompts,
        default: || json!([]),
    },
    Setting {
        key: "shortcuts",
        section: "Shortcuts",
        label: "Shortcuts",
        help: "Keyboard shortcuts that differ from the defaults. An empty list turns a shortcut off.",
        kind: || SettingKind::Keys,
        default: || json!({}),
    },
];
