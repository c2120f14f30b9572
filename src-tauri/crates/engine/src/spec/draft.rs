//! Structure of a draft block: a layer after the model's last that drafts further tokens (multi-token prediction).

use super::tensors::{AddTensor, norm};
use super::{LayerSpec, Norm, Role};

/// u = projection(norm(embedding of the next token), norm(h)), where h is the model's hidden state after its output
/// norm; y = norm(layer(u)); logits = output matrix · y. The next draft takes y for h.
///
/// The layer has its own keys and values. A row is of a token and of the hidden state before it, so that there is
/// none of the first token: as in vLLM. llama.cpp adds one with a hidden state of zeros.
#[derive(Debug, Clone, PartialEq)]
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
}

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
