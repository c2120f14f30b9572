//! Logits and greedy continuations against independent implementations: every family of the
//! reference data in every container, format and configuration that it has.
//!
//! With float32 activations (the scalar backend) every logit is held to a tolerance; with quantised ones (the
//! cpu backend) the mean error may be at most `NOISE` times llama.cpp's. At the end stands a table of what was
//! measured.

mod assistant;
mod draft;
mod judge;
mod more_families;
mod reference;

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use engine::Devices;
use judge::Verdict;
use reference::{Case, cases, npy, story_cases, theirs};
use test_support::{Missing, skip, skip_part};

/// Largest difference of a logit with float32 activations: what the references differ among themselves by
/// is a thirtieth of it.
const TOLERANCE: f32 = 1e-3;

/// Of GGUFs whose exact logits took GELU from a table of float16 values, as llama.cpp does.
const TABLE_TOLERANCE: f32 = 2e-2;
const BY_TABLE: [&str; 3] = ["gemma", "gemma2", "gemma3"];

/// Room for the longest prompt.
const N_CTX: usize = 512;

/// Mixtures of experts are judged by mean and by share of agreeing positions.
const MIXTURES: [&str; 5] = ["qwen3_moe", "qwen3_moe-raw", "gpt_oss", "gemma4_moe", "qwen3_5_moe"];

/// Families that the reference data has at least.
const FAMILIES: [&str; 18] = [
    "gemma",
    "gemma2",
    "gemma3",
    "gemma4",
    "gemma4_e",
    "gemma4_moe",
    "gpt_oss",
    "lfm2",
    "llama",
    "ministral3",
    "mistral",
    "phi3",
    "qwen2",
    "qwen3",
    "qwen3_5",
    "qwen3_5_moe",
    "qwen3_moe",
    "smollm3",
];

/// Says which device computes with float32 activations: `scalar`, or `gpu` to have all cases on a GPU.
const DEVICE_VARIABLE: &str = "INGLENOOK_GOLDEN_DEVICE";

fn float_devices() -> Devices {
    match std::env::var(DEVICE_VARIABLE).as_deref() {
        Err(_) | Ok("scalar") => Devices::Scalar,
        Ok("gpu") => Devices::Gpu { layers: None },
        Ok(other) => panic!("{DEVICE_VARIABLE}={other} is neither scalar nor gpu"),
    }
}

/// One line of the table, and how it is measured.
struct Line {
    family: String,
    container: &'static str,
    what: String,
    check: Box<dyn Fn() -> Verdict + Send + Sync>,
}

impl Line {
    fn new(
        family: &str,
        container: &'static str,
        what: impl Into<String>,
        check: impl Fn() -> Verdict + Send + Sync + 'static,
    ) -> Self {
        Self { family: family.to_owned(), container, what: what.into(), check: Box::new(check) }
    }
}

#[test]
fn every_family() {
    let root = inglenook_tests::reference_dir().join("logits");
    let is_small = inglenook_tests::reference_is_small();
    if is_small {
        skip_part!(Missing::Reference, "the small set has few families");
    }
    let expected = if is_small { &[][..] } else { &FAMILIES };
    run("Golden logits", &lines(&root, expected));
}

/// Small models of every family, made with `tests/reference/make.py`: there without the conformance data too.
#[test]
fn small_families() {
    let root = inglenook_tests::workspace_root().join("tests/reference/families");
    let expected: Vec<&str> = FAMILIES.into_iter().chain(["gpt2"]).collect();
    let mut lines = lines(&root, &expected);
    // no reference has a GGUF of this family: ours is held to the answers that the original gives
    let dir = root.join("gpt2");
    lines.push(Line::new("gpt2", "GGUF", "f32, converted", move || {
        let load = |n_ctx| judge::load_converted(&dir, n_ctx);
        judge::exactly(&load, &cases(&dir, "ref.hf"), TOLERANCE, false)
    }));
    run("Golden logits of small models", &lines);
}

/// All that the families of a folder are to be measured by. Panics where an expected one isn't there.
fn lines(root: &Path, expected: &[&str]) -> Vec<Line> {
    let mut families = names(root);
    families.retain(|name| root.join(name).join("ref.hf.json").exists());
    let missing: Vec<_> = expected.iter().filter(|name| !families.iter().any(|f| f == *name)).collect();
    assert!(missing.is_empty(), "{} has no {missing:?}", root.display());
    let mut lines = Vec::new();
    for family in &families {
        let n_before = lines.len();
        safetensors_lines(root, family, &mut lines);
        gguf_lines(root, family, &mut lines);
        assert!(lines.len() > n_before, "{family} has neither safetensors nor GGUF");
    }
    lines
}

