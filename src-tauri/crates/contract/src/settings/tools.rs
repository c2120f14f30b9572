//! The tool settings.

use serde_json::json;

use super::{Setting, integer};
use crate::types::SettingKind;

const TOOLS: &str = "Tools";

const GUARDING: &str = "Safety";

/// The rows of this section.
pub static ROWS: &[Setting] = &[
    Setting {
        key: "guard_marks",
        section: GUARDING,
        label: "Flag suspicious text in tool results",
        help: "Shows invisible characters and flags text that tries to instruct the model.",
        kind: || SettingKind::Toggle,
        default: || json!(true),
    },
    Setting {
        key: "tools",
        section: TOOLS,
        label: "Offer tools to models",
        help: "Offers the tools of all servers that are turned on. Each chat can override this.",
        kind: || SettingKind::Toggle,
        default: || json!(true),
    },
    Setting {
        key: "tool_rounds",
        section: TOOLS,
        label: "Tool calls before asking",
        help: "After this many rounds of tool calls in a row, you are asked again, even for tools you always allow.",
        kind: || integer(1, 100, None),
        default: || json!(8),
    },
    Setting {
        key: "tool_seconds",
        section: TOOLS,
        label: "Tool timeout (seconds)",
        help: "Cancels calls that take longer and reports this to the model.",
        kind: || integer(1, 3600, None),
        default: || json!(60),
    },
    Setting {
        key: "tool_characters",
        section: TOOLS,
        label: "Maximum result length",
        help: "In characters. Longer tool results are cut off, and the model is informed.",
        kind: || integer(200, 1_000_000, None),
        default: || json!(20_000),
    },
];
