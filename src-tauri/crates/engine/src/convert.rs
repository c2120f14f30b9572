//! Converts a model to GGUF: from safetensors under its family's keys and names, or from another GGUF with all
//! metadata.
//!
//! Guarantees: an outline is read back before a byte is written, and a different model is refused. Tensors stream
//! through bounded memory, and each tensor's error is measured.
//!
//! Knows nothing of files and folders: the caller provides the sink.

use std::collections::HashMap;
use std::io::Write;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use weights::write::{GgufWriter, OwnedValue, TensorFillFn};
use weights::{Container, DType, WeightFile};

use crate::arch::{self, Family, LocatedTensor};
use crate::error::{EngineError, Result};
use crate::spec::{MTP_LAYERS, Mixer, ModelSpec, Role};

mod choose;
mod equivalence;
mod formats;
mod metadata;
mod quantize;
mod rearrange;
mod tower;
mod tower_metadata;

pub use choose::FormatChoice;
pub use formats::Formats;
use quantize::EncodeJob;
pub use tower::plan_tower;

/// Converter version. Increased whenever the same source and format may yield other bytes; older results are then
/// made again.
pub const VERSION: u32 = 2;

/// Mixed sample text, to measure how far a converted model is from its source.
pub const SAMPLE: &str = include_str!("convert/sample.txt");

/// A tensor of the source, and its form in the new file.
pub(crate) struct ConversionTarget {
    pub role: Option<Role>,
    pub layer: Option<usize>,
    /// Name in the new file.
    pub name: String,
    /// Outermost first.
    pub shape: Vec<usize>,
    pub dtype: DType,
    pub job: EncodeJob,
}

impl ConversionTarget {
    /// Returns whether a block format may store it by rows: no norm, bias or other vector.
    pub fn is_matrix(&self) -> bool {
        self.shape.len() > 1 && self.role.is_some()
    }

    pub fn n_cols(&self) -> usize {
        self.shape.last().copied().unwrap_or(1)
    }

    pub fn n_rows(&self) -> usize {
        self.shape.iter().product::<usize>() / self.n_cols().max(1)
    }

    pub fn n_bytes(&self, dtype: DType) -> u64 {
        self.n_rows() as u64 * dtype.row_bytes(self.n_cols()) as u64
    }
}

/// Result for one tensor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TensorReport {
    /// Name in the source file.
    pub name: String,
    /// Data type in the source.
    pub from: String,
    /// Data type in the result.
    pub to: String,
    /// Outermost first.
    pub shape: Vec<usize>,
    /// Bytes in the result.
    pub bytes: u64,
    /// Root mean square error against the source's values.
    pub rmse: f64,
    /// `rmse` relative to the root mean square of the source's values.
    pub relative: f64,
}

type SharedReports = Arc<Mutex<Vec<TensorReport>>>;

/// A prepared conversion.
pub struct Conversion {
    writer: GgufWriter,
    reports: SharedReports,
    /// Tensors that are stored more coarsely in the source than requested. They are copied.
    pub n_kept_coarser: usize,
    /// Tensors in the file.
    pub n_tensors: usize,
}

impl Conversion {
    /// Returns the bytes of the file.
    pub fn n_bytes(&self) -> u64 {
        self.writer.n_bytes()
    }

