//! Images in prompts: the tower runs once for each, and its embeddings take the place of tokens.

use ::vision::{ImageSettings, Picture, PictureSize};
use kernels::BackendKind;
use kernels::backends::BackendOptions;
use kernels::{CpuOptions, N_COORDINATES};
use weights::WeightFile;

use super::{Chunk, LoadOptions, Model};
use crate::TokenId;
use crate::arch::{Family, RopeSections};
use crate::error::{EngineError, Result};
use crate::kv::cache::KvCache;
use crate::spec::{ImagePositions, ImageRuns, ModelSpec};
use crate::vision::{
    CoordinateWalk, ImageEmbeddings, ImageKey, ImagePatches, ImagePosition, ImageStore, TowerBytes,
    VisionTower, image_settings, is_image_token, no_tower, tiles,
};

/// The tower of a model, and what it has made of images.
pub(super) struct ModelVision {
    tower: VisionTower,
    /// How pictures become its patches, or why that is not known.
    settings: Result<ImageSettings>,
    pub images: ImageStore,
    /// Token whose per-layer embeddings are added to rows of images, in families that have such.
    pub padding: TokenId,
}

impl ModelVision {
    /// Returns the memory that the tower takes.
    pub fn bytes(&self) -> TowerBytes {
        TowerBytes::of_spec(self.tower.n_weight_bytes(), self.tower.spec(), self.settings.as_ref().ok())
    }

    /// Returns how images take part in positions.
    pub fn positions(&self) -> ImagePositions {
        self.tower.spec().positions
    }

    /// Loads the tower that the options name, and lets the model take its images.
    ///
    /// Errors: those of `VisionTower::load`; `vision.no_tower`, `vision.other_model`.
    pub fn load(
        spec: &mut ModelSpec,
        (model, family): (&WeightFile, Family),
        options: &LoadOptions,
    ) -> Result<Option<Self>> {
        let Some(file) = &options.vision else { return Ok(None) };
        let cpu = CpuOptions {
            threads: options.threads,
            cpus: options.cpus.clone(),
            level: options.isa,
            precision: options.vision_precision,
            ..CpuOptions::default()
        };
        let kind = match options.devices {
            super::Devices::Scalar => BackendKind::Scalar,
            _ => BackendKind::Cpu,
        };
        let backend = BackendOptions { cpu, ..BackendOptions::default() };
        let name = file.0.path().display();
        let Some(tower) = VisionTower::load(&file.0, kind, backend)? else {
            return Err(no_tower(&file.0));
        };
        let d_out = tower.spec().projector.d_out;
        if d_out != spec.d_model {
            return Err(EngineError::new(
                "vision.other_model",
                format!(
                    "the vision tower of {name} makes rows of {d_out} numbers, the model takes {}",
                    spec.d_model
                ),
                "Choose the mmproj file that belongs to the model.",
            ));
        }
        let n_deep = tower.spec().deepstack.taps.len();
        if n_deep > spec.layers.len() {
            return Err(EngineError::new(
                "vision.other_model",
                format!("the tower of {name} has rows for {n_deep} layers, the model {}", spec.layers.len()),
                "Choose the mmproj file that belongs to the model.",
            ));
        }
        spec.take_images(tower.spec());
        match (tower.spec().positions, RopeSections::read(model, family)?) {
            (ImagePositions::Line, _) => {}
            (ImagePositions::Grid, Some(sections)) => spec.turn_by_axis(&|n_pairs| sections.axes(n_pairs)),
            (ImagePositions::Grid, None) => {
                return Err(EngineError::new(
                    "vision.other_model",
                    format!("the model's rotation has no sections for rows and columns, which {name} needs"),
                    "Choose the mmproj file that belongs to the model.",
                ));
            }
        }
        let settings = image_settings(&file.0);
        let images = ImageStore::new(tower.spec().row_width(), options.image_bytes);
        Ok(Some(Self { tower, settings, images, padding: padding(model, spec) }))
    }
}

impl Model {
    /// Returns whether prompts may contain images.
    pub fn takes_images(&self) -> bool {
        self.vision.is_some()
    }

