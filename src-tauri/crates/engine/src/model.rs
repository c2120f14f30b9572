//! A model ready to run: spec, weights on their devices, tokenizer, template and the sequences' state.
//!
//! `forward` takes any mix of sequences and token runs. The logits of a token depend on the tokens before it
//! in its sequence and on nothing else: not on batch mates, chunk borders, page placement or thread count.

use std::sync::Arc;

use kernels::cpu::isa::IsaLevel;
use kernels::{BackendKind, FaultPlan, GpuCache, Interrupt, KvDType, LaneReduction, Precision, WeightBudget};
use kernels::{GpuSelector, VerificationScope};
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

mod adapt;
pub(crate) mod attention_eviction;
mod batch_progress;
mod context;
mod embed;
mod fill;
pub(crate) mod forward;
mod gpu_fallback;
pub mod gpu_health;
mod large_pages;
mod load;
mod logits;
mod memory_plan;
mod multi_gpu;
mod recover;
pub(crate) mod replica;
mod requantize;
mod tune;

pub use crate::kv::size::DEFAULT_MAX_ROWS;
pub use attention_eviction::{AttentionEviction, EvictingPrefill, OBSERVATION_TOKENS};
pub use context::{RopeScaling, narrow};
pub use gpu_fallback::{GpuFallback, GpuIncident};
pub use gpu_health::GpuHealth;
pub use logits::Logits;
pub(crate) use logits::{LogitsRow, nan_logits};
pub use memory_plan::MemoryNeeds;
pub(crate) use memory_plan::{FIXED_BYTES, TOKEN_BYTES};
use replica::{GatheredLogits, Replica};

/// Where layers run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Devices {
    /// Whoever loads has no wish: the CPU.
    Auto,
    /// The reference kernels.
    Scalar,
    Cpu,
    /// A graphics card, software that plays one too: the first so many layers, the others on the CPU. None: all. Where
    /// there is none, or it fails, the CPU.
    Gpu {
        layers: Option<usize>,
    },
    /// So many layers on each device, in order; together all of the model's.
    Split(Vec<(BackendKind, usize)>),
    /// All layers on each of these: sequences are spread over them, and where a card fails the others go on.
    Replicas(Vec<BackendKind>),
}

/// How to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadOptions {
    pub devices: Devices,
    /// Which graphics cards, where some are asked for: one for each in turn. None: any, for all of them.
    pub gpus: Vec<GpuSelector>,
    /// Of their products. What a card hasn't, or errs in, it does without, with a notice.
    pub gpu_precision: Precision,
    /// Of their lanes. Where a card errs by subgroups it does without, with a notice.
    pub gpu_lane_reduction: LaneReduction,
    /// What is known of cards, and where what is found out of them goes.
    pub gpu_cache: GpuCache,
    /// Whether their kernels are checked.
    pub gpu_verification: VerificationScope,
    /// A fault of the card that a test wants.
    pub faults: FaultPlan,
    /// How often cards failed in this session.
    pub gpu_health: GpuHealth,
    /// Worker threads of the CPU. None: as many as the process may use.
    pub threads: Option<usize>,
    /// Of those, how many work on a token or a few. None: all.
    pub few_threads: Option<usize>,
    /// Processors that the threads are bound to. Empty: the system places them.
    pub cpus: Vec<usize>,
    /// Instruction set of the CPU kernels. None: the best there is, or what `INGLENOOK_ISA` says.
    pub isa: Option<IsaLevel>,
    /// WeightSource that may be in memory at once: the rest is read from the file as it is needed. None: all.
    pub resident: Option<WeightBudget>,
    /// WeightSource are read in the system's small pages, even where it has large ones for files.
    pub small_pages: bool,
    /// After the first run the weights go to memory of large pages, while answers go on: those are read faster, but
    /// the system can't take them back as it can a file's.
    pub promote_large_pages: bool,
    /// How keys and values are stored.
    pub kv: KvDType,
    /// When old ones are stored in fewer bits from there on. Where that saves nothing, never: `ModelInfo::kv_requantize` says
    /// what it is.
    pub kv_requantize: KvRequantize,
    /// Layers that know positions by rotation see no further back than so many tokens. That changes the model: what
    /// lies further back is lost to them. None: as the model is.
    pub kv_window: Option<usize>,
    /// Positions beyond those the model was trained for; answers may suffer even below. None: as the model is.
    pub rope_scaling: Option<RopeScaling>,
    /// Bytes that states kept to go back to may take, where windows or recurrent layers forget.
    pub rewind_bytes: u64,
    /// Tokens a sequence may hold, at most as many as the model can have. None: `DEFAULT_CTX`.
    pub ctx: Option<usize>,
    /// Sequences that may live at once.
    pub max_sequences: usize,
    /// Bytes that keys, values and states of all of them may take together; one context is always held. None: as many
    /// as it takes for each to be full.
    pub kv_bytes: Option<u64>,
    /// Bytes that weights, contexts, activations and vocabulary may take together; what can't be within them is
    /// refused. None: whatever it takes.
    pub memory: Option<u64>,
    /// Rows of one run: longer batches are cut into runs of so many. None: `DEFAULT_MAX_ROWS`.
    pub max_rows: Option<usize>,
}

