//! A model ready to run: spec, weights on their devices, tokenizer, template and the sequences' state.
//!
//! `forward` takes any mix of sequences and token runs. The logits of a token depend on the tokens before it
//! in its sequence and on nothing else: not on batch mates, chunk borders, page placement or thread count.

use std::sync::Arc;

use kernels::cpu::isa::IsaLevel;
use kernels::{BackendKind, Batch, Capacity, Executor, KvDType};
use weights::WeightFile;

use crate::TokenId;
use crate::error::{EngineError, Result};
use crate::kv::cache::{KvCache, PageCopy, SequenceId};
use crate::kv::snapshot;
use crate::spec::ModelSpec;
use crate::template::ChatTemplate;
use crate::tokenizer::Tokenizer;

mod load;

/// Where layers run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Devices {
    /// The fastest this machine has.
    Auto,
    /// The reference kernels.
    Scalar,
    Cpu,
    /// So many layers on each device, in order; together all of the model's.
    Split(Vec<(BackendKind, usize)>),
}

/// How to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadOptions {
    pub devices: Devices,
    /// Worker threads of the CPU. None: as many as the machine has physical cores.
    pub threads: Option<usize>,
    /// Instruction set of the CPU kernels. None: the best there is, or what `INGLENOOK_ISA` says.
    pub isa: Option<IsaLevel>,
    /// How keys and values are stored.
    pub kv: KvDType,
    /// Tokens a sequence may hold, at most as many as the model was trained for. None: `DEFAULT_CTX`.
    pub ctx: Option<usize>,
    /// Sequences that may live at once.
    pub max_sequences: usize,
    /// Rows of one run: longer batches are cut into runs of so many.
    pub max_rows: usize,
}

/// Sequences in one batch: their page tables stand in a fixed array.
pub const MAX_BATCH_SEQUENCES: usize = 64;

/// The context where none is asked for: enough for a long conversation, modest in memory.
pub const DEFAULT_CTX: usize = 8192;

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            devices: Devices::Auto,
            threads: None,
            isa: None,
            kv: KvDType::F16,
            ctx: None,
            max_sequences: 4,
            max_rows: 64,
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
    /// Positions the model was trained for.
    pub context_length: usize,
    /// Tokens a sequence may hold as loaded.
    pub n_ctx: usize,
    /// Bytes of keys and values of one token, all layers.
    pub kv_bytes_per_token: u64,
    /// Names of the devices in use.
    pub devices: Vec<String>,
}

/// Which logits of a chunk are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    None,
    Last,
    All,
}

/// Tokens that continue a sequence.
#[derive(Debug, Clone, Copy)]
pub struct Chunk<'a> {
    pub seq: SequenceId,
    pub tokens: &'a [TokenId],
    pub logits: Wanted,
}

/// Wanted logits, in the order of the chunks and of their tokens.
#[derive(Debug, Clone, Copy)]
pub struct Logits<'a> {
    data: &'a [f32], // (rows, n_vocab)
    n_vocab: usize,
}

impl<'a> Logits<'a> {
    pub fn n_rows(&self) -> usize {
        self.data.len() / self.n_vocab
    }

    /// The logits of one wanted row (n_vocab). Error `model.nan_logits`: a value is not a finite number.
    pub fn row(&self, row: usize) -> Result<&'a [f32]> {
        let row = &self.data[row * self.n_vocab..(row + 1) * self.n_vocab];
        if row.iter().any(|logit| !logit.is_finite()) {
            return Err(nan_logits());
        }
        Ok(row)
    }
}

pub(crate) fn nan_logits() -> EngineError {
    EngineError::new(
        "model.nan_logits",
        "the model's output holds values that are not numbers",
        "Its weights are damaged: download the model again.",
    )
}

/// A loaded model. One owner; everything it does is a method that returns.
pub struct Model {
    pub(crate) spec: ModelSpec,
    pub(crate) info: ModelInfo,
    pub(crate) tokenizer: Option<Tokenizer>,
    /// A template that doesn't compile fails whoever asks for it, not the load.
    pub(crate) template: Result<Option<ChatTemplate>>,
    pub(crate) executor: Executor,
    pub(crate) cache: KvCache,
    pub(crate) identity: snapshot::Identity,
    batch: Rows,
    /// Logits gathered from several runs. (rows, n_vocab)
    gathered: Vec<f32>,
}

