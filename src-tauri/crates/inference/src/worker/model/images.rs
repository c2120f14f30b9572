//! Images of prompts: decoded, prepared and seen by the vision tower, once each.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use engine::vision::ImageKey;
use engine::{CpuPrecision, LoadOptions, Model, TokenId, VisionFile};
use io::Clock;
use vision::{DecodeLimits, ImageSettings, PictureSize, decode};
use weights::WeightFile;

use super::LoadedModel;
use crate::vision_file::VisionSource;
use crate::worker::active_turn::ImageTime;
use contract::protocol::{
    ChatOptions, GenerateRequest, LoadSpec, ModelRef, Prompt, PromptImage, PromptMessage,
};
use contract::{Error, ErrorKind, Result};
use prompt::image_runs::ImageInput;
use prompt::images::{bytes_of, key_of, not_seen, settings_for, unusable};
use prompt::render::{PreparedPrompt, Vocabulary, no_vocabulary};

/// Tokens of the rows of images, by `key_of`.
pub type SeenTokens = HashMap<String, Vec<TokenId>>;

/// How a model takes images. None: it can't see. An error: why it can't, though it has a tower.
pub type VisionSettings = Result<Option<ImageSettings>>;

/// Loads a model with its vision tower. Without a tower that was not asked for, where that can't be used.
pub fn load_with_tower(
    (reference, load): (&ModelRef, &LoadSpec),
    file: Arc<WeightFile>,
    options: &mut LoadOptions,
    progress: &mut dyn FnMut(f32),
) -> Result<(Model, VisionSettings)> {
    let source = VisionSource::open(&reference.location, load.mmproj.as_deref());
    let source = match source {
        Err(error) if load.mmproj.is_some() => return Err(error),
        Err(error) => return Ok((Model::load(file, options, progress)?, Err(error))),
        Ok(None) => return Ok((Model::load(file, options, progress)?, Ok(None))),
        Ok(Some(source)) => source,
    };
    options.vision = Some(VisionFile(source.file));
    options.vision_precision = CpuPrecision::I16;
    match Model::load(file.clone(), options, progress) {
        Err(error) if load.mmproj.is_none() && error.code().starts_with("vision.") => {
            options.vision = None;
            Ok((Model::load(file, options, progress)?, Err(error.into())))
        }
        loaded => Ok((loaded?, Ok(Some(source.settings)))),
    }
}

impl LoadedModel {
    /// A prompt with its images, which the tower sees before.
    ///
    /// Errors: those of `see`, and of rendering.
    pub(super) fn prepare(
        &mut self,
        prompt: &Prompt,
        chat: &ChatOptions,
        now: &str,
    ) -> Result<PreparedPrompt> {
        let (seen, _) = self.see(prompt.messages())?;
        self.prepare_seen(prompt, chat, now, &seen)
    }

    /// As `prepare`, with what the tower took.
    pub(super) fn prepare_timed(
        &mut self,
        request: &GenerateRequest,
        now: &str,
        clock: &dyn Clock,
    ) -> Result<(PreparedPrompt, ImageTime)> {
        let began = clock.monotonic();
        let (seen, n_tokens) = self.see(request.prompt.messages())?;
        let took = if n_tokens > 0 { clock.monotonic().saturating_sub(began) } else { Duration::ZERO };
        let prepared = self.prepare_seen(&request.prompt, &request.chat, now, &seen)?;
        Ok((prepared, ImageTime { n_tokens, took }))
    }

    /// A prompt whose images were `seen`.
    fn prepare_seen(
        &self,
        prompt: &Prompt,
        chat: &ChatOptions,
        now: &str,
        seen: &SeenTokens,
    ) -> Result<PreparedPrompt> {
        let vocabulary = Vocabulary { interrupt: Some(&self.interrupt), ..self.vocabulary(now, Some(seen))? };
        vocabulary.prepare(prompt, chat)
    }

