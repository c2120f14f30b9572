//! The settings for attachments.

use serde_json::json;

use crate::settings::{Setting, choice, integer};

const FILES: &str = "Files";

/// The rows of this section.
pub static ROWS: &[Setting] = &[
    Setting {
        key: "attachment_megabytes",
        section: FILES,
        label: "Maximum file size (MB)",
        help: "Largest file you can attach to a message.",
        // What a page sends is a third longer than the file, and no request is longer than 32 MiB.
        kind: || integer(1, 23, None),
        default: || json!(16),
    },
    Setting {
        key: "attachment_count",
        section: FILES,
        label: "Files per message",
        help: "Maximum number of attachments.",
        kind: || integer(1, 50, None),
        default: || json!(10),
    },
    Setting {
        key: "attachment_passages",
        section: FILES,
        label: "Passages from long files",
        help: "Tokens that each question takes from files too long for the context.",
        kind: || integer(128, 65_536, None),
        default: || json!(2048),
    },
    Setting {
        key: "embedding_model",
        section: FILES,
        label: "Embedding model",
        help: "Finds passages in long files by meaning as well as by words. Needs a model made for embeddings and additional memory.",
        // The options are no model and the library's entries that embed, filled in by `App::settings_list`.
        kind: || choice(&[]),
        default: || json!(""),
    },
];
