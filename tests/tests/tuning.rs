//! Fine-tuning through the real `nook`: training steps against those of PEFT, whole runs, and runs that are killed.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use engine::train::{AdamW, LoraShape, Trainer, TrainerOptions, TrainingExample};
use engine::{Chunk, Devices, KvDType, LoadOptions, LogitsSelection, Model};
use inglenook_tests::{reference_dir, workspace_root};
use serde_json::Value;
use test_support::{Missing, skip};
use weights::WeightFile;

use crate::cli::Home;

/// Tolerances of the issue; the references differ from float64 by 1.2e-6, 1.3e-6 and 8.6e-6.
const LOSS: f64 = 1e-5;
const GRADIENT: f32 = 1e-4;
const WEIGHT: f32 = 1e-3;

type Tensors = HashMap<String, Vec<f32>>;

/// All tensors of a safetensors file, in float32.
fn tensors(path: &Path) -> Tensors {
    let file = WeightFile::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let decode = |view: weights::TensorView<'_>| {
        let mut values = vec![0.0; view.shape.iter().product()];
        (view.dtype.codec().unwrap().decode)(&view.data, &mut values);
        (view.name.to_owned(), values)
    };
    file.tensors().map(decode).collect()
}

fn word(bytes: &[u8], at: usize, n: usize) -> usize {
    bytes[at..at + n].iter().rev().fold(0, |word, byte| word << 8 | usize::from(*byte))
}

/// The arrays of an .npz file: a zip archive of stored .npy files, found through its central directory.
fn npz(path: &Path) -> Tensors {
    let bytes = std::fs::read(path).unwrap();
    let end = (0..=bytes.len() - 22).rev().find(|at| bytes[*at..].starts_with(b"PK\x05\x06")).unwrap();
    let (mut at, n) = (word(&bytes, end + 16, 4), word(&bytes, end + 10, 2));
    let mut all = Tensors::new();
    for _ in 0..n {
        let length = |offset| word(&bytes, at + offset, 2);
        let (size, local) = (word(&bytes, at + 24, 4), word(&bytes, at + 42, 4));
        let name = String::from_utf8(bytes[at + 46..at + 46 + length(28)].to_vec()).unwrap();
        assert_eq!(length(10), 0, "{name} is compressed");
        let start = local + 30 + word(&bytes, local + 26, 2) + word(&bytes, local + 28, 2);
        let array = &bytes[start..start + size];
        let header = 10 + word(array, 8, 2);
        let text = String::from_utf8_lossy(&array[..header]);
        assert!(text.contains("'<f4'") && text.contains("'fortran_order': False"), "{text}");
        let values = array[header..].chunks_exact(4).map(|x| f32::from_le_bytes(x.try_into().unwrap()));
        all.insert(name.trim_end_matches(".npy").to_owned(), values.collect());
        at += 46 + length(28) + length(30) + length(32);
    }
    all
}

/// Largest difference, and the largest number of the reference.
fn difference(found: &[f32], wanted: &[f32]) -> (f32, f32) {
    assert_eq!(found.len(), wanted.len());
    let largest = |numbers: &mut dyn Iterator<Item = f32>| numbers.fold(0.0f32, f32::max);
    let differences = &mut found.iter().zip(wanted).map(|(a, b)| (a - b).abs());
    (largest(differences), largest(&mut wanted.iter().map(|x| x.abs())))
}

/// Copies a PEFT folder with all B zero, the usual start.
fn with_zero_b(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    std::fs::copy(from.join("adapter_config.json"), to.join("adapter_config.json")).unwrap();
    let mut bytes = std::fs::read(from.join("adapter_model.safetensors")).unwrap();
    let start = 8 + word(&bytes, 0, 8);
    let header: Value = serde_json::from_slice(&bytes[8..start]).unwrap();
    for (name, entry) in header.as_object().unwrap() {
        if name.contains("lora_B") {
            let offset = |i: usize| start + entry["data_offsets"][i].as_u64().unwrap() as usize;
            bytes[offset(0)..offset(1)].fill(0);
        }
    }
    std::fs::write(to.join("adapter_model.safetensors"), bytes).unwrap();
}

