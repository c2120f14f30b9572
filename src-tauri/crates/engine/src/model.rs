//! A loaded model: spec, weights on their devices, tokenizer, template and sequence state.
//!
//! `forward` takes any mix of sequences and chunks. The logits of a token depend on its sequence's earlier tokens
//! alone: never on batch mates, chunk borders, page placement or thread count.

use std::sync::Arc;

use kernels::Interrupt;
use weights::WeightFile;

use crate::TokenId;
use crate::error::{EngineError, Result};
use crate::kv::cache::{KvCache, KvUsage};
use crate::kv::pool::PoolUsage;
use crate::kv::requantize::KvRequantize;
use crate::kv::sequence_id::SequenceId;
use crate::kv::size::{KvBytes, Rewind};
use crate::kv::snapshot::{self, CheckpointPiece, ChunkKeys, ChunkMatch};
use crate::spec::ModelSpec;
use crate::template::ChatTemplate;
use crate::tokenizer::Tokenizer;
use crate::vision::is_image_token;

mod adapt;
pub(crate) mod assistant;
pub(crate) mod attention_eviction;
mod batch_progress;
mod context;
pub(crate) mod draft;
mod embed;
mod fill;
pub(crate) mod forward;
mod gpu_fallback;
pub mod gpu_health;
mod image;
mod large_pages;
mod load;
mod load_options;
mod logits;
mod memory_plan;
mod multi_gpu;
mod placement;
mod rank;
mod recover;
pub(crate) mod replica;
mod requantize;
mod take_back;
mod tune;

pub use crate::kv::size::DEFAULT_MAX_ROWS;
pub use attention_eviction::{AttentionEviction, EvictingPrefill, OBSERVATION_TOKENS};
pub use context::{RopeScaling, limit_windows};
pub use gpu_fallback::{GpuFallback, GpuIncident};
pub use gpu_health::GpuHealth;
pub use load_options::{
    AssistantFile, DEFAULT_CTX, DEFAULT_IMAGE_BYTES, DEFAULT_REWIND_BYTES, Devices, DraftBlockUse,
    LoadOptions, VisionFile,
};
pub use logits::Logits;
pub(crate) use logits::{LogitsRow, nan_logits};
pub use memory_plan::MemoryNeeds;
pub(crate) use memory_plan::{FIXED_BYTES, TOKEN_BYTES};
pub use rank::PassageScore;
use replica::{GatheredLogits, Replica};

/// Sequences in one batch: their page tables stand in a fixed array.
pub const MAX_BATCH_SEQUENCES: usize = 64;

/// Bytes of logits from one run. With a large vocabulary, runs yield fewer rows.
const MAX_OUTPUT_BYTES: usize = 32 << 20;

/// Facts about a loaded model, for interfaces to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// Hash of the weights.
    pub fingerprint: String,
    /// Name of the family.
    pub architecture: &'static str,
    /// Number of values of all tensors.
    pub n_parameters: u64,
    /// Bytes of all weights as stored.
    pub n_weight_bytes: u64,
    /// Tokens in the vocabulary.
    pub n_vocab: usize,
    /// Number of layers.
    pub n_layers: usize,
    /// Width of the residual stream.
    pub d_model: usize,
    /// Positions the model supports: as trained, or extended at load.
    pub context_length: usize,
    /// Maximum tokens per sequence.
    pub n_ctx: usize,
    /// Bytes of keys and values per token in full-attention layers.
    pub kv_bytes_per_token: u64,
    /// Further bytes per sequence at any length: windows and recurrent states.
    pub kv_fixed_bytes: u64,
    /// Cache bytes when all sequences are full.
    pub kv_bytes: KvBytes,
    /// When keys and values are requantized.
    pub kv_requantize: KvRequantize,
    /// Names of the devices in use.
    pub devices: Vec<String>,
    /// Why the CPU replaces the requested device.
    pub fallback_error: Option<EngineError>,
}

/// Which logits of a chunk to return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogitsSelection {
    /// No logits.
    None,
    /// Logits after the last token.
    Last,
    /// Those of the last tokens of the chunk.
    Tail(usize),
    /// Logits after every token.
    All,
}

