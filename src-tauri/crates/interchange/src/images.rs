//! Originals of images in our own JSON: base64 by SHA-256, each once for all conversations. One of them is in memory at a
//! time, when they are written and when they are read.

use std::collections::BTreeSet;

use contract::Result;
use documents::{base64, sha256};
use file_search::images::ImageRecord;
use serde::ser::{Serialize, SerializeMap, Serializer};
use session::{AttachmentRow, ConversationArchive};

use crate::json_items::{JsonItems, JsonMember, ValueEnd};
use crate::{ImageFn, ImportFault, Reopen, unreadable};

/// Member of an export that holds the originals.
pub const MEMBER: &str = "images";

/// Reads the original with a SHA-256. None: it is not here.
pub type ReadImageFn<'a> = dyn Fn(&str) -> Option<Vec<u8>> + 'a;

/// The record of an image among a conversation's files. None: it is no image.
pub fn record(archive: &ConversationArchive, row: &AttachmentRow) -> Option<ImageRecord> {
    // Any file may be named and look like a record; only images are attached as such.
    let is_image = row.kind == contract::types::AttachmentKind::Image.name();
    ImageRecord::parse(archive.files.documents.get(&row.document).filter(|_| is_image)?)
}

/// SHA-256 of the originals of a conversation's images.
pub fn hashes(archive: &ConversationArchive) -> BTreeSet<String> {
    let rows = archive.files.by_message.values().flat_map(|attached| &attached.files);
    rows.filter_map(|row| Some(record(archive, row)?.sha256)).collect()
}

/// The originals of conversations, read while they are written.
pub struct ImageMap<'a> {
    archives: &'a [ConversationArchive],
    read: &'a ReadImageFn<'a>,
}

impl<'a> ImageMap<'a> {
    pub fn new(archives: &'a [ConversationArchive], read: &'a ReadImageFn<'a>) -> Self {
        Self { archives, read }
    }

    pub fn is_empty(&self) -> bool {
        self.archives.iter().all(|archive| hashes(archive).is_empty())
    }
}

impl Serialize for ImageMap<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let all: BTreeSet<String> = self.archives.iter().flat_map(hashes).collect();
        for sha256 in all {
            if let Some(bytes) = (self.read)(&sha256) {
                map.serialize_entry(&sha256, &base64::encode(&bytes))?;
            }
        }
        map.end()
    }
}

/// Finds the originals of an export.
pub fn read(file: &mut dyn Reopen, image: &mut ImageFn<'_>) -> Result<()> {
    let mut items = JsonItems::new(file.reopen()?).map_err(unreadable)?;
    items.peek().map_err(unreadable)?;
    if !items.find_member(MEMBER, b'{').map_err(unreadable)? {
        return Ok(());
    }
    items.skip();
    while let Some(JsonMember { key, value, end }) = items.next_member().map_err(unreadable)? {
        let key = String::from_utf8_lossy(&key).into_owned();
        image(original(&value, end, &key).map(|bytes| (key.clone(), bytes)).map_err(|reason| ImportFault {
            code: "import.image",
            name: format!("Image {key}"),
            reason: reason.into(),
        }));
    }
    Ok(())
}

/// The bytes of an original, which have the hash `key`.
fn original(json: &[u8], end: ValueEnd, key: &str) -> std::result::Result<Vec<u8>, &'static str> {
    match end {
        ValueEnd::Whole => {}
        ValueEnd::Cut => return Err("it is cut off; the download may be incomplete."),
        ValueEnd::TooLong => return Err("it is too large."),
    }
    let text: String = serde_json::from_slice(json).map_err(|_| "it is not base64.")?;
    let bytes = base64::decode(&text).ok_or("it is not base64.")?;
    if sha256(&bytes) == key { Ok(bytes) } else { Err("it is damaged: its bytes have another SHA-256.") }
}