    /// Writes the file and reports on each tensor.
    ///
    /// Errors: the sink's, or a non-finite value.
    pub fn write(&self, out: &mut dyn Write) -> std::io::Result<Vec<TensorReport>> {
        lock(&self.reports).clear();
        self.writer.write(out)?;
        Ok(std::mem::take(&mut *lock(&self.reports)))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prepares the conversion of a model with `threads` threads (`None`: all cores).
///
/// Errors: those of opening a model; `convert.*` if its family, tokenizer or a tensor cannot be written.
pub fn plan(file: &WeightFile, formats: &Formats, threads: Option<usize>) -> Result<Conversion> {
    let source = ConversionSource::read(file)?;
    let mut targets = source.targets()?;
    let n_kept_coarser = formats.assign(&mut targets, &source.spec)?;
    let mut targets: Vec<Arc<ConversionTarget>> = targets.into_iter().map(Arc::new).collect();
    let outline = source.writer(formats, &targets, 1, &Arc::default()).outline("the converted file");
    let found = equivalence::check(&source, outline.map_err(EngineError::from))?;
    for target in &mut targets {
        let target = Arc::get_mut(target).expect("the outline's writer was dropped");
        if let Some(role) = target.role {
            target.job.rearrangement = equivalence::rearrangement(&source.spec, &found, role, target.layer);
        }
    }
    let reports = Arc::new(Mutex::new(Vec::with_capacity(targets.len())));
    let threads = threads.unwrap_or_else(n_cores).max(1);
    let writer = source.writer(formats, &targets, threads, &reports);
    Ok(Conversion { writer, reports, n_kept_coarser, n_tensors: targets.len() })
}

/// Returns the structure that a safetensors model has as a GGUF.
///
/// Errors: as for `plan`.
pub(crate) fn gguf_spec(file: &WeightFile) -> Result<ModelSpec> {
    let source = ConversionSource::read(file)?;
    let targets: Vec<Arc<ConversionTarget>> = source.targets()?.into_iter().map(Arc::new).collect();
    let outline =
        source.writer(&Formats::Each(HashMap::new()), &targets, 1, &Arc::default()).outline("the outline");
    equivalence::check(&source, outline.map_err(EngineError::from))
}

/// Version of the block formats that llama.cpp expects.
const QUANTIZATION_VERSION: u32 = 2;

fn n_cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

fn fill(target: Arc<ConversionTarget>, threads: usize, reports: SharedReports) -> TensorFillFn {
    Box::new(move |out| {
        let report = quantize::write(&target, threads, out)?;
        lock(&reports).push(report);
        Ok(())
    })
}

/// The model to convert.
pub(crate) struct ConversionSource<'a> {
    pub file: &'a WeightFile,
    pub family: Family,
    pub spec: ModelSpec,
    pub notes: arch::GgufNotes,
    pub placed: Vec<LocatedTensor>,
    /// Metadata of the new file, except what depends on the formats.
    pairs: Vec<(String, OwnedValue)>,
}

impl<'a> ConversionSource<'a> {
    fn read(file: &'a WeightFile) -> Result<Self> {
        let family = arch::find(file)?;
        let (spec, notes) = arch::spec_and_notes(file, family)?;
        let mut placed = arch::tensors(file, family, &spec)?;
        let pairs = match file.container() {
            Container::Gguf { .. } => metadata::carried(file),
            Container::Safetensors => {
                placed.extend(arch::unread_keys(file, family, &spec)?);
                metadata::written(file, family, &spec, &notes)?
            }
        };
        Ok(Self { file, family, spec, notes, placed, pairs })
    }

    /// Creates the writer. Tensors are made when they are written.
    fn writer(
        &self,
        formats: &Formats,
        targets: &[Arc<ConversionTarget>],
        threads: usize,
        reports: &SharedReports,
    ) -> GgufWriter {
        let mut writer = GgufWriter::new();
        for (key, value) in &self.pairs {
            writer.set(key, value.clone());
        }
        writer.set("general.file_type", OwnedValue::U32(formats.file_type(targets)));
        writer.set("general.quantization_version", OwnedValue::U32(QUANTIZATION_VERSION));
        for target in targets {
            let fill = fill(Arc::clone(target), threads, Arc::clone(reports));
            writer.tensor_from(&target.name, target.dtype, &target.shape, fill);
        }
        writer
    }

    /// Lists every tensor of the new file, still in its source format.
    fn targets(&self) -> Result<Vec<ConversionTarget>> {
        match self.file.container() {
            Container::Gguf { .. } => Ok(self.carried_targets()),
            Container::Safetensors => self.named_targets(),
        }
    }

    /// Lists all tensors of a GGUF in its order, including unused ones.
    fn carried_targets(&self) -> Vec<ConversionTarget> {
        let target = |view: weights::TensorView<'_>| {
            let placed = self.placed.iter().find(|p| p.parts.iter().any(|part| part.name == view.name));
            ConversionTarget {
                role: placed.map(|placed| placed.role),
                layer: placed.and_then(|placed| placed.layer),
                name: view.name.to_owned(),
                shape: view.shape.to_vec(),
                dtype: view.dtype,
                job: EncodeJob::of(&view),
            }
        };
        self.file.tensors().map(target).collect()
    }

    /// Returns a layer's number in a GGUF, where a draft block comes after the model's own layers.
    fn gguf_layer(&self, layer: usize) -> usize {
        layer.checked_sub(MTP_LAYERS).map_or(layer, |of_block| self.spec.layers.len() + of_block)
    }

