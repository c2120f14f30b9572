//! Files whose pages may be scanned: their text, and the pages that become images beside it.

use std::sync::Arc;

use contract::protocol::{Base64Text, PageImages, RenderRequest};
use contract::types::{AttachmentKind, ScannedPages};
use contract::{Error, Result};
use documents::pdf::scanned;
use documents::{ExtractError, ExtractedText, base64, extract};

use crate::images::ImageRecord;

/// The text of a file, with notes in the place of scanned pages, and the images of those, which `draw` makes.
///
/// Errors: `attachment.refused`.
pub fn read(
    name: &str,
    bytes: &[u8],
    draw: impl FnOnce(RenderRequest) -> Result<PageImages>,
) -> Result<(ExtractedText, PageImages)> {
    let read = extract::read_with_blank_pages(name, bytes);
    let mut read = read.map_err(|problem| refused(name, &problem))?;
    let pages = scanned::unreadable_pages(&read.text);
    if read.kind != AttachmentKind::Pdf || pages.is_empty() {
        return Ok((read, PageImages::default()));
    }
    let is_blank = scanned::is_blank(&read.text);
    let file = Base64Text(base64::encode(bytes).into());
    let drawn = match draw(RenderRequest { file, pages: pages.clone() }) {
        Err(error) if is_blank => {
            let why = error.message().trim_end_matches('.');
            return Err(refused(name, &ExtractError::new(why, error.remedy())));
        }
        // The file has text as well, which says which pages are missing.
        drawn => drawn.unwrap_or(PageImages { images: Vec::new(), left_out: pages }),
    };
    if is_blank && drawn.images.is_empty() {
        return Err(refused(name, &ExtractError::no_text()));
    }
    let images: Vec<u32> = drawn.images.iter().map(|image| image.page).collect();
    read.text = scanned::with_notes(&read.text, &images, &drawn.left_out);
    Ok((read, drawn))
}

/// Name, record and original of a page.
pub type PageRecord = (String, ImageRecord, Arc<[u8]>);

/// The pages of `file` as they are kept.
pub fn page_records(file: &str, pages: &PageImages) -> Vec<PageRecord> {
    let record = |page: &contract::protocol::PageImage| {
        let bytes = base64::decode(&page.file.0).unwrap_or_default();
        let record = ImageRecord { page: Some(page.page), ..ImageRecord::new(&bytes, page.info.clone()) };
        (scanned::page_name(page.page, file), record, bytes.into())
    };
    pages.images.iter().map(record).collect()
}

/// What lists show of a file that has `n_images` pages as images, and the text of [`read`].
pub fn describe(text: &str, n_images: usize) -> Option<ScannedPages> {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    (n_images > 0).then(|| ScannedPages {
        images: count(n_images),
        left_out: count(scanned::count_left_out(text)),
        is_all: !scanned::has_text(text),
    })
}

/// The error of a file that can't be attached.
pub fn refused(name: &str, problem: &ExtractError) -> Error {
    let message = format!("{name} can't be attached: {}.", problem.why);
    Error::input("attachment.refused", message, problem.remedy.clone())
}

#[cfg(test)]
mod tests {
    use contract::protocol::PageImage;
    use contract::types::ImageInfo;

    use super::*;

    /// A page that is drawn as one black pixel.
    const PNG: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg==";

    fn pdf(name: &str) -> Vec<u8> {
        std::fs::read(format!("{}/../pdf-pages/tests/files/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    fn drawn(pages: &[u32], left_out: &[u32]) -> PageImages {
        let info = ImageInfo { width: 1, height: 1, thumbnail: String::new() };
        let image = |page: &u32| PageImage { page: *page, file: Base64Text(PNG.into()), info: info.clone() };
        PageImages { images: pages.iter().map(image).collect(), left_out: left_out.to_vec() }
    }

    #[test]
    fn scanned_pages_become_notes_and_images() {
        let asked = |request: RenderRequest| {
            assert_eq!(request.pages, [2, 4, 6]);
            Ok(drawn(&[2], &[4]))
        };
        let (read, images) = super::read("a.pdf", &pdf("mixed.pdf"), asked).unwrap();
        let pages: Vec<&str> = read.text.split(documents::pdf::PAGE_BREAK).collect();
        assert_eq!(pages[0], "The contract begins on page one.");
        assert!(pages[1].contains("It is an image") && pages[3].contains("could not be read"), "{pages:?}");
        assert_eq!(pages[4], "Recognized by a scanner.");
        assert_eq!(describe(&read.text, 1), Some(ScannedPages { images: 1, left_out: 1, is_all: false }));
        let records = page_records("a.pdf", &images);
        let [(name, record, original)] = &records[..] else { panic!("{records:?}") };
        assert_eq!((name.as_str(), record.page, record.width), ("page 2 of a.pdf", Some(2), 1));
        assert_eq!(Some(original.to_vec()), base64::decode(PNG));
    }

    #[test]
    fn a_file_without_text_needs_images() {
        let read = |outcome: Result<PageImages>| super::read("a.pdf", &pdf("jpeg.pdf"), |_| outcome);
        let (scan, _) = read(Ok(drawn(&[1], &[]))).unwrap();
        assert!(describe(&scan.text, 1).unwrap().is_all);
        for (outcome, why) in [
            (Ok(PageImages::default()), "its pages are images"),
            (Err(Error::input("document.unreadable", "It is odd.", "Save it.")), "attached: It is odd."),
        ] {
            let error = read(outcome).unwrap_err();
            assert!(error.code() == "attachment.refused" && error.message().contains(why), "{error}");
        }
        let failed = super::read("a.pdf", &pdf("mixed.pdf"), |_| Err(Error::bug("it panicked")));
        let (mixed, _) = failed.unwrap();
        assert_eq!(mixed.text.matches("could not be read").count(), 3, "{}", mixed.text);
        assert!(mixed.text.contains("The contract begins on page one."));
    }
}