/// Ten steps from one of the two starts, as `model`, against the reference of a family.
fn check_steps(home: &Home, folder: &Path, model: &Path, is_zero_b: bool, backend: &str) {
    let start = folder.join("adapter.init");
    let (start, part, key) = match is_zero_b {
        false => (start, "", "nonzero"),
        true => {
            let zero = home.0.join("zero");
            with_zero_b(&start, &zero);
            (zero, ".zero_b", "zero_b")
        }
    };
    let (gradients, save) = (home.0.join("gradients.safetensors"), home.0.join("saved"));
    let batch = folder.join("batch.json");
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let args = [&path(model), &path(&batch), &path(&start), &path(&gradients), &path(&save)];
    let [model_arg, batch, start, gradients_arg, save_arg] = args.map(String::as_str);
    let result = home.json(&[
        "tune",
        "--backend",
        backend,
        "--model",
        model_arg,
        "--batch",
        batch,
        "--adapter",
        start,
        "--steps",
        "10",
        "--gradients",
        gradients_arg,
        "--save",
        save_arg,
    ]);
    let what = format!("{} {key} {backend}", model.display());
    let train: Value = serde_json::from_slice(&std::fs::read(folder.join("train.json")).unwrap()).unwrap();
    let losses = result["losses"].as_array().unwrap();
    assert_eq!(losses.len(), 10, "{what}");
    for (step, (found, wanted)) in losses.iter().zip(train[key]["loss"].as_array().unwrap()).enumerate() {
        let error = (found.as_f64().unwrap() - wanted.as_f64().unwrap()).abs();
        assert!(error < LOSS, "{what}: loss before step {step} is {found}, not {wanted}");
    }
    let found = tensors(&gradients);
    for (name, wanted) in npz(&folder.join(format!("grads.step0{part}.npz"))) {
        let (error, largest) = difference(&found[&name], &wanted);
        assert!(error <= GRADIENT * largest, "{what}: gradient of {name} is off by {error} of {largest}");
    }
    let step10 = folder.join(format!("adapter{part}.step10")).join("adapter_model.safetensors");
    let found = tensors(&save.join("adapter_model.safetensors"));
    let wanted = tensors(&step10);
    assert_eq!(found.len(), wanted.len(), "{what}");
    for (name, wanted) in wanted {
        let (error, largest) = difference(&found[&name], &wanted);
        assert!(error <= WEIGHT * largest.max(1e-2), "{what}: {name} is off by {error} of {largest}");
    }
}

#[test]
fn training_steps_are_those_of_peft() {
    let folder = reference_dir().join("lora");
    if !folder.is_dir() {
        skip!(Missing::Reference, "no conformance data for training");
    }
    for family in ["llama", "qwen3", "gemma3", "smollm3"] {
        for is_zero_b in [false, true] {
            check_steps(&Home::new(), &folder.join(family), &folder.join(family), is_zero_b, "cpu");
        }
    }
}

/// Any adapter will do; on a machine without a GPU it is Mesa's software renderer.
#[test]
fn training_steps_of_a_gpu_are_those_of_peft() {
    let folder = reference_dir().join("lora");
    if !folder.is_dir() {
        skip!(Missing::Reference, "no conformance data for training");
    }
    for family in ["llama", "qwen3", "gemma3", "smollm3"] {
        check_steps(&Home::new(), &folder.join(family), &folder.join(family), false, "gpu");
    }
}

/// The rows of a GGUF's queries and keys are in another order, those of the adapter are not.
#[test]
fn a_gguf_of_the_same_weights_is_trained_the_same() {
    let folder = reference_dir().join("lora");
    if !folder.is_dir() {
        skip!(Missing::Reference, "no conformance data for training");
    }
    for family in ["llama", "qwen3"] {
        let home = Home::new();
        let (source, gguf) = (folder.join(family), home.0.join("model.gguf"));
        home.json(&["convert", source.to_str().unwrap(), "--out", gguf.to_str().unwrap(), "--dtype", "bf16"]);
        check_steps(&home, &source, &gguf, false, "cpu");
    }
}

