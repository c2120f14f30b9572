//! Structure of an assistant: a small model without keys and values that drafts for another (Gemma 4's multi-token
//! prediction).
//!
//! u = projection(embedding of the last token, h), both of the target, the model that it drafts for: h is the target's
//! hidden state after its output norm. y = norm(layers(u)); logits = output matrix · y. The next draft takes
//! next_projection · y for h. Layers attend the keys and values of the target, and all drafts have the same position.

use super::tensors::AddTensor;
use super::{KvSource, LayerSpec, ModelSpec, Role};

/// Layer numbers from here on are those of an assistant in use. Its tensors outside of layers have this number.
pub const ASSISTANT_LAYERS: usize = 1 << 21;

/// How a model takes part in drafting with an assistant.
#[derive(Debug, Clone, PartialEq)]
pub enum Assistance {
    /// The model is an assistant: it only drafts for another model.
    Drafts(AssistantHead),
    /// This assistant drafts for the model. Its layers name the layers whose keys and values they attend.
    DraftedBy(Box<ModelSpec>),
}

/// What joins an assistant to its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AssistantHead {
    /// Width of the target's residual stream.
    pub target_width: usize,
    /// Which tokens are considered. `None`: all.
    pub clusters: Option<TokenClusters>,
}

/// Tokens in clusters of equal size. Only those of the likeliest clusters are considered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenClusters {
    /// Number of clusters. Divides the vocabulary.
    pub n_clusters: usize,
    /// Clusters that are considered.
    pub n_used: usize,
}

/// Why an assistant cannot draft for a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AssistantMismatch {
    /// Different numbers of tokens: the assistant's and the model's.
    Vocabulary(usize, usize),
    /// Anything else, as the end of a sentence about the assistant.
    Structure(String),
}

impl AssistantHead {
    pub(super) fn tensors(&self, d: usize, add: &mut AddTensor) {
        add(Role::DraftProjection, vec![d, 2 * self.target_width]);
        add(Role::DraftNextProjection, vec![self.target_width, d]);
    }
}

impl ModelSpec {
    /// Returns what joins the model to its target. `None`: it is no assistant.
    pub fn assistant_head(&self) -> Option<&AssistantHead> {
        match &self.assistance {
            Some(Assistance::Drafts(head)) => Some(head),
            Some(Assistance::DraftedBy(_)) | None => None,
        }
    }

    /// Returns the assistant in use.
    pub fn assistant(&self) -> Option<&ModelSpec> {
        match &self.assistance {
            Some(Assistance::DraftedBy(assistant)) => Some(assistant),
            Some(Assistance::Drafts(_)) | None => None,
        }
    }

    /// Iterates over the layers, also those of the assistant in use.
    pub fn layers_with_assistant_mut(&mut self) -> impl Iterator<Item = &mut LayerSpec> {
        let assistant = match &mut self.assistance {
            Some(Assistance::DraftedBy(assistant)) => Some(&mut assistant.layers),
            Some(Assistance::Drafts(_)) | None => None,
        };
        self.layers.iter_mut().chain(assistant.into_iter().flatten())
    }

    /// Lets an assistant draft for the model, whose windows must be those of its file.
    pub fn draft_by(&mut self, mut assistant: ModelSpec) -> Result<(), AssistantMismatch> {
        let mismatch = |text: String| Err(AssistantMismatch::Structure(text));
        let Some(head) = assistant.assistant_head() else { return mismatch("is no assistant".into()) };
        if head.target_width != self.d_model {
            return mismatch(format!(
                "drafts for models of width {}, not {}",
                head.target_width, self.d_model
            ));
        }
        if assistant.n_vocab != self.n_vocab {
            return Err(AssistantMismatch::Vocabulary(assistant.n_vocab, self.n_vocab));
        }
        for layer in &mut assistant.layers {
            self.lend_keys(layer)?;
        }
        self.assistance = Some(Assistance::DraftedBy(Box::new(assistant)));
        Ok(())
    }

    /// Lets a layer attend what the row before it attended in the last layer of its kind that has keys and values.
    fn lend_keys(&self, layer: &mut LayerSpec) -> Result<(), AssistantMismatch> {
        let mismatch = |text: String| Err(AssistantMismatch::Structure(text));
        let Some(attention) = layer.mixer.attention_mut() else {
            return mismatch("has another mixer".into());
        };
        let KvSource::OfTarget { slides } = attention.keys else { return mismatch("has keys".into()) };
        let has_own = |source| matches!(source, KvSource::Projected | KvSource::SharedByValues);
        let attentions = self.layers.iter().map(|layer| layer.mixer.attention());
        let found = attentions.enumerate().rev().find_map(|(index, attention)| {
            let attention = attention.filter(|it| has_own(it.keys) && it.window.is_some() == slides)?;
            Some((index, attention))
        });
        let kind = if slides { "a window" } else { "full attention" };
        let Some((index, lender)) = found else {
            return mismatch(format!("needs a layer with {kind}, which the model lacks"));
        };
        let sizes = [&*attention, lender].map(|it| (it.n_kv_heads, it.head_dim));
        if sizes[0] != sizes[1] {
            let [(n, width), (n_found, width_found)] = sizes;
            return mismatch(format!(
                "needs {n} key heads of {width} numbers where the model has {kind}, not {n_found} of {width_found}"
            ));
        }
        attention.keys = KvSource::OfLayer(index);
        attention.window = lender.window;
        Ok(())
    }
}