/// Safetensors with each of their configs: `config.ALT.json` has its own answers, or is another spelling of the
/// same model. A folder inside holds the same model with other tensor names.
fn safetensors_lines(root: &Path, family: &str, lines: &mut Vec<Line>) {
    safetensors_lines_of(root, family, MIXTURES.contains(&family), &cases, lines);
}

/// As `safetensors_lines`, with the cases that `read` makes of a folder and a stem.
fn safetensors_lines_of<R>(root: &Path, family: &str, is_mixture: bool, read: &R, lines: &mut Vec<Line>)
where
    R: Fn(&Path, &str) -> Vec<Case> + Clone + Send + Sync + 'static,
{
    let dir = root.join(family);
    let mut add = |what: String, folder: PathBuf, config: Option<PathBuf>, stem: String| {
        let (dir, read) = (dir.clone(), read.clone());
        lines.push(Line::new(family, "safetensors", what, move || {
            let copy = config.as_ref().map(|config| with_config(&folder, config));
            let folder = copy.as_ref().unwrap_or(&folder);
            let load = |n_ctx| judge::load(folder, float_devices(), n_ctx);
            let verdict = judge::exactly(&load, &read(&dir, &stem), TOLERANCE, is_mixture);
            copy.iter().for_each(|copy| std::fs::remove_dir_all(copy).unwrap());
            verdict
        }));
    };
    for name in names(&dir) {
        let path = dir.join(&name);
        match name.strip_prefix("config.").and_then(|name| name.strip_suffix("json")) {
            Some("") if dir.join("model.safetensors").exists() => {
                add("bf16".into(), dir.clone(), None, "ref.hf".into());
            }
            Some(other) if !other.is_empty() => {
                let other = other.trim_end_matches('.');
                let own = format!("ref.hf.{other}");
                let stem = if dir.join(format!("{own}.json")).exists() { own } else { "ref.hf".into() };
                add(format!("bf16, {name}"), dir.clone(), Some(path), stem);
            }
            _ if path.join("config.json").exists() => {
                add(format!("bf16, {name}/"), path, None, "ref.hf".into())
            }
            _ => {}
        }
    }
}

/// Every GGUF: with the scalar backend exactly, with the cpu backend as well as llama.cpp.
fn gguf_lines(root: &Path, family: &str, lines: &mut Vec<Line>) {
    let dir = root.join(family);
    let is_mixture = MIXTURES.contains(&family);
    let tolerance = if BY_TABLE.contains(&family) { TABLE_TOLERANCE } else { TOLERANCE };
    for name in names(&dir).into_iter().filter(|name| name.ends_with(".gguf")) {
        let format = name.split('.').nth(1).unwrap().to_owned();
        let (dir, path) = (dir.clone(), dir.join(&name));
        // the processor is measured where nothing else is asked for
        let noise = match float_devices() == Devices::Scalar {
            true => noise_line(family, &dir, &format, "cpu", |path| judge::load(path, Devices::Cpu, N_CTX)),
            false => halved_line(family, &dir, &format),
        };
        lines.push(Line::new(family, "GGUF", format.clone(), move || {
            let load = |n_ctx| judge::load(&path, float_devices(), n_ctx);
            judge::exactly(&load, &cases(&dir, &format!("ref.{format}.exact")), tolerance, is_mixture)
        }));
        lines.push(noise);
    }
}

/// The error of a GGUF beside that of llama.cpp with quantised activations.
fn noise_line(
    family: &str,
    dir: &Path,
    format: &str,
    on: &str,
    load: impl Fn(&Path) -> Result<engine::Model, String> + Send + Sync + 'static,
) -> Line {
    let (dir, format, is_mixture) = (dir.to_owned(), format.to_owned(), MIXTURES.contains(&family));
    let path = dir.join(format!("{family}.{format}.gguf"));
    Line::new(family, "GGUF, noise", format!("{format}, {on}"), move || {
        let mut model = load(&path)?;
        let exact = cases(&dir, &format!("ref.{format}.exact"));
        match theirs(&dir, &format).filter(|_| is_mixture) {
            Some(theirs) => judge::noise_of_mixture(&mut model, &exact, &theirs),
            None => {
                let theirs = npy(&dir.join(format!("ref.{format}.llamacpp.last.npy")));
                judge::noise(&mut model, &exact, &theirs)
            }
        }
    })
}

/// The same of a GPU whose products have operands of half precision.
fn halved_line(family: &str, dir: &Path, format: &str) -> Line {
    noise_line(family, dir, format, "gpu, f16", |path| judge::load_halved(path, N_CTX))
}

