//! One JSON file of an export: finds out whose it is, and reads its conversations one at a time.

use contract::{Error, Result};
use documents::lenient_json;
use serde_json::Value;

use crate::json_items::{JsonItems, ValueEnd};
use crate::{
    FoundFn, ImageFn, ImportFault, ImportedConversation, Reopen, chatgpt, claude, images, json, unreadable,
};

/// Member of an object that holds the conversations.
const LIST: &str = "conversations";

/// Longest member of an object that says what it is.
const MAX_HEADER_BYTES: usize = 4096;

/// What an object says of itself.
#[derive(Default)]
struct Header {
    format: Option<Value>,
    version: Option<Value>,
    has_list: bool,
    has_images: bool,
}

/// Where conversations stand in a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// `[…]`
    List,
    /// `{"conversations": […]}`, of our own format.
    OwnList,
    /// `{"conversations": […]}`
    ListInObject,
    /// One after another, most often a single one.
    Objects,
}

/// Finds every conversation of a JSON file, then its images. Error: it is none, or of an unknown format.
pub fn read(file: &mut dyn Reopen, found: &mut FoundFn<'_>, image: &mut ImageFn<'_>) -> Result<()> {
    let (layout, has_images) = layout(file)?;
    let mut items = JsonItems::new(file.reopen()?).map_err(unreadable)?;
    items.peek().map_err(unreadable)?;
    match layout {
        Layout::List => items.skip(),
        Layout::OwnList | Layout::ListInObject => {
            items.find_member(LIST, b'[').map_err(unreadable)?;
            items.skip();
        }
        Layout::Objects => {}
    }
    let mut n = 0;
    while let Some((bytes, end)) = items.next_item().map_err(unreadable)? {
        n += 1;
        found(one(&bytes, end, n, layout));
    }
    drop(items);
    if has_images { images::read(file, image) } else { Ok(()) }
}

/// Where the conversations are, and whether the file has originals of images.
fn layout(file: &mut dyn Reopen) -> Result<(Layout, bool)> {
    let mut items = JsonItems::new(file.reopen()?).map_err(unreadable)?;
    match items.peek().map_err(unreadable)? {
        Some(b'[') => return Ok((Layout::List, false)),
        Some(b'{') => {}
        None => return Err(broken("This file is empty.", "Download it again.")),
        Some(_) => {
            let remedy = "Choose a JSON export, or the ZIP file that contains it.";
            return Err(broken("This file is not valid JSON.", remedy));
        }
    }
    items.skip();
    let mut header = Header::default();
    while let Some(key) = items.next_key().map_err(unreadable)? {
        header.has_list |= key == LIST.as_bytes() && items.peek().map_err(unreadable)? == Some(b'[');
        header.has_images |=
            key == images::MEMBER.as_bytes() && items.peek().map_err(unreadable)? == Some(b'{');
        let (value, _) = items.value(MAX_HEADER_BYTES).map_err(unreadable)?;
        match key.as_slice() {
            b"format" => header.format = Some(serde_json::from_slice(&value).unwrap_or_default()),
            b"version" => header.version = Some(serde_json::from_slice(&value).unwrap_or_default()),
            _ => {}
        }
    }
    match (header.format, header.has_list) {
        (Some(format), has_list) => {
            json::check_header(&format, header.version.as_ref(), has_list)?;
            Ok((Layout::OwnList, header.has_images))
        }
        (None, true) => Ok((Layout::ListInObject, false)),
        (None, false) => Ok((Layout::Objects, false)),
    }
}

fn broken(message: &str, remedy: &str) -> Error {
    Error::input("import.broken", message, remedy)
}

/// The n-th conversation, from 1.
fn one(
    bytes: &[u8],
    end: ValueEnd,
    n: usize,
    layout: Layout,
) -> std::result::Result<ImportedConversation, ImportFault> {
    let fault = |code, reason: String| ImportFault { code, name: format!("Number {n}"), reason };
    match end {
        ValueEnd::Whole => {}
        ValueEnd::Cut => {
            return Err(fault("import.broken", "it is cut off; the download may be incomplete.".into()));
        }
        ValueEnd::TooLong => return Err(fault("import.too_large", "it is too large.".into())),
    }
    let value =
        parse(bytes).map_err(|error| fault("import.broken", format!("it is not valid JSON ({error}).")))?;
    let title = ["title", "name"].iter().find_map(|key| value[*key].as_str()).unwrap_or_default().trim();
    let name = if title.is_empty() { format!("Number {n}") } else { title.to_owned() };
    let read = match &value {
        _ if layout == Layout::OwnList => json::read(value),
        _ if value.get("mapping").is_some() => chatgpt::read(&value),
        _ if value.get("chat_messages").is_some() => claude::read(&value),
        _ => return Err(fault("import.unknown", unknown(&value))),
    };
    read.map_err(|reason| ImportFault { code: "import.conversation", name, reason })
}

/// Strict JSON, or what can be mended: lone surrogates, `NaN`, bytes that are not UTF-8.
fn parse(bytes: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(bytes).or_else(|error| {
        let text = String::from_utf8_lossy(bytes);
        lenient_json::parse_object(&text).ok_or(error)
    })
}

fn unknown(value: &Value) -> String {
    let what = match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => {
            return "the export format is unknown. Inglenook imports its own JSON and the exports of ChatGPT and Claude, also as ZIP files.".into();
        }
    };
    format!("it is {what}, not a chat.")
}
