//! Images of messages: a record with a thumbnail in the database, the original in a folder, once for all messages.
//!
//! The record is the text of the attachment's document.

use std::path::Path;
use std::sync::Arc;

use contract::Result;
use contract::protocol::{Base64Text, ImageDetail, ImageSource, PromptImage};
use contract::types::{Attachment, AttachmentKind, ImageInfo};
use documents::{base64, blocks, sha256};
use serde::{Deserialize, Serialize};
use session::images::image_folder;
use session::{AttachmentRow, BranchMessage, Session};
use vision::has_image_head;

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
    /// Of a scanned page of a PDF, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<u32>,
}

/// An image on its way into a message.
#[derive(Debug, Clone)]
pub struct NamedImage {
    /// Of its attachment.
    pub name: String,
    /// It is a page of a file.
    pub is_page: bool,
    /// At the beginning of the message.
    pub image: PromptImage,
}

/// Images in their places, pages last: each stands behind a block that names it. Returns those blocks as well, which stand
/// before all others of the message.
pub fn place(images: Vec<NamedImage>) -> (Vec<String>, Vec<PromptImage>) {
    let (pages, own): (Vec<_>, Vec<_>) = images.into_iter().partition(|it| it.is_page);
    let mut placed: Vec<PromptImage> = own.into_iter().map(|it| it.image).collect();
    let mut blocks: Vec<String> = Vec::with_capacity(pages.len());
    for NamedImage { name, image, .. } in pages {
        blocks.push(blocks::page(&name));
        placed.push(PromptImage { at: blocks::message(&blocks, "").len(), ..image });
    }
    (blocks, placed)
}

impl ImageRecord {
    /// Of an original.
    pub fn new(bytes: &[u8], info: ImageInfo) -> Self {
        let ImageInfo { width, height, thumbnail } = info;
        Self { sha256: sha256(bytes), width, height, thumbnail, page: None }
    }

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

/// The record and the original of a file. None: it is no image. `info_of` decodes files in base64 that begin as images do.
///
/// Errors: those of `info_of`.
pub fn read_image(
    bytes: &[u8],
    info_of: impl FnOnce(Base64Text) -> Result<Option<ImageInfo>>,
) -> Result<Option<(ImageRecord, Arc<[u8]>)>> {
    if !has_image_head(bytes) {
        return Ok(None);
    }
    let info = info_of(Base64Text(base64::encode(bytes).into()))?;
    Ok(info.map(|info| (ImageRecord::new(bytes, info), bytes.into())))
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

/// The images of a message of a branch whose originals are here, and all ids of attachments that are pages.
pub(crate) fn of_message(session: &Session, message: &BranchMessage) -> Result<StoredImages> {
    let folder = image_folder(session.folder());
    let rows = message.attachments.files.iter().filter(|row| is_image(row));
    let mut stored = StoredImages::default();
    for row in rows {
        let text = session.document(&row.document)?;
        let Some(record) = text.and_then(|text| ImageRecord::parse(&text)) else { continue };
        let is_page = record.page.is_some();
        stored.pages.extend(is_page.then(|| row.id.clone()));
        // An imported chat has records alone.
        if folder.join(&record.sha256).is_file() {
            let image = record.in_prompt(&folder);
            stored.images.push((row.id.clone(), NamedImage { name: row.name.clone(), is_page, image }));
        }
    }
    Ok(stored)
}

/// What is kept of a message's images.
#[derive(Default)]
pub(crate) struct StoredImages {
    /// By the ids of their attachments.
    pub images: Vec<(String, NamedImage)>,
    /// Ids of attachments.
    pub pages: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_stand_behind_their_names() {
        let record =
            ImageRecord { sha256: "ab".into(), width: 1, height: 1, thumbnail: String::new(), page: None };
        let image = |name: &str, is_page| NamedImage {
            name: name.into(),
            is_page,
            image: record.in_prompt(Path::new("/")),
        };
        let images =
            vec![image("page 1 of a.pdf", true), image("b.png", false), image("page 2 of a.pdf", true)];
        let (blocks, placed) = place(images);
        assert_eq!(blocks, ["File: page 1 of a.pdf", "File: page 2 of a.pdf"]);
        // 21 bytes each, and two line ends between them.
        assert_eq!(placed.iter().map(|it| it.at).collect::<Vec<_>>(), [0, 21, 44]);
        assert_eq!(place(Vec::new()), (Vec::new(), Vec::new()));
    }
}
