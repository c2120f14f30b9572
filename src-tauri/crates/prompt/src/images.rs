//! Images of messages: read from base64, data URLs and files within limits, and placed in a message's text.

use std::path::Path;

use contract::protocol::{
    Base64Text, ImageDetail, ImageSource, Prompt, PromptImage, PromptMessage, WorkerRequest,
};
use contract::{Error, ErrorKind};
use documents::{base64, sha256};
use vision::{DecodeLimits, Detail, ImageSettings, VisionError, VisionErrorKind, measure};

/// Base64 digits that hold the first bytes of every format.
const MAGIC_DIGITS: usize = 16;

/// An image that is base64, with or without the head of a data URL. Stands at the beginning of its message.
///
/// Errors: `image.not_base64`, `image.remote`, those of [`measured`].
pub fn from_base64(text: &str) -> Result<PromptImage, Error> {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    if let Some(scheme @ ("http" | "https" | "file")) = scheme.as_deref() {
        return Err(Error::input(
            "image.remote",
            format!("The image is given by a {scheme} address, which is not read here."),
            "Send the image itself, as base64 in a data URL (data:image/png;base64,…), or allow addresses to be fetched \
             (nook settings set allow_image_urls public).",
        ));
    }
    let encoded = match text.strip_prefix("data:") {
        Some(url) => url.split_once(";base64,").ok_or_else(not_base64)?.1,
        None => text,
    };
    // Lines of a MIME body are joined.
    let encoded: String = encoded.split_ascii_whitespace().collect();
    let bytes = base64::decode(&encoded).filter(|bytes| !bytes.is_empty()).ok_or_else(not_base64)?;
    measured(&bytes, ImageSource::Base64(Base64Text(encoded.into())))
}

/// An image with these bytes, which `source` names. Reads no more than the file's head.
///
/// Errors: `image.format`, `image.unreadable`, `image.too_large`.
pub fn measured(bytes: &[u8], source: ImageSource) -> Result<PromptImage, Error> {
    let size = measure(bytes, &DecodeLimits::default()).map_err(|error| unusable(&error))?;
    let side = |side: usize| u32::try_from(side).unwrap_or(u32::MAX);
    let (width, height) = (side(size.width), side(size.height));
    let detail = ImageDetail::default();
    Ok(PromptImage { at: 0, sha256: sha256(bytes), width, height, source, detail })
}

/// Names an image with its detail, which decide together what a model sees.
pub fn key_of(image: &PromptImage) -> String {
    format!("{} {:?}", image.sha256, image.detail)
}

/// The settings of a model for one image.
pub fn settings_for(image: &PromptImage, settings: &ImageSettings) -> ImageSettings {
    settings.with_detail(match image.detail {
        ImageDetail::Low => Detail::Low,
        ImageDetail::Balanced => Detail::Balanced,
        ImageDetail::Full => Detail::Full,
    })
}

/// Gives every image of a request the detail that its options choose.
pub fn apply_detail(request: &mut WorkerRequest) {
    let (messages, detail) = match request {
        WorkerRequest::Generate(generate) => match &mut generate.prompt {
            Prompt::Chat(messages) => (messages, generate.chat.image_detail),
            Prompt::Raw(_) | Prompt::Ids(_) => return,
        },
        WorkerRequest::Count { count, .. } => (&mut count.messages, count.chat.image_detail),
        _ => return,
    };
    if let Some(detail) = detail {
        messages.iter_mut().flat_map(|message| &mut message.images).for_each(|image| image.detail = detail);
    }
}

/// The bytes of an image's file, which are those that it was measured with.
///
/// Errors: `image.missing`, `image.changed`, `image.not_base64`.
pub fn bytes_of(image: &PromptImage) -> Result<Vec<u8>, Error> {
    let bytes = match &image.source {
        ImageSource::Base64(text) => base64::decode(&text.0).ok_or_else(not_base64)?,
        ImageSource::File(path) => {
            let max_bytes = DecodeLimits::default().max_file_bytes as u64;
            io::read_regular_file(Path::new(path), max_bytes).map_err(|error| {
                let message = format!("The image {path} could not be read: {}.", error.source);
                Error::input("image.missing", message, "Attach the image again, or leave it out.")
            })?
        }
    };
    if sha256(&bytes) != image.sha256 {
        let what = match &image.source {
            ImageSource::Base64(_) => "The image",
            ImageSource::File(path) => path,
        };
        let message = format!("{what} has changed since it was attached.");
        return Err(Error::input("image.changed", message, "Attach the image again."));
    }
    Ok(bytes)
}

/// An image whose bytes are in the request, not in a file.
///
/// Errors: those of [`bytes_of`].
pub fn inlined(image: &PromptImage) -> Result<PromptImage, Error> {
    let source = match &image.source {
        ImageSource::Base64(text) => ImageSource::Base64(text.clone()),
        ImageSource::File(_) => ImageSource::Base64(Base64Text(base64::encode(&bytes_of(image)?).into())),
    };
    Ok(PromptImage { source, ..image.clone() })
}

/// The data URL of an image. None: its bytes are in a file.
pub fn data_url(image: &PromptImage) -> Option<String> {
    let ImageSource::Base64(Base64Text(text)) = &image.source else { return None };
    let head = text.get(..text.len().min(MAGIC_DIGITS)).and_then(base64::decode).unwrap_or_default();
    Some(format!("data:{};base64,{text}", media_type(&head)))
}

