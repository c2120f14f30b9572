//! Images of `nook run`: of `--image`, and of parts in `--messages`.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use contract::protocol::{Base64Text, ImageSource, PromptImage, PromptMessage};
use contract::{Error, Result};
use documents::base64;
use pdf_pages::{PageChoice, PageImage, PageLimits, render};
use prompt::{images, openai_messages};
use serde_json::Value;

use crate::open_model::read_bytes;
use crate::out;

/// Images on their way into a prompt.
pub struct PromptImages {
    /// Of `--image`, as far as no part has taken them.
    waiting: VecDeque<PromptImage>,
    /// Paths in parts start here.
    pub folder: PathBuf,
}

impl PromptImages {
    /// Reads the files of `--image`. Each page of a PDF is an image.
    ///
    /// Errors: a file that cannot be read; `document.unreadable`, `image.format`, `image.unreadable`, `image.too_large`, with its name.
    pub fn read(files: &[PathBuf]) -> Result<Self> {
        let waiting: Vec<Vec<PromptImage>> =
            files.iter().map(|file| images_of(file)).collect::<Result<_>>()?;
        Ok(Self { waiting: waiting.into_iter().flatten().collect(), folder: PathBuf::new() })
    }

    /// The image of a part: `{"type": "image"}` is the next of `--image`, unless it has a `path`; else as in OpenAI's
    /// requests. Error: a sentence.
    pub fn part(&mut self, part: &Value) -> Result<PromptImage, String> {
        if part["type"] != "image" {
            return openai_messages::image_part(part);
        }
        if let Some(path) = part["path"].as_str() {
            return image(&self.folder.join(path)).map_err(|error| format!("{error} {}", error.remedy()));
        }
        let next = self.waiting.pop_front();
        next.ok_or_else(|| "there are more {\"type\": \"image\"} parts than files of --image.".to_owned())
    }

    /// Puts the images that no part has taken before the text of the last question.
    ///
    /// Errors: `input.messages` where nothing is asked.
    pub fn add_to_question(&mut self, messages: &mut [PromptMessage]) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let question = messages.iter_mut().rev().find(|message| message.role == "user");
        let question = question.ok_or_else(|| {
            let message = "The messages contain no question that the images of --image could belong to.";
            Error::input("input.messages", message, "Add a message with the role \"user\".")
        })?;
        question.images.splice(..0, self.waiting.drain(..));
        Ok(())
    }
}

/// The image of a file, or the pages of a PDF.
fn images_of(path: &Path) -> Result<Vec<PromptImage>> {
    let bytes = read_bytes(path)?;
    if !bytes.starts_with(b"%PDF-") {
        return Ok(vec![measured(path, &bytes)?]);
    }
    let rendered = render(&bytes, PageChoice::All, PageLimits::default()).map_err(|error| {
        let message = format!("{}: the PDF can't be used: {}.", path.display(), error.why);
        Error::input("document.unreadable", message, error.remedy)
    })?;
    if !rendered.left_out.is_empty() {
        let n = rendered.left_out.len();
        out::log(&format!("{}: {n} pages are left out", path.display()));
    }
    let page = |page: &PageImage| images::from_base64(&base64::encode(&page.file));
    rendered.images.iter().map(page).collect()
}

fn image(path: &Path) -> Result<PromptImage> {
    measured(path, &read_bytes(path)?)
}

fn measured(path: &Path, bytes: &[u8]) -> Result<PromptImage> {
    let source = if path == Path::new("-") {
        ImageSource::Base64(Base64Text(base64::encode(bytes).into()))
    } else {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        ImageSource::File(absolute.display().to_string())
    };
    images::measured(bytes, source).map_err(|error| {
        let message = format!("{}: {}", path.display(), error.message());
        Error::new(error.kind, error.code(), message, error.remedy())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reference(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/reference/vision/images").join(name)
    }

    #[test]
    fn parts_take_images_in_order_and_the_rest_stands_before_the_question() {
        let mut images = PromptImages::read(&[reference("gradient.png"), reference("alpha.png")]).unwrap();
        images.folder = reference("");
        let first = images.part(&json!({ "type": "image" })).unwrap();
        let named = images.part(&json!({ "type": "image", "path": "gradient.png" })).unwrap();
        assert_eq!(first.sha256, named.sha256);
        let said = |role: &str, content: &str| PromptMessage {
            role: role.into(),
            content: content.into(),
            ..PromptMessage::default()
        };
        let mut messages = [said("user", "Hi"), said("assistant", "Hi")];
        images.add_to_question(&mut messages).unwrap();
        assert_eq!((messages[0].images.len(), messages[0].images[0].at), (1, 0));
        assert!(images.part(&json!({ "type": "image" })).unwrap_err().contains("--image"));
    }

    #[test]
    fn what_is_no_image_is_named() {
        let error = PromptImages::read(&[reference("../README.md")]).map(|_| ()).unwrap_err();
        assert_eq!(error.code(), "image.format");
        assert!(error.message().contains("README.md"), "{error}");
        assert!(PromptImages::read(&[reference("missing.png")]).is_err());
    }
}