/// Sequences in one batch: their page tables stand in a fixed array.
pub const MAX_BATCH_SEQUENCES: usize = 64;

/// Most bytes of logits that one run leaves: with a large vocabulary, runs yield fewer rows.
const MAX_OUTPUT_BYTES: usize = 32 << 20;

/// Room for some ten states of a model of four billion parameters; only what is used is taken.
pub const DEFAULT_REWIND_BYTES: u64 = 512 << 20;

/// The context where none is asked for: enough for a long conversation, modest in memory.
pub const DEFAULT_CTX: usize = 8192;

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            devices: Devices::Auto,
            gpus: Vec::new(),
            gpu_precision: Precision::default(),
            gpu_lane_reduction: LaneReduction::default(),
            gpu_cache: GpuCache::default(),
            gpu_verification: VerificationScope::default(),
            faults: FaultPlan::default(),
            gpu_health: GpuHealth::default(),
            threads: None,
            few_threads: None,
            cpus: Vec::new(),
            isa: None,
            resident: None,
            small_pages: false,
            promote_large_pages: false,
            kv: KvDType::F16,
            kv_requantize: KvRequantize::Off,
            kv_window: None,
            rope_scaling: None,
            rewind_bytes: DEFAULT_REWIND_BYTES,
            ctx: None,
            max_sequences: 4,
            kv_bytes: None,
            memory: None,
            max_rows: None,
        }
    }
}

/// Facts about a loaded model that doors show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// Hash over the file: which weights these are.
    pub fingerprint: String,
    pub architecture: &'static str,
    pub n_parameters: u64,
    /// Bytes of all weights as stored.
    pub n_weight_bytes: u64,
    pub n_vocab: usize,
    pub n_layers: usize,
    pub d_model: usize,
    /// Positions that the model can have: those it was trained for, or stretched as it was loaded.
    pub context_length: usize,
    /// Tokens a sequence may hold as loaded.
    pub n_ctx: usize,
    /// Bytes of keys and values of one token, in the layers that keep all of them.
    pub kv_bytes_per_token: u64,
    /// Bytes that a sequence takes besides, however long it is: windows and recurrent states.
    pub kv_fixed_bytes: u64,
    /// What all sequences take when they are full.
    pub kv_bytes: KvBytes,
    /// When contexts age.
    pub kv_requantize: KvRequantize,
    /// Names of the devices in use.
    pub devices: Vec<String>,
    /// Why the CPU stands in for the device that was asked for.
    pub fallback_error: Option<EngineError>,
}

/// Which logits of a chunk are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogitsSelection {
    None,
    Last,
    /// of the last so many tokens
    Tail(usize),
    All,
}

/// Tokens that continue a sequence.
#[derive(Debug, Clone, Copy)]
pub struct Chunk<'a> {
    pub seq: SequenceId,
    pub tokens: &'a [TokenId],
    pub logits: LogitsSelection,
}

/// A loaded model. One owner; everything it does is a method that returns.
pub struct Model {
    pub(crate) spec: ModelSpec,
    pub(crate) info: ModelInfo,
    pub(crate) tokenizer: Option<Tokenizer>,
    /// A template that doesn't compile fails whoever asks for it, not the load.
    pub(crate) template: Result<Option<ChatTemplate>>,
    /// the same weights on devices of their own; at least one
    pub(crate) replicas: Vec<Replica>,
    pub(crate) cache: KvCache,
    pub(crate) identity: snapshot::CheckpointIdentity,
    source: load::LoadSource,
    large_page_promotion: Option<large_pages::LargePagePromotion>,
    /// what a run may be given up by
    interrupt: Interrupt,
    gathered: GatheredLogits,
}

impl Model {
    /// Opens nothing: `file` has been validated as a container. Checks every number and tensor against the
    /// family and brings the weights to their devices. `progress` goes from 0 to 1.
    ///
    /// Errors: `model.*` for a file that isn't a model we run, naming key or tensor; `kernels.*` for memory
    /// and threads.
    pub fn load(file: Arc<WeightFile>, options: &LoadOptions, progress: &mut dyn FnMut(f32)) -> Result<Self> {
        load::load(file, options, progress)
    }

