//! LoRA adapters, y += b · (a · x) · scale, from GGUF files and PEFT folders.
//!
//! Guarantees: every tensor of an adapter matches a matrix of the model, or the adapter is refused by name. Knows
//! nothing of devices.

use std::collections::HashSet;

use kernels::RopeStyle;
use weights::{Container, DType, SharedBytes, TensorView};

use crate::arch::{self, Family, TensorPart};
use crate::error::{EngineError, Result};
use crate::spec::{ModelSpec, Role, Rope};

mod file;

pub use file::Adapter;

/// What an adapter adds to the product of one matrix.
#[derive(Debug, Clone)]
pub(crate) struct AdapterUpdate {
    pub role: Role,
    pub layer: Option<usize>,
    /// [rank, in]
    pub a: TensorPart,
    /// [out, rank]
    pub b: TensorPart,
    pub scale: f32,
}

/// The model to adapt.
#[derive(Clone, Copy)]
pub(crate) struct AdapterBase<'a> {
    pub family: Family,
    pub container: Container,
    pub spec: &'a ModelSpec,
}

/// Matches a whole adapter to a model.
///
/// Errors: `adapter.*` if it is for another model, adds to a matrix that not every token passes, or has its rows in
/// an order that cannot be converted.
pub(crate) fn fit(adapter: &Adapter, base: AdapterBase<'_>) -> Result<Vec<AdapterUpdate>> {
    adapter.check_family(base)?;
    let specs = base.spec.tensors();
    let mut left: HashSet<&str> = adapter.tensor_names().collect();
    let mut adapter_updates = Vec::new();
    for (role, layer, shape) in specs.iter().filter(|(role, _, shape)| shape.len() == 2 && is_product(*role))
    {
        let rows_of =
            |other: Role| specs.iter().find(|w| w.0 == other && w.1 == *layer).map(|(.., shape)| shape[0]);
        let candidates =
            arch::rows_by_name(base.family, adapter.container(), (*role, *layer), shape, &rows_of);
        let Some((name, rows)) = candidates.into_iter().find(|(name, _)| adapter.has(name)) else { continue };
        let (a, b) = adapter.pair(&name)?;
        left.remove(a.name);
        left.remove(b.name);
        let rank = check(&a, &b, shape[1], rows.n_total)?;
        let rows = rows.iter(shape[0]).collect::<Vec<_>>();
        let order = row_order(adapter, base, *role, *layer, shape[0])?;
        let rows = order.into_iter().map(|row| rows[row]);
        adapter_updates.push(AdapterUpdate {
            role: *role,
            layer: *layer,
            a: part(&a, vec![rank, shape[1]], a.data.clone()),
            b: part(&b, vec![shape[0], rank], gathered(&b, rows)),
            scale: adapter.scale(&name, rank),
        });
    }
    match left.into_iter().min() {
        Some(name) => Err(refused(
            adapter,
            format!("its tensor {name} matches no adaptable matrix of this {} model", base.spec.architecture),
        )),
        None if adapter_updates.is_empty() => Err(refused(adapter, "it contains no tensors".into())),
        None => Ok(adapter_updates),
    }
}

/// Returns whether every token is multiplied by this matrix. Includes the output matrix unless it is the embedding
/// table.
fn is_product(role: Role) -> bool {
    let is_table = matches!(
        role,
        Role::TokenEmbedding | Role::PositionEmbedding | Role::PerLayerEmbedding | Role::DraftEmbedding
    );
    !is_table && !role.is_expert() && !matches!(role, Role::Conv | Role::DeltaConv | Role::SsmConv)
}