    /// Returns the dimensions of a tensor in a GGUF, where they are divided otherwise than in a folder.
    fn gguf_shape(&self, role: Role, layer: Option<usize>, shape: Vec<usize>) -> Vec<usize> {
        let mixer = layer.and_then(|layer| self.spec.layers.get(layer)).map(|layer| &layer.mixer);
        let ssm = match mixer {
            Some(Mixer::Ssm(ssm)) => ssm,
            Some(Mixer::AttentionAndSsm { ssm, .. }) => &ssm.0,
            _ => return shape,
        };
        match role {
            Role::SsmDecay | Role::SsmSkip => vec![ssm.n_heads, 1],
            Role::SsmNorm => vec![ssm.n_groups, ssm.inner() / ssm.n_groups],
            _ => shape,
        }
    }

    /// Lists the model's tensors under the family's GGUF names. Roles that share a tensor there are joined.
    fn named_targets(&self) -> Result<Vec<ConversionTarget>> {
        let mut targets: Vec<ConversionTarget> =
            Vec::with_capacity(self.placed.len() + self.notes.tensors.len());
        for placed in &self.placed {
            let layer = placed.layer.map(|layer| self.gguf_layer(layer));
            let role = equivalence::naming_role(&self.spec, placed.role, placed.layer);
            let name = arch::gguf_tensor_name(self.family.gguf_name(), role, layer)?;
            check_name(&name)?;
            let shape_of = |shape| self.gguf_shape(placed.role, placed.layer, shape);
            let mut target = named(placed, name, &shape_of)?;
            if placed.role == Role::PerLayerEmbedding {
                self.lengthen(&mut target);
            }
            match targets.iter_mut().rev().find(|other| other.name == target.name) {
                Some(other) => join(other, target)?,
                None => targets.push(target),
            }
        }
        for (name, values) in &self.notes.tensors {
            let (name, shape) = (name.to_string(), vec![values.len()]);
            let job = EncodeJob::values(values);
            targets.push(ConversionTarget { role: None, layer: None, name, shape, dtype: DType::F32, job });
        }
        Ok(targets)
    }
}

impl ConversionSource<'_> {
    /// Repeats the first row of a table that is shorter than the vocabulary: a GGUF has a row for every token.
    fn lengthen(&self, table: &mut ConversionTarget) {
        let missing = self.spec.n_vocab.saturating_sub(table.shape[0]);
        table.job.repeat_first_row(missing, table.n_cols());
        table.shape[0] += missing;
    }
}

/// Joins a role's parts into one tensor: expert matrices get one more dimension.
fn named(
    placed: &LocatedTensor,
    name: String,
    shape_of: &dyn Fn(Vec<usize>) -> Vec<usize>,
) -> Result<ConversionTarget> {
    let first = placed.parts.first().ok_or_else(|| mixed(&name))?;
    if placed.parts.iter().any(|part| part.dtype != first.dtype) {
        return Err(mixed(&name));
    }
    let experts = placed.role.is_expert_matrix().then_some(placed.parts.len());
    Ok(ConversionTarget {
        role: Some(placed.role),
        layer: placed.layer,
        name,
        shape: shape_of(experts.into_iter().chain(first.shape.iter().copied()).collect()),
        dtype: first.dtype,
        job: EncodeJob::new(first.dtype, placed.parts.iter().map(|part| part.data.clone()).collect()),
    })
}

/// Appends the rows of another role, for experts behind those of the same expert.
fn join(target: &mut ConversionTarget, other: ConversionTarget) -> Result<()> {
    let is_expert = target.role.is_some_and(Role::is_expert_matrix);
    let at = usize::from(is_expert);
    let n_groups = if is_expert { target.shape[0] } else { 1 };
    let fits = target.shape.len() == other.shape.len()
        && target.shape.iter().zip(&other.shape).enumerate().all(|(i, (a, b))| i == at || a == b);
    if !fits || !target.job.join(other.job, n_groups) {
        return Err(mixed(&target.name));
    }
    target.shape[at] += other.shape[at];
    Ok(())
}

fn mixed(name: &str) -> EngineError {
    EngineError::new(
        "convert.tensor",
        format!("{name} would combine tensors of different formats or shapes"),
        "Use the model as it is, or get it as a GGUF file.",
    )
}

fn check_name(name: &str) -> Result<()> {
    match name.is_empty() {
        false => Ok(()),
        true => Err(EngineError::new(
            "convert.tensor",
            "a tensor of this model has no name in GGUF files",
            "Use the model as it is, or get it as a GGUF file.",
        )),
    }
}
