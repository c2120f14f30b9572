//! The settings of what goes over the network. Enforced in `connections.rs`.

use serde_json::json;

use super::{Setting, choice, integer};
use crate::types::SettingKind;

const NETWORK: &str = "Network";

pub static ROWS: &[Setting] = &[
    Setting {
        key: "offline",
        section: NETWORK,
        label: "Stay offline",
        help: "Nothing is sent to other servers or to the hub: no answers, no search, no downloads. What is under way rests.",
        kind: || SettingKind::Toggle,
        default: || json!(false),
    },
    Setting {
        key: "endpoint_silence",
        section: NETWORK,
        label: "Patience with other servers",
        help: "In seconds: a server that says nothing for so long while it answers is given up.",
        kind: || integer(1, 3600, None),
        default: || json!(120),
    },
    Setting {
        key: "key_place",
        section: NETWORK,
        label: "Keep keys in",
        help: "Where keys of other servers and the hub's token are kept when they are given.",
        kind: || {
            let file = "A file of the data folder, encrypted";
            choice(&[("auto", "The system's keychain, or a file where none runs"), ("file", file)])
        },
        default: || json!("auto"),
    },
];
