//! Images with messages: a record with a thumbnail in the database, the original in the data folder, once for all messages.
//!
//! The record is the text of the attachment's document. An original is there before a message that has it is stored, and
//! goes when the last such message is deleted for good.

use std::sync::Arc;

use contract::protocol::{LoadSpec, Location, ModelRef, PromptImage};
use contract::types::{AttachmentImage, AttachmentKind};
use contract::{Error, Result};
use documents::{base64, sha256};
use file_search::images::ImageRecord;
use inference::vision_file::VisionSource;
use prompt::images::{media_type, unusable};
use session::images::{ImageStore, image_folder};
use vision::{DecodeLimits, ThumbnailFormat, VisionErrorKind, decode, measure, thumbnail};

use super::Document;
use crate::App;

/// Pixels of a thumbnail's longer side: twice what is shown, for dense screens.
const THUMBNAIL_SIDE: usize = 384;
/// Enough for a photo of that size; about 15 KB.
const THUMBNAIL_QUALITY: u8 = 75;

/// Whether a model takes images, as far as that is known here.
pub(crate) fn can_see(model: &ModelRef, load: &LoadSpec) -> bool {
    match &model.location {
        // The server says what it makes of them.
        Location::Remote { .. } => true,
        Location::BuiltIn | Location::Path(_) => {
            VisionSource::open(&model.location, load.mmproj.as_deref()).is_ok_and(|source| source.is_some())
        }
    }
}

/// The record and the original of a file. None: it is no image.
///
/// Errors: an image that is damaged or too large.
pub(super) fn read_image(bytes: &[u8]) -> Result<Option<(ImageRecord, Arc<[u8]>)>> {
    let limits = DecodeLimits::default();
    match measure(bytes, &limits) {
        Ok(_) => {}
        // Two letters alone tell a BMP: it may be a text.
        Err(error) if error.kind == VisionErrorKind::UnknownFormat || bytes.starts_with(b"BM") => {
            return Ok(None);
        }
        Err(error) => return Err(unusable(&error)),
    }
    let picture = decode(bytes, &limits).map_err(|error| unusable(&error))?;
    let format = ThumbnailFormat::Jpeg { quality: THUMBNAIL_QUALITY };
    let small = thumbnail(&picture, THUMBNAIL_SIDE, format).map_err(|error| unusable(&error))?;
    let side = |side: usize| u32::try_from(side).unwrap_or(u32::MAX);
    let record = ImageRecord {
        sha256: sha256(bytes),
        width: side(picture.size().width),
        height: side(picture.size().height),
        thumbnail: format!("data:image/jpeg;base64,{}", base64::encode(&small)),
    };
    Ok(Some((record, bytes.into())))
}

impl App {
    /// Images among a draft's files, for a prompt that is only counted, or whose originals are stored.
    pub(crate) fn prompt_images(&self, files: &[Arc<Document>]) -> Vec<PromptImage> {
        let folder = image_folder(&self.dirs().data);
        let records = files.iter().filter(|file| file.kind == AttachmentKind::Image);
        records.filter_map(|file| Some(ImageRecord::parse(&file.text)?.in_prompt(&folder))).collect()
    }

    /// Stores the originals of files that are about to be stored with a message.
    pub(crate) fn keep_images(&self, files: &[Arc<Document>]) -> Result<()> {
        let store = ImageStore::new(&self.dirs().data, &*self.ctx().io);
        for file in files {
            if let (Some(original), Some(record)) = (&file.original, ImageRecord::parse(&file.text)) {
                store.put(&record.sha256, original)?;
            }
        }
        Ok(())
    }

    /// Removes originals that no message has any more.
    pub(crate) fn sweep_images(&self) -> Result<()> {
        // Held while files go, so that none is stored meanwhile.
        let store = self.store();
        let texts = store.documents_of_kind(AttachmentKind::Image.name())?;
        let used = texts.iter().filter_map(|text| Some(ImageRecord::parse(text)?.sha256)).collect();
        Ok(store.images(&*self.ctx().io).keep_only(&used)?)
    }

    /// The original of an image, sent or not.
    pub fn attachment_image(&self, id: &str) -> Result<AttachmentImage> {
        let pending = self.services().attachments.get(id);
        let (text, original) = match pending {
            Some(document) => (document.text.to_string(), document.original.clone()),
            None => {
                let store = self.store();
                let row = super::stored_file(&store, id)?;
                (store.document(&row.document)?.unwrap_or_default(), None)
            }
        };
        let record = ImageRecord::parse(&text).ok_or_else(no_image)?;
        let bytes = match original {
            Some(original) => original.to_vec(),
            None => {
                let path = image_folder(&self.dirs().data).join(&record.sha256);
                let most = DecodeLimits::default().max_file_bytes as u64;
                self.ctx().io.read_within(&path, most)?
            }
        };
        let url = format!("data:{};base64,{}", media_type(&bytes), base64::encode(&bytes));
        Ok(AttachmentImage { url, width: record.width, height: record.height })
    }
}

fn no_image() -> Error {
    Error::input("attachment.no_image", "This attachment is no image.", "Open its text instead.")
}
