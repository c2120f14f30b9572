//! `nook bench --test image`: seconds of a vision tower and of reading an image's tokens, beside those of as many
//! tokens of text.

use std::sync::Arc;

use ::vision::{Picture, PictureSize};
use contract::Result;
use contract::protocol::Kv;
use engine::vision::{image_settings, sha256};
use engine::{Chunk, CpuPrecision, EngineError, LogitsSelection, Model, TokenId, VisionFile};
use io::{Clock, RealClock};
use serde::Serialize;
use weights::WeightFile;

use super::BenchArgs;
use super::random_weights::random_tower;
use super::speed::Spread;
use crate::args::Global;
use crate::{open_model, out};

/// Medians over the repetitions.
#[derive(Debug, Serialize)]
struct ImageRow {
    width: usize,
    height: usize,
    tokens: usize,
    /// From the decoded picture to its embeddings: resizing and the tower.
    tower_s: f64,
    /// Reading the image's tokens.
    image_prefill_s: f64,
    /// Reading as many tokens of text.
    text_prefill_s: f64,
    /// Tower and image tokens together, by the time of the text.
    ratio: f64,
}

impl ImageRow {
    fn show(&self, as_json: bool) {
        if as_json {
            return out::json(self);
        }
        let Self { width, height, tokens, tower_s, image_prefill_s, text_prefill_s, ratio } = self;
        out::line(&format!(
            "{width}×{height}: {tokens} tokens, tower {tower_s:.2} s, reading {image_prefill_s:.2} s; \
             {tokens} tokens of text {text_prefill_s:.2} s; ratio {ratio:.2}"
        ));
    }
}

/// Measures by turns, after one repetition that does not count.
pub fn image(global: &Global, file: WeightFile, args: &BenchArgs) -> Result<()> {
    let tower = match (&args.subject.model, &args.subject.shape) {
        (Some(model), _) => open_model::tower_file(model, None, global)?,
        (None, Some(shape)) => {
            let name = shape.split_once(':').map_or(shape.as_str(), |(name, _)| name);
            Arc::new(random_tower(engine::shape::find_tower(name)?, args.keep.as_deref(), global)?)
        }
        (None, None) => unreachable!("the model was opened"),
    };
    let settings = image_settings(&tower)?;
    let tokens = settings.layout(args.image_size).map_err(EngineError::from)?.n_tokens();
    let mut options = open_model::load_options(global, Kv::F16, tokens + 1)?;
    options.vision = Some(VisionFile(tower));
    options.vision_precision = CpuPrecision::I16;
    let mut model = open_model::model(file, &options, global)?;
    if model.n_ctx() < tokens {
        return Err(super::context_too_short(args.test, tokens, model.n_ctx()));
    }
    let picture = picture(args.image_size)?;
    let n_vocab = model.info().n_vocab as u64;
    let text: Vec<TokenId> = (0..tokens as u64).map(|at| ((at * 7919 + 17) % n_vocab) as TokenId).collect();
    let (mut seen, mut read_image, mut read_text) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=args.repeat {
        // Another key each time, or the embeddings of the last round would be taken.
        let (rows, tower_s) =
            timed(|| Ok(model.embed_picture(&sha256(&round.to_le_bytes()), &picture, &settings)?))?;
        let ((), image_s) = timed(|| read(&mut model, &rows))?;
        let ((), text_s) = timed(|| read(&mut model, &text))?;
        if round > 0 {
            seen.push(tower_s);
            read_image.push(image_s);
            read_text.push(text_s);
        }
    }
    let [tower_s, image_prefill_s, text_prefill_s] =
        [seen, read_image, read_text].map(|seconds| Spread::of(seconds).median);
    let PictureSize { width, height } = args.image_size;
    let ratio = (tower_s + image_prefill_s) / text_prefill_s;
    ImageRow { width, height, tokens, tower_s, image_prefill_s, text_prefill_s, ratio }.show(global.json);
    Ok(())
}

/// A picture of slow gradients: what it shows changes no time.
fn picture(size: PictureSize) -> Result<Picture> {
    let pixel = |y: usize, x: usize| [(x / 4) as u8, (y / 4) as u8, ((x + y) / 8) as u8];
    let rgb = (0..size.height).flat_map(|y| (0..size.width).flat_map(move |x| pixel(y, x))).collect();
    Ok(Picture::new(size, rgb).map_err(EngineError::from)?)
}

/// Reads tokens into a new sequence.
fn read(model: &mut Model, tokens: &[TokenId]) -> Result<()> {
    let seq = model.new_sequence()?;
    model.forward(&[Chunk { seq, tokens, logits: LogitsSelection::Last }])?;
    model.free(seq);
    Ok(())
}

/// Runs and times in seconds.
fn timed<T>(run: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let clock = RealClock::new();
    let start = clock.monotonic();
    let result = run()?;
    Ok((result, (clock.monotonic() - start).as_secs_f64()))
}