/// Small models of each family that can be trained, with their variants.
const FAMILIES: [&str; 13] = [
    "gemma",
    "gemma2",
    "gemma3",
    "llama",
    "llama-odd",
    "mistral",
    "phi3",
    "phi3-long",
    "qwen2",
    "qwen2-window",
    "qwen3",
    "smollm3",
    "smollm3-window",
];

/// The loss of a text by the ordinary forward pass with an adapter.
fn loss_of_model(model: &Path, adapter: &Path, ids: &[u32]) -> f64 {
    let options = LoadOptions {
        devices: Devices::Scalar,
        kv: KvDType::F32.both(),
        ctx: Some(64),
        ..LoadOptions::default()
    };
    let file = Arc::new(WeightFile::open(model).unwrap());
    let mut model = Model::load(file, &options, &mut |_| {}).unwrap();
    model.adapt(&[adapter.to_str().unwrap().to_owned()]).unwrap();
    let seq = model.new_sequence().unwrap();
    let logits = model.forward(&[Chunk { seq, tokens: ids, logits: LogitsSelection::All }]).unwrap();
    let loss = |i: usize| {
        let row = logits.row(i).unwrap();
        let sum: f64 = row.iter().map(|x| f64::from(*x).exp()).sum();
        sum.ln() - f64::from(row[ids[i + 1] as usize])
    };
    (0..ids.len() - 1).map(loss).sum::<f64>() / (ids.len() - 1) as f64
}

/// Fused projections, windows, caps, biases: what was trained is what the loaded adapter computes.
#[test]
fn every_family_learns_and_its_adapter_computes_the_same() {
    let home = Home::new();
    for family in FAMILIES {
        let model = workspace_root().join("tests/reference/families").join(family);
        let file = Arc::new(WeightFile::open(&model).unwrap());
        let shape = LoraShape { rank: 4, alpha: 8.0 };
        let options = TrainerOptions { n_ctx: 64, ..TrainerOptions::default() };
        let mut trainer = Trainer::start(file, shape, 1, options).unwrap();
        let ids: Vec<u32> = (0..30).map(|i| (i * 13 + 7) % 101).collect();
        let examples = [TrainingExample { is_learned: vec![true; ids.len()], ids }];
        let before = trainer.loss(&examples).unwrap();
        for _ in 0..12 {
            trainer.compute_gradients(&examples).unwrap();
            trainer.step(&AdamW::default(), 5e-3);
        }
        let after = trainer.loss(&examples).unwrap();
        assert!(after < 0.8 * before, "{family}: {before} {after}");
        let adapter = home.0.join(family);
        std::fs::create_dir_all(&adapter).unwrap();
        std::fs::write(adapter.join("adapter_model.safetensors"), trainer.weights_file()).unwrap();
        std::fs::write(adapter.join("adapter_config.json"), trainer.peft_config(shape)).unwrap();
        let loaded = loss_of_model(&model, &adapter, &examples[0].ids);
        assert!((loaded - after).abs() < 1e-5 * after, "{family}: trained {after}, loaded {loaded}");
    }
}

/// Forty chats with answers in an invented form.
fn chats(home: &Home) -> PathBuf {
    let file = home.0.join("chats.jsonl");
    let line = |i: usize| {
        let message = |role: &str, content: String| serde_json::json!({"role": role, "content": content});
        let messages =
            [message("user", format!("Say {i}")), message("assistant", format!("<<{i}>> and {}", i + 1))];
        serde_json::json!({ "messages": messages }).to_string()
    };
    let mut lines: Vec<String> = (0..40).map(line).collect();
    lines.insert(3, "not json".into());
    lines.insert(7, line(2));
    lines.insert(9, r#"{"messages":[{"role":"user","content":"alone"}]}"#.into());
    std::fs::write(&file, lines.join("\n")).unwrap();
    file
}

fn tune_args<'a>(data: &'a str, out: &'a str, epochs: &'a str) -> Vec<&'a str> {
    vec![
        "tune", "--model", "starter", "--data", data, "--out", out, "--rank", "4", "--alpha", "8", "--lr",
        "1e-3", "--seed", "5", "--epochs", epochs,
    ]
}

