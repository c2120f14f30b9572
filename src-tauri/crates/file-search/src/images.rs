//! Images of messages: a record with a thumbnail in the database, the original in a folder, once for all messages.
//!
//! The record is the text of the attachment's document.

use std::path::Path;

use contract::Result;
use contract::protocol::{ImageDetail, ImageSource, PromptImage};
use contract::types::{Attachment, AttachmentKind, ImageInfo};
use serde::{Deserialize, Serialize};
use session::images::image_folder;
use session::{AttachmentRow, BranchMessage, Session};

use crate::citations::is_image;

/// What is kept of an image beside its original.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageRecord {
    /// Of the original's bytes.
    pub sha256: String,
    /// Pixels per row.
    pub width: u32,
    /// Rows of pixels.
    pub height: u32,
    /// A data URL.
    pub thumbnail: String,
}

impl ImageRecord {
    /// Reads the record of a document. None: it is none.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The image as lists show it.
    pub fn info(self) -> ImageInfo {
        ImageInfo { width: self.width, height: self.height, thumbnail: self.thumbnail }
    }

    /// The image at the beginning of a message. `folder` has the originals.
    pub fn in_prompt(&self, folder: &Path) -> PromptImage {
        let path = folder.join(&self.sha256).display().to_string();
        let Self { sha256, width, height, .. } = self.clone();
        let (source, detail) = (ImageSource::File(path), ImageDetail::default());
        PromptImage { at: 0, sha256, width, height, source, detail }
    }
}

/// What an image becomes that a model isn't shown.
pub fn unseen_block(name: &str) -> String {
    format!("File: {name}\n(An image, which you can't see.)")
}

/// Adds dimensions and thumbnails to the images of messages.
pub fn with_thumbnails(session: &Session, rows: &[AttachmentRow], shown: &mut [Attachment]) -> Result<()> {
    for (row, attachment) in rows.iter().zip(shown).filter(|(_, it)| it.kind == AttachmentKind::Image) {
        let text = session.document(&row.document)?;
        attachment.image = text.and_then(|text| ImageRecord::parse(&text)).map(ImageRecord::info);
    }
    Ok(())
}

/// The images of a message of a branch whose originals are here, with the ids of their attachments.
pub fn of_message(session: &Session, message: &BranchMessage) -> Result<Vec<(String, PromptImage)>> {
    let folder = image_folder(session.folder());
    let rows = message.attachments.files.iter().filter(|row| is_image(row));
    let mut images = Vec::new();
    for row in rows {
        let text = session.document(&row.document)?;
        let record = text.and_then(|text| ImageRecord::parse(&text));
        // An imported chat has records alone.
        let record = record.filter(|record| folder.join(&record.sha256).is_file());
        images.extend(record.map(|record| (row.id.clone(), record.in_prompt(&folder))));
    }
    Ok(images)
}