/// A few of the small models on a GPU, or on software that plays one: `make gpu-full` has all of them there.
#[test]
fn a_gpu_gives_the_same_answers() {
    const ON_A_CARD: [&str; 3] = ["llama", "gpt_oss", "qwen3_5"];
    let root = inglenook_tests::workspace_root().join("tests/reference/families");
    /// The first is in the project's own set too.
    const IN_HALVES: [(&str, &str); 3] = [("llama", "q8_0"), ("llama", "q4_k_m"), ("gpt_oss", "mxfp4_moe")];
    let mut lines = Vec::new();
    let is_small = inglenook_tests::reference_is_small();
    if is_small {
        skip_part!(Missing::Reference, "the small set has one format in half precision");
    }
    let n_here = if is_small { 1 } else { IN_HALVES.len() };
    for (family, format) in &IN_HALVES[..n_here] {
        let dir = inglenook_tests::reference_dir().join("logits").join(family);
        lines.push(halved_line(family, &dir, format));
    }
    for family in ON_A_CARD {
        let dir = root.join(family);
        lines.push(Line::new(family, "safetensors", "bf16, gpu", move || {
            let load = |n_ctx| judge::load(&dir, Devices::Gpu { layers: None }, n_ctx);
            judge::exactly(&load, &cases(&dir, "ref.hf"), TOLERANCE, MIXTURES.contains(&family))
        }));
    }
    run("On a GPU", &lines);
}

/// A trained model, from which text comes out.
#[test]
fn stories() {
    /// Most that logits may differ from llama.cpp's where no exact ones are known.
    const NEAR: f64 = 0.25;
    let dir = inglenook_tests::reference_dir().join("real/stories260K");
    if !dir.exists() && inglenook_tests::reference_is_small() {
        skip!(Missing::Reference, "the small set has no trained model");
    }
    let mut lines = Vec::new();
    for (container, path) in [("safetensors", dir.clone()), ("GGUF", dir.join("stories260K-f32.gguf"))] {
        for devices in [Devices::Scalar, Devices::Cpu] {
            let (dir, path, what) = (dir.clone(), path.clone(), format!("f32, {devices:?}"));
            lines.push(Line::new("stories260K", container, what, move || {
                let load = |n_ctx| judge::load(&path, devices.clone(), n_ctx);
                judge::exactly(&load, &story_cases(&dir, "hf"), TOLERANCE, false)
            }));
        }
    }
    for format in ["q8_0", "q4_0"] {
        for devices in [Devices::Scalar, Devices::Cpu] {
            let (dir, what) = (dir.clone(), format!("{format}, {devices:?}"));
            lines.push(Line::new("stories260K", "GGUF", what, move || {
                let mut model =
                    judge::load(&dir.join(format!("stories260K-{format}.gguf")), devices.clone(), N_CTX)?;
                judge::near(&mut model, &story_cases(&dir, &format!("llamacpp-{format}")), NEAR)
            }));
        }
    }
    run("A trained model", &lines);
}

/// Measures all lines on as many threads as there are cores, and prints them as a table; fails if one does.
fn run(title: &str, lines: &[Line]) {
    let next = AtomicUsize::new(0);
    let verdicts: Mutex<Vec<(usize, Verdict)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((index, line)) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, lines.get(i)?)))
                {
                    let verdict = catch_unwind(AssertUnwindSafe(&line.check))
                        .unwrap_or_else(|_| Err("it panicked, see above".into()));
                    verdicts.lock().unwrap().push((index, verdict));
                }
            });
        }
    });
    let mut verdicts = verdicts.into_inner().unwrap();
    verdicts.sort_by_key(|(index, _)| *index);
    let mut table = format!("\n{title}\n");
    for (index, verdict) in &verdicts {
        let Line { family, container, what, .. } = &lines[*index];
        let (figure, passed) = match verdict {
            Ok(figure) => (figure, "pass"),
            Err(figure) => (figure, "FAIL"),
        };
        table += &format!("{family:12} | {container:11} | {what:26} | {passed} | {figure}\n");
    }
    // past the capture of passing tests' output: the figures are part of what a run says
    std::io::stderr().write_all(table.as_bytes()).unwrap();
    let n_failed = verdicts.iter().filter(|(_, verdict)| verdict.is_err()).count();
    assert!(n_failed == 0 && verdicts.len() == lines.len(), "{n_failed} of {} lines fail", lines.len());
}

/// A copy of a model's folder with another config.
fn with_config(dir: &Path, config: &Path) -> PathBuf {
    static COPIES: AtomicUsize = AtomicUsize::new(0);
    // families of one name stand in several folders, whose tests run side by side
    let n = COPIES.fetch_add(1, Ordering::Relaxed);
    let copy = std::env::temp_dir().join(format!("inglenook-golden-{}-{n}", std::process::id()));
    std::fs::create_dir_all(&copy).unwrap();
    for name in ["model.safetensors", "tokenizer.json", "tokenizer_config.json"] {
        if dir.join(name).exists() {
            std::fs::copy(dir.join(name), copy.join(name)).unwrap();
        }
    }
    std::fs::copy(config, copy.join("config.json")).unwrap();
    copy
}

/// What a folder holds, sorted.
fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