#[test]
fn a_run_learns_and_its_adapter_loads() {
    let home = Home::new();
    let (data, out) = (chats(&home), home.0.join("out"));
    let (data, out) = (data.to_str().unwrap(), out.to_str().unwrap());
    let preview = home.json(&["tune", "--model", "starter", "--data", data, "--preview"]);
    let skipped: Vec<u64> =
        preview["skipped"].as_array().unwrap().iter().map(|it| it["line"].as_u64().unwrap()).collect();
    assert_eq!(skipped, [4, 8, 10], "{preview}");
    let learned = preview["first"][0]["learned"].as_str().unwrap();
    assert!(learned.contains("<<0>> and 1") && !learned.contains("Say"), "{preview}");
    let lines = home.lines(&tune_args(data, out, "2"));
    let (last, steps) = lines.split_last().unwrap();
    assert_eq!(steps.len(), 18, "36 examples, 4 a step, twice");
    assert!(steps.iter().all(|step| step["tok_s"].as_f64().unwrap() > 0.0));
    let (before, after) = (last["before"].as_f64().unwrap(), last["after"].as_f64().unwrap());
    assert!(after < 0.67 * before, "{last}");
    let answers = last["answers"].as_array().unwrap();
    assert_eq!(answers.len(), 4, "one of ten chats is held out: {last}");
    for it in answers {
        let text = |key: &str| it[key].as_str().unwrap();
        assert!(text("prompt").starts_with("Say ") && text("expected").starts_with("<<"), "{it}");
        assert!(!text("base").is_empty(), "{it}");
    }
    assert!(answers.iter().any(|it| it["base"] != it["tuned"]), "nothing was learned: {last}");
    let again = home.json(&[&tune_args(data, out, "2")[..], &["--resume"]].concat());
    assert_eq!(&again, last, "a run that is complete is only shown");
    // The adapter changes answers in both formats, by the same amount.
    let logits = |lora: &[&str]| {
        let args = ["logits", "--model", "starter", "--ids", "5,6,7", "--backend", "scalar"];
        let all = home.json(&[&args[..], lora].concat());
        all["positions"][0]["logits"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect()
    };
    let plain: Vec<f32> = logits(&[]);
    let peft: Vec<f32> = logits(&["--lora", out]);
    let gguf: Vec<f32> = logits(&["--lora", &format!("{out}/adapter.gguf")]);
    assert!(difference(&plain, &peft).0 > 1e-2);
    assert!(difference(&peft, &gguf).0 < 1e-4);
    // A folder with a run is not overwritten.
    let (code, error) = home.error(&tune_args(data, out, "2"));
    assert_eq!((code, error["code"].as_str().unwrap()), (3, "tune.folder"));
}

#[test]
fn a_run_on_a_gpu_says_which_and_learns() {
    let home = Home::new();
    let (data, out) = (chats(&home), home.0.join("out"));
    let args = tune_args(data.to_str().unwrap(), out.to_str().unwrap(), "1");
    let output = home.command(&[&args[..], &["--backend", "gpu", "--json"]].concat()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("computes the products with the model's matrices."), "{said}");
    let lines = String::from_utf8_lossy(&output.stdout);
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert!(last["after"].as_f64() < last["before"].as_f64(), "{last}");
}

/// Kills in one run.
const KILLS: usize = 20;

#[test]
fn a_run_that_is_killed_ends_with_the_same_adapter() {
    let home = Home::new();
    let data = chats(&home);
    let data = data.to_str().unwrap();
    let (whole, killed) = (home.0.join("whole"), home.0.join("killed"));
    let args = |out| [&tune_args(data, out, "6")[..], &["--step-examples", "2", "--json"]].concat();
    let output = home.command(&args(whole.to_str().unwrap())).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let killed_args = [&args(killed.to_str().unwrap())[..], &["--resume"]].concat();
    let mut n_kills = 0;
    let mut last_step = 0;
    loop {
        let mut command = home.command(&killed_args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        if n_kills == KILLS {
            let rest: Vec<String> = lines.map(Result::unwrap).collect();
            assert!(child.wait().unwrap().success());
            assert!(rest.last().unwrap().contains("\"after\""), "{rest:?}");
            break;
        }
        let step = |line: &str| serde_json::from_str::<Value>(line).unwrap()["step"].as_u64().unwrap();
        let first = step(&lines.next().unwrap().unwrap());
        // The step after the last one seen may have been saved too, but none is lost or repeated.
        assert!(first == last_step + 1 || first == last_step + 2, "step {first} after {last_step}");
        // Somewhere within the next steps.
        std::thread::sleep(std::time::Duration::from_millis(7 * (n_kills as u64 % 5)));
        child.kill().unwrap();
        child.wait().unwrap();
        last_step = lines.map_while(Result::ok).map(|line| step(&line)).last().unwrap_or(first);
        n_kills += 1;
    }
    for name in ["adapter_model.safetensors", "adapter.gguf", "adapter_config.json"] {
        let bytes = |folder: &Path| std::fs::read(folder.join(name)).unwrap();
        assert!(bytes(&whole) == bytes(&killed), "{name} differs after {KILLS} kills");
    }
}

#[test]
fn what_cannot_be_trained_says_why() {
    let home = Home::new();
    let (data, out) = (chats(&home), home.0.join("out"));
    let (data, out) = (data.to_str().unwrap(), out.to_str().unwrap());
    let gpt2 = workspace_root().join("tests/reference/families/gpt2");
    let (code, error) =
        home.error(&["tune", "--model", gpt2.to_str().unwrap(), "--data", data, "--out", out]);
    assert_eq!((code, error["code"].as_str().unwrap()), (3, "tune.family"), "{error}");
    let empty = home.0.join("empty.jsonl");
    std::fs::write(&empty, "not json\n\n{}\n").unwrap();
    let (code, error) = home.error(&tune_args(empty.to_str().unwrap(), out, "2"));
    assert_eq!((code, error["code"].as_str().unwrap()), (3, "tune.no_examples"), "{error}");
    assert!(error["message"].as_str().unwrap().contains("line 1"), "{error}");
    for (arg, value, wanted) in
        [("--rank", "0", "tune.rank"), ("--lr", "0", "tune.setting"), ("--alpha", "nan", "tune.alpha")]
    {
        let args: Vec<&str> =
            ["tune", "--model", "starter", "--data", data, "--out", out, arg, value].to_vec();
        let (code, error) = home.error(&args);
        assert_eq!((code, error["code"].as_str().unwrap()), (3, wanted), "{error}");
    }
    assert_eq!(home.error(&["tune", "--model", "starter"]).0, 2);
    let (batch, adapter) = (home.0.join("batch.json"), home.0.join("adapter"));
    let trainer = Trainer::start(
        Arc::new(WeightFile::open(&workspace_root().join("tests/reference/families/llama")).unwrap()),
        LoraShape { rank: 2, alpha: 4.0 },
        1,
        TrainerOptions::default(),
    );
    let trainer = trainer.unwrap();
    std::fs::create_dir_all(&adapter).unwrap();
    std::fs::write(adapter.join("adapter_model.safetensors"), trainer.weights_file()).unwrap();
    std::fs::write(
        adapter.join("adapter_config.json"),
        trainer.peft_config(LoraShape { rank: 2, alpha: 4.0 }),
    )
    .unwrap();
    let llama = workspace_root().join("tests/reference/families/llama");
    for (text, wanted) in [
        (r#"{"ids":[[1,9999999]],"loss_mask":[[0,1]],"lr":1}"#, "tune.token"),
        (r#"{"ids":[[1,2]],"loss_mask":[[1,0]],"lr":1}"#, "tune.nothing_to_learn"),
        (r#"{"ids":[[1,2]],"loss_mask":[[1]],"lr":1}"#, "tune.batch"),
    ] {
        std::fs::write(&batch, text).unwrap();
        let (batch, adapter) = (batch.to_str().unwrap(), adapter.to_str().unwrap());
        let args = [
            "tune",
            "--model",
            llama.to_str().unwrap(),
            "--batch",
            batch,
            "--adapter",
            adapter,
            "--steps",
            "1",
        ];
        let (code, error) = home.error(&args);
        assert_eq!((code, error["code"].as_str().unwrap()), (3, wanted), "{error}");
    }
}
