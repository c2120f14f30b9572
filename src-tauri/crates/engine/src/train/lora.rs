//! Which matrices are trained, their names in adapter files, and their first values.

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use weights::{Container, TensorView, WeightFile};

use super::pass::Parameter;
use crate::adapter::{Adapter, AdapterBase, interleaved_rows, refused};
use crate::arch;
use crate::error::{EngineError, Result};
use crate::spec::Role;

/// Matrices that get a low-rank pair.
const TARGETS: [Role; 7] =
    [Role::Query, Role::Key, Role::Value, Role::AttentionOut, Role::Gate, Role::Up, Role::Down];
/// Above it a pair is no longer small.
pub const MAX_RANK: usize = 512;

/// Size and strength of all pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoraShape {
    /// Rows of A and columns of B.
    pub rank: usize,
    /// The update is B · A · alpha / rank.
    pub alpha: f64,
}

/// Names of a pair in adapter files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairNames {
    /// A, as PEFT calls it.
    pub a: String,
    /// B, as PEFT calls it.
    pub b: String,
}

/// A pair A [rank, in], B [out, rank] beside one matrix as Hugging Face stores it.
#[derive(Debug, Clone)]
pub(crate) struct LoraPair {
    /// Full name of the matrix without `.weight`.
    pub module: String,
    pub n_in: usize,
    /// Rows of the whole matrix; several roles may share them.
    pub n_out: usize,
    pub rank: usize,
    pub scale: f32,
    pub users: Vec<PairUser>,
}

/// A role that a pair adds to.
#[derive(Debug, Clone)]
pub(crate) struct PairUser {
    pub role: Role,
    pub layer: usize,
    /// Row of B for each row of the role's matrix.
    pub rows: Arc<[usize]>,
}

impl LoraPair {
    /// Returns the names of the two matrices.
    pub fn names(&self) -> PairNames {
        let name = |which: &str| format!("base_model.model.{}.lora_{which}.weight", self.module);
        PairNames { a: name("A"), b: name("B") }
    }
}

/// Lists the matrices of a model that can be trained, each with a pair of this shape.
pub(crate) fn pairs(file: &WeightFile, base: AdapterBase<'_>, shape: LoraShape) -> Vec<LoraPair> {
    let specs = base.spec.tensors();
    let mut pairs: Vec<LoraPair> = Vec::new();
    for (role, layer, matrix) in specs.iter().filter(|(role, ..)| TARGETS.contains(role)) {
        let (&[n_out, n_in], Some(layer)) = (&matrix[..], *layer) else { continue };
        let rows_of = |other: Role| {
            specs.iter().find(|w| w.0 == other && w.1 == Some(layer)).map(|(.., shape)| shape[0])
        };
        let key = (*role, Some(layer));
        let named = arch::rows_by_name(base.family, Container::Safetensors, key, matrix, &rows_of);
        let is_stored = |name: &str| file.tensor(name).is_some();
        let at = named.iter().position(|(name, _)| is_stored(name)).unwrap_or(0);
        let Some((name, selection)) = named.into_iter().nth(at) else { continue };
        let stored: Vec<usize> = selection.iter(n_out).collect();
        let rows: Arc<[usize]> = match base.container {
            Container::Safetensors => stored.into(),
            Container::Gguf { .. } => match interleaved_rows(base.spec, *role, Some(layer), n_out) {
                Some(order) => order.into_iter().map(|row| stored[row]).collect(),
                None => stored.into(),
            },
        };
        let module = name.strip_suffix(".weight").unwrap_or(&name).to_owned();
        let user = PairUser { role: *role, layer, rows };
        match pairs.iter_mut().find(|pair| pair.module == module) {
            Some(pair) => pair.users.push(user),
            None => pairs.push(LoraPair {
                module,
                n_in,
                n_out: selection.n_total,
                rank: shape.rank,
                scale: (shape.alpha / shape.rank as f64) as f32,
                users: vec![user],
            }),
        }
    }
    pairs
}