/// The media type of an image's file, by its first bytes.
pub fn media_type(head: &[u8]) -> &'static str {
    let starts: [(&[u8], &str); 6] = [
        (b"\x89PNG", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF8", "image/gif"),
        (b"RIFF", "image/webp"),
        (b"BM", "image/bmp"),
        (b"II*\0", "image/tiff"),
    ];
    starts.iter().find(|(start, _)| head.starts_with(start)).map_or("image/tiff", |(_, name)| name)
}

fn not_base64() -> Error {
    let remedy = "Send the file's bytes as base64 (data:image/png;base64,…).";
    Error::input("image.not_base64", "The image is not valid base64.", remedy)
}

/// The error of an image that can't be used.
pub fn unusable(error: &VisionError) -> Error {
    let (kind, code) = match error.kind {
        VisionErrorKind::UnknownFormat => (ErrorKind::Input, "image.format"),
        VisionErrorKind::UnreadableFile => (ErrorKind::Input, "image.unreadable"),
        VisionErrorKind::TooLarge => (ErrorKind::Limit, "image.too_large"),
        VisionErrorKind::InvalidSettings => (ErrorKind::Input, "image.settings"),
        VisionErrorKind::RefusedShape => (ErrorKind::Input, "image.shape"),
    };
    Error::new(kind, code, &*error.message, &*error.remedy)
}

/// The error for images that a model can't see.
pub fn not_seen(model: &str) -> Error {
    Error::input(
        "model.no_images",
        format!("The model {model} can't see images."),
        "Choose a model with the badge \"images\" (a GGUF needs its mmproj file beside it), or leave out the image.",
    )
}

/// The error for a PDF that says nothing to a model which can't see: its pages are scanned.
pub fn not_seen_pages(file: &str, model: &str) -> Error {
    Error::input(
        "attachment.scanned",
        format!("The pages of {file} are scanned, and the model {model} can't see images."),
        "Choose a model with the badge \"images\", or run text recognition (OCR) on the file and attach the result.",
    )
}

/// Appends a text with its images to a message, after `between` where the message says something.
pub fn append(message: &mut PromptMessage, between: &str, text: &str, images: Vec<PromptImage>) {
    if !message.content.is_empty() || !message.images.is_empty() {
        message.content.push_str(between);
    }
    let start = message.content.len();
    message.content.push_str(text);
    message.images.extend(images.into_iter().map(|image| PromptImage { at: start + image.at, ..image }));
}

/// A message's text between its images: before the first, before the second, and so on; the last is after all.
pub fn texts_between(message: &PromptMessage) -> Vec<&str> {
    let content = message.content.as_str();
    let mut texts = Vec::with_capacity(message.images.len() + 1);
    let mut from = 0;
    for image in &message.images {
        let at = content.floor_char_boundary(image.at.min(content.len())).max(from);
        texts.push(&content[from..at]);
        from = at;
    }
    texts.push(&content[from..]);
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One black pixel.
    const PNG: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg==";

    #[test]
    fn images_are_read_from_base64_and_data_urls() {
        let plain = from_base64(PNG).unwrap();
        assert_eq!((plain.width, plain.height, plain.at), (1, 1, 0));
        assert_eq!(data_url(&plain), Some(format!("data:image/png;base64,{PNG}")));
        assert_eq!(plain.sha256, "a4d4c009619311d9b83904acfd62fe3b7f918c312522bbcc6ad51cdec4fd1edf");
        for same in [
            format!("data:image/png;base64,{PNG}"),
            format!("data:;base64,{PNG}"),
            format!("{}\r\n{}", &PNG[..40], &PNG[40..]),
        ] {
            assert_eq!(from_base64(&same), Ok(plain.clone()), "{same}");
        }
    }

    #[test]
    fn what_is_no_image_is_refused_with_its_reason() {
        for (text, code) in [
            ("", "image.not_base64"),
            ("data:image/png,abc", "image.not_base64"),
            ("data:image/png;base64,@@", "image.not_base64"),
            ("https://example.org/a.png", "image.remote"),
            ("FILE:///etc/passwd", "image.remote"),
            ("aGVsbG8gd29ybGQh", "image.format"),
        ] {
            let error = from_base64(text).unwrap_err();
            assert_eq!(error.code(), code, "{text}");
            assert!(!error.remedy().is_empty());
        }
    }

    #[test]
    fn images_keep_their_places_when_messages_are_joined() {
        let image = |at: usize| PromptImage { at, ..from_base64(PNG).unwrap() };
        let mut message =
            PromptMessage { content: "é".into(), images: vec![image(0), image(2)], ..Default::default() };
        append(&mut message, "\n\n", "ab", vec![image(1)]);
        assert_eq!(message.content, "é\n\nab");
        assert_eq!(texts_between(&message), ["", "é", "\n\na", "b"]);
        // Places outside the text, or inside a character, move to one that is there.
        let odd =
            PromptMessage { content: "é".into(), images: vec![image(1), image(9)], ..Default::default() };
        assert_eq!(texts_between(&odd), ["", "é", ""]);
    }
}
