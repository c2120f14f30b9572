//! The settings of files that go with messages.

use serde_json::json;

use crate::settings::{Setting, choice, integer};

const FILES: &str = "Files";

pub static ROWS: &[Setting] = &[
    Setting {
        key: "attachment_megabytes",
        section: FILES,
        label: "Largest file",
        help: "In megabytes, of one file that goes with a message.",
        // What a page sends is a third longer than the file, and no request is longer than 32 MiB.
        kind: || integer(1, 23, None),
        default: || json!(16),
    },
    Setting {
        key: "attachment_count",
        section: FILES,
        label: "Files of a message",
        help: "More are refused.",
        kind: || integer(1, 50, None),
        default: || json!(10),
    },
    Setting {
        key: "attachment_passages",
        section: FILES,
        label: "Passages of a long file",
        help: "In tokens: what the model is given of files that don't fit whole, for each question.",
        kind: || integer(128, 65_536, None),
        default: || json!(2048),
    },
    Setting {
        key: "embedding_model",
        section: FILES,
        label: "Embedding model",
        help: "Finds passages of long files by what they mean, beside their words. Needs a model that is made for it, and memory of its own.",
        // The options are no model and the library's entries that embed, filled in by `App::settings_list`.
        kind: || choice(&[]),
        default: || json!(""),
    },
];
