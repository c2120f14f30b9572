//! Speculation with a draft model: a smaller model with the same vocabulary drafts, and the model checks.

use super::acceptance::DraftEvidence;
use super::{DraftLength, Drafter};
use crate::TokenId;
use crate::error::Result;
use crate::kv::sequence_id::SequenceId;
use crate::model::assistant::other_vocabulary;
use crate::model::draft::likeliest;
use crate::model::{Chunk, GpuIncident, LogitsSelection, Model};

/// A token that is less likely to be reached costs more than it brings.
const MIN_CHANCE: f32 = 0.4;

/// The drafting model and its sequences.
pub(crate) struct DraftModel {
    model: Model,
    texts: Vec<DraftSequence>,
    /// Cost of a drafted token relative to a run of the model: the ratio of weight bytes.
    cost: f32,
}

/// A request's sequence in the draft model.
struct DraftSequence {
    id: u64,
    sequence: SequenceId,
}

impl DraftModel {
    /// Creates the draft model.
    ///
    /// Errors: `model.draft_vocabulary` if its tokens differ from `target`'s.
    pub fn new(model: Model, target: &Model) -> Result<Self> {
        check_vocabulary(&model, target)?;
        let bytes = |model: &Model| model.info().n_weight_bytes.max(1) as f32;
        let cost = bytes(&model) / bytes(target);
        Ok(Self { model, texts: Vec::new(), cost })
    }

    /// Returns the cost of a drafted token relative to a run of the model.
    pub fn cost(&self) -> f32 {
        self.cost
    }

    /// Returns the oldest unfetched GPU incident.
    pub fn take_gpu_incident(&mut self) -> Option<GpuIncident> {
        self.model.take_gpu_incident()
    }

    /// Frees the sequences of requests that have ended.
    pub fn retain(&mut self, lives: impl Fn(u64) -> bool) {
        let model = &mut self.model;
        self.texts.retain(|text| {
            let is_alive = lives(text.id);
            if !is_alive {
                model.free(text.sequence);
            }
            is_alive
        });
    }

    /// Drafts what follows `history` in request `id`, at most `n` tokens. No draft if its context is full or all its
    /// sequences are in use.
    pub fn propose(&mut self, id: u64, history: &[TokenId], n: usize, drafter: &mut Drafter) -> Result<()> {
        let n = n
            .min(drafter.speculation.length.max_tokens())
            .min(self.model.n_ctx().saturating_sub(history.len()));
        let Some(sequence) = self.sequence(id)? else { return Ok(()) };
        if n == 0 {
            return Ok(());
        }
        let held = self.model.tokens(sequence)?;
        let n_common = held.iter().zip(history).take_while(|(a, b)| a == b).count();
        let n_held = self.model.truncate(sequence, n_common.min(history.len() - 1))?;
        self.model.clear_mark(sequence);
        let (before, last) = history.split_at(history.len() - 1);
        self.model.forward(&[Chunk {
            seq: sequence,
            tokens: &before[n_held..],
            logits: LogitsSelection::None,
        }])?;
        let mut next = last[0];
        for at in 0..n {
            let chunk = Chunk { seq: sequence, tokens: &[next], logits: LogitsSelection::Last };
            let logits = self.model.forward(&[chunk])?;
            let (token, sureness) = likeliest(logits.row(0)?, &[]);
            if at == 0 {
                // Rewinding returns to before the draft.
                self.model.set_mark(sequence);
            }
            let chance = drafter.add(token, DraftEvidence::Confidence(sureness));
            let enough = match drafter.speculation.length {
                DraftLength::Paying(_) => chance < MIN_CHANCE,
                DraftLength::Always(_) => false,
            };
            if enough {
                break;
            }
            next = token;
        }
        Ok(())
    }

    /// Returns the request's sequence. `None` if all are in use.
    fn sequence(&mut self, id: u64) -> Result<Option<SequenceId>> {
        if let Some(text) = self.texts.iter().find(|text| text.id == id) {
            return Ok(Some(text.sequence));
        }
        if !self.model.has_free_sequence() {
            return Ok(None);
        }
        let sequence = self.model.new_sequence()?;
        self.texts.push(DraftSequence { id, sequence });
        Ok(Some(sequence))
    }
}

/// Checks that every id means the same to both.
///
/// Errors: `model.draft_vocabulary`.
fn check_vocabulary(draft: &Model, target: &Model) -> Result<()> {
    let different = other_vocabulary;
    let n_vocab = [draft, target].map(|model| model.spec().n_vocab);
    if n_vocab[0] != n_vocab[1] {
        return Err(different(format!("{} tokens, not {}", n_vocab[0], n_vocab[1])));
    }
    let (Some(theirs), Some(ours)) = (draft.tokenizer(), target.tokenizer()) else {
        return match draft.tokenizer().is_some() == target.tokenizer().is_some() {
            true => Ok(()),
            false => Err(different("only one of the two has one".into())),
        };
    };
    let other = (0..n_vocab[0] as TokenId).find(|&id| theirs.token_text(id) != ours.token_text(id));
    match other {
        None => Ok(()),
        Some(id) => Err(different(format!(
            "token {id} is {:?}, not {:?}",
            theirs.token_text(id).unwrap_or_default(),
            ours.token_text(id).unwrap_or_default()
        ))),
    }
}
