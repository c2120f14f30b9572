//! Opens the models, text files and token ids named on the command line.

use std::path::Path;
use std::sync::Arc;

use app::App;
use contract::Error;
use contract::ErrorKind;
use contract::Responder;
use contract::Result;
use contract::protocol::{Backend, GpuPrecision, Kv, Location, Quantize};
use contract::{CpuRequest, GpuRequest, GpuSpread, NumaPolicy};
use engine::tokenizer::Tokenizer;
use engine::{AssistantFile, Devices, DraftBlockUse, LoadOptions, TokenId};
use inference::convert::on_load;
use inference::machine::gpus::{Finder, GpuPlanner};
use inference::machine::{self, Machine, Recall};
use inference::model_file::not_here;
use inference::starter;
use inference::worker::gpu_notice;
use inference::{engine_types, memory_budget};
use io::{RealClock, RealIo};
use platform::DataDirs;
use weights::WeightFile;

use crate::args::global::Global;
use crate::args::texts::TextArgs;
use crate::args::values::GpuLayers;
use crate::input::read_stdin;
use crate::{interrupt, out, progress};

/// Resolves a path or library id to the location of a model.
pub fn locate(name: &str, global: &Global) -> Result<Location> {
    if name == starter::ID {
        return Ok(Location::BuiltIn);
    }
    if Path::new(name).exists() {
        return Ok(Location::Path(name.into()));
    }
    let looks_like_path =
        name.contains(['/', '\\']) || name.ends_with(".gguf") || name.ends_with(".safetensors");
    if looks_like_path {
        // `lab/qwen3` may be a model of the endpoint `lab`.
        if let Ok(Responder::Remote(reference)) = App::open(global.app_config()?)?.responder(name) {
            return Err(not_here(&reference.id));
        }
        return Err(Error::not_found(
            "model.no_file",
            format!("There is no file {name}."),
            "Check the path, or choose a model from `nook models list`.",
        ));
    }
    match App::open(global.app_config()?)?.responder(name)? {
        Responder::Local(reference) => Ok(reference.location),
        Responder::Remote(reference) => Err(not_here(&reference.id)),
    }
}

pub fn open(name: &str, global: &Global) -> Result<WeightFile> {
    Ok(match locate(name, global)? {
        Location::BuiltIn => WeightFile::from_static(starter::ID, starter::bytes())?,
        Location::Path(path) => WeightFile::open(Path::new(&path))?,
        Location::Remote { name, .. } => return Err(not_here(&name)),
    })
}

/// Loads the model with what drafts for it: the assistant that `--draft-model` names, else its own draft block.
pub fn require_drafts(options: &mut LoadOptions, global: &Global) -> Result<()> {
    match &global.draft_model {
        Some(name) => options.assistant = Some(AssistantFile(Arc::new(open(name, global)?))),
        None => options.draft_block = DraftBlockUse::Required,
    }
    Ok(())
}

/// Like `open`, but with weights in the format given by `--quantize`.
pub fn open_to_run(name: &str, global: &Global) -> Result<WeightFile> {
    let Some(dtype) = global.quantize.clone() else { return open(name, global) };
    let data = DataDirs::resolve(global.app_config()?.data_dir)?.data;
    let quantize = Quantize { dtype, folder: on_load::folder(&data).display().to_string() };
    let threads = global.threads.map(|n| n as usize);
    let stop = interrupt::flag();
    let mut progress = progress::percent("quantizing", &stop);
    on_load::open(&RealIo, &locate(name, global)?, &quantize, threads, &mut progress)
}

pub fn tokenizer(name: &str, global: &Global) -> Result<Tokenizer> {
    Ok(match locate(name, global)? {
        Location::BuiltIn => {
            Tokenizer::from_weights(&WeightFile::from_static(starter::ID, starter::bytes())?)?
        }
        Location::Path(path) => Tokenizer::from_path(Path::new(&path))?,
        Location::Remote { name, .. } => return Err(not_here(&name)),
    })
}