    /// Waits until the weights are where they will stay.
    pub fn promote_to_large_pages(&mut self) {
        if let Some(large_page_promotion) = &mut self.large_page_promotion {
            large_page_promotion.finish();
        }
    }

    /// Runs may be given up when this is asked, as far as `allow_interrupts` says.
    pub fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.interrupt = interrupt;
    }

    /// Whether runs from here on may be given up.
    pub(crate) fn allow_interrupts(&mut self, allowed: bool) {
        let Self { replicas, interrupt, .. } = self;
        let interrupt = allowed.then_some(&*interrupt);
        replicas.iter_mut().for_each(|replica| replica.executor.set_interrupt(interrupt));
    }

    /// From here on batches with this token fail.
    #[cfg(test)]
    pub(crate) fn poison(&mut self, token: TokenId, how: replica::Poison) {
        self.replicas.iter_mut().for_each(|replica| replica.poison = Some((token, how)));
    }

    pub fn spec(&self) -> &ModelSpec {
        &self.spec
    }

    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// None: the file carries no vocabulary.
    pub fn tokenizer(&self) -> Option<&Tokenizer> {
        self.tokenizer.as_ref()
    }

    /// None: the file carries no chat template. Error: it carries one that doesn't compile.
    pub fn template(&self) -> Result<Option<&ChatTemplate>> {
        self.template.as_ref().map(Option::as_ref).map_err(EngineError::clone)
    }

    /// Tokens a sequence may hold.
    pub fn n_ctx(&self) -> usize {
        self.cache.n_ctx()
    }

    /// Rows of one run of a replica.
    pub fn max_rows(&self) -> usize {
        self.replicas[0].executor.capacity().max_rows
    }

    /// Rows of logits that one run leaves.
    pub fn max_outputs(&self) -> usize {
        self.replicas[0].executor.capacity().max_outputs
    }

    /// An empty sequence. Error `kv.too_many_sequences`.
    pub fn new_sequence(&mut self) -> Result<SequenceId> {
        self.cache.create()
    }

    pub fn has_free_sequence(&self) -> bool {
        self.cache.has_free_sequence()
    }

    /// Pages that are free for tokens of any sequence, in layers that keep all of them.
    pub fn n_free_pages(&self) -> usize {
        self.cache.n_free_pages()
    }

    /// There are fewer of them than sequences could fill.
    pub fn is_kv_bounded(&self) -> bool {
        let geometry = self.cache.geometry();
        geometry.n_pages() < geometry.pages_for(geometry.n_ctx) * geometry.max_sequences
    }

    /// Such pages that so many tokens take.
    pub fn pages_for(&self, n_tokens: usize) -> usize {
        self.cache.geometry().pages_to_hold(n_tokens)
    }

    /// Such pages that a sequence would take for `n` more tokens.
    pub fn n_pages_to_grow(&self, seq: SequenceId, n: usize) -> usize {
        self.cache.n_pages_to_grow(seq, n)
    }

    /// How many tokens the sequence holds.
    pub fn len(&self, seq: SequenceId) -> Result<usize> {
        Ok(self.cache.tokens(seq)?.len())
    }

    /// The tokens whose keys and values the sequence holds.
    pub fn tokens(&self, seq: SequenceId) -> Result<&[TokenId]> {
        self.cache.tokens(seq)
    }

    /// Goes back to the greatest position ≤ `n` that the sequence really holds, and returns it: the caller continues
    /// from there. That is `n` itself unless layers forget (`rewind`): then the nearest kept position, or 0.
    pub fn truncate(&mut self, seq: SequenceId, n: usize) -> Result<usize> {
        self.cache.truncate(seq, n)
    }

    /// How far a sequence can go back by itself.
    pub fn rewind(&self) -> Rewind {
        self.cache.geometry().rewind()
    }

    /// Remembers where the sequence is, so that `truncate` can come back; costs nothing where `rewind` says anywhere.
    /// The oldest are forgotten when there are too many.
    pub fn save_rewind_point(&mut self, seq: SequenceId) -> Result<()> {
        self.cache.save_rewind_point(seq)
    }

    /// Before tokens that may have to be taken back: afterwards `truncate` comes back to here, or to any position since
    /// where no state is lost. False: that is not possible.
    pub fn mark(&mut self, seq: SequenceId) -> bool {
        self.cache.mark(seq)
    }

    /// Nothing is taken back any more.
    pub fn unmark(&mut self, seq: SequenceId) {
        self.cache.unmark(seq);
    }

    /// Pages and states in use.
    pub fn kv_usage(&self) -> KvUsage {
        self.cache.usage()
    }

    /// Of pages, of pages of windows, of states, of aged pages.
    pub fn kv_pools(&self) -> [PoolUsage; 4] {
        self.cache.pools()
    }

    /// Bytes of what sequences hold; what they share counts once.
    pub fn kv_used_bytes(&self) -> u64 {
        let (usage, bytes) = (self.cache.usage(), self.identity.bytes);
        let (n_pages, n_window_pages) = (usage.n_pages as u64, usage.n_window_pages as u64);
        let n_requantized_pages = usage.n_requantized_pages as u64;
        n_pages * bytes.page
            + n_requantized_pages * bytes.requantized_page
            + n_window_pages * bytes.window_page
            + usage.n_states as u64 * bytes.state
    }

    /// A second sequence with the same tokens; memory is shared until they part.
    pub fn fork(&mut self, seq: SequenceId) -> Result<SequenceId> {
        self.cache.fork(seq)
    }

    /// Forgets a sequence; one that doesn't live is ignored.
    pub fn free(&mut self, seq: SequenceId) {
        self.cache.free(seq);
    }

    /// Where `truncate` would go back to for `n`.
    pub fn reach(&self, seq: SequenceId, n: usize) -> Result<usize> {
        self.cache.reach(seq, n)
    }

    /// From here on windows let go of nothing, so that the next position that is kept leads back to any since here.
    pub fn pin_window(&mut self, seq: SequenceId) -> Result<()> {
        self.cache.pin_window(seq)
    }

    /// Windows let go again of what they have passed.
    pub fn unpin_window(&mut self, seq: SequenceId) -> Result<()> {
        self.cache.unpin_window(seq)
    }

    /// Positions that the sequence was told to keep.
    pub fn rewind_positions(&self, seq: SequenceId) -> Result<Vec<usize>> {
        Ok(self.cache.rewind_points(seq)?.iter().map(|kept| kept.position).collect())
    }

    /// The pieces that lead to each of `positions`, for checkpoint files; see `kv::snapshot`.
    pub fn pieces(&self, seq: SequenceId, positions: &[usize]) -> Result<Vec<CheckpointPiece>> {
        snapshot::pieces(&self.identity, &self.cache, seq, positions)
    }

    /// The bytes of such a piece. Error `snapshot.moved`: the sequence holds it no more.
    pub fn piece_bytes(&self, seq: SequenceId, piece: &CheckpointPiece) -> Result<Vec<u8>> {
        snapshot::write(&self.identity, &self.cache, self.executor(seq)?, seq, piece)
    }

    /// By what names pieces are stored that lead along `tokens`.
    pub fn chunk_keys(&self, tokens: &[TokenId]) -> ChunkKeys {
        ChunkKeys::new(&self.identity, self.info.kv_requantize, tokens)
    }

    /// Whether whole stretches hold all there is of their tokens: no windows, no states.
    pub fn has_complete_chunks(&self) -> bool {
        let geometry = self.cache.geometry();
        self.identity.bytes.page > 0 && geometry.window.is_none() && !geometry.recurrent
    }

    /// The same piece as it is by now: it may have aged since. None: the sequence has left it.
    pub fn refresh_piece(&self, seq: SequenceId, piece: &CheckpointPiece) -> Option<CheckpointPiece> {
        match self.info.kv_requantize {
            KvRequantize::Off => Some(piece.clone()),
            KvRequantize::Pressure | KvRequantize::After(_) => {
                snapshot::refresh(&self.identity, &self.cache, seq, piece)
            }
        }
    }

    /// How far along `tokens`, at most to `most`, a head leads of which `bytes` are the first `HEAD_PREVIEW_BYTES`, and by
    /// which stretches.
    pub fn match_head(&self, tokens: &[TokenId], most: usize, bytes: &[u8]) -> Result<ChunkMatch> {
        snapshot::reach(&self.identity, &self.cache, tokens, most, bytes)
    }

    /// A sequence that holds `tokens`, from stored pieces: the same logits, bit for bit. Errors `snapshot.*`: nothing
    /// has changed.
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

    /// Error `request.token_unknown`: an id outside the vocabulary.
    pub fn check_tokens(&self, tokens: &[TokenId]) -> Result<()> {
        let n_vocab = self.spec.n_vocab;
        match tokens.iter().find(|&&token| token as usize >= n_vocab) {
            None => Ok(()),
            Some(token) => Err(EngineError::new(
                "request.token_unknown",
                format!("token id {token} is outside the model's vocabulary of {n_vocab}"),
                "Use ids of this model's own tokenizer.",
            )),
        }
    }
}