/// Tokens that continue a sequence.
#[derive(Debug, Clone, Copy)]
pub struct Chunk<'a> {
    /// Sequence that grows.
    pub seq: SequenceId,
    /// Tokens to append.
    pub tokens: &'a [TokenId],
    /// Positions whose logits are computed.
    pub logits: LogitsSelection,
}

/// A loaded model. Has one owner; every operation is a method that returns.
pub struct Model {
    pub(crate) spec: ModelSpec,
    pub(crate) info: ModelInfo,
    pub(crate) tokenizer: Option<Tokenizer>,
    /// A template that does not compile fails when it is used, not at load.
    pub(crate) template: Result<Option<ChatTemplate>>,
    /// The same weights on different devices. At least one.
    pub(crate) replicas: Vec<Replica>,
    pub(crate) cache: KvCache,
    pub(crate) identity: snapshot::CheckpointIdentity,
    source: load::LoadSource,
    large_page_promotion: Option<large_pages::LargePagePromotion>,
    /// Interrupts a running batch.
    interrupt: Interrupt,
    gathered: GatheredLogits,
    /// `None`: the last run was not of one sequence alone.
    last_run: Option<take_back::RunOfOne>,
    /// `None`: the model takes no images.
    vision: Option<image::ModelVision>,
    /// `None`: no assistant was loaded.
    assistant: Option<assistant::ModelAssistant>,
}

impl Model {
    /// Loads a validated container. Checks every number and tensor against the family and uploads the weights.
    /// `progress` goes from 0 to 1.
    ///
    /// Errors: `model.*` naming the key or tensor that does not fit; `kernels.*` for memory and threads.
    pub fn load(file: Arc<WeightFile>, options: &LoadOptions, progress: &mut dyn FnMut(f32)) -> Result<Self> {
        load::load(file, options, progress)
    }

    /// Waits until the weights are in large pages.
    pub fn promote_to_large_pages(&mut self) {
        if let Some(large_page_promotion) = &mut self.large_page_promotion {
            large_page_promotion.finish();
        }
    }

