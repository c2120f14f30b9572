//! Something in a text that a reader may overlook.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Something in a text that a reader may overlook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Finding {
    /// Invisible characters, and those that reverse the text direction.
    Hidden {
        /// Position of the first, in characters.
        at: u32,
        /// Number of such characters.
        count: u32,
        /// Code points such as `U+202E`, each once.
        names: Vec<String>,
    },
    /// Text meant for a model rather than for a reader.
    Instruction {
        /// Position of its start, in characters.
        at: u32,
        /// The beginning of the text.
        quote: String,
    },
    /// Letters that no font or encoding of the file explains, shown as `U+FFFD`.
    Unreadable {
        /// Of all letters.
        percent: u32,
    },
}

impl Finding {
    /// Describes it in words.
    pub fn told(&self) -> String {
        match self {
            Self::Hidden { count, names, .. } => {
                format!(
                    "{count} invisible characters ({}), shown to the model as visible text",
                    names.join(", ")
                )
            }
            Self::Instruction { quote, .. } => format!("instructions for the model: \"{quote}\""),
            Self::Unreadable { percent } => format!("letters that can't be read ({percent} %)"),
        }
    }
}
