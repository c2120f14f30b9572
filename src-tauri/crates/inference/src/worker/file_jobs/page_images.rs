//! Scanned pages of PDFs as images.

use contract::protocol::{Base64Text, PageImage, PageImages, RenderRequest};
use contract::{Error, Result};
use documents::{ExtractError, base64};
use pdf_pages::{PageChoice, PageLimits, RenderedPages, render};

use super::image_info;

/// Draws the pages that a request names.
///
/// Errors: `document.unreadable`.
pub fn draw(request: &RenderRequest) -> Result<PageImages> {
    let bytes = base64::decode(&request.file.0).ok_or_else(|| Error::bug("a PDF is not valid base64"))?;
    let choice = PageChoice::Scanned(request.pages.clone());
    let RenderedPages { images, left_out } =
        render(&bytes, choice, PageLimits::default()).map_err(unreadable)?;
    let images = images.into_iter().map(|page| {
        let info = image_info::of(&page.file)?.ok_or_else(|| Error::bug("a page is no image"))?;
        Ok(PageImage { page: page.page, file: Base64Text(base64::encode(&page.file).into()), info })
    });
    Ok(PageImages { images: images.collect::<Result<_>>()?, left_out })
}

fn unreadable(error: ExtractError) -> Error {
    Error::input("document.unreadable", format!("The PDF can't be used: {}.", error.why), error.remedy)
}
