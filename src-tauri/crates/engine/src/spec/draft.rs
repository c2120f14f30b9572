//! Structure of a draft block: a layer after the model's last that drafts further tokens (multi-token prediction).

use std::fmt;

use super::tensors::{AddTensor, norm};
use super::{LayerSpec, ModelSpec, Norm, Role};

/// u = projection(norm(embedding of the next token), norm(h)), where h is the model's hidden state after its output
/// norm; y = norm(layer(u)); logits = output matrix · y. The next draft takes y for h.
///
/// The layer has its own keys and values. A row is of a token and of the hidden state before it, so that there is
/// none of the first token: as in vLLM. llama.cpp adds one with a hidden state of zeros.
#[derive(Clone, PartialEq)]
pub struct DraftBlock {
    /// Number of the layer in the file, see `MTP_LAYERS`.
    pub layer_number: usize,
    /// The layer: attention and a feed-forward part.
    pub layer: LayerSpec,
    /// Norm of the embedding, of the hidden state, and of the layer's output.
    pub norm: Norm,
    /// Where the embedding table comes from.
    pub embedding: TensorOwner,
    /// Where the output matrix comes from.
    pub output: TensorOwner,
    /// Where the norm of the layer's output comes from.
    pub output_norm: TensorOwner,
    /// Rows of the output matrix that a draft is multiplied by: those of the lowest ids.
    pub n_common_tokens: usize,
}

/// Names what stored contexts depend on, of which the common tokens are no part.
impl fmt::Debug for DraftBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { layer_number, layer, norm, embedding, output, output_norm, n_common_tokens: _ } = self;
        f.debug_struct("DraftBlock")
            .field("layer_number", layer_number)
            .field("layer", layer)
            .field("norm", norm)
            .field("embedding", embedding)
            .field("output", output)
            .field("output_norm", output_norm)
            .finish()
    }
}

/// Common tokens of a large vocabulary. Merges and scores order its ids by frequency: of English prose, source code and
/// German prose, 94, 93 and 83 % are among the first 32,768 of Qwen 2.5's 151,936.
pub const COMMON_TOKENS: usize = 32 << 10;

/// Layer numbers from here on are those of a safetensors file's `mtp.layers`. A GGUF numbers them after the model's own.
pub const MTP_LAYERS: usize = 1 << 20;

/// Whose tensor a part of a draft block uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TensorOwner {
    /// The model's.
    Model,
    /// The block has one.
    Block,
}

impl DraftBlock {
    /// Leaves out rows of the output matrix beyond the first `n`, if these are less than half of it: most of a draft is
    /// to read this matrix. What a text has of the other tokens is drafted all the same (`ContextTokens`).
    pub fn limit_tokens(&mut self, n: usize, spec: &ModelSpec) {
        let is_worth = n <= spec.n_vocab / 2 && !spec.output_bias;
        self.n_common_tokens = if is_worth { n } else { spec.n_vocab };
    }

    /// Returns a logit as the model's output would give it.
    pub fn capped(&self, logit: f32, spec: &ModelSpec) -> f32 {
        if self.output == TensorOwner::Block {
            return logit;
        }
        let logit = spec.output_scale.map_or(logit, |factor| logit * factor);
        spec.output_softcap.map_or(logit, |cap| cap * (logit / cap).tanh())
    }

    /// Returns the role of the output matrix.
    pub fn output_role(&self, spec: &ModelSpec) -> Role {
        match self.output {
            TensorOwner::Block => Role::DraftOutput,
            TensorOwner::Model if spec.tied_embeddings => Role::TokenEmbedding,
            TensorOwner::Model => Role::Output,
        }
    }

    pub(super) fn tensors(&self, n_vocab: usize, d: usize, add: &mut AddTensor) {
        add(Role::DraftProjection, vec![d, 2 * d]);
        norm(self.norm, d, [Role::DraftEmbeddingNorm; 2], add);
        norm(self.norm, d, [Role::DraftHiddenNorm; 2], add);
        for (owner, role) in [(self.embedding, Role::DraftEmbedding), (self.output, Role::DraftOutput)] {
            match owner {
                TensorOwner::Block => add(role, vec![n_vocab, d]),
                TensorOwner::Model => {}
            }
        }
        match self.output_norm {
            TensorOwner::Block => norm(self.norm, d, [Role::DraftOutputNorm; 2], add),
            TensorOwner::Model => {}
        }
        self.layer.tensors(d, add);
    }
}