    /// Sets the interrupt that may abort runs, as far as `allow_interrupts` permits.
    pub fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.interrupt = interrupt;
    }

    /// Sets whether later runs may be aborted.
    pub(crate) fn allow_interrupts(&mut self, allowed: bool) {
        let Self { replicas, interrupt, .. } = self;
        let interrupt = allowed.then_some(&*interrupt);
        replicas.iter_mut().for_each(|replica| replica.executor.set_interrupt(interrupt));
    }

    /// Makes batches with this token fail.
    #[cfg(test)]
    pub(crate) fn poison(&mut self, token: TokenId, how: replica::Poison) {
        self.replicas.iter_mut().for_each(|replica| replica.poison = Some((token, how)));
    }

    /// Returns the structure of the model.
    pub fn spec(&self) -> &ModelSpec {
        &self.spec
    }

    /// Returns facts about the loaded model.
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// Returns the tokenizer. `None` if the file has no vocabulary.
    pub fn tokenizer(&self) -> Option<&Tokenizer> {
        self.tokenizer.as_ref()
    }

    /// Returns the chat template. `None` if the file has none.
    ///
    /// Errors: `template.syntax`.
    pub fn template(&self) -> Result<Option<&ChatTemplate>> {
        self.template.as_ref().map(Option::as_ref).map_err(EngineError::clone)
    }

    /// Returns the maximum tokens per sequence.
    pub fn n_ctx(&self) -> usize {
        self.cache.n_ctx()
    }

    /// Returns the maximum rows of one run of a replica.
    pub fn max_rows(&self) -> usize {
        self.replicas[0].executor.capacity().max_rows
    }

    /// Returns the maximum rows of logits from one run.
    pub fn max_outputs(&self) -> usize {
        self.replicas[0].executor.capacity().max_outputs
    }

    /// Creates an empty sequence.
    ///
    /// Errors: `kv.too_many_sequences`.
    pub fn new_sequence(&mut self) -> Result<SequenceId> {
        self.cache.create()
    }

    /// Returns whether another sequence can be created.
    pub fn has_free_sequence(&self) -> bool {
        self.cache.has_free_sequence()
    }

    /// Returns the free full-attention pages, usable by any sequence.
    pub fn n_free_pages(&self) -> usize {
        self.cache.n_free_pages()
    }

    /// Returns whether there are fewer pages than all sequences could fill.
    pub fn is_kv_bounded(&self) -> bool {
        let geometry = self.cache.geometry();
        geometry.n_pages() < geometry.pages_for(geometry.n_ctx) * geometry.max_sequences
    }

    /// Returns the pages that `n_tokens` take.
    pub fn pages_for(&self, n_tokens: usize) -> usize {
        self.cache.geometry().pages_to_hold(n_tokens)
    }

    /// Returns the pages that a sequence would take for `n` more tokens.
    pub fn n_pages_to_grow(&self, seq: SequenceId, n: usize) -> usize {
        self.cache.n_pages_to_grow(seq, n)
    }

    /// Returns how many tokens the sequence holds.
    pub fn len(&self, seq: SequenceId) -> Result<usize> {
        Ok(self.cache.tokens(seq)?.len())
    }

    /// Returns the tokens whose keys and values the sequence holds.
    pub fn tokens(&self, seq: SequenceId) -> Result<&[TokenId]> {
        self.cache.tokens(seq)
    }

    /// Rewinds to the greatest position ≤ `n` that the sequence still holds, and returns it: the caller continues
    /// from there.
    ///
    /// That is `n` itself with full attention alone, else (see `rewind`) the nearest rewind point or 0.
    pub fn truncate(&mut self, seq: SequenceId, n: usize) -> Result<usize> {
        self.cache.truncate(seq, n)
    }

    /// Returns how far a sequence can rewind without a rewind point.
    pub fn rewind(&self) -> Rewind {
        self.cache.geometry().rewind()
    }

    /// Saves the current position as a rewind point. Free where `rewind` returns `Anywhere`. The least useful ones
    /// are dropped when there are too many.
    pub fn save_rewind_point(&mut self, seq: SequenceId) -> Result<()> {
        self.cache.save_rewind_point(seq)
    }

    /// Marks the position before tokens that may be taken back: `truncate` returns to it, and without recurrent
    /// layers to any position since. Returns false if that is not possible.
    pub fn set_mark(&mut self, seq: SequenceId) -> bool {
        self.cache.set_mark(seq)
    }

    /// Clears the mark.
    pub fn clear_mark(&mut self, seq: SequenceId) {
        self.cache.clear_mark(seq);
    }

    /// Returns the pages and states in use.
    pub fn kv_usage(&self) -> KvUsage {
        self.cache.usage()
    }

    /// Returns the usage of pages, window pages, states and requantized pages, in that order.
    pub fn kv_pools(&self) -> [PoolUsage; 4] {
        self.cache.pools()
    }

    /// Returns the bytes that sequences hold. Shared bytes count once.
    pub fn kv_used_bytes(&self) -> u64 {
        let (usage, bytes) = (self.cache.usage(), self.identity.bytes);
        let (n_pages, n_window_pages) = (usage.n_pages as u64, usage.n_window_pages as u64);
        let n_requantized_pages = usage.n_requantized_pages as u64;
        n_pages * bytes.page
            + n_requantized_pages * bytes.requantized_page
            + n_window_pages * bytes.window_page
            + usage.n_states as u64 * bytes.state
    }

    /// Creates a second sequence with the same tokens. Memory is shared until they diverge.
    pub fn fork(&mut self, seq: SequenceId) -> Result<SequenceId> {
        self.cache.fork(seq)
    }

    /// Frees a sequence. Unknown ids are ignored.
    pub fn free(&mut self, seq: SequenceId) {
        self.cache.free(seq);
    }

    /// Returns the position that `truncate` would rewind to.
    pub fn reach(&self, seq: SequenceId, n: usize) -> Result<usize> {
        self.cache.reach(seq, n)
    }

    /// Pins the window, so that until the next rewind point any position in between can be returned to.
    pub fn pin_window(&mut self, seq: SequenceId) -> Result<()> {
        self.cache.pin_window(seq)
    }

    /// Unpins the window and releases the pages that it has passed.
    pub fn unpin_window(&mut self, seq: SequenceId) -> Result<()> {
        self.cache.unpin_window(seq)
    }

    /// Returns the positions of the sequence's rewind points.
    pub fn rewind_positions(&self, seq: SequenceId) -> Result<Vec<usize>> {
        Ok(self.cache.rewind_points(seq)?.iter().map(|kept| kept.position).collect())
    }

    /// Returns the checkpoint pieces for each of `positions`, see `kv::snapshot`.
    pub fn pieces(&self, seq: SequenceId, positions: &[usize]) -> Result<Vec<CheckpointPiece>> {
        snapshot::pieces(&self.identity, &self.cache, seq, positions)
    }

    /// Returns the bytes of a checkpoint piece.
    ///
    /// Errors: `snapshot.moved` if the sequence no longer holds it.
    pub fn piece_bytes(&self, seq: SequenceId, piece: &CheckpointPiece) -> Result<Vec<u8>> {
        snapshot::write(&self.identity, &self.cache, self.executor(seq)?, seq, piece)
    }

    /// Returns the keys of stored chunks along `tokens`.
    pub fn chunk_keys(&self, tokens: &[TokenId]) -> ChunkKeys {
        ChunkKeys::new(&self.identity, self.info.kv_requantize, tokens)
    }

    /// Returns whether whole chunks hold all state of their tokens: no windows, no recurrent states.
    pub fn has_complete_chunks(&self) -> bool {
        let geometry = self.cache.geometry();
        self.identity.bytes.page > 0 && geometry.window.is_none() && !geometry.recurrent
    }

    /// Returns the piece under its current name: it may have been requantized since. `None` if the sequence has left
    /// it.
    pub fn refresh_piece(&self, seq: SequenceId, piece: &CheckpointPiece) -> Option<CheckpointPiece> {
        match self.info.kv_requantize {
            KvRequantize::Off => Some(piece.clone()),
            KvRequantize::Pressure | KvRequantize::After(_) => {
                snapshot::refresh(&self.identity, &self.cache, seq, piece)
            }
        }
    }

    /// Returns how far along `tokens`, at most `max_tokens`, a stored head leads, and the chunks it needs. `bytes` are its
    /// first `HEAD_PREVIEW_BYTES`.
    pub fn match_head(&self, tokens: &[TokenId], max_tokens: usize, bytes: &[u8]) -> Result<ChunkMatch> {
        snapshot::reach(&self.identity, &self.cache, tokens, max_tokens, bytes)
    }

    /// Creates a sequence that holds `tokens` from stored pieces. Later logits are bit-identical.
    ///
    /// Errors: `snapshot.*`; nothing has changed then.
    pub fn restore(
        &mut self,
        tokens: &[TokenId],
        head: Option<&[u8]>,
        read: &mut dyn FnMut(&str) -> Result<Vec<u8>>,
    ) -> Result<SequenceId> {
        let Self { identity, cache, replicas, .. } = self;
        let executor = &mut replicas[cache.next_replica()].executor;
        snapshot::restore(identity, cache, executor, tokens, head, read)
    }

    /// Checks that all ids are in the vocabulary, or stand for images.
    ///
    /// Errors: `request.token_unknown`.
    pub fn check_tokens(&self, tokens: &[TokenId]) -> Result<()> {
        let n_vocab = self.spec.n_vocab;
        let is_known =
            |token: TokenId| (token as usize) < n_vocab || self.vision.is_some() && is_image_token(token);
        match tokens.iter().find(|&&token| !is_known(token)) {
            None => Ok(()),
            Some(token) => Err(EngineError::new(
                "request.token_unknown",
                format!("token id {token} is outside the model's vocabulary of {n_vocab}"),
                "Use the ids of this model's tokenizer.",
            )),
        }
    }
}