/// Returns the usual first values: A uniform within ±1/√in (He et al. 2015 with a = √5, as PEFT has it), B zero.
pub(crate) fn initial_parameters(pairs: &[LoraPair], seed: u64) -> Vec<Parameter> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut all = Vec::with_capacity(2 * pairs.len());
    for pair in pairs {
        let bound = 1.0 / (pair.n_in as f32).sqrt();
        all.push((0..pair.rank * pair.n_in).map(|_| random.random_range(-bound..bound)).collect());
        all.push(vec![0.0; pair.n_out * pair.rank]);
    }
    all
}

/// Reads the pairs and parameters of an adapter. Matrices that it does not change get no pair.
///
/// Errors: `adapter.*` if it was made for another model, or is not in PEFT's format.
pub(crate) fn read(
    file: &WeightFile,
    base: AdapterBase<'_>,
    adapter: &Adapter,
) -> Result<(Vec<LoraPair>, Vec<Parameter>)> {
    if adapter.container() != Container::Safetensors {
        return Err(refused(adapter, "training continues from PEFT folders, not from GGUF files".into()));
    }
    let all = pairs(file, base, LoraShape { rank: 1, alpha: 1.0 });
    let (mut kept, mut parameters) = (Vec::new(), Vec::new());
    for mut pair in all {
        let name = format!("{}.weight", pair.module);
        if !adapter.has(&name) {
            continue;
        }
        let (a, b) = adapter.pair(&name)?;
        pair.rank = a.shape.first().copied().unwrap_or(0);
        pair.scale = adapter.scale(&name, pair.rank);
        parameters.push(matrix(&a, [pair.rank, pair.n_in])?);
        parameters.push(matrix(&b, [pair.n_out, pair.rank])?);
        kept.push(pair);
    }
    let known: Vec<PairNames> = kept.iter().map(LoraPair::names).collect();
    let is_known = |name: &str| known.iter().any(|names| names.a == name || names.b == name);
    match adapter.tensor_names().filter(|name| !is_known(name)).min() {
        Some(name) => Err(refused(adapter, format!("its tensor {name} is beside no matrix that is trained"))),
        None if kept.is_empty() => Err(refused(adapter, "it contains no tensors".into())),
        None => Ok((kept, parameters)),
    }
}

fn matrix(view: &TensorView<'_>, shape: [usize; 2]) -> Result<Parameter> {
    let wrong = |code, message: String| {
        EngineError::new(code, message, "Use an adapter in float32, float16 or bfloat16 that fits the model.")
    };
    if shape[0] == 0 || shape[1] == 0 || view.shape != shape {
        let message = format!("{} has shape {:?}, the model needs {shape:?}", view.name, view.shape);
        return Err(wrong("adapter.shape", message));
    }
    let Some(codec) = view.dtype.codec() else {
        let message = format!("{} is stored as {}, which cannot be computed with", view.name, view.dtype);
        return Err(wrong("adapter.dtype", message));
    };
    let mut values = vec![0.0; shape[0] * shape[1]];
    for (row, out) in values.chunks_exact_mut(shape[1]).enumerate() {
        let n = view.dtype.row_bytes(shape[1]);
        (codec.decode)(&view.data[row * n..(row + 1) * n], out);
    }
    Ok(values)
}

/// Checks what a user asked for.
///
/// Errors: `tune.rank`, `tune.alpha`.
pub(crate) fn check(shape: LoraShape) -> Result<()> {
    if !(1..=MAX_RANK).contains(&shape.rank) {
        let message = format!("the rank {} is not within 1 to {MAX_RANK}", shape.rank);
        return Err(EngineError::new("tune.rank", message, "Use a rank such as 16."));
    }
    if !(shape.alpha.is_finite() && shape.alpha > 0.0) {
        let message = format!("alpha is {}", shape.alpha);
        return Err(EngineError::new(
            "tune.alpha",
            message,
            "Use a positive number, such as twice the rank.",
        ));
    }
    Ok(())
}