/// Returns the rank.
///
/// Errors: `adapter.shape`, `adapter.dtype`.
fn check(a: &TensorView<'_>, b: &TensorView<'_>, n_in: usize, n_out: usize) -> Result<usize> {
    let rank = a.shape.first().copied().unwrap_or(0);
    if rank == 0 || a.shape != [rank, n_in] || b.shape != [n_out, rank] {
        return Err(EngineError::new(
            "adapter.shape",
            format!(
                "{} has shape {:?} and {} {:?}; the model's matrix is [{n_out}, {n_in}]",
                a.name, a.shape, b.name, b.shape
            ),
            "The adapter was made for another model: use it with that model.",
        ));
    }
    if a.dtype.codec().is_none() || b.dtype.codec().is_none() {
        let message = format!("{} is stored as {}, which cannot be computed with", a.name, a.dtype);
        return Err(EngineError::new("adapter.dtype", message, "Get the adapter in F32, F16 or BF16."));
    }
    Ok(rank)
}

fn part(view: &TensorView<'_>, shape: Vec<usize>, data: SharedBytes) -> TensorPart {
    TensorPart { name: view.name.to_owned(), dtype: view.dtype, shape, data }
}

/// Gathers rows. Consecutive ones are borrowed.
fn gathered(view: &TensorView<'_>, rows: impl Iterator<Item = usize>) -> SharedBytes {
    let rows: Vec<usize> = rows.collect();
    let n = row_bytes(view.dtype, view.shape);
    match rows.windows(2).all(|pair| pair[1] == pair[0] + 1) {
        true => view.data.slice(rows[0] * n..(rows[0] + rows.len()) * n),
        false => {
            let all = rows.iter().flat_map(|row| view.data[row * n..(row + 1) * n].iter().copied());
            SharedBytes::from_vec(all.collect())
        }
    }
}

fn row_bytes(dtype: DType, shape: &[usize]) -> usize {
    dtype.row_bytes(shape.last().copied().unwrap_or(0))
}

/// Returns which of the adapter's rows each of the model's rows is. A GGUF with interleaved rotation interleaves the
/// rows of query and key heads, which PEFT stores as halves.
fn row_order(
    adapter: &Adapter,
    base: AdapterBase<'_>,
    role: Role,
    layer: Option<usize>,
    n_rows: usize,
) -> Result<Vec<usize>> {
    let as_they_are = || Ok((0..n_rows).collect());
    if same_container(adapter.container(), base.container) {
        return as_they_are();
    }
    let has_attention = layer
        .and_then(|layer| base.spec.layers.get(layer))
        .is_some_and(|layer| layer.mixer.attention().is_some());
    if !has_attention && layer.is_some() && is_recurrent(role) {
        let what = "GGUF files store the rows of its recurrent layers in another order";
        return Err(refused(adapter, what.into()));
    }
    interleaved_rows(base.spec, role, layer, n_rows).map_or_else(as_they_are, Ok)
}

/// Returns which row of Hugging Face's matrix each row of the model's is, where the model rotates neighbors. `None`: in
/// the same order.
pub(crate) fn interleaved_rows(
    spec: &ModelSpec,
    role: Role,
    layer: Option<usize>,
    n_rows: usize,
) -> Option<Vec<usize>> {
    let attention = spec.layers.get(layer?)?.mixer.attention()?;
    match (&attention.rope, role) {
        (Rope::Rotary(rotary), Role::Query | Role::Key) if rotary.style == RopeStyle::Interleaved => {
            let (head_dim, half) = (attention.head_dim, rotary.n_rot / 2);
            let row = |row: usize| {
                let (head, i) = (row / head_dim, row % head_dim);
                head * head_dim + if i < 2 * half { i / 2 + i % 2 * half } else { i }
            };
            Some((0..n_rows).map(row).collect())
        }
        _ => None,
    }
}

fn is_recurrent(role: Role) -> bool {
    matches!(role, Role::DeltaQkv | Role::DeltaGate | Role::DeltaBeta | Role::DeltaAlpha | Role::DeltaOut)
}

fn same_container(a: Container, b: Container) -> bool {
    matches!(a, Container::Gguf { .. }) == matches!(b, Container::Gguf { .. })
}

/// Error for an adapter that this model cannot use.
pub(crate) fn refused(adapter: &Adapter, why: String) -> EngineError {
    EngineError::new(
        "adapter.unfit",
        format!("the adapter {} cannot be used: {why}", adapter.name()),
        "Use an adapter that was made for this model, with plain LoRA of linear layers only.",
    )
}
