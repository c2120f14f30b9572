//! Trained pairs as files: a PEFT folder's weights and settings, and a GGUF adapter.

use serde_json::json;
use weights::DType;
use weights::write::{GgufWriter, OwnedValue};

use super::lora::{LoraPair, LoraShape};
use super::pass::Parameter;
use super::safetensors::{self, NamedMatrix};
use crate::adapter::interleaved_rows;
use crate::arch::{self, Family};
use crate::error::Result;
use crate::spec::ModelSpec;

/// Returns matrices with PEFT's names as safetensors.
pub(super) fn safetensors(pairs: &[LoraPair], parameters: &[Parameter]) -> Vec<u8> {
    let mut matrices = Vec::with_capacity(parameters.len());
    for (pair, values) in pairs.iter().zip(parameters.chunks_exact(2)) {
        let names = pair.names();
        let a = NamedMatrix { name: names.a, shape: [pair.rank, pair.n_in], values: &values[0] };
        let b = NamedMatrix { name: names.b, shape: [pair.n_out, pair.rank], values: &values[1] };
        matrices.extend([a, b]);
    }
    safetensors::to_bytes(matrices)
}

/// Returns adapter_config.json.
pub(super) fn peft_config(pairs: &[LoraPair], shape: LoraShape, base: &str) -> String {
    let mut modules: Vec<&str> = pairs.iter().filter_map(|pair| pair.module.rsplit('.').next()).collect();
    modules.sort_unstable();
    modules.dedup();
    let config = json!({
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": shape.rank,
        "lora_alpha": shape.alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": false,
        "use_rslora": false,
        "use_dora": false,
        "inference_mode": true,
        "target_modules": modules,
    });
    format!("{config:#}\n")
}

/// Returns a GGUF adapter. `spec` is the structure that the model has as a GGUF.
///
/// Errors: `model.architecture_unknown`.
pub(super) fn gguf(
    (pairs, parameters): (&[LoraPair], &[Parameter]),
    family: Family,
    spec: &ModelSpec,
    alpha: f64,
) -> Result<Vec<u8>> {
    let mut writer = GgufWriter::new();
    writer.set("general.type", OwnedValue::Str("adapter".into()));
    writer.set("general.architecture", OwnedValue::Str(family.gguf_name().into()));
    writer.set("adapter.type", OwnedValue::Str("lora".into()));
    writer.set("adapter.lora.alpha", OwnedValue::F32(alpha as f32));
    for (pair, values) in pairs.iter().zip(parameters.chunks_exact(2)) {
        let Some(first) = pair.users.first() else { continue };
        let name = arch::gguf_tensor_name(family.gguf_name(), first.role, Some(first.layer))?;
        let mut b = Vec::with_capacity(values[1].len());
        for row in gguf_rows(pair, spec) {
            b.extend_from_slice(&values[1][row * pair.rank..(row + 1) * pair.rank]);
        }
        writer.encode(&format!("{name}.lora_a"), DType::F32, &[pair.rank, pair.n_in], &values[0]);
        writer.encode(&format!("{name}.lora_b"), DType::F32, &[pair.n_out, pair.rank], &b);
    }
    Ok(writer.to_bytes())
}

/// Returns which row of B each row of the GGUF's matrix has. `rows` of a user are in the order of the base.
fn gguf_rows(pair: &LoraPair, spec: &ModelSpec) -> Vec<usize> {
    let mut order: Vec<usize> = (0..pair.n_out).collect();
    for user in &pair.users {
        if let Some(rows) = interleaved_rows(spec, user.role, Some(user.layer), user.rows.len()) {
            // The rows of one role stand together in every fused matrix.
            let first = user.rows.iter().copied().min().unwrap_or(0);
            for (i, row) in rows.into_iter().enumerate() {
                order[first + i] = first + row;
            }
        }
    }
    order
}
