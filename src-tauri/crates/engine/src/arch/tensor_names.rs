//! Where a role's values are in a file: in their own tensor, in rows of a shared one, or in a tensor per expert.
//!
//! Contiguous rows are borrowed from the file, others copied.

use std::ops::Range;

use weights::{Container, DType, SharedBytes, TensorView, WeightFile};

use super::{Family, check_shape, codec, fp8, tensor_missing};
use crate::error::{DAMAGED, EngineError, Result};
use crate::spec::{MTP_LAYERS, Role};

mod heads;
mod key_heads;

/// A tensor's name and which part of it a role occupies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorName {
    /// Without layer prefix and root. A `#` stands for the number of an expert or head; each then has its own tensor.
    pub name: &'static str,
    /// Part of the tensor that the role occupies.
    pub form: TensorForm,
}

/// How roles share a stored tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TensorForm {
    /// The tensor has one role.
    Whole,
    /// Consecutive rows of these roles.
    Rows(&'static [Role]),
    /// Alternating rows of these roles.
    Interleaved(&'static [Role]),
    /// Stored as [in, out], with consecutive columns of these roles.
    Transposed(&'static [Role]),
    /// Stored as [in, out], with alternating columns of these roles.
    TransposedInterleaved(&'static [Role]),
    /// Rows that alternate by key head of a DeltaNet.
    ByKeyHead,
    /// The rows after the first ones, which no token uses.
    After(usize),
    /// The tensor has one role, and its dimensions may be divided otherwise.
    Flat,
    /// Stored as [heads · (keys + values), rank], each head's rows for keys and then for values: the former, transposed.
    HeadKeys,
    /// The same tensor: each head's rows for values.
    HeadValues,
    /// Stored as [out, channels, frames, y, x]: one frame of `n`.
    Frame {
        /// Which frame.
        index: usize,
        /// Frames in the tensor.
        n: usize,
    },
    /// Stored as [places, axes, width]: the tables of both axes, place by place.
    Places,
    /// MXFP4 as Hugging Face stores it, `name` + "_blocks" and "_scales", with alternating rows of these roles.
    Mxfp4(&'static [Role]),
}

impl TensorName {
    /// Names a tensor whose consecutive rows have the roles `of`.
    pub const fn rows(name: &'static str, of: &'static [Role]) -> Self {
        Self { name, form: TensorForm::Rows(of) }
    }
}

impl From<&'static str> for TensorName {
    fn from(name: &'static str) -> Self {
        Self { name, form: TensorForm::Whole }
    }
}

/// A tensor to upload.
#[derive(Debug, Clone)]
pub struct TensorPart {
    /// Name in the file.
    pub name: String,
    /// Data type of `data`.
    pub dtype: DType,
    /// Row-major, outermost first.
    pub shape: Vec<usize>,
    /// Values, encoded as `dtype`.
    pub data: SharedBytes,
}

impl TensorPart {
    /// Returns a view of the tensor.
    pub fn view(&self) -> TensorView<'_> {
        TensorView { name: &self.name, dtype: self.dtype, shape: &self.shape, data: self.data.clone() }
    }
}

/// Prefixes of Hugging Face names: text models, and the language parts of multimodal models.
const ROOTS: [&str; 10] = [
    "model.",
    "",
    "model.language_model.",
    "model.text_model.",
    "language_model.model.",
    "language_model.",
    "transformer.",
    "bert.",
    "roberta.",
    "backbone.",
];

/// Returns the names that a tensor may have in a file, the most common first.
fn names(container: Container, family: Family, candidate: &TensorName, layer: Option<usize>) -> Vec<String> {
    let name = match candidate.form {
        TensorForm::Mxfp4(_) => format!("{}_blocks", candidate.name),
        _ => candidate.name.to_owned(),
    };
    match (container, layer) {
        (Container::Gguf { .. }, None) => vec![name],
        (Container::Gguf { .. }, Some(layer)) => vec![format!("blk.{layer}.{name}")],
        (Container::Safetensors, None) => ROOTS.iter().map(|root| format!("{root}{name}")).collect(),
        (Container::Safetensors, Some(layer)) if layer >= MTP_LAYERS => {
            let layer = layer - MTP_LAYERS;
            vec![format!("mtp.layers.{layer}.{name}"), format!("mtp.{name}")]
        }
        (Container::Safetensors, Some(layer)) => {
            let layers = family.hf_layers();
            ROOTS.iter().map(|root| format!("{root}{layers}.{layer}.{name}")).collect()
        }
    }
}

/// Finds a role's tensor in a file, with its full name. For a `#`, expert 0 stands for all.
pub(super) fn find(
    file: &WeightFile,
    family: Family,
    role: Role,
    layer: Option<usize>,
) -> Option<(TensorName, String)> {
    let exists = |name: &String| file.tensor(&name.replace('#', "0")).is_some();
    family.tensor_names(file.container(), role).into_iter().find_map(|candidate| {
        let name = names(file.container(), family, &candidate, layer).into_iter().find(exists)?;
        Some((candidate, name))
    })
}

/// A role's rows in a tensor: every `step`-th from `start` on.
pub(crate) struct RowSelection {
    /// Rows of the whole tensor.
    pub n_total: usize,
    start: usize,
    step: usize,
}

impl RowSelection {
    /// Iterates over the first `n` of them.
    pub fn iter(&self, n: usize) -> impl Iterator<Item = usize> {
        (0..n).map(|i| self.start + i * self.step)
    }
}

/// Returns every name that a matrix may have in a container, the most common first, and its rows there.
pub(crate) fn rows_by_name(
    family: Family,
    container: Container,
    (role, layer): (Role, Option<usize>),
    shape: &[usize],
    rows_of: &dyn Fn(Role) -> Option<usize>,
) -> Vec<(String, RowSelection)> {
    let candidates = family.tensor_names(container, role).into_iter();
    let named = candidates.flat_map(|candidate| {
        let cut = RoleRows::new(role, shape, candidate.form, rows_of);
        let rows = move || RowSelection { n_total: cut.n_total, start: cut.start, step: cut.step };
        names(container, family, &candidate, layer).into_iter().map(move |name| (name, rows()))
    });
    named.collect()
}

/// Returns the name for messages about a missing role.
pub(super) fn expected_name(
    container: Container,
    family: Family,
    role: Role,
    layer: Option<usize>,
) -> String {
    let candidates = family.tensor_names(container, role);
    candidates.first().map_or_else(
        || format!("{role:?}"),
        |candidate| names(container, family, candidate, layer).swap_remove(0),
    )
}

/// Reads a role's tensors, checked against `shape`: one, or for an expert matrix one per expert. `rows_of` returns
/// the rows of another role in the same layer.
///
/// Errors: `model.tensor_missing`, `model.tensor_shape`, `model.dtype_unsupported`.
pub(super) fn parts(
    file: &WeightFile,
    family: Family,
    (role, layer): (Role, Option<usize>),
    shape: &[usize],
    rows_of: &dyn Fn(Role) -> Option<usize>,
) -> Result<Vec<TensorPart>> {
    let Some((candidate, name)) = find(file, family, role, layer) else {
        return Err(tensor_missing(&expected_name(file.container(), family, role, layer)));
    };
    if name.contains('#') {
        let one = |expert: usize| {
            let name = name.replace('#', &expert.to_string());
            let view = fp8::readable(file, file.tensor(&name).ok_or_else(|| tensor_missing(&name))?)?;
            check_shape(&view, &shape[1..])?;
            codec(&view)?;
            Ok(TensorPart { name, dtype: view.dtype, shape: shape[1..].to_vec(), data: view.data })
        };
        let parts: Vec<TensorPart> = (0..shape[0]).map(one).collect::<Result<_>>()?;
        return if role.is_expert_matrix() { Ok(parts) } else { joined(parts, shape).map(|part| vec![part]) };
    }
    extract(file, (&name, candidate.form), role, shape, rows_of)
}

/// Joins a tensor per head to one.
///
/// Errors: tensors of different formats.
fn joined(parts: Vec<TensorPart>, shape: &[usize]) -> Result<TensorPart> {
    let Some(first) = parts.first() else { unreachable!("a model has at least one head") };
    if let Some(other) = parts.iter().find(|part| part.dtype != first.dtype) {
        let message = format!("{} is {}, {} is {}", first.name, first.dtype, other.name, other.dtype);
        return Err(EngineError::new("model.dtype_unsupported", message, DAMAGED));
    }
    let data = SharedBytes::from_vec(parts.iter().flat_map(|part| part.data.iter().copied()).collect());
    Ok(TensorPart { name: first.name.clone(), dtype: first.dtype, shape: shape.to_vec(), data })
}

/// Returns whether a tensor of the file has the shape that a role of `shape` needs in this form.
pub(crate) fn fits(
    file: &WeightFile,
    (name, form): (&str, TensorForm),
    role: Role,
    shape: &[usize],
    rows_of: &dyn Fn(Role) -> Option<usize>,
) -> bool {
    let Some(view) = file.tensor(name) else { return false };
    match form {
        TensorForm::HeadKeys | TensorForm::HeadValues => {
            heads::rows_per_head(&view, form, shape, rows_of).is_ok()
        }
        _ => check_whole(&view, &RoleRows::new(role, shape, form, rows_of), role, shape, form).is_ok(),
    }
}

/// Reads a role's tensors from the tensor `name`, checked against `shape`.
///
/// Errors: as for `parts`.
pub(crate) fn extract(
    file: &WeightFile,
    (name, form): (&str, TensorForm),
    role: Role,
    shape: &[usize],
    rows_of: &dyn Fn(Role) -> Option<usize>,
) -> Result<Vec<TensorPart>> {
    let view = fp8::readable(file, file.tensor(name).ok_or_else(|| tensor_missing(name))?)?;
    if let TensorForm::HeadKeys | TensorForm::HeadValues = form {
        return heads::split(&view, form, shape, rows_of);
    }
    let cut = RoleRows::new(role, shape, form, rows_of);
    if let TensorForm::ByKeyHead = form {
        return Ok(vec![key_heads::gather(file, &view, role, shape, rows_of)?]);
    }
    if let TensorForm::Mxfp4(_) = form {
        return mxfp4(file, &view, role, shape, &cut);
    }
    codec(&view)?;
    check_whole(&view, &cut, role, shape, form)?;
    let part = match form {
        TensorForm::Whole | TensorForm::Flat => TensorPart::of(&view, shape, view.data.clone()),
        TensorForm::Rows(_) | TensorForm::After(_) if cut.n_groups == 1 => {
            let n = view.dtype.row_bytes(cut.row_len);
            TensorPart::of(&view, shape, view.data.slice(cut.start * n..(cut.start + cut.n_rows) * n))
        }
        TensorForm::Rows(_) | TensorForm::After(_) | TensorForm::Interleaved(_) => {
            if role.is_expert_matrix() && cut.step == 1 {
                return Ok(slices(&view, shape, &cut));
            }
            let n = view.dtype.row_bytes(cut.row_len);
            let mut data = Vec::with_capacity(cut.n_groups * cut.n_rows * n);
            cut.each_row(|row| data.extend_from_slice(&view.data[row * n..(row + 1) * n]));
            TensorPart::of(&view, shape, SharedBytes::from_vec(data))
        }
        TensorForm::Transposed(_) | TensorForm::TransposedInterleaved(_) => transposed(&view, shape, &cut)?,
        TensorForm::Frame { index, n } => frame(&view, shape, (index, n))?,
        TensorForm::Places => by_axis(&view, shape)?,
        TensorForm::Mxfp4(_) | TensorForm::ByKeyHead | TensorForm::HeadKeys | TensorForm::HeadValues => {
            unreachable!("handled above")
        }
    };
    Ok(if role.is_expert_matrix() { split(&part) } else { vec![part] })
}

/// Checks the shape of the tensor that holds a role's.
fn check_whole(
    view: &TensorView<'_>,
    cut: &RoleRows,
    role: Role,
    shape: &[usize],
    form: TensorForm,
) -> Result<()> {
    let n_values = |shape: &[usize]| shape.iter().try_fold(1usize, |n, dim| n.checked_mul(*dim));
    if form == TensorForm::Flat && n_values(view.shape) == n_values(shape) {
        return Ok(());
    }
    check_shape(view, &cut.whole(role, shape, form))
}

impl TensorPart {
    fn of(view: &TensorView<'_>, shape: &[usize], data: SharedBytes) -> Self {
        Self { name: view.name.to_owned(), dtype: view.dtype, shape: shape.to_vec(), data }
    }
}

/// A role's rows in a tensor. An expert tensor has one group of rows per expert.
struct RoleRows {
    n_groups: usize,
    /// Rows per group of the tensor.
    n_total: usize,
    /// First of the role's rows in a group, distance to the next, and their number.
    start: usize,
    step: usize,
    n_rows: usize,
    /// Elements per row.
    row_len: usize,
}

impl RoleRows {
    fn new(role: Role, shape: &[usize], form: TensorForm, rows_of: &dyn Fn(Role) -> Option<usize>) -> Self {
        let (n_groups, shape) = if role.is_expert() { (shape[0], &shape[1..]) } else { (1, shape) };
        let (n_rows, row_len) = (shape[0], shape[1..].iter().product());
        // A role that this model lacks has no rows.
        let rows = |other: &Role| rows_of(*other).unwrap_or(0);
        let position = |of: &[Role]| of.iter().position(|other| *other == role).unwrap_or(0);
        let (n_total, start, step) = match form {
            TensorForm::Whole | TensorForm::Flat | TensorForm::Frame { .. } | TensorForm::Places => {
                (n_rows, 0, 1)
            }
            // Adapters of such a matrix fit no role.
            TensorForm::ByKeyHead | TensorForm::HeadKeys | TensorForm::HeadValues => (0, 0, 1),
            TensorForm::After(n_unused) => (n_rows + n_unused, n_unused, 1),
            TensorForm::Rows(of) | TensorForm::Transposed(of) => {
                (of.iter().map(rows).sum(), of[..position(of)].iter().map(rows).sum(), 1)
            }
            TensorForm::Interleaved(of) | TensorForm::TransposedInterleaved(of) | TensorForm::Mxfp4(of) => {
                (n_rows * of.len(), position(of), of.len())
            }
        };
        Self { n_groups, n_total, start, step, n_rows, row_len }
    }

    /// Returns the shape of the whole tensor.
    fn whole(&self, role: Role, shape: &[usize], form: TensorForm) -> Vec<usize> {
        let mut whole = shape.to_vec();
        whole[usize::from(role.is_expert())] = self.n_total;
        if let TensorForm::Transposed(_) | TensorForm::TransposedInterleaved(_) = form {
            whole[usize::from(role.is_expert())..].reverse();
        }
        if form == TensorForm::Places {
            whole.swap(0, 1);
        }
        if let TensorForm::Frame { n, .. } = form {
            whole.insert(FRAME_AXIS.min(whole.len()), n);
        }
        whole
    }

    fn each_row(&self, mut f: impl FnMut(usize)) {
        for group in 0..self.n_groups {
            (0..self.n_rows).for_each(|i| f(group * self.n_total + self.start + i * self.step));
        }
    }
}

/// Borrows one matrix per expert.
fn slices(view: &TensorView<'_>, shape: &[usize], cut: &RoleRows) -> Vec<TensorPart> {
    let n = view.dtype.row_bytes(cut.row_len);
    let rows = |expert: usize| -> Range<usize> {
        let start = expert * cut.n_total + cut.start;
        start * n..(start + cut.n_rows) * n
    };
    (0..cut.n_groups).map(|expert| TensorPart::of(view, &shape[1..], view.data.slice(rows(expert)))).collect()
}

/// Splits [n_experts, out, in] into matrices [out, in].
fn split(part: &TensorPart) -> Vec<TensorPart> {
    let n = part.data.len() / part.shape[0];
    let one = |expert: usize| TensorPart {
        name: part.name.clone(),
        dtype: part.dtype,
        shape: part.shape[1..].to_vec(),
        data: part.data.slice(expert * n..(expert + 1) * n),
    };
    (0..part.shape[0]).map(one).collect()
}

/// Axis of the frames in the weights of a convolution over a video.
const FRAME_AXIS: usize = 2;

/// Copies one of `n` frames: [out, channels, frames, y, x] to [out, channels, y, x].
///
/// Errors: a block format, whose blocks may cross frames.
fn frame(view: &TensorView<'_>, shape: &[usize], (index, n): (usize, usize)) -> Result<TensorPart> {
    check_unblocked(view)?;
    let n_bytes = shape[FRAME_AXIS..].iter().product::<usize>() * view.dtype.block_bytes();
    let frames = view.data.chunks_exact(n_bytes).skip(index).step_by(n);
    Ok(TensorPart::of(view, shape, SharedBytes::from_vec(frames.flatten().copied().collect())))
}

/// Brings [places, axes, width] to [axes, places, width].
///
/// Errors: a block format, whose blocks may cross rows.
fn by_axis(view: &TensorView<'_>, shape: &[usize]) -> Result<TensorPart> {
    check_unblocked(view)?;
    let row = shape[2..].iter().product::<usize>() * view.dtype.block_bytes();
    let rows = |axis: usize| view.data.chunks_exact(row.max(1)).skip(axis).step_by(shape[0]);
    let data = (0..shape[0]).flat_map(rows).flatten().copied().collect();
    Ok(TensorPart::of(view, shape, SharedBytes::from_vec(data)))
}

fn check_unblocked(view: &TensorView<'_>) -> Result<()> {
    if view.dtype.block_len() != 1 {
        let message = format!("{} is {} and stored in another order", view.name, view.dtype);
        return Err(EngineError::new("model.dtype_unsupported", message, "Get the model in F16 or BF16."));
    }
    Ok(())
}

/// Transposes [in, all out] to [out, in], per expert.
///
/// Errors: a block format, whose blocks run the other way.
fn transposed(view: &TensorView<'_>, shape: &[usize], cut: &RoleRows) -> Result<TensorPart> {
    check_unblocked(view)?;
    let n = view.dtype.block_bytes();
    let mut data = Vec::with_capacity(cut.n_groups * cut.n_rows * cut.row_len * n);
    cut.each_row(|row| {
        let (group, column) = (row / cut.n_total, row % cut.n_total);
        for i in 0..cut.row_len {
            let at = ((group * cut.row_len + i) * cut.n_total + column) * n;
            data.extend_from_slice(&view.data[at..at + n]);
        }
    });
    Ok(TensorPart::of(view, shape, SharedBytes::from_vec(data)))
}

/// Repacks MXFP4: blocks of 32 as 16 bytes of neighboring pairs with separate scales become GGUF blocks, the scale
/// followed by bytes that join elements i and i + 16.
fn mxfp4(
    file: &WeightFile,
    blocks: &TensorView<'_>,
    role: Role,
    shape: &[usize],
    cut: &RoleRows,
) -> Result<Vec<TensorPart>> {
    const BLOCK: usize = 32;
    let name = blocks.name.replace("_blocks", "_scales");
    let scales = file.tensor(&name).ok_or_else(|| tensor_missing(&name))?;
    let n_blocks = cut.row_len / BLOCK;
    check_shape(&scales, &[cut.n_groups, cut.n_total, n_blocks])?;
    check_shape(blocks, &[cut.n_groups, cut.n_total, n_blocks, BLOCK / 2])?;
    if !cut.row_len.is_multiple_of(BLOCK) || [blocks.dtype, scales.dtype] != [DType::U8; 2] {
        let message = format!("{} does not hold MXFP4 blocks", blocks.name);
        return Err(EngineError::new("model.tensor_shape", message, DAMAGED));
    }
    let mut data = Vec::with_capacity(cut.n_groups * cut.n_rows * n_blocks * DType::MXFP4.block_bytes());
    cut.each_row(|row| {
        for block in row * n_blocks..(row + 1) * n_blocks {
            data.push(scales.data[block]);
            let pairs = &blocks.data[block * BLOCK / 2..(block + 1) * BLOCK / 2];
            let element = |i: usize| pairs[i / 2] >> (4 * (i % 2)) & 0xF;
            data.extend((0..BLOCK / 2).map(|i| element(i) | element(i + BLOCK / 2) << 4));
        }
    });
    let name = blocks.name.to_owned();
    let part =
        TensorPart { name, dtype: DType::MXFP4, shape: shape.to_vec(), data: SharedBytes::from_vec(data) };
    Ok(if role.is_expert_matrix() { split(&part) } else { vec![part] })
}