impl Model {
    /// Opens nothing: `file` has been validated as a container. Checks every number and tensor against the
    /// family, brings the weights to their devices, and runs one token. `progress` goes from 0 to 1.
    ///
    /// Errors: `model.*` for a file that isn't a model we run, naming key or tensor; `kernels.*` for memory
    /// and threads.
    pub fn load(file: Arc<WeightFile>, options: &LoadOptions, progress: &mut dyn FnMut(f32)) -> Result<Self> {
        load::load(&file, options, progress)
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

    /// Rows of one run of the executor.
    pub fn max_rows(&self) -> usize {
        self.executor.capacity().max_rows
    }

    /// An empty sequence. Error `kv.too_many_sequences`.
    pub fn new_sequence(&mut self) -> Result<SequenceId> {
        self.cache.create()
    }

    pub fn has_free_sequence(&self) -> bool {
        self.cache.has_free_sequence()
    }

    /// How many tokens the sequence holds.
    pub fn len(&self, seq: SequenceId) -> Result<usize> {
        Ok(self.cache.tokens(seq)?.len())
    }

    /// The tokens whose keys and values the sequence holds.
    pub fn tokens(&self, seq: SequenceId) -> Result<&[TokenId]> {
        self.cache.tokens(seq)
    }

    /// Keeps at most the first `n` tokens; returns how many are really held: the caller continues from there.
    pub fn truncate(&mut self, seq: SequenceId, n: usize) -> Result<usize> {
        self.cache.truncate(seq, n)
    }

    /// A second sequence with the same tokens; memory is shared until they part.
    pub fn fork(&mut self, seq: SequenceId) -> Result<SequenceId> {
        self.cache.fork(seq)
    }

    /// Forgets a sequence; one that doesn't live is ignored.
    pub fn free(&mut self, seq: SequenceId) {
        self.cache.free(seq);
    }

    /// The sequence as bytes for a checkpoint file; see `kv::snapshot`.
    pub fn snapshot(&self, seq: SequenceId) -> Result<Vec<u8>> {
        snapshot::write(&self.identity, &self.cache, &self.executor, seq)
    }

    /// A sequence from such bytes: the same logits, bit for bit. Errors `snapshot.*`: nothing has changed.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<SequenceId> {
        snapshot::restore(&self.identity, &mut self.cache, &mut self.executor, bytes)
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

    /// Runs the chunks: their tokens continue their sequences, and the wanted logits come back.
    ///
    /// Errors: unknown or repeated sequence, unknown token, no room (`request.context_full`), a failed kernel.
    /// After an error every sequence holds what it held before.
    pub fn forward(&mut self, batch: &[Chunk<'_>]) -> Result<Logits<'_>> {
        Ok(self.forward_with_tokenizer(batch)?.0)
    }

    /// As `forward`, with the tokenizer beside the borrowed logits.
    pub(crate) fn forward_with_tokenizer(
        &mut self,
        batch: &[Chunk<'_>],
    ) -> Result<(Logits<'_>, Option<&Tokenizer>)> {
        self.check(batch)?;
        let outcome = self.reserve(batch).and_then(|()| self.run(batch));
        for chunk in batch {
            match outcome {
                Ok(_) => self.cache.commit(chunk.seq, chunk.tokens)?,
                // drops the pages that were reserved
                Err(_) => _ = self.cache.truncate(chunk.seq, usize::MAX)?,
            }
        }
        let data = match outcome? {
            Ran::Nothing => &[],
            Ran::Once => self.executor.output(),
            Ran::Often => self.gathered.as_slice(),
        };
        Ok((Logits { data, n_vocab: self.spec.n_vocab }, self.tokenizer.as_ref()))
    }

    fn check(&self, batch: &[Chunk<'_>]) -> Result<()> {
        if batch.len() > MAX_BATCH_SEQUENCES {
            return Err(EngineError::new(
                "request.batch_too_large",
                format!("{} sequences in one batch, at most {MAX_BATCH_SEQUENCES} fit", batch.len()),
                "Send fewer at once.",
            ));
        }
        for (i, chunk) in batch.iter().enumerate() {
            self.cache.tokens(chunk.seq)?;
            self.check_tokens(chunk.tokens)?;
            if batch[..i].iter().any(|other| other.seq == chunk.seq) {
                return Err(EngineError::new(
                    "request.sequence_repeated",
                    format!("sequence {} appears twice in one batch", chunk.seq.0),
                    "Join its tokens into one chunk.",
                ));
            }
        }
        Ok(())
    }

    fn reserve(&mut self, batch: &[Chunk<'_>]) -> Result<()> {
        for chunk in batch {
            if let Some(PageCopy { from, to }) = self.cache.reserve(chunk.seq, chunk.tokens.len())? {
                self.executor.kv_copy_page(from, to)?;
            }
        }
        Ok(())
    }

    /// Cuts the batch into runs of the executor.
    fn run(&mut self, batch: &[Chunk<'_>]) -> Result<Ran> {
        let Self { cache, executor, batch: rows, gathered, .. } = self;
        let mut tables: [&[u32]; MAX_BATCH_SEQUENCES] = [&[]; MAX_BATCH_SEQUENCES];
        for (table, chunk) in tables.iter_mut().zip(batch) {
            *table = cache.pages(chunk.seq)?;
        }
        let tables = &tables[..batch.len()];
        let capacity = executor.capacity();
        let mut ran = Ran::Nothing;
        rows.clear();
        gathered.clear();
        for (index, chunk) in batch.iter().enumerate() {
            let n_held = cache.tokens(chunk.seq)?.len();
            for (i, &token) in chunk.tokens.iter().enumerate() {
                let wanted = match chunk.logits {
                    Wanted::None => false,
                    Wanted::Last => i + 1 == chunk.tokens.len(),
                    Wanted::All => true,
                };
                if rows.is_full(capacity, wanted) {
                    executor.run(&rows.as_batch(tables))?;
                    gathered.extend_from_slice(executor.output());
                    rows.clear();
                    ran = Ran::Often;
                }
                rows.push(token, n_held + i, index, wanted);
            }
        }
        if rows.tokens.is_empty() {
            return Ok(ran);
        }
        executor.run(&rows.as_batch(tables))?;
        match ran {
            Ran::Nothing | Ran::Once => Ok(Ran::Once),
            Ran::Often => {
                gathered.extend_from_slice(executor.output());
                Ok(Ran::Often)
            }
        }
    }
}

/// How a batch went through the executor, and with that where its logits are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ran {
    /// There were no tokens.
    Nothing,
    /// The logits are the executor's output.
    Once,
    /// The logits of all runs were gathered.
    Often,
}

/// The rows of one run, in arrays that are filled again and again.
#[derive(Debug, Default)]
struct Rows {
    tokens: Vec<u32>,
    positions: Vec<u32>,
    sequence: Vec<u32>,
    outputs: Vec<u32>,
}

impl Rows {
    fn clear(&mut self) {
        let Self { tokens, positions, sequence, outputs } = self;
        for rows in [tokens, positions, sequence, outputs] {
            rows.clear();
        }
    }

    fn is_full(&self, capacity: Capacity, wanted: bool) -> bool {
        self.tokens.len() == capacity.max_rows || wanted && self.outputs.len() == capacity.max_outputs
    }

    fn push(&mut self, token: u32, position: usize, sequence: usize, wanted: bool) {
        if wanted {
            self.outputs.push(self.tokens.len() as u32);
        }
        self.tokens.push(token);
        self.positions.push(u32::try_from(position).expect("the context is shorter than 2^32 tokens"));
        self.sequence.push(sequence as u32);
    }

    fn as_batch<'a>(&'a self, page_tables: &'a [&'a [u32]]) -> Batch<'a> {
        let Self { tokens, positions, sequence, outputs } = self;
        Batch { tokens, positions, sequence, page_tables, states: &[], outputs }
    }
}
