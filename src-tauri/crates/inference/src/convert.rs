//! Converts models into GGUF files of other formats, on disk: a file appears completely or not at
//! all, and only if it fits the free space.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::arch;
use engine::convert::{self, Conversion, Formats, TensorReport};
use io::{Clock, Io};
use serde::{Deserialize, Serialize};
use weights::WeightFile;

use contract::protocol::Location;
use contract::{Error, ErrorKind, Result};

pub(crate) mod auto;
pub mod on_load;

/// What to make of what.
#[derive(Debug, Clone)]
pub struct ConvertArgs {
    pub source: Location,
    pub out: PathBuf,
    /// A format or mix, or `auto`: each tensor's from measured error.
    pub dtype: String,
    /// For `auto`: the most bytes the file may have. None: what fits into this machine's free memory.
    pub max_bytes: Option<u64>,
    /// For `auto`: chooses the smallest file whose mean divergence from the source is at most this.
    /// Nats.
    pub max_kl: Option<f64>,
    /// Whether a repository's vision tower is written beside it, as `mmproj-*.gguf`.
    pub with_tower: bool,
    /// Replace a file that is there already.
    pub force: bool,
    /// None: all cores.
    pub threads: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConvertReport {
    pub out: PathBuf,
    pub source_bytes: u64,
    pub bytes: u64,
    pub seconds: f64,
    /// Bytes of all tensors by format.
    pub dtypes: BTreeMap<String, u64>,
    /// Tensors that were stored more coarsely than asked for and stayed as they were.
    pub kept_coarser: usize,
    /// Mean divergence from the source over a sample text, where that was asked for. Nats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_kl: Option<f64>,
    pub tensors: Vec<TensorReport>,
    /// The vision tower, where the source has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mmproj: Option<TowerReport>,
}

/// The file of a vision tower.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TowerReport {
    pub out: PathBuf,
    pub bytes: u64,
    pub tensors: Vec<TensorReport>,
}

/// Told how many bytes of how many are written; false ends the work.
pub type Progress<'a> = dyn FnMut(u64, u64) -> bool + 'a;

/// Makes the file. Errors: a model that does not open or cannot be written as a GGUF, a file that is there, a full
/// disk; then nothing is left behind.
pub fn convert(
    io: &dyn Io,
    clock: &dyn Clock,
    args: &ConvertArgs,
    progress: &mut Progress<'_>,
) -> Result<ConvertReport> {
    let began = clock.monotonic();
    let wanted = ConversionTarget::of(args)?;
    check_target(io, args)?;
    let file = Arc::new(crate::model_file::open(&args.source)?);
    let (formats, mean_kl) = auto::formats(io, &wanted, &file, args, progress)?;
    let conversion = convert::plan(&file, &formats, args.threads)?;
    let mmproj = match args.with_tower {
        true => write_tower(io, &file, &formats, args, progress)?,
        false => None,
    };
    let tensors = write(io, &conversion, &args.out, progress).inspect_err(|_| {
        if let Some(tower) = &mmproj {
            // The first error is the one to report.
            let _ = io.remove_file(&tower.out);
        }
    })?;
    let mut dtypes: BTreeMap<String, u64> = BTreeMap::new();
    for tensor in &tensors {
        *dtypes.entry(tensor.to.clone()).or_default() += tensor.bytes;
    }
    Ok(ConvertReport {
        out: args.out.clone(),
        source_bytes: file.len_bytes(),
        bytes: conversion.n_bytes(),
        seconds: clock.monotonic().saturating_sub(began).as_secs_f64(),
        dtypes,
        kept_coarser: conversion.n_kept_coarser,
        mean_kl,
        tensors,
        mmproj,
    })
}

