//! Generates a model file with random weights in the shape of a published model.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use contract::Error;
use contract::ErrorKind;
use contract::Result;
use engine::shape::{self, TowerShape};
use io::{Io, RealIo};
use platform::DataDirs;
use weights::WeightFile;

use crate::args::global::Global;
use crate::{out, text};

/// Generates and opens the file. Without `keep` it is unlinked at once and lives only as long as it is mapped.
pub fn random_weights(wanted: &str, keep: Option<&Path>, global: &Global) -> Result<WeightFile> {
    let (name, dtype) = wanted.split_once(':').ok_or_else(|| {
        let message = format!("\"{wanted}\" is not NAME:DTYPE.");
        Error::new(
            ErrorKind::Usage,
            "usage.shape",
            message,
            "Use a form such as --shape llama-3.2-1b:q4_k_m.",
        )
    })?;
    let (shape, mix) = (shape::find(name).map_err(usage)?, shape::mix(dtype).map_err(usage)?);
    let path = match keep {
        Some(path) => path.to_owned(),
        None => temporary(&format!("{}-{dtype}", name.replace('/', "-")), global)?,
    };
    kept_or_unlinked(&path, keep.is_some(), |out| shape::write(&shape, mix, SEED, out))
}

/// Generates and opens a vision tower. Where the model is kept, the tower is kept beside it as `mmproj-` and its name.
pub fn random_tower(shape: &TowerShape, keep: Option<&Path>, global: &Global) -> Result<WeightFile> {
    let path = match keep {
        Some(model) => tower_path(model),
        None => temporary(&format!("{}-tower", shape.name), global)?,
    };
    kept_or_unlinked(&path, keep.is_some(), |out| shape::write_tower(shape, SEED, out))
}

/// The name by which a model's tower is found beside it.
fn tower_path(model: &Path) -> PathBuf {
    let name = model.file_name().unwrap_or_default().to_string_lossy();
    model.with_file_name(format!("mmproj-{name}"))
}

/// Generates and opens a file. One that is not kept is unlinked at once.
///
/// Errors: `bench.exists`, `bench.write`.
fn kept_or_unlinked(
    path: &Path,
    is_kept: bool,
    write: impl FnOnce(&mut dyn Write) -> engine::Result<()>,
) -> Result<WeightFile> {
    if is_kept && RealIo.exists(path)? {
        let message = format!("{} already exists.", path.display());
        return Err(Error::input("bench.exists", message, "Choose another file name, or delete the file."));
    }
    let file = generate(path, write);
    if !is_kept || file.is_err() {
        RealIo.remove_file(path)?;
    }
    if let (true, Ok(file)) = (is_kept, &file) {
        out::log(&format!("{}: {}", path.display(), text::bytes(file.len_bytes())));
    }
    file
}

/// A path in the cache folder.
fn temporary(name: &str, global: &Global) -> Result<PathBuf> {
    let folder = DataDirs::resolve(global.app_config()?.data_dir)?.cache;
    RealIo.create_dir_all(&folder)?;
    Ok(folder.join(format!("bench-{}-{name}.gguf", std::process::id())))
}

fn generate(path: &Path, write: impl FnOnce(&mut dyn Write) -> engine::Result<()>) -> Result<WeightFile> {
    let mut writer =
        BufWriter::with_capacity(WRITE_BUFFER_BYTES, AppendWriter { io: &RealIo, path: path.to_owned() });
    let written = write(&mut writer).and_then(|()| {
        let flushed = writer.flush();
        flushed.map_err(|error| {
            engine::EngineError::new("bench.write", error.to_string(), "Free some disk space.")
        })
    });
    written.map_err(Error::from).and_then(|()| Ok(WeightFile::open(path)?))
}

const SEED: u64 = 1;
const WRITE_BUFFER_BYTES: usize = 64 << 20;

/// Turns an unknown shape or format into a usage error.
fn usage(error: engine::EngineError) -> Error {
    Error::new(ErrorKind::Usage, error.code(), error.to_string(), error.remedy())
}

/// Writes to the end of a file.
struct AppendWriter<'a> {
    io: &'a RealIo,
    path: PathBuf,
}

impl Write for AppendWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.io.append(&self.path, bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
