//! Images of prompts: where they stand, and where their bytes are.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use ts_rs::TS;

/// An image of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptImage {
    /// Where it stands: byte offset in the message's `content`.
    pub at: usize,
    /// SHA-256 of the file's bytes, in lower-case hexadecimal.
    pub sha256: String,
    /// Pixels per row, as it is shown upright.
    pub width: u32,
    /// Rows of pixels, as it is shown upright.
    pub height: u32,
    pub source: ImageSource,
    /// How much of it the model sees.
    #[serde(default)]
    pub detail: ImageDetail,
}

/// How many tokens an image may take, in models that let one choose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ImageDetail {
    /// At most about 256.
    Low,
    /// At most about 1,024.
    Balanced,
    /// As the model's own settings say.
    #[default]
    Full,
}

/// Where the bytes of an image's file are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageSource {
    /// In the request.
    Base64(Base64Text),
    /// On this computer.
    File(String),
}

/// Base64 that is shared, not copied, with the request that holds it.
#[derive(Clone, PartialEq, Eq)]
pub struct Base64Text(pub Arc<str>);

impl fmt::Debug for Base64Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Base64Text({} bytes)", self.0.len())
    }
}

impl Serialize for Base64Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Base64Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(text.into()))
    }
}