/// Load options from the flags; `kv` and `context` are the defaults.
pub fn load_options(global: &Global, kv: Kv, context: usize) -> Result<LoadOptions> {
    let mut options = LoadOptions {
        devices: match global.backend() {
            Backend::Auto => Devices::Auto,
            Backend::Cpu => Devices::Cpu,
            // `shared_model` chooses the GPUs once the model is open
            Backend::Gpu => Devices::Gpu { layers: gpu_request(global)?.layers },
            Backend::Scalar => Devices::Scalar,
        },
        kv: engine_types::kv_precision(global.kv.unwrap_or(kv)),
        kv_requantize: engine_types::kv_aging(global.kv_aging.unwrap_or_default()),
        kv_window: global.kv_window.map(|n| n as usize),
        rope_scaling: global.rope_scaling()?.map(engine_types::rope_scaling),
        ctx: Some(global.ctx.map_or(context, |n| n as usize)),
        ..LoadOptions::default()
    };
    if options.devices != Devices::Scalar {
        let machine = machine(global, Recall::Remember)?;
        machine.notice().inspect(|notice| out::log(notice.message()));
        machine.apply(&mut options);
    }
    Ok(options)
}

/// Prepares the CPU as the flags request.
pub fn machine(global: &Global, recall: Recall) -> Result<Machine> {
    let request = CpuRequest {
        folder: Some(DataDirs::resolve(global.app_config()?.data_dir)?.data),
        threads: global.threads.map(|n| n as usize),
        affinity: global.affinity,
        numa: global.numa.map(NumaPolicy::from).unwrap_or_default(),
    };
    machine::prepare(&RealIo, &RealClock::new(), &request, recall)
}

/// GPU settings from the flags.
pub fn gpu_request(global: &Global) -> Result<GpuRequest> {
    Ok(GpuRequest {
        layers: global.gpu_layers.and_then(|GpuLayers(n)| n),
        precision: global.gpu_precision.map(GpuPrecision::from).unwrap_or_default(),
        memory: None,
        devices: global.device.clone(),
        spread: global.gpu_spread.map(GpuSpread::from).unwrap_or_default(),
        cache: Some(DataDirs::resolve(global.app_config()?.data_dir)?.cache),
        fault: None,
    })
}

/// The GPUs and their cached measurements.
pub fn gpus<'a>(dirs: &'a DataDirs, request: &'a GpuRequest, clock: &'a RealClock) -> GpuPlanner<'a> {
    GpuPlanner { io: &RealIo, clock, folder: Some(&dirs.data), asked: request, finder: Finder::SYSTEM }
}

/// Opens the file of a model's vision tower.
pub fn tower_file(name: &str, mmproj: Option<&Path>, global: &Global) -> Result<Arc<WeightFile>> {
    let model = Arc::new(open(name, global)?);
    engine::vision::tower_file(&model, mmproj)?.ok_or_else(|| {
        Error::input(
            "vision.not_taken",
            format!("{name} has no vision tower, and there is none beside it."),
            "Choose a model that sees, or name its mmproj file with --mmproj.",
        )
    })
}

/// Loads a model and applies the LoRA adapters from the flags.
pub fn model(file: WeightFile, options: &LoadOptions, global: &Global) -> Result<engine::Model> {
    shared_model(Arc::new(file), options, global)
}

/// Like `model`, for a shared file.
pub fn shared_model(file: Arc<WeightFile>, options: &LoadOptions, global: &Global) -> Result<engine::Model> {
    let resident = memory_budget::budget(global.resident, file.len_bytes());
    let settle = memory_budget::may_settle(file.len_bytes());
    let mut options = LoadOptions { resident, promote_large_pages: settle, ..options.clone() };
    let dirs = DataDirs::resolve(global.app_config()?.data_dir)?;
    let (request, clock) = (gpu_request(global)?, RealClock::new());
    let gpus = gpus(&dirs, &request, &clock);
    let placed = gpus.place(global.backend(), &file, &mut options)?;
    placed.notice.iter().for_each(|notice| out::log(notice.message()));
    let loaded = engine::Model::load(file, &options, &mut |_| {});
    gpus.keep(&placed, loaded.is_ok());
    let mut model = loaded?;
    if let Some(error) = &model.info().fallback_error {
        out::log(&format!("using the CPU instead: {error}"));
    }
    while let Some(trouble) = model.take_gpu_incident() {
        out::log(gpu_notice(&trouble).message());
    }
    if options.kv_requantize != model.info().kv_requantize {
        out::log(
            "contexts are unchanged: they are already short for this model, it reads images whole, or a GPU uses them.",
        );
    }
    model.adapt(&global.lora)?;
    Ok(model)
}

