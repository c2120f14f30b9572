//! Drafts of a model's own draft block.

use kernels::{Batch, GivenRows, N_COORDINATES, Tensor};

use super::forward::make_copies;
use super::image::coordinates_at;
use super::{Chunk, LogitsSelection, Model};
use crate::TokenId;
use crate::arch::LocatedTensor;
use crate::error::Result;
use crate::kv::sequence_id::SequenceId;
use crate::spec::{ASSISTANT_LAYERS, DraftBlock, Ffn, ImagePositions, Role, TensorOwner};
use crate::vision::CoordinateWalk;

/// Tokens that a draft block reads, and the hidden state before each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DraftInput<'a> {
    /// Position of the first token: 1 or more.
    pub start: usize,
    /// At least one, consecutive in their sequence.
    pub tokens: &'a [TokenId],
    /// (tokens, d_model)
    pub hidden: &'a [f32],
}

/// What a draft block made of a token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DraftOutput<'a> {
    /// The hidden state for the next draft. (d_model)
    pub hidden: &'a [f32],
    /// Those of the common tokens. (n_common_tokens)
    pub logits: &'a [f32],
}

impl Model {
    /// Returns whether the model was loaded with its draft block or an assistant.
    pub fn has_draft_block(&self) -> bool {
        self.spec.draft.is_some() || self.has_assistant()
    }

    /// Drafts `n` tokens after `token`, which is at `position` in the sequence or follows its last token. `hidden` is the
    /// hidden state before it (`Logits::hidden`). Each draft is the most likely common token after the one before. Returns
    /// the logits that each was taken from.
    ///
    /// What the block knows of the tokens of the sequence from `position` on is overwritten: call it for a sequence that
    /// is not continued, from back to front.
    ///
    /// Errors: `request.context_full`, `kv.memory_full`.
    pub fn draft_logits(
        &mut self,
        seq: SequenceId,
        (position, token): (usize, TokenId),
        hidden: &[f32],
        n: usize,
    ) -> Result<Vec<Vec<f32>>> {
        if self.has_assistant() {
            return self.assistant_logits(seq, (position, token), hidden, n);
        }
        let (mut token, mut hidden) = (token, hidden.to_vec());
        let mut all = Vec::with_capacity(n);
        for step in 0..n {
            let input = DraftInput { start: position + step, tokens: &[token], hidden: &hidden };
            self.run_draft(seq, input)?;
            let output = self.draft_output(seq)?;
            token = likeliest(output.logits, &[]).0;
            all.push(output.logits.to_vec());
            hidden = output.hidden.to_vec();
        }
        self.cache.drop_reserved(seq)?;
        Ok(all)
    }

    /// Runs the draft block on consecutive tokens of a sequence, the last of which may follow its end. Their keys and
    /// values are written; the sequence keeps its length. The caller drops what was reserved.
    ///
    /// Errors: `request.context_full`, `kv.memory_full`.
    pub(crate) fn run_draft(&mut self, seq: SequenceId, input: DraftInput<'_>) -> Result<()> {
        let DraftInput { start, tokens, hidden } = input;
        self.last_run = None;
        self.check_tokens(tokens)?;
        let n_held = self.cache.tokens(seq)?.len();
        let copies = self.cache.reserve(seq, (start + tokens.len()).saturating_sub(n_held))?;
        let coordinates = self.draft_coordinates(seq, input)?;
        let at = self.cache.replica_of(seq)?;
        let Self { cache, replicas, spec, .. } = self;
        let executor = &mut replicas[at].executor;
        make_copies(executor, &copies)?;
        // Columns for images come after those of a hidden state.
        let width = executor.graph().given_width().unwrap_or(spec.d_model);
        let mut given = vec![0.0; tokens.len() * width];
        for (row, hidden) in given.chunks_exact_mut(width).zip(hidden.chunks_exact(spec.d_model)) {
            row[..spec.d_model].copy_from_slice(hidden);
        }
        let n = u32::try_from(tokens.len()).expect("a run has far fewer rows");
        let first = u32::try_from(start).expect("the context is shorter than 2^32 tokens");
        let (rows, positions): (Vec<u32>, Vec<u32>) = (0..n).map(|row| (row, first + row)).unzip();
        let window = cache.window_pages(seq)?.table();
        let (pages, windows, state) = ([cache.pages(seq)?], [window], cache.state(seq)?);
        let n_windows = usize::from(cache.geometry().window.is_some());
        executor.run_draft(&Batch {
            tokens,
            positions: &positions,
            kinds: &[],
            given: GivenRows { rows: &rows, values: &given, image_ends: &[], coordinates: &coordinates },
            sequence: &vec![0; tokens.len()],
            page_tables: &pages,
            window_tables: &windows[..n_windows],
            states: state.as_slice(),
            outputs: &[n - 1],
        })?;
        Ok(())
    }

