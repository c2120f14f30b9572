//! The settings of the window: what it shows first, how large, and with which keys.

use serde_json::json;

use super::{GENERAL, Setting, THINKING, choice, integer};
use crate::types::SettingKind;

const LOOK: &str = "Look";
const WRITING: &str = "Writing";
const READING: &str = "Reading";

pub static ROWS: &[Setting] = &[
    Setting {
        key: "language",
        section: GENERAL,
        label: "Language",
        help: "Of the words on this page. Models answer in the language that you write to them in.",
        // Each in its own words; `ui/src/i18n` has a catalogue for each.
        kind: || {
            choice(&[
                ("system", "As the system has it"),
                ("en", "English"),
                ("de", "Deutsch"),
                ("ja", "日本語"),
                ("ar", "العربية"),
            ])
        },
        default: || json!("system"),
    },
    Setting {
        key: "theme",
        section: LOOK,
        label: "Theme",
        help: "Light, dark, or as the system has it.",
        kind: || choice(&[("system", "System"), ("light", "Light"), ("dark", "Dark")]),
        default: || json!("system"),
    },
    Setting {
        key: "send_key",
        section: WRITING,
        label: "Send with",
        help: "The other combination breaks the line.",
        kind: || choice(&[("enter", "Enter"), ("mod_enter", "Ctrl+Enter (⌘+Enter on a Mac)")]),
        default: || json!("enter"),
    },
    Setting {
        key: "wide",
        section: LOOK,
        label: "Wide conversations",
        help: "As wide as the window, instead of lines that are easy to read.",
        kind: || SettingKind::Toggle,
        default: || json!(false),
    },
    Setting {
        key: "follow",
        section: READING,
        label: "Follow answers",
        help: "The page goes along while an answer is written, until you scroll up. Off: it stays where you read.",
        kind: || SettingKind::Toggle,
        default: || json!(true),
    },
    Setting {
        key: "thinking_open",
        section: THINKING,
        label: "Show thinking",
        help: "What models think stands open above their answers, instead of folded away.",
        kind: || SettingKind::Toggle,
        default: || json!(false),
    },
    Setting {
        key: "notify",
        section: GENERAL,
        label: "Tell when a long answer is done",
        help: "By a notification, if the window isn't in front and the answer took ten seconds or more.",
        kind: || SettingKind::Toggle,
        default: || json!(true),
    },
    Setting {
        key: "tray",
        section: GENERAL,
        label: "Stay beside the clock",
        help: "An icon in the tray. Closing the window then only hides it, and answers and downloads go on.",
        kind: || SettingKind::Toggle,
        default: || json!(false),
    },
    Setting {
        key: "welcome",
        section: GENERAL,
        label: "Welcome",
        help: "Shows the first steps when the window opens and there is no conversation yet.",
        kind: || SettingKind::Toggle,
        default: || json!(true),
    },
    Setting {
        key: "zoom",
        section: LOOK,
        label: "Zoom",
        help: "Of the whole window, in percent.",
        kind: || integer(50, 300, None),
        default: || json!(100),
    },
    Setting {
        key: "shortcuts",
        section: "Shortcuts",
        label: "Shortcuts",
        help: "Keys of commands where they differ from those they come with; an empty list switches one off.",
        kind: || SettingKind::Keys,
        default: || json!({}),
    },
];