    /// Returns the tokens that stand for an image in a prompt, if its embeddings are still held: in place of the
    /// placeholders of its rows.
    pub fn image_tokens(&mut self, key: &ImageKey) -> Option<Vec<TokenId>> {
        self.vision.as_mut()?.images.tokens(key)
    }

    /// Runs the tower on an image, unless its embeddings are held, and returns its tokens as `image_tokens` does.
    ///
    /// Errors: `vision.not_taken`, those of `VisionTower::embed`.
    pub fn embed_image(&mut self, key: ImageKey, patches: &ImagePatches<'_>) -> Result<Vec<TokenId>> {
        if let Some(tokens) = self.image_tokens(&key) {
            return Ok(tokens);
        }
        self.embed_tiles(key, std::iter::once(*patches))
    }

    /// Returns how pictures become patches for the model's tower. `None`: it has none.
    ///
    /// Errors: `vision.settings`.
    pub fn image_settings(&self) -> Result<Option<&ImageSettings>> {
        let settings = self.vision.as_ref().map(|vision| vision.settings.as_ref());
        settings.transpose().map_err(Clone::clone)
    }

    /// Returns the token that a prompt has for every row of an image. `None`: the vocabulary has none, or the model takes
    /// no images.
    pub fn image_token(&self) -> Option<TokenId> {
        let name = self.vision.as_ref()?.settings.as_ref().ok()?.image_token();
        let named = self.tokenizer.as_ref().and_then(|tokenizer| tokenizer.markup_token(name));
        let config = self.source.file.metadata().config();
        let id = || ["image_token_id", "image_token_index"].iter().find_map(|key| config.get(*key)?.as_u64());
        named.or_else(|| TokenId::try_from(id()?).ok())
    }

    /// Returns the tokens that `embed_picture` will return for a picture of this size, without its embeddings: enough to
    /// find a stored context that has read it. `None`: the model takes no images.
    ///
    /// Errors: `vision.shape`.
    pub fn picture_tokens(
        &self,
        sha256: &[u8; 32],
        size: PictureSize,
        settings: &ImageSettings,
    ) -> Result<Option<Vec<TokenId>>> {
        if !self.takes_images() {
            return Ok(None);
        }
        let layout = settings.layout(size)?;
        let cols = Some(&layout.tiles[..]).filter(|tiles| tiles.len() == 1).map(|tiles| tiles[0].token_cols);
        Ok(Some(ImageKey::of_picture(sha256, settings).tokens(layout.n_tokens(), cols)))
    }

    /// Runs the tower on a picture, unless its embeddings are held, and returns the tokens of its rows, in the order of
    /// the placeholders. `sha256` is that of the picture's file; `settings` are the model's, or smaller.
    ///
    /// Errors: as `embed_image`; `vision.shape`.
    pub fn embed_picture(
        &mut self,
        sha256: &[u8; 32],
        picture: &Picture,
        settings: &ImageSettings,
    ) -> Result<Vec<TokenId>> {
        let key = ImageKey::of_picture(sha256, settings);
        if let Some(tokens) = self.image_tokens(&key) {
            return Ok(tokens);
        }
        let pixels = settings.preprocess(picture)?;
        self.embed_tiles(key, tiles(&pixels))
    }

