//! Files of assistants, which draft for another model.

use weights::WeightFile;

use super::{Family, LocatedTensor, gemma4_assistant, tensor_names, tensors};
use crate::error::Result;
use crate::spec::{ASSISTANT_LAYERS, ModelSpec, Role, TensorSpec};

/// Returns whether a file holds a model that only drafts for others. False for a file of no known family.
pub fn is_assistant(file: &WeightFile) -> bool {
    super::find(file).is_ok_and(|family| family.only_drafts())
}

/// Returns whether models of an architecture only draft for others. `architecture`: the name that GGUF has for it.
pub fn only_drafts(architecture: &str) -> bool {
    drafts_for(architecture).is_some()
}

/// Returns the architecture that models of `architecture` draft for, where they do nothing else. Both are GGUF's names.
pub fn drafts_for(architecture: &str) -> Option<&'static str> {
    super::ARCHITECTURES.iter().find(|family| family.gguf_name() == architecture)?.drafts_for()
}

/// Returns the matrix of an assistant's token clusters. `None` without clusters.
pub(super) fn clusters_tensor(spec: &ModelSpec) -> Option<TensorSpec> {
    let clusters = spec.assistant_head()?.clusters?;
    Some((Role::DraftClusters, None, vec![clusters.n_clusters, spec.d_model]))
}

/// Finds every tensor of an assistant's file, under the layer numbers that it has beside its target.
///
/// Errors: as for `tensors`.
pub(crate) fn assistant_tensors(
    file: &WeightFile,
    family: Family,
    spec: &ModelSpec,
) -> Result<Vec<LocatedTensor>> {
    let mut placed = tensors(file, family, spec)?;
    if let Some((role, layer, shape)) = clusters_tensor(spec) {
        let parts = tensor_names::parts(file, family, (role, layer), &shape, &|_| None)?;
        placed.push(LocatedTensor { role, layer, parts });
    }
    for tensor in &mut placed {
        tensor.layer = Some(ASSISTANT_LAYERS + tensor.layer.unwrap_or(0));
    }
    Ok(placed)
}

/// Reads the tokens of an assistant's clusters, one cluster after the other. Empty without clusters.
///
/// Errors: `model.tensor_missing`, `model.tensor_shape`, `model.tensor_values`.
pub(crate) fn cluster_tokens(file: &WeightFile, spec: &ModelSpec) -> Result<Vec<u32>> {
    match spec.assistant_head().and_then(|head| head.clusters) {
        Some(_) => gemma4_assistant::token_order(file, spec.n_vocab),
        None => Ok(Vec::new()),
    }
}
