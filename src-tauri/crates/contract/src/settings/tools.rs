//! The settings of tools.

use serde_json::json;

use super::{Setting, integer};
use crate::types::SettingKind;

const TOOLS: &str = "Tools";

const GUARDING: &str = "Guarding";

pub static ROWS: &[Setting] = &[
    Setting {
        key: "guard_marks",
        section: GUARDING,
        label: "Mark what hides in tools' texts",
        help: "Characters that don't show are written out, and text that reads like instructions to the model is told of.",
        kind: || SettingKind::Toggle,
        default: || json!(true),
    },
    Setting {
        key: "tools",
        section: TOOLS,
        label: "Offer tools to models",
        help: "Those of the servers that are switched on; each chat can choose otherwise.",
        kind: || SettingKind::Toggle,
        default: || json!(true),
    },
    Setting {
        key: "tool_rounds",
        section: TOOLS,
        label: "Rounds without you",
        help: "After so many calls and results in a row you are asked, whatever you have allowed.",
        kind: || integer(1, 100, None),
        default: || json!(8),
    },
    Setting {
        key: "tool_seconds",
        section: TOOLS,
        label: "Patience with tools",
        help: "In seconds: a call that takes longer is given up, and the model is told.",
        kind: || integer(1, 3600, None),
        default: || json!(60),
    },
    Setting {
        key: "tool_characters",
        section: TOOLS,
        label: "Longest result",
        help: "In characters: what a tool brings beyond that is left out, and the model is told.",
        kind: || integer(200, 1_000_000, None),
        default: || json!(20_000),
    },
];
