//! Weights quantised while a model loads, cached for the next start: one file per source, format
//! and converter version, under the data folder. A cached file is checked before use; a damaged one
//! is made again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::convert::{self, FormatChoice, Formats};
use io::Io;
use serde::{Deserialize, Serialize};
use weights::{SharedBytes, WeightFile};

use crate::convert::{self as conversion, AUTO, Progress, auto};
use contract::protocol::{Location, Quantize};
use contract::{ErrorKind, Result};

/// Where the files are, under the data folder.
pub const FOLDER: &str = "quantized";

/// Metadata beside a cached file.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    /// Path of the model that it was made of; empty for one that is part of the program.
    source: String,
    /// What `WeightFile::fingerprint` says of the kept file.
    fingerprint: String,
}

/// Errors: an unknown format.
pub fn check(dtype: &str) -> Result<()> {
    match dtype.eq_ignore_ascii_case(AUTO) {
        true => Ok(()),
        false => Ok(Formats::parse(dtype).map(|_| ())?),
    }
}

/// Opens the model with its weights in another format: mapped from the cache, or converted now and
/// cached. A full disk is logged, and the model stays in memory if it fits there.
pub fn open(
    io: &dyn Io,
    location: &Location,
    quantize: &Quantize,
    threads: Option<usize>,
    progress: &mut Progress<'_>,
) -> Result<WeightFile> {
    let file = crate::model_file::open(location)?;
    let dtype = quantize.dtype.to_ascii_lowercase();
    check(&dtype)?;
    let name = format!("{}-{dtype}-{}", file.fingerprint(), convert::VERSION);
    let kept = Path::new(&quantize.folder).join(format!("{name}.gguf"));
    let record = kept.with_extension("json");
    if let Some(found) = find(io, &kept, &record) {
        return Ok(found);
    }
    let formats = match dtype == AUTO {
        true => FormatChoice::measure(&file, threads)?.within(auto::memory_for_weights()?)?,
        false => Formats::parse(&dtype)?,
    };
    let conversion = convert::plan(&file, &formats, threads)?;
    if conversion.n_bytes() >= file.len_bytes() && conversion.n_kept_coarser > 0 {
        tracing::info!("the model already has a lower precision than {dtype}");
        return Ok(file);
    }
    let source = match location {
        Location::BuiltIn => String::new(),
        Location::Path(path) => canonical(path),
        Location::Remote { .. } => String::new(),
    };
    let made = io
        .create_dir_all(Path::new(&quantize.folder))
        .map_err(Into::into)
        .and_then(|()| conversion::write(io, &conversion, &kept, progress).map(|_| ()))
        .and_then(|()| keep(io, source, &kept, &record));
    match made {
        Err(error) if error.kind == ErrorKind::Limit => {
            // nothing half written is left to be found by the next start
            let _ = io.remove_file(&kept);
            tracing::warn!(code = error.code(), "quantised weights were not kept: {}", error.message());
            in_memory(&conversion, error)
        }
        made => made,
    }
}

/// As the library has it.
fn canonical(path: &str) -> String {
    std::fs::canonicalize(path).map_or_else(|_| path.to_owned(), |path| path.to_string_lossy().into_owned())
}

/// What was kept, if it is whole.
fn find(io: &dyn Io, kept: &Path, record: &Path) -> Option<WeightFile> {
    let record: Record = serde_json::from_slice(&io.read(record).ok()?).ok()?;
    let file = WeightFile::open(kept).ok()?;
    let is_whole = file.fingerprint() == record.fingerprint;
    if !is_whole {
        tracing::warn!("{} is damaged and is made again", kept.display());
    }
    is_whole.then_some(file)
}

fn keep(io: &dyn Io, source: String, kept: &Path, record: &Path) -> Result<WeightFile> {
    let file = WeightFile::open(kept)?;
    let text = serde_json::to_vec(&Record { source, fingerprint: file.fingerprint() });
    io.write_atomic(record, &text.map_err(contract::Error::bug)?)?;
    Ok(file)
}

/// Error: `because`, where memory has no room either.
fn in_memory(conversion: &convert::Conversion, because: contract::Error) -> Result<WeightFile> {
    let n_bytes = conversion.n_bytes();
    let room = auto::memory_for_weights()?;
    let Some(n) = usize::try_from(n_bytes).ok().filter(|_| n_bytes <= room) else { return Err(because) };
    let mut bytes = Vec::with_capacity(n);
    conversion
        .write(&mut bytes)
        .map_err(|error| contract::Error::input("convert.value", error.to_string(), ""))?;
    Ok(WeightFile::from_bytes("quantised weights", SharedBytes::from_vec(bytes))?)
}

/// Removes the cached files of a model. Failures are logged: the files can be removed by hand.
pub fn forget(io: &dyn Io, data: &Path, source: &str) {
    let folder = data.join(FOLDER);
    let entries = io.list(&folder).unwrap_or_default();
    for record in entries.iter().filter(|path| path.extension().is_some_and(|e| e == "json")) {
        let read = io.read(record).ok().and_then(|bytes| serde_json::from_slice::<Record>(&bytes).ok());
        if read.is_none_or(|read| read.source != source) {
            continue;
        }
        for path in [record.with_extension("gguf"), record.clone()] {
            if let Err(error) = io.remove_file(&path) {
                tracing::warn!("{error}");
            }
        }
    }
}

/// Bytes of what was kept, by the path of the model that it was made of.
pub fn kept_bytes(io: &dyn Io, data: &Path) -> BTreeMap<String, u64> {
    let mut bytes = BTreeMap::new();
    let entries = io.list(&data.join(FOLDER)).unwrap_or_default();
    for record in entries.iter().filter(|path| path.extension().is_some_and(|e| e == "json")) {
        let read = io.read(record).ok().and_then(|bytes| serde_json::from_slice::<Record>(&bytes).ok());
        let n = io.len(&record.with_extension("gguf")).unwrap_or(0);
        read.into_iter().for_each(|read| *bytes.entry(read.source).or_insert(0) += n);
    }
    bytes
}

/// For those who load by themselves.
pub fn folder(data: &Path) -> PathBuf {
    data.join(FOLDER)
}

/// As `open`, shared.
pub fn open_shared(
    io: &dyn Io,
    location: &Location,
    quantize: Option<&Quantize>,
    threads: Option<usize>,
    progress: &mut Progress<'_>,
) -> Result<Arc<WeightFile>> {
    Ok(Arc::new(match quantize {
        None => crate::model_file::open(location)?,
        Some(quantize) => open(io, location, quantize, threads, progress)?,
    }))
}
