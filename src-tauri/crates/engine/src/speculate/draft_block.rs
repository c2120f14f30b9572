//! Speculation with the model's own draft block. Its keys and values lie beside the model's, so that it needs no
//! other sequences.
//!
//! A draft needs the hidden state before each token that the sequence does not hold yet. The first comes from the
//! sequence. Recurrent layers take accepted tokens back where the rest of a draft is rejected; of these the hidden states
//! are remembered.

use super::acceptance::DraftEvidence;
use super::{DraftLength, Drafter, Script};
use crate::TokenId;
use crate::error::{Result, guarded};
use crate::kv::sequence_id::SequenceId;
use crate::model::draft::{DraftInput, likeliest};
use crate::model::{Logits, Model};

/// A token that is less likely to be reached costs more than it brings.
pub(super) const MIN_CHANCE: f32 = 0.4;

/// Hidden states after the tokens of a text that a sequence has given back.
#[derive(Debug, Default)]
pub(crate) struct PendingHidden {
    /// Position of the first.
    from: usize,
    /// (positions, d_model)
    rows: Vec<f32>,
    /// Number of tokens that the last run left, and the hidden state after them. (d_model)
    last: (usize, Vec<f32>),
}

impl PendingHidden {
    /// Records the hidden states of a run that began at position `from` with `n_tokens` of the text. Those before the last
    /// are known from earlier runs. The others, of the last and of `n_accepted` drafted tokens, come with the logits from
    /// `first_row` on.
    pub fn record(
        &mut self,
        (from, n_tokens): (usize, usize),
        n_accepted: usize,
        (logits, first_row): (&Logits, usize),
    ) {
        if let Some(hidden) = logits.hidden(first_row + n_accepted) {
            self.last.0 = from + n_tokens + n_accepted;
            self.last.1.clear();
            self.last.1.extend_from_slice(hidden);
        }
        if n_tokens == 1 {
            (self.from, self.rows) = (from, Vec::new());
        }
        let found = (first_row..=first_row + n_accepted).map_while(|row| logits.hidden(row));
        let all: Vec<&[f32]> = found.collect();
        let n_known = (n_tokens - 1) * all.first().map_or(0, |row| row.len());
        match self.from == from && self.rows.len() == n_known {
            true => self.rows.extend(all.into_iter().flatten()),
            false => self.rows.clear(),
        }
    }

    /// Returns the hidden state after the first `n` tokens, if the last run left that many.
    pub(super) fn after(&self, n: usize) -> Option<&[f32]> {
        Some(&self.last.1[..]).filter(|hidden| self.last.0 == n && !hidden.is_empty())
    }

    /// Returns those of the `n` tokens from a position on, if all are known.
    fn of(&self, from: usize, n: usize, d_model: usize) -> Option<&[f32]> {
        match n {
            0 => Some(&[]),
            n if self.from == from => self.rows.get(..n * d_model),
            _ => None,
        }
    }
}

/// A text to draft for.
#[derive(Clone, Copy)]
pub(crate) struct BlockText<'a> {
    pub sequence: SequenceId,
    /// All its tokens. The sequence holds the first of them.
    pub history: &'a [TokenId],
    pub pending: &'a PendingHidden,
    /// The answer, if it is fixed, and how many of its tokens `history` has.
    pub script: (&'a Script, usize),
}

/// Drafts what follows a text, at most `n` tokens. No draft where the model was loaded without its block, where it lacks
/// the hidden states, or where a device or memory fails: the model's next run deals with that.
///
/// Errors: those of a model that is itself at fault.
pub(crate) fn propose_by_block(
    model: &mut Model,
    text: BlockText<'_>,
    n: usize,
    drafter: &mut Drafter,
) -> Result<()> {
    propose(model, text, n, drafter, draft)
}

/// Drafts with `draft` as `propose_by_block` says.
pub(super) fn propose(
    model: &mut Model,
    text: BlockText<'_>,
    n: usize,
    drafter: &mut Drafter,
    draft: fn(&mut Model, BlockText<'_>, usize, &mut Drafter) -> Result<()>,
) -> Result<()> {
    let n = n.min(drafter.speculation.length.max_tokens());
    if n == 0 || !model.has_draft_block() {
        return Ok(());
    }
    let drafted = guarded(|| draft(model, text, n, drafter));
    model.drop_draft_reserve(text.sequence)?;
    match drafted {
        Err(error) if error.is_of_gpu() || error.code() == "kv.memory_full" => Ok(()),
        drafted => drafted,
    }
}

fn draft(model: &mut Model, text: BlockText<'_>, n: usize, drafter: &mut Drafter) -> Result<()> {
    let BlockText { sequence, history, pending, script: (script, n_answered) } = text;
    let (n_held, d_model) = (model.len(sequence)?, model.spec().d_model);
    let Some(n_before_last) = history.len().checked_sub(n_held + 1) else { return Ok(()) };
    let Some(pending) = pending.of(n_held, n_before_last, d_model) else { return Ok(()) };
    let n_pages = model.n_pages_to_grow(sequence, n_before_last + n);
    if n_before_last >= model.max_rows() || n_pages > model.n_free_pages() {
        return Ok(());
    }
    let Some(mut hidden) = model.last_hidden(sequence)? else { return Ok(()) };
    hidden.extend_from_slice(pending);
    model.allow_interrupts(false);
    model.run_draft(sequence, DraftInput { start: n_held, tokens: &history[n_held..], hidden: &hidden })?;
    drafter.context.read(history, model)?;
    for at in 0..n {
        let output = model.draft_output(sequence)?;
        let others = drafter.context.logits(output.hidden, model);
        let (token, sureness) = script.drafted(n_answered + at, likeliest(output.logits, others));
        let chance = drafter.add(token, DraftEvidence::Confidence(sureness));
        let is_enough = match drafter.speculation.length {
            DraftLength::Paying(_) => chance < MIN_CHANCE,
            DraftLength::Always(_) => false,
        };
        if is_enough || at + 1 == n {
            break;
        }
        let hidden = output.hidden.to_vec();
        let input = DraftInput { start: history.len() + at, tokens: &[token], hidden: &hidden };
        model.run_draft(sequence, input)?;
    }
    Ok(())
}
