//! Changes the adapters of a loaded model without touching its weights.

use weights::WeightFile;

use super::Model;
use crate::adapter::{Adapter, AdapterBase, fit};
use crate::error::{EngineError, Result};
use crate::kv::checksum::xxh64;

impl Model {
    /// Applies adapters given as `F[:SCALE]`. Does nothing for an empty list. Errors as `set_adapters`.
    pub fn adapt(&mut self, named: &[String]) -> Result<()> {
        if named.is_empty() {
            return Ok(());
        }
        let opened = named.iter().map(|named| Adapter::open_scaled(named)).collect::<Result<Vec<_>>>()?;
        let adapters: Vec<(&Adapter, f32)> =
            opened.iter().map(|(adapter, scale)| (adapter, *scale)).collect();
        self.set_adapters(&adapters)
    }

    /// Replaces the adapters by these, each with its factor. The weights are neither read nor changed. All sequences
    /// end: their keys and values belong to other weights.
    ///
    /// Errors: `adapter.*` if one does not fit this model; nothing has changed then.
    pub fn set_adapters(&mut self, adapters: &[(&Adapter, f32)]) -> Result<()> {
        let base = AdapterBase {
            family: self.source.family,
            container: self.source.file.container(),
            spec: &self.spec,
        };
        let mut adapter_updates = Vec::new();
        for (adapter, scale) in adapters {
            if !scale.is_finite() {
                let message = format!("the strength {scale} of {} is not valid", adapter.name());
                return Err(EngineError::new("adapter.scale", message, "Use a number, such as 1 or 0.5."));
            }
            for mut update in fit(adapter, base)? {
                update.scale *= scale;
                adapter_updates.push(update);
            }
        }
        let fingerprint = fingerprint(&self.source.file, adapters);
        self.rebuild(&adapter_updates, fingerprint)
    }
}

/// Fingerprint of the weights and their adapters: checkpoints belong to one combination.
fn fingerprint(file: &WeightFile, adapters: &[(&Adapter, f32)]) -> String {
    let own = file.fingerprint();
    if adapters.is_empty() {
        return own;
    }
    let added: String =
        adapters.iter().map(|(adapter, scale)| format!("{}*{scale};", adapter.fingerprint())).collect();
    format!("{own}{:016x}", xxh64(added.as_bytes()))
}
