//! Attachments of messages.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::Finding;

/// The format of an attached file. Documents are office texts, books and web pages, read as Markdown like spreadsheets and
/// presentations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum AttachmentKind {
    Text,
    Markdown,
    Code,
    Csv,
    Pdf,
    Image,
    Document,
    Spreadsheet,
    Presentation,
}

impl AttachmentKind {
    /// The name stored in the database and in exports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Markdown => "markdown",
            Self::Code => "code",
            Self::Csv => "csv",
            Self::Pdf => "pdf",
            Self::Image => "image",
            Self::Document => "document",
            Self::Spreadsheet => "spreadsheet",
            Self::Presentation => "presentation",
        }
    }

    /// Unknown names count as text.
    pub fn of_name(name: &str) -> Self {
        match name {
            "markdown" => Self::Markdown,
            "code" => Self::Code,
            "csv" => Self::Csv,
            "pdf" => Self::Pdf,
            "image" => Self::Image,
            "document" => Self::Document,
            "spreadsheet" => Self::Spreadsheet,
            "presentation" => Self::Presentation,
            _ => Self::Text,
        }
    }
}

/// A file of a draft or message, already read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Attachment {
    pub id: String,
    pub name: String,
    pub kind: AttachmentKind,
    /// Size of the original file.
    #[ts(type = "number")]
    pub bytes: u64,
    /// Parts that a reader may overlook.
    pub findings: Vec<Finding>,
    /// The model got all of it; else the matching passages. Absent: not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub whole: Option<bool>,
    /// Tokens of the whole file, by that model's count. Absent: not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub tokens: Option<u32>,
    /// The token count is an estimate.
    #[serde(default)]
    #[ts(optional, as = "Option<bool>")]
    pub is_about: bool,
    /// It came from the project that the conversation began in.
    #[serde(default)]
    #[ts(optional, as = "Option<bool>")]
    pub from_project: bool,
    /// The guessed encoding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub guessed: Option<String>,
    /// Of an image whose record is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub image: Option<ImageInfo>,
    /// Of a PDF with scanned pages that has not been sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub scanned: Option<ScannedPages>,
}

/// Pages of a PDF that are images without text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ScannedPages {
    /// Those that a model which sees is shown.
    pub images: u32,
    /// Those that are too many, or damaged.
    pub left_out: u32,
    /// No page has text.
    pub is_all: bool,
}

impl ScannedPages {
    /// Such as `4 scanned pages, read as images by models that see`.
    pub fn told(&self) -> String {
        let plural = |n: u32| if n == 1 { "page" } else { "pages" };
        let images =
            format!("{} scanned {}, read as images by models that see", self.images, plural(self.images));
        match self.left_out {
            0 => images,
            n => format!("{images}; {n} more scanned {} not read", plural(n)),
        }
    }
}

/// An image as lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ImageInfo {
    /// Pixels per row.
    pub width: u32,
    /// Rows of pixels.
    pub height: u32,
    /// A small copy, as a data URL.
    pub thumbnail: String,
}

/// The original of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct AttachmentImage {
    /// A data URL.
    pub url: String,
    /// Pixels per row.
    pub width: u32,
    /// Rows of pixels.
    pub height: u32,
}

/// A file or passage that an answer could draw on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Citation {
    /// The file, by its id.
    pub attachment: String,
    pub name: String,
    pub kind: AttachmentKind,
    /// Absent: all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub passage: Option<Passage>,
}

/// A part of a file's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Passage {
    /// Byte range in its text.
    pub start: u32,
    pub end: u32,
    /// From 1.
    pub first_line: u32,
    pub last_line: u32,
    /// From 1, if it has pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub page: Option<u32>,
}

impl Passage {
    /// Such as `page 3` or `lines 10–42`.
    pub fn place(&self) -> String {
        match (self.page, self.first_line, self.last_line) {
            (Some(page), ..) => format!("page {page}"),
            (None, first, last) if first == last => format!("line {first}"),
            (None, first, last) => format!("lines {first}–{last}"),
        }
    }
}

/// Attaches a file's bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct AttachArgs {
    pub name: String,
    /// The file's bytes.
    pub base64: String,
}

/// Requests an excerpt of an attachment's text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct AttachmentTextArgs {
    pub id: String,
    /// A byte offset that the excerpt contains; absent: 0.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub at: Option<u32>,
}

/// A file's text, or the excerpt of it that is shown at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct AttachmentText {
    pub attachment: Attachment,
    pub text: String,
    /// Byte offset of the excerpt in the whole text.
    pub start: u32,
    /// Bytes of the whole text.
    pub total: u32,
}

/// The token cost of a draft's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct AttachmentCost {
    pub id: String,
    /// Tokens that the model would get.
    pub tokens: u32,
    /// Of all of it.
    pub tokens_whole: u32,
    /// It fits whole; else it is searched for passages that match the draft.
    pub whole: bool,
}