    fn embed_tiles<'a>(
        &mut self,
        key: ImageKey,
        tiles: impl Iterator<Item = ImagePatches<'a>>,
    ) -> Result<Vec<TokenId>> {
        let Self { vision, cache, interrupt, .. } = self;
        let Some(vision) = vision else {
            return Err(EngineError::new(
                "vision.not_taken",
                "this model was loaded without a vision tower, and takes no images",
                "Choose a model that sees, with its mmproj file beside it.",
            ));
        };
        vision.tower.set_interrupt(Some(interrupt.clone()));
        let (side, runs) = (vision.tower.spec().projector.block_side, vision.tower.spec().runs);
        let mut image = ImageEmbeddings { values: Vec::new(), rows: 0, cols: 0, runs: Vec::new() };
        for tile in tiles {
            image.values.extend(vision.tower.embed(&tile)?);
            (image.rows, image.cols) = (tile.rows / side, tile.cols / side);
            match runs {
                ImageRuns::Whole => image.runs.push(image.rows * image.cols),
                ImageRuns::Rows => image.runs.extend(std::iter::repeat_n(image.cols, image.rows)),
            }
        }
        Ok(vision.images.insert(key, image, &|token| cache.holds(token)))
    }

    /// How many tokens of `history` to read next, from `n_done` on: about `n`, at most `max`. No image is split that must
    /// be read in one run; 0 where the next one does not fit.
    pub(crate) fn whole_images(&self, history: &[TokenId], n_done: usize, n: usize, max: usize) -> usize {
        let Some(vision) = self.vision.as_ref().filter(|_| self.spec.reads_images_whole()) else { return n };
        let cut = n_done + n;
        let token_at = |position: usize| history.get(position).copied();
        match vision.images.find(cut, &token_at).filter(|found| found.n_before() > 0 && n > 0) {
            None => n,
            Some(found) if n + found.n_left() <= max => n + found.n_left(),
            Some(found) => n.saturating_sub(found.n_before()),
        }
    }

    /// Checks that the embeddings of a chunk's images are held, and that a run can hold them.
    ///
    /// Errors: `vision.image_missing`, `vision.image_split`.
    pub(super) fn check_images(&self, chunk: &Chunk<'_>) -> Result<()> {
        let Some(vision) = self.vision.as_ref() else { return Ok(()) };
        let n_before = self.cache.tokens(chunk.seq)?.len();
        let whole = self.spec.reads_images_whole();
        let mut index = 0;
        while let Some(token) = chunk.tokens.get(index) {
            if !is_image_token(*token) {
                index += 1;
                continue;
            }
            let Some(found) = image_at(&vision.images, &self.cache, (chunk, n_before), n_before + index)?
            else {
                return Err(image_missing());
            };
            let fits = found.n_left() <= self.max_rows() && index + found.n_left() <= chunk.tokens.len();
            if whole && !fits {
                return Err(EngineError::new(
                    "vision.image_split",
                    format!("an image of {} rows must be read in one run", found.n_left()),
                    format!(
                        "Let a run have more rows than {}, and end no chunk inside an image.",
                        self.max_rows()
                    ),
                ));
            }
            index += found.n_left();
        }
        Ok(())
    }
}

/// Returns the token whose per-layer embeddings rows of images have: transformers takes the one that fills gaps in batches,
/// llama.cpp the first of a GGUF.
fn padding(model: &WeightFile, spec: &ModelSpec) -> TokenId {
    let config = model.metadata().config();
    let named = config.get("text_config").unwrap_or(config).get("pad_token_id").and_then(|id| id.as_u64());
    let token = named.and_then(|id| TokenId::try_from(id).ok());
    token.filter(|token| (*token as usize) < spec.n_vocab).unwrap_or(0)
}

fn image_missing() -> EngineError {
    EngineError::new(
        "vision.image_missing",
        "what the vision tower made of an image is no longer held",
        "Send the image again.",
    )
}

/// Returns the token at a position of a sequence and its chunk; the sequence held `n_before` tokens before.
fn token_at<'a>(
    cache: &'a KvCache,
    (chunk, n_before): (&'a Chunk<'_>, usize),
) -> Result<impl Fn(usize) -> Option<TokenId> + 'a> {
    let held = cache.tokens(chunk.seq)?;
    Ok(move |position: usize| match position.checked_sub(n_before) {
        None => held.get(position).copied(),
        Some(index) => chunk.tokens.get(index).copied(),
    })
}

/// Finds the image that a position of a sequence and its chunk belongs to; the sequence held `n_before` tokens before.
pub(super) fn image_at(
    images: &ImageStore,
    cache: &KvCache,
    (chunk, n_before): (&Chunk<'_>, usize),
    position: usize,
) -> Result<Option<ImagePosition>> {
    Ok(images.find(position, &token_at(cache, (chunk, n_before))?))
}

/// Returns what rotations take for a position of a sequence and its chunk.
pub(super) fn coordinates_at(
    images: &ImageStore,
    cache: &KvCache,
    (chunk, n_before): (&Chunk<'_>, usize),
    position: usize,
    walk: &mut CoordinateWalk,
) -> Result<[u32; N_COORDINATES]> {
    images.coordinates(position, walk, &token_at(cache, (chunk, n_before))?).ok_or_else(image_missing)
}
