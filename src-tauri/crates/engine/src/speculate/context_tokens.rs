//! Tokens that a draft block may draft beside the common ones: those that the text has. Names, foreign words and the marks
//! of a chat return.
//!
//! With Qwen 2.5's vocabulary 94 % of the tokens of our documentation are common, and 98 % are common or were in the text
//! before. In Japanese it is 59 and 94 %.

use crate::TokenId;
use crate::error::Result;
use crate::model::Model;
use crate::model::draft::dot;

/// Rows kept. They are multiplied on one core, so that more would take as long as the block.
const MAX_TOKENS: usize = 256;

/// Tokens at the end of a long text that are looked through at first.
const MAX_FIRST_READ: usize = 16 << 10;

/// The last uncommon tokens of a text, with their rows of the output matrix.
#[derive(Debug, Default)]
pub(crate) struct ContextTokens {
    /// Tokens of the text that were looked through.
    n_read: usize,
    tokens: Vec<ContextToken>,
    /// (tokens, d_model)
    rows: Vec<f32>,
    logits: Vec<(TokenId, f32)>,
}

#[derive(Debug)]
struct ContextToken {
    id: TokenId,
    /// Position in the text.
    last_seen: usize,
    /// Whether `rows` has its row.
    has_row: bool,
}

impl ContextTokens {
    /// Reads what was added to a text.
    ///
    /// Errors: a format without a decoder.
    pub fn read(&mut self, history: &[TokenId], model: &Model) -> Result<()> {
        let (Some(draft), Some(matrix)) = (&model.spec().draft, model.draft_output_matrix()?) else {
            return Ok(());
        };
        let uncommon = draft.n_common_tokens as TokenId..model.spec().n_vocab as TokenId;
        let from = self.n_read.max(history.len().saturating_sub(MAX_FIRST_READ));
        self.n_read = history.len();
        for (at, &id) in history.iter().enumerate().skip(from).filter(|(_, id)| uncommon.contains(id)) {
            self.note(id, at);
        }
        let d_model = model.spec().d_model;
        self.rows.resize(self.tokens.len() * d_model, 0.0);
        for (token, row) in self.tokens.iter_mut().zip(self.rows.chunks_exact_mut(d_model)) {
            if !token.has_row {
                matrix.decode_row(token.id as usize, row);
                token.has_row = true;
            }
        }
        Ok(())
    }

    /// Notes a token, in place of the one that was not seen for longest where there is no room.
    fn note(&mut self, id: TokenId, at: usize) {
        if let Some(known) = self.tokens.iter_mut().find(|token| token.id == id) {
            known.last_seen = at;
            return;
        }
        let added = ContextToken { id, last_seen: at, has_row: false };
        if self.tokens.len() < MAX_TOKENS {
            self.tokens.push(added);
        } else if let Some(oldest) = self.tokens.iter_mut().min_by_key(|token| token.last_seen) {
            *oldest = added;
        }
    }

    /// Returns the logits of the tokens for a draft block's output: hidden (d_model)
    pub fn logits(&mut self, hidden: &[f32], model: &Model) -> &[(TokenId, f32)] {
        let Self { tokens, rows, logits, .. } = self;
        logits.clear();
        let Some(draft) = &model.spec().draft else { return logits };
        let rows = tokens.iter().zip(rows.chunks_exact(hidden.len()));
        let with_row = rows.filter(|(token, _)| token.has_row);
        logits.extend(with_row.map(|(token, row)| (token.id, draft.capped(dot(hidden, row), model.spec()))));
        logits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_seen_tokens_are_kept() {
        let mut context = ContextTokens::default();
        let n = MAX_TOKENS as TokenId;
        (0..n).for_each(|id| context.note(1000 + id, id as usize));
        // The first returns, so that the second is the oldest.
        context.note(1000, 9000);
        context.note(5, 9001);
        let has = |id| context.tokens.iter().any(|token| token.id == id);
        assert_eq!(context.tokens.len(), MAX_TOKENS);
        assert_eq!([5, 1000, 1001, 1002].map(has), [true, true, false, true]);
    }
}
