//! Drafts of an assistant, whose weights come from a second file.
//!
//! All drafts of a chain have the position of the token that the sequence does not hold yet, and see what the last token
//! in the sequence saw. Nothing is written, so that a chain leaves no trace.

use kernels::{Batch, GivenRows, N_COORDINATES, PAGE_LEN};
use weights::WeightFile;

use super::draft::{dot, likeliest};
use super::load_options::AssistantFile;
use super::{Model, ModelSpec};
use crate::TokenId;
use crate::arch::{self, ContextFit, LocatedTensor};
use crate::decoder::{Placement, assistant_device};
use crate::error::{EngineError, Result};
use crate::kv::sequence_id::SequenceId;
use crate::spec::{ASSISTANT_LAYERS, AssistantMismatch, Role, TokenClusters};

/// What a model keeps of its assistant beside its weights.
pub(super) struct ModelAssistant {
    /// The tokens of all clusters, one cluster after the other. Empty without clusters.
    cluster_tokens: Vec<TokenId>,
}

/// What an assistant made of a token.
pub(crate) struct AssistantDraft {
    /// The hidden state for the next draft. (d_model)
    pub hidden: Vec<f32>,
    /// Logits of the tokens that it considered.
    logits: ConsideredLogits,
}

enum ConsideredLogits {
    /// (n_vocab)
    All(Vec<f32>),
    Some(Vec<(TokenId, f32)>),
}

/// An assistant's file as it is loaded.
pub(super) struct LoadedAssistant {
    assistant: ModelAssistant,
    tensors: Vec<LocatedTensor>,
}

impl LoadedAssistant {
    /// Reads an assistant and lets it draft for the model of a file.
    ///
    /// Errors: those of a model file; `model.draft_vocabulary`, `model.draft_target` if it belongs to another model.
    pub fn read(file: &AssistantFile, spec: &mut ModelSpec, fit: ContextFit) -> Result<Self> {
        let file = &*file.0;
        let (family, architecture) = (arch::find(file)?, spec.architecture);
        let mismatch = |mismatch: AssistantMismatch| match mismatch {
            AssistantMismatch::Vocabulary(found, expected) => {
                other_vocabulary(format!("{found} tokens, not {expected}"))
            }
            AssistantMismatch::Structure(why) => EngineError::new(
                "model.draft_target",
                format!("{} cannot draft for this {architecture} model: it {why}", file.path().display()),
                "Choose the assistant that was made for this model, or use prompt lookup.",
            ),
        };
        if !family.only_drafts() {
            return Err(mismatch(AssistantMismatch::Structure("is no assistant".into())));
        }
        let assistant = arch::spec_for(file, family, fit)?;
        let tensors = arch::assistant_tensors(file, family, &assistant)?;
        let cluster_tokens = arch::cluster_tokens(file, &assistant)?;
        spec.draft_by(assistant).map_err(mismatch)?;
        Ok(Self { assistant: ModelAssistant { cluster_tokens }, tensors })
    }

    /// Adds the tensors to those of the model.
    pub fn place(
        loaded: Option<Self>,
        mut placed: Vec<LocatedTensor>,
    ) -> (Vec<LocatedTensor>, Option<ModelAssistant>) {
        let assistant = loaded.map(|Self { assistant, tensors }| {
            placed.extend(tensors);
            assistant
        });
        (placed, assistant)
    }
}

/// Error of a draft model whose tokens differ from those of its target.
pub(crate) fn other_vocabulary(what: String) -> EngineError {
    EngineError::new(
        "model.draft_vocabulary",
        format!("the draft model has a different vocabulary: {what}"),
        "Choose a smaller model of the same family as the draft model, or use prompt lookup.",
    )
}

/// Checks that a file holds more than an assistant.
///
/// Errors: `model.drafts_only`.
pub(super) fn check_answers(file: &WeightFile, family: arch::Family) -> Result<()> {
    if !family.only_drafts() {
        return Ok(());
    }
    let name = file.path().file_name().unwrap_or(file.path().as_os_str()).to_string_lossy().into_owned();
    Err(EngineError::new(
        "model.drafts_only",
        format!("{name} is an assistant that drafts for a Gemma 4 model and cannot answer by itself"),
        "Choose the Gemma 4 model that it was made for, and this file as its draft model (--draft-model).",
    ))
}

/// Checks that an assistant reaches all keys and values that it attends.
///
/// Errors: `model.draft_split`.
pub(super) fn check_placement(spec: &ModelSpec, placement: &Placement) -> Result<()> {
    match spec.assistant() {
        Some(assistant) if assistant_device(assistant, placement).is_none() => Err(EngineError::new(
            "model.draft_split",
            "the layers whose keys and values the draft model reads are on different devices",
            "Put more or fewer layers on the GPU (--gpu-layers), or use prompt lookup instead of the draft model.",
        )),
        Some(_) | None => Ok(()),
    }
}

impl Model {
    /// Returns whether an assistant drafts for the model. One whose layers were separated when a GPU failed does not.
    pub(crate) fn has_assistant(&self) -> bool {
        self.assistant.is_some() && self.graph().draft().is_some()
    }

    /// Returns whether the assistant can draft what follows a sequence.
    pub(crate) fn can_draft_after(&self, seq: SequenceId) -> Result<bool> {
        if self.cache.is_lost(seq) {
            return Ok(false);
        }
        let Some(last) = self.len(seq)?.checked_sub(1) else { return Ok(false) };
        // Runs only accept pages that could be written.
        let n_pages = self.executor(seq)?.capacity().n_pages;
        let page = self.cache.pages(seq)?.get(last / PAGE_LEN);
        Ok(page.is_some_and(|page| (*page as usize) < n_pages))
    }

