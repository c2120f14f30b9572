//! Chooses formats by measured error: the best that fits a byte budget, or the smallest within a
//! divergence limit.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::convert::{self, FormatChoice, Formats};
use engine::tokenizer::Special;
use engine::{LoadOptions, Model, perplexity};
use io::Io;
use weights::WeightFile;

use super::{ConversionTarget, ConvertArgs, Progress};
use contract::{Error, ErrorKind, Result};

/// Share of the free memory that weights may take: the context, the program and others need the rest.
const SHARE_OF_MEMORY: (u64, u64) = (3, 4);

/// Tokens of a window of the sample text.
const WINDOW: usize = 256;

/// The formats, and the divergence where it was measured.
pub fn formats(
    io: &dyn Io,
    wanted: &ConversionTarget,
    file: &Arc<WeightFile>,
    args: &ConvertArgs,
    progress: &mut Progress<'_>,
) -> Result<(Formats, Option<f64>)> {
    let choice = || FormatChoice::measure(file, args.threads);
    match wanted {
        ConversionTarget::Named(formats) => Ok((formats.clone(), None)),
        ConversionTarget::MaxBytes(max_bytes) => Ok((choice()?.within(*max_bytes)?, None)),
        ConversionTarget::FreeMemory => Ok((choice()?.within(memory_for_weights()?)?, None)),
        ConversionTarget::MaxKl { max_kl, max_bytes } => {
            let probe = probe_path(&args.out);
            let mut search = Search::new(io, file, choice()?, probe, args.threads)?;
            let (n_steps, kl) = search.smallest(*max_kl, progress)?;
            let formats = search.choice.after(n_steps);
            check_bytes(file, &formats, *max_bytes, kl)?;
            Ok((formats, Some(kl)))
        }
    }
}

/// Bytes of weights that this machine has room for now. Error: the system does not say how much memory is free.
pub fn memory_for_weights() -> Result<u64> {
    let mut system = sysinfo::System::new().map_err(|error| {
        let message = format!("The amount of free memory is unknown: {error}.");
        Error::new(ErrorKind::Limit, "convert.memory", message, "Set the size limit with --max-bytes.")
    })?;
    system.refresh_memory();
    Ok(system.available_memory() / SHARE_OF_MEMORY.1 * SHARE_OF_MEMORY.0)
}

fn check_bytes(file: &WeightFile, formats: &Formats, max_bytes: Option<u64>, kl: f64) -> Result<()> {
    let Some(max_bytes) = max_bytes else { return Ok(()) };
    let n_bytes = convert::plan(file, formats, None)?.n_bytes();
    if n_bytes <= max_bytes {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Limit,
        "convert.too_small",
        format!("A divergence of {kl:.6} nats needs {n_bytes} bytes, but only {max_bytes} are allowed."),
        "Raise --max-bytes or --max-kl.",
    ))
}

/// Beside the target, since the result needs the same free space later.
fn probe_path(out: &Path) -> PathBuf {
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    out.with_file_name(format!(".{name}.{}.probe", std::process::id()))
}

/// Tries choices against the source.
struct Search<'a> {
    io: &'a dyn Io,
    file: &'a WeightFile,
    choice: FormatChoice,
    source: Model,
    ids: Vec<u32>,
    probe: PathBuf,
    threads: Option<usize>,
}

impl<'a> Search<'a> {
    fn new(
        io: &'a dyn Io,
        file: &'a Arc<WeightFile>,
        choice: FormatChoice,
        probe: PathBuf,
        threads: Option<usize>,
    ) -> Result<Self> {
        let source = load(Arc::clone(file), threads)?;
        let ids = perplexity::encode(&source, convert::SAMPLE, Special::Plain)?;
        Ok(Self { io, file, choice, source, ids, probe, threads })
    }

    /// The least steps whose divergence is at most `max_kl`, and that divergence. Error `convert.kl`: the finest
    /// has more.
    fn smallest(&mut self, max_kl: f64, progress: &mut Progress<'_>) -> Result<(usize, f64)> {
        let (mut below, mut at) = (0, self.choice.n_steps());
        let mut best = self.divergence(at, progress)?;
        if best > max_kl {
            return Err(Error::new(
                ErrorKind::Limit,
                "convert.kl",
                format!(
                    "Even the most precise format differs by {best:.6} nats, but only {max_kl} are allowed."
                ),
                "Raise --max-kl, or choose f16.",
            ));
        }
        // `at` is near enough; what is below `below` is not
        while below < at {
            let middle = below + (at - below) / 2;
            let kl = self.divergence(middle, progress)?;
            if kl <= max_kl {
                (at, best) = (middle, kl);
            } else {
                below = middle + 1;
            }
        }
        Ok((at, best))
    }

    /// Mean divergence from the source after `n_steps` steps. Nats.
    fn divergence(&mut self, n_steps: usize, progress: &mut Progress<'_>) -> Result<f64> {
        let conversion = convert::plan(self.file, &self.choice.after(n_steps), self.threads)?;
        super::write(self.io, &conversion, &self.probe, progress)?;
        let measured = self.measured();
        self.io.remove_file(&self.probe)?;
        measured
    }

    fn measured(&mut self) -> Result<f64> {
        let mut model = load(Arc::new(WeightFile::open(&self.probe)?), self.threads)?;
        let window = WINDOW.min(model.n_ctx()).min(self.source.n_ctx());
        let (_, difference) =
            perplexity::measure(&mut model, Some(&mut self.source), &self.ids, window, &mut |_, _| true)?;
        difference
            .map(|difference| difference.mean_kl)
            .ok_or_else(|| Error::bug("no divergence was measured"))
    }
}

fn load(file: Arc<WeightFile>, threads: Option<usize>) -> Result<Model> {
    let options = LoadOptions {
        threads,
        kv: engine::KvDType::F32.both(),
        ctx: Some(WINDOW),
        max_sequences: 1,
        ..LoadOptions::default()
    };
    Ok(Model::load(file, &options, &mut |_| {})?)
}
