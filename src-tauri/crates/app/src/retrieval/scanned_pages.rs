//! Scanned pages of PDFs: images beside the text of their file, which the worker draws.

use std::sync::Arc;

use contract::Result;
use contract::protocol::{PageImages, PromptImage, WorkerRequest};
use contract::types::AttachmentKind;
use documents::ExtractedText;
use documents::pdf::scanned::has_text;
use file_search::images::NamedImage;
use file_search::project_files::with_late_pages;
use file_search::scanned_pages::{page_records, read};
use prompt::images::{not_seen, not_seen_pages};

use super::images::can_see;
use super::{Document, PromptGround, copies};
use crate::App;

impl App {
    /// The text of a file, with notes in the place of scanned pages, and the images of those.
    ///
    /// Errors: `attachment.refused`.
    pub fn extract_file(&self, name: &str, bytes: &[u8]) -> Result<(ExtractedText, PageImages)> {
        let backends = &self.ctx().backends;
        read(name, bytes, |render| {
            let render = Box::new(render);
            backends.replies.call(&backends.replies.page_images, |request| {
                backends.ask(WorkerRequest::RenderPages { request, render })
            })?
        })
    }

    /// Whether a model takes images, as far as that is known here.
    pub fn model_sees(&self, model: &str) -> Result<bool> {
        let responder = self.responder(model)?;
        let load = self.load_spec_for(&responder)?;
        Ok(can_see(&responder.reference(), &load))
    }

    /// Scanned pages of its project's files that a conversation has not been given, because its model could not see.
    pub(crate) fn late_pages(&self, ground: &PromptGround) -> Result<Vec<Arc<Document>>> {
        let Some(folder) = &ground.project else { return Ok(Vec::new()) };
        let store = self.store();
        let files = copies(&store, &with_late_pages(&store, folder, &ground.branch)?)?;
        let can_see = !files.is_empty() && ground.sees();
        Ok(files.into_iter().filter(|file| can_see && file.page_of.is_some()).collect())
    }

    /// The pages of a file as images.
    pub(super) fn page_documents(&self, file: &Document, pages: &PageImages) -> Result<Vec<Arc<Document>>> {
        let document = |(name, record, original): (_, _, Arc<[u8]>)| {
            let document = self.image_document(name, &record, original)?;
            Ok(Arc::new(Document { page_of: Some(file.id.clone()), ..document }))
        };
        page_records(&file.name, pages).into_iter().map(document).collect()
    }
}

impl Document {
    /// An image of it for a message.
    pub(super) fn named_image(&self, image: PromptImage) -> NamedImage {
        NamedImage { name: self.name.clone(), is_page: self.page_of.is_some(), image }
    }

    /// A PDF of images alone.
    fn is_scan(&self) -> bool {
        !self.pages.is_empty() && !has_text(&self.text)
    }
}

/// Refuses images, and PDFs of scanned pages alone, for a model that can't see.
///
/// Errors: `model.no_images`, `attachment.scanned`.
pub(crate) fn check_sight(
    model: &str,
    sees: impl FnOnce() -> Result<bool>,
    files: &[Arc<Document>],
) -> Result<()> {
    let is_image = |file: &Document| file.kind == AttachmentKind::Image && file.page_of.is_none();
    let unread = files.iter().find(|file| is_image(file) || file.is_scan());
    let Some(file) = unread else { return Ok(()) };
    match sees()? {
        true => Ok(()),
        false if is_image(file) => Err(not_seen(model)),
        false => Err(not_seen_pages(&file.name, model)),
    }
}
