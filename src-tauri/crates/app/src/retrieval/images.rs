//! Images with messages: a record with a thumbnail in the database, the original in the data folder, once for all messages.
//!
//! The record is the text of the attachment's document. An original is there before a message that has it is stored, and
//! goes when the last such message is deleted for good.

use std::sync::Arc;

use contract::protocol::{Base64Text, LoadSpec, Location, ModelRef, PromptImage, WorkerRequest};
use contract::types::{AttachmentImage, AttachmentKind, ImageInfo};
use contract::{Error, Result};
use documents::base64;
use file_search::images::{ImageRecord, place};
use inference::vision_file::VisionSource;
use prompt::images::media_type;
use session::images::{ImageStore, image_folder};
use vision::DecodeLimits;

use super::Document;
use crate::App;

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

impl App {
    /// Images among a draft's files, for a prompt that is only counted, or whose originals are stored, with the blocks
    /// that name pages.
    pub(crate) fn prompt_images(&self, files: &[Arc<Document>]) -> (Vec<String>, Vec<PromptImage>) {
        let folder = image_folder(&self.dirs().data);
        let images = files.iter().filter(|file| file.kind == AttachmentKind::Image);
        let image =
            |file: &Arc<Document>| Some(file.named_image(ImageRecord::parse(&file.text)?.in_prompt(&folder)));
        place(images.filter_map(image).collect())
    }

    /// What the worker makes of an image's file. None: it is no image.
    pub(super) fn image_info(&self, file: Base64Text) -> Result<Option<ImageInfo>> {
        let backends = &self.ctx().backends;
        backends.replies.call(&backends.replies.image_infos, |request| {
            backends.ask(WorkerRequest::ReadImage { request, file })
        })?
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