/// Writes the vision tower of a repository beside the model. None: it has none.
fn write_tower(
    io: &dyn Io,
    file: &WeightFile,
    formats: &Formats,
    args: &ConvertArgs,
    progress: &mut Progress<'_>,
) -> Result<Option<TowerReport>> {
    let planned = convert::plan_tower(file, formats, args.threads).map_err(|error| {
        let remedy = "Use the repository as it is, or convert its text half alone with --no-mmproj.";
        Error::input("convert.tower", error.to_string(), remedy)
    })?;
    let Some(conversion) = planned else { return Ok(None) };
    let out = tower_path(args, formats.tower_format());
    check_target(io, &ConvertArgs { out: out.clone(), ..args.clone() })?;
    let tensors = write_checked(io, &conversion, &out, progress, &|out| {
        engine::vision::image_settings(&*engine::vision::named_tower(out)?)?;
        Ok(())
    })?;
    Ok(Some(TowerReport { bytes: conversion.n_bytes(), out, tensors }))
}

/// Such as `mmproj-gemma-f16.gguf` beside `gemma-q4_k_m.gguf`: a tower serves every format of its model.
fn tower_path(args: &ConvertArgs, format: &str) -> PathBuf {
    let stem = args.out.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let n_kept = stem.len().saturating_sub(args.dtype.len());
    let is_format = stem.get(n_kept..).is_some_and(|end| end.eq_ignore_ascii_case(&args.dtype));
    let name = if is_format { stem[..n_kept].trim_end_matches(['-', '.', '_', ' ']) } else { &stem };
    let separator = if name.is_empty() { "" } else { "-" };
    args.out.with_file_name(format!("mmproj-{name}{separator}{format}.gguf"))
}

/// What decides about the formats.
pub(crate) enum ConversionTarget {
    Named(Formats),
    MaxBytes(u64),
    MaxKl { max_kl: f64, max_bytes: Option<u64> },
    FreeMemory,
}

/// The name that has formats chosen by measured error.
pub const AUTO: &str = "auto";

impl ConversionTarget {
    /// Errors: an unknown format; bounds where there is nothing to choose.
    fn of(args: &ConvertArgs) -> Result<Self> {
        let ConvertArgs { dtype, max_bytes, max_kl, .. } = args;
        if !dtype.eq_ignore_ascii_case(AUTO) {
            if max_bytes.is_some() || max_kl.is_some() {
                let message =
                    format!("--max-bytes and --max-kl have no effect with the fixed format {dtype}.");
                return Err(Error::new(ErrorKind::Usage, "usage.auto", message, "Use --dtype auto."));
            }
            return Ok(Self::Named(Formats::parse(dtype)?));
        }
        match (max_bytes, max_kl) {
            (_, Some(max_kl)) if !(max_kl.is_finite() && *max_kl > 0.0) => {
                let message = format!("A divergence of {max_kl} nats is not valid.");
                Err(Error::new(
                    ErrorKind::Usage,
                    "usage.max_kl",
                    message,
                    "Use a positive number such as 0.01.",
                ))
            }
            (&max_bytes, &Some(max_kl)) => Ok(Self::MaxKl { max_kl, max_bytes }),
            (&Some(max_bytes), None) => Ok(Self::MaxBytes(max_bytes)),
            (None, None) => Ok(Self::FreeMemory),
        }
    }
}

fn check_target(io: &dyn Io, args: &ConvertArgs) -> Result<()> {
    let out = &args.out;
    if out.is_dir() || out.file_name().is_none() {
        let message = format!("{} is a folder.", out.display());
        return Err(Error::input("convert.out", message, "Give a file name, such as model-q4_k_m.gguf."));
    }
    if !args.force && io.exists(out)? {
        let message = format!("{} already exists.", out.display());
        return Err(Error::input(
            "convert.exists",
            message,
            "Give another file name, or overwrite it with --force.",
        ));
    }
    if let Location::Path(source) = &args.source
        && let (Ok(source), Ok(target)) = (std::fs::canonicalize(source), std::fs::canonicalize(out))
        && (source == target || target.starts_with(&source))
    {
        let message = format!("{} is the model to be converted.", out.display());
        return Err(Error::input("convert.exists", message, "Give another file name."));
    }
    Ok(())
}