    /// Returns what the last run of a sequence's draft block gave for its last token.
    pub(crate) fn draft_output(&self, seq: SequenceId) -> Result<DraftOutput<'_>> {
        let (hidden, logits) = self.executor(seq)?.draft_output().split_at(self.spec.d_model);
        Ok(DraftOutput { hidden, logits })
    }

    /// Returns the hidden state after a sequence's last token. `None`: it holds none, or lost it with a device.
    pub(crate) fn last_hidden(&self, seq: SequenceId) -> Result<Option<Vec<f32>>> {
        let slot = self.cache.state(seq)?.filter(|_| !self.cache.is_lost(seq));
        let executor = self.executor(seq)?;
        // It is the last of the recurrent states.
        let index = executor.graph().kv().states.len().checked_sub(1);
        let (Some(slot), Some(index), true) = (slot, index, self.has_draft_block()) else { return Ok(None) };
        let bytes = executor.one_state(index, slot)?;
        let (floats, _) = bytes.as_chunks::<4>();
        Ok(Some(floats.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()))
    }

    /// Drops what drafting has reserved. Unknown sequences are ignored.
    pub(crate) fn drop_draft_reserve(&mut self, seq: SequenceId) -> Result<()> {
        match self.cache.is_lost(seq) {
            true => Ok(()),
            false => self.cache.drop_reserved(seq),
        }
    }

    /// Returns the bytes that one draft reads relative to those of one token of the model. 0 without a draft block or an
    /// assistant.
    pub(crate) fn draft_cost(&self) -> f32 {
        let Some(draft) = &self.spec.draft else {
            return self.assistant_bytes() / self.model_bytes().max(1.0);
        };
        let (mut of_block, mut of_model) = (0.0, 0.0);
        for tensor in &self.source.placed {
            let bytes = self.bytes_per_token(tensor, Some(draft));
            let is_own = tensor.layer == Some(draft.layer_number);
            of_block += match tensor.role == draft.output_role(&self.spec) {
                true => bytes * draft.n_common_tokens as f32 / self.spec.n_vocab as f32,
                false if is_own => bytes,
                false => 0.0,
            };
            of_model += if is_own { 0.0 } else { bytes };
        }
        of_block / of_model.max(1.0)
    }

    /// Returns the matrix that drafts are multiplied by, as it is stored: (n_vocab, d_model). `None`: no draft block.
    ///
    /// Errors: a format without a decoder.
    pub(crate) fn draft_output_matrix(&self) -> Result<Option<Tensor>> {
        let Some(draft) = &self.spec.draft else { return Ok(None) };
        let layer = (draft.output == TensorOwner::Block).then_some(draft.layer_number);
        self.stored_matrix(draft.output_role(&self.spec), layer)
    }

    /// Returns a matrix as it is stored. `None`: the model has none of that role.
    pub(super) fn stored_matrix(&self, role: Role, layer: Option<usize>) -> Result<Option<Tensor>> {
        let found = self.source.placed.iter().find(|tensor| tensor.role == role && tensor.layer == layer);
        let part = found.and_then(|tensor| tensor.parts.first());
        Ok(part.map(|part| Tensor::host(&part.view())).transpose()?)
    }

    /// Bytes of the model's own tensors that one token reads.
    fn model_bytes(&self) -> f32 {
        let own = self.source.placed.iter().filter(|tensor| tensor.layer < Some(ASSISTANT_LAYERS));
        own.map(|tensor| self.bytes_per_token(tensor, None)).sum()
    }

    /// Bytes of a tensor that one token reads: of experts those that are chosen, of tables that are only looked up none.
    fn bytes_per_token(&self, tensor: &LocatedTensor, draft: Option<&DraftBlock>) -> f32 {
        let n_bytes: usize = tensor.parts.iter().map(|part| part.data.len()).sum();
        let layer = match tensor.layer {
            Some(layer) => match draft.filter(|draft| layer == draft.layer_number) {
                Some(draft) => Some(&draft.layer),
                None => self.spec.layers.get(layer),
            },
            None => None,
        };
        let share = match (tensor.role, layer.map(|layer| &layer.ffn)) {
            (Role::DraftEmbedding | Role::PerLayerEmbedding, _) => 0.0,
            (Role::TokenEmbedding, _) if !self.spec.tied_embeddings => 0.0,
            (role, Some(Ffn::Experts(experts))) if role.is_routed_matrix() => {
                experts.n_used as f32 / experts.n_experts as f32
            }
            _ => 1.0,
        };
        n_bytes as f32 * share
    }

    /// Returns what rotations take for the positions of a draft block's rows. Empty: the positions themselves.
    fn draft_coordinates(&self, seq: SequenceId, input: DraftInput<'_>) -> Result<Vec<[u32; N_COORDINATES]>> {
        let DraftInput { start, tokens, .. } = input;
        let on_grid = self.vision.as_ref().filter(|vision| vision.positions() == ImagePositions::Grid);
        let Some(vision) = on_grid else { return Ok(Vec::new()) };
        let chunk = Chunk { seq, tokens, logits: LogitsSelection::None };
        let mut walk = CoordinateWalk::default();
        let at = |position| coordinates_at(&vision.images, &self.cache, (&chunk, start), position, &mut walk);
        (start..start + tokens.len()).map(at).collect()
    }
}

/// Returns the most likely token (ties: the first) and its probability in percent. `logits` are of the first tokens, and
/// `others` of some more.
pub(crate) fn likeliest(logits: &[f32], others: &[(TokenId, f32)]) -> (TokenId, u8) {
    let (mut best, mut largest) = (0, f32::NEG_INFINITY);
    for (id, logit) in (0..).zip(logits.iter().copied()).chain(others.iter().copied()) {
        if logit > largest {
            (best, largest) = (id, logit);
        }
    }
    let weight = |logit: f32| (logit - largest).exp();
    let total: f32 = logits.iter().map(|&logit| weight(logit)).sum();
    let of_others: f32 = others.iter().map(|&(_, logit)| weight(logit)).sum();
    (best, (100.0 / (total + of_others)) as u8)
}

/// Sums in lanes, so that the compiler uses vectors.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 16;
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_all_elements() {
        for n in [0, 1, 15, 16, 17, 100] {
            let (a, b): (Vec<f32>, Vec<f32>) = (0..n).map(|i| (i as f32, (i % 7) as f32)).unzip();
            let expected: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
            assert_eq!(dot(&a, &b), expected, "{n}");
        }
    }
}