    /// Has the tower see the images of a prompt that it doesn't remember. Returns the tokens of the rows of all, and the
    /// number of those that it did not remember.
    ///
    /// Errors: `model.no_images`, `image.*`, `kernels.interrupted`.
    fn see(&mut self, messages: &[PromptMessage]) -> Result<(SeenTokens, usize)> {
        let (mut seen, mut new) = (SeenTokens::new(), HashSet::new());
        let images: Vec<&PromptImage> = messages.iter().flat_map(|message| &message.images).collect();
        if images.is_empty() {
            return Ok((seen, 0));
        }
        let Self { vision, model, reference, .. } = self;
        let settings = vision.as_ref().map_err(Clone::clone)?.as_ref();
        let settings = settings.ok_or_else(|| not_seen(&reference.id))?;
        for image in &images {
            if look_at(model, &settings_for(image, settings), image)? {
                new.insert(key_of(image));
            }
        }
        for image in images {
            let tokens = remembered(model, &settings_for(image, settings), image)?.ok_or_else(too_many)?;
            seen.insert(key_of(image), tokens);
        }
        let n_new = new.iter().filter_map(|key| seen.get(key)).map(Vec::len).sum();
        Ok((seen, n_new))
    }

    /// `now` as templates want it.
    pub(super) fn vocabulary<'a>(
        &'a self,
        now: &'a str,
        seen: Option<&'a SeenTokens>,
    ) -> Result<Vocabulary<'a>> {
        let tokenizer = self.model.tokenizer().ok_or_else(|| no_vocabulary(&self.reference.id))?;
        let info = self.model.info();
        Ok(Vocabulary {
            tokenizer,
            template: self.model.template(),
            architecture: info.architecture,
            fingerprint: &info.fingerprint,
            now,
            interrupt: None,
            images: image_input(&self.vision, seen),
            model: &self.reference.id,
        })
    }
}

/// How prompts are made with images that were `seen`.
pub fn image_input<'a>(
    settings: &'a VisionSettings,
    seen: Option<&'a SeenTokens>,
) -> Result<Option<ImageInput<'a>>> {
    let settings = settings.as_ref().map_err(Clone::clone)?;
    Ok(settings.as_ref().map(|settings| ImageInput { settings, tokens: seen }))
}

/// The SHA-256 of a picture's file.
fn hash_of(image: &PromptImage) -> Result<[u8; 32]> {
    let pair = |at: usize| u8::from_str_radix(image.sha256.get(2 * at..2 * at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..image.sha256.len().div_ceil(2)).map(pair).collect();
    let hash = bytes.and_then(|bytes| bytes.try_into().ok());
    hash.ok_or_else(|| Error::bug("the hash of an image is none"))
}

/// Tokens of a picture whose rows are held.
fn remembered(
    model: &mut Model,
    settings: &ImageSettings,
    image: &PromptImage,
) -> Result<Option<Vec<TokenId>>> {
    Ok(model.image_tokens(&ImageKey::of_picture(&hash_of(image)?, settings)))
}

/// Has the tower see a picture, unless its rows are held. Returns whether it had to.
fn look_at(model: &mut Model, settings: &ImageSettings, image: &PromptImage) -> Result<bool> {
    let expected = PictureSize::new(image.width as usize, image.height as usize);
    settings.layout(expected).map_err(|error| unusable(&error))?;
    if remembered(model, settings, image)?.is_some() {
        return Ok(false);
    }
    let bytes = bytes_of(image)?;
    let picture = decode(&bytes, &DecodeLimits::default()).map_err(|error| unusable(&error))?;
    drop(bytes);
    if picture.size() != expected {
        let size = picture.size();
        return Err(Error::bug(format!("an image of {expected} pixels turned out to have {size}")));
    }
    model.embed_picture(&hash_of(image)?, &picture, settings)?;
    Ok(true)
}

fn too_many() -> Error {
    Error::new(
        ErrorKind::Limit,
        "image.too_many",
        "What the model sees in the images of this chat doesn't fit into memory at once.",
        "Leave out some images, or start a new chat.",
    )
}
