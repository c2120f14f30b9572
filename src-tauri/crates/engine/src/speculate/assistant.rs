//! Speculation with an assistant. It reads the model's own keys and values, so that it needs no sequences.
//!
//! A chain of drafts begins with the hidden state of the last token that the sequence holds. It is that of the last run.

use super::acceptance::DraftEvidence;
use super::draft_block::{BlockText, MIN_CHANCE, propose};
use super::{DraftLength, Drafter};
use crate::error::Result;
use crate::model::Model;

/// Drafts what follows a text, as `propose_by_block` does. No draft where the sequence lacks more than one token, or where
/// the hidden state is not known.
///
/// Errors: those of a model that is itself at fault.
pub(crate) fn propose_by_assistant(
    model: &mut Model,
    text: BlockText<'_>,
    n: usize,
    drafter: &mut Drafter,
) -> Result<()> {
    propose(model, text, n, drafter, draft)
}

fn draft(model: &mut Model, text: BlockText<'_>, n: usize, drafter: &mut Drafter) -> Result<()> {
    let BlockText { sequence, history, pending, script: (script, n_answered) } = text;
    let n_held = model.len(sequence)?;
    let Some(&[token]) = history.get(n_held..) else { return Ok(()) };
    let Some(hidden) = pending.after(n_held) else { return Ok(()) };
    if !model.can_draft_after(sequence)? {
        return Ok(());
    }
    let (mut token, mut hidden) = (token, hidden.to_vec());
    model.allow_interrupts(false);
    for at in 0..n {
        let draft = model.draft_by_assistant(sequence, (n_held, token), &hidden)?;
        let (next, sureness) = script.drafted(n_answered + at, draft.likeliest());
        let chance = drafter.add(next, DraftEvidence::Confidence(sureness));
        let is_enough = match drafter.speculation.length {
            DraftLength::Paying(_) => chance < MIN_CHANCE,
            DraftLength::Always(_) => false,
        };
        if is_enough {
            break;
        }
        (token, hidden) = (next, draft.hidden);
    }
    Ok(())
}
