//! Adapters of a loaded model, changed while its weights stay where they are.

use weights::WeightFile;

use super::Model;
use crate::adapter::{Adapter, AdapterBase, fit};
use crate::error::{EngineError, Result};
use crate::kv::checksum::xxh64;

impl Model {
    /// As `set_adapters`, from files named as `F[:SCALE]`; nothing happens where there are none.
    pub fn adapt(&mut self, named: &[String]) -> Result<()> {
        if named.is_empty() {
            return Ok(());
        }
        let opened = named.iter().map(|named| Adapter::open_scaled(named)).collect::<Result<Vec<_>>>()?;
        let adapters: Vec<(&Adapter, f32)> =
            opened.iter().map(|(adapter, scale)| (adapter, *scale)).collect();
        self.set_adapters(&adapters)
    }

    /// From now on what these adapters add, each times its factor, is added, and nothing of earlier ones. The weights
    /// themselves are neither read nor changed. No sequence survives: their keys and values are of other weights.
    ///
    /// Errors `adapter.*`: one of them doesn't fit this model; nothing has changed.
    pub fn set_adapters(&mut self, adapters: &[(&Adapter, f32)]) -> Result<()> {
        let base = AdapterBase {
            family: self.source.family,
            container: self.source.file.container(),
            spec: &self.spec,
        };
        let mut adapter_updates = Vec::new();
        for (adapter, scale) in adapters {
            if !scale.is_finite() {
                let message = format!("{} is to be scaled by {scale}", adapter.name());
                return Err(EngineError::new("adapter.scale", message, "Give a number, such as 1 or 0.5."));
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

/// Of the weights together with what is added to them: checkpoints are of one such set.
fn fingerprint(file: &WeightFile, adapters: &[(&Adapter, f32)]) -> String {
    let own = file.fingerprint();
    if adapters.is_empty() {
        return own;
    }
    let added: String =
        adapters.iter().map(|(adapter, scale)| format!("{}*{scale};", adapter.fingerprint())).collect();
    format!("{own}{:016x}", xxh64(added.as_bytes()))
}