/// Parses `1,2,3`; spaces and brackets are allowed.
pub fn ids(text: &str) -> Result<Vec<TokenId>> {
    let text = text.trim().trim_start_matches('[').trim_end_matches(']');
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let id = |part: &str| {
        part.trim().parse().map_err(|_| {
            Error::new(
                ErrorKind::Usage,
                "usage.ids",
                format!("\"{}\" is not a token id.", part.trim()),
                "Write ids as 1,2,3.",
            )
        })
    };
    text.split(',').map(id).collect()
}

/// Size limit of an input text file.
const MAX_TEXT_BYTES: u64 = 1 << 30;

/// Reads a file; `-` is standard input.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    if path == Path::new("-") { read_stdin(MAX_TEXT_BYTES) } else { read_file(path) }
}

/// Reads a UTF-8 file; `-` is standard input.
pub fn read_text(path: &Path) -> Result<String> {
    String::from_utf8(read_bytes(path)?).map_err(|error| {
        Error::input(
            "input.not_utf8",
            format!(
                "{} is not UTF-8 text: byte {} is wrong.",
                path.display(),
                error.utf8_error().valid_up_to()
            ),
            "Save it as UTF-8.",
        )
    })
}

fn read_file(path: &Path) -> Result<Vec<u8>> {
    io::read_regular_file(path, MAX_TEXT_BYTES).map_err(|error| match error.special_file() {
        Some(special) => {
            let message = format!("{} could not be read: {special}.", path.display());
            Error::input("input.unreadable", message, "Name a regular file, or use - for standard input.")
        }
        None => unreadable(path, &error.source.to_string()),
    })
}

fn unreadable(path: &Path, cause: &str) -> Error {
    let message = format!("{} could not be read: {cause}.", path.display());
    Error::input("input.unreadable", message, "Check the path and that the file may be read.")
}

/// The input texts of a command: one text, or one per JSON line.
pub fn texts(input: &TextArgs) -> Result<Vec<String>> {
    if let Some(path) = &input.jsonl {
        return json_texts(path);
    }
    Ok(vec![match (&input.text, &input.file) {
        (Some(text), _) => text.clone(),
        (None, Some(path)) => read_text(path)?,
        (None, None) => unreachable!("the command line demands one of them"),
    }])
}

/// Reads the texts of JSON lines `{"text":…}`.
pub fn json_texts(path: &Path) -> Result<Vec<String>> {
    let text = |(number, line): (usize, serde_json::Value)| {
        let found = line["text"].as_str().map(str::to_owned);
        found.ok_or_else(|| {
            let message = format!("{}, line {number} has no \"text\".", path.display());
            Error::input("input.no_text", message, "Write one {\"text\": \"…\"} per line.")
        })
    };
    json_lines(path)?.into_iter().map(text).collect()
}

/// Reads JSON lines with their line numbers; skips blank lines.
pub fn json_lines(path: &Path) -> Result<Vec<(usize, serde_json::Value)>> {
    let text = read_text(path)?;
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let parse = |(number, line): (usize, &str)| match serde_json::from_str(line) {
        Ok(value) => Ok((number, value)),
        Err(error) => Err(Error::input(
            "input.not_json",
            format!("{}, line {number} is not JSON: {error}.", path.display()),
            "Write one JSON value per line.",
        )),
    };
    lines.map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn special_files_are_refused_at_once() {
        let pipe = std::env::temp_dir().join(format!("nook-pipe-{}", std::process::id()));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for (path, what) in
            [(pipe.as_path(), "pipe"), (Path::new("/dev/zero"), "device"), (Path::new("/tmp"), "folder")]
        {
            let error = read_text(path).unwrap_err();
            assert!(error.message().contains(what) && error.remedy().contains("regular file"), "{error}");
        }
        std::fs::remove_file(&pipe).unwrap();
    }
}