/// Writes a prepared conversion. Errors as `convert`.
pub(crate) fn write(
    io: &dyn Io,
    conversion: &Conversion,
    out: &Path,
    progress: &mut Progress<'_>,
) -> Result<Vec<TensorReport>> {
    write_checked(io, conversion, out, progress, &opened_as_model)
}

/// As `write`; `open` opens what was written.
fn write_checked(
    io: &dyn Io,
    conversion: &Conversion,
    out: &Path,
    progress: &mut Progress<'_>,
    open: &dyn Fn(&Path) -> Result<()>,
) -> Result<Vec<TensorReport>> {
    let total = conversion.n_bytes();
    check_room(out, total)?;
    let mut tensors = Vec::new();
    let written = io.write_stream(out, &mut |sink| {
        let counted = CountingWriter { sink, done: 0, total, progress };
        let mut buffered = BufWriter::with_capacity(WRITTEN_AT_ONCE, counted);
        tensors = conversion.write(&mut buffered)?;
        buffered.flush()
    });
    match written {
        Ok(()) => accepted(io, out, open).map(|()| tensors),
        Err(error) if error.io_kind() == std::io::ErrorKind::InvalidData => Err(Error::input(
            "convert.value",
            error.source.to_string(),
            "Choose another format, such as bf16 or f32; if they fail too, the model is damaged.",
        )),
        Err(error) if error.io_kind() == std::io::ErrorKind::Interrupted => Err(interrupted()),
        Err(error) => Err(error.into()),
    }
}

fn opened_as_model(out: &Path) -> Result<()> {
    let file = WeightFile::open(out)?;
    let family = arch::find(&file)?;
    arch::tensors(&file, family, &arch::spec(&file, family)?)?;
    Ok(())
}

/// Opens what was written as any reader does. Error: it can't be opened; then it is removed.
fn accepted(io: &dyn Io, out: &Path, open: &dyn Fn(&Path) -> Result<()>) -> Result<()> {
    open(out).map_err(|error| match io.remove_file(out) {
        Ok(()) => Error::bug(format!("the converted file can't be opened: {}", error.message())),
        Err(left) => left.into(),
    })
}

const WRITTEN_AT_ONCE: usize = 1 << 20;

fn interrupted() -> Error {
    Error::input("convert.interrupted", "The conversion was canceled.", "No files were left behind.")
}

/// Error `convert.no_space`: the file is larger than the free space. If the free space is unknown,
/// the conversion is tried.
fn check_room(out: &Path, n_bytes: u64) -> Result<()> {
    let Some(free) = free_bytes(out) else { return Ok(()) };
    if n_bytes <= free {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Limit,
        "convert.no_space",
        format!("The file needs {n_bytes} bytes; the disk of {} has {free} free.", out.display()),
        "Free up space, choose a smaller format, or use another disk.",
    ))
}

/// Bytes that are free where a file is to be.
/// Free bytes of the disk that holds a path. None: the system does not say.
pub fn free_bytes(path: &Path) -> Option<u64> {
    let absolute = std::path::absolute(path).ok()?;
    let disks = sysinfo::Disks::new_with_refreshed_list().ok()?;
    let holds = disks.iter().filter(|disk| absolute.starts_with(disk.mount_point()));
    holds.max_by_key(|disk| disk.mount_point().as_os_str().len()).map(sysinfo::Disk::available_space)
}

/// Tells how much has gone through.
struct CountingWriter<'a, 'p> {
    sink: &'a mut dyn Write,
    done: u64,
    total: u64,
    progress: &'a mut Progress<'p>,
}

impl Write for CountingWriter<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let n = self.sink.write(bytes)?;
        self.done += n as u64;
        match (self.progress)(self.done, self.total) {
            true => Ok(n),
            false => Err(std::io::Error::from(std::io::ErrorKind::Interrupted)),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.sink.flush()
    }
}