    /// Drafts what follows `token`, which is at a position after the first. `hidden` is the hidden state before it.
    /// (d_model)
    pub(crate) fn draft_by_assistant(
        &mut self,
        seq: SequenceId,
        (position, token): (usize, TokenId),
        hidden: &[f32],
    ) -> Result<AssistantDraft> {
        self.check_tokens(&[token])?;
        let at = self.cache.replica_of(seq)?;
        let Self { cache, replicas, spec, .. } = self;
        let executor = &mut replicas[at].executor;
        let mut given = vec![0.0; executor.graph().given_width().unwrap_or(spec.d_model)];
        given[..spec.d_model].copy_from_slice(hidden);
        let position = u32::try_from(position).expect("the context is shorter than 2^32 tokens");
        let window = cache.window_pages(seq)?.table();
        let (pages, windows, state) = ([cache.pages(seq)?], [window], cache.state(seq)?);
        let n_windows = usize::from(cache.geometry().window.is_some());
        executor.run_draft(&Batch {
            tokens: &[token],
            // Sees what the row before saw, but is rotated as the row after it.
            positions: &[position - 1],
            kinds: &[],
            given: GivenRows {
                rows: &[0],
                values: &given,
                image_ends: &[],
                coordinates: &[[position; N_COORDINATES]],
            },
            sequence: &[0],
            page_tables: &pages,
            window_tables: &windows[..n_windows],
            states: state.as_slice(),
            outputs: &[0],
        })?;
        let (hidden, scores) = executor.draft_output().split_at(spec.d_model);
        let (hidden, scores) = (hidden.to_vec(), scores.to_vec());
        Ok(AssistantDraft { hidden, logits: self.considered(scores)? })
    }

    /// Drafts `n` tokens as `draft_logits` says. Tokens that are not considered have the lowest logit.
    pub(super) fn assistant_logits(
        &mut self,
        seq: SequenceId,
        (position, token): (usize, TokenId),
        hidden: &[f32],
        n: usize,
    ) -> Result<Vec<Vec<f32>>> {
        let (mut token, mut hidden) = (token, hidden.to_vec());
        let mut all = Vec::with_capacity(n);
        for _ in 0..n {
            let draft = self.draft_by_assistant(seq, (position, token), &hidden)?;
            token = draft.likeliest().0;
            all.push(draft.logits.whole(self.spec.n_vocab));
            hidden = draft.hidden;
        }
        Ok(all)
    }

    /// Returns the bytes that one draft reads. 0 without an assistant.
    pub(super) fn assistant_bytes(&self) -> f32 {
        let clusters = self.clusters();
        let tensors = self.source.placed.iter().filter(|tensor| tensor.layer >= Some(ASSISTANT_LAYERS));
        let bytes = tensors.map(|tensor| {
            let n_bytes: usize = tensor.parts.iter().map(|part| part.data.len()).sum();
            match (tensor.role, clusters) {
                (Role::TokenEmbedding, Some(TokenClusters { n_clusters, n_used })) => {
                    n_bytes as f32 * n_used as f32 / n_clusters as f32
                }
                _ => n_bytes as f32,
            }
        });
        bytes.sum()
    }

    fn clusters(&self) -> Option<TokenClusters> {
        self.spec.assistant()?.assistant_head()?.clusters
    }

    /// Returns the logits that an assistant's scores stand for: with clusters those of the tokens in the likeliest ones.
    fn considered(&self, scores: Vec<f32>) -> Result<ConsideredLogits> {
        let (Some(assistant), Some(clusters)) = (&self.assistant, self.clusters()) else {
            return Ok(ConsideredLogits::All(scores));
        };
        let (y, of_clusters) = scores.split_at(scores.len() - clusters.n_clusters);
        let mut ranked: Vec<usize> = (0..clusters.n_clusters).collect();
        ranked.sort_by(|&a, &b| of_clusters[b].total_cmp(&of_clusters[a]));
        let table = self.stored_matrix(Role::TokenEmbedding, Some(ASSISTANT_LAYERS))?;
        let table = table.expect("an assistant is placed with its embedding table");
        let (n_per, mut row) = (self.spec.n_vocab / clusters.n_clusters, vec![0.0; y.len()]);
        let tokens = ranked[..clusters.n_used].iter();
        let tokens =
            tokens.flat_map(|cluster| &assistant.cluster_tokens[cluster * n_per..(cluster + 1) * n_per]);
        let logit = |&token: &TokenId| {
            table.decode_row(token as usize, &mut row);
            (token, dot(&row, y))
        };
        Ok(ConsideredLogits::Some(tokens.map(logit).collect()))
    }
}

impl AssistantDraft {
    /// Returns the most likely token and its probability in percent.
    pub fn likeliest(&self) -> (TokenId, u8) {
        match &self.logits {
            ConsideredLogits::All(logits) => likeliest(logits, &[]),
            ConsideredLogits::Some(considered) => {
                let logits: Vec<f32> = considered.iter().map(|(_, logit)| *logit).collect();
                let (at, percent) = likeliest(&logits, &[]);
                (considered[at as usize].0, percent)
            }
        }
    }
}

impl ConsideredLogits {
    /// (n_vocab)
    fn whole(self, n_vocab: usize) -> Vec<f32> {
        match self {
            Self::All(logits) => logits,
            Self::Some(considered) => {
                let lowest = considered.iter().map(|(_, logit)| *logit).fold(f32::INFINITY, f32::min);
                // As transformers does.
                let mut all = vec![lowest - 1.0; n_vocab];
                considered.iter().for_each(|(token, logit)| all[*token as usize] = *logit);
                all
            }
        }
    }
}
