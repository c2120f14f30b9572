//! Every family of the reference data through a GGUF: the same logits and drafts, and the names and shapes of
//! llama.cpp's own converter.
#![allow(clippy::unwrap_used)] // a failure here fails the test

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::convert::{self, Formats};
use engine::memory_estimate::MemoryEstimate;
use engine::{Chunk, Devices, DraftBlockUse, KvDType, LoadOptions, LogitsSelection, Model, TokenId};
use test_support::{Missing, skip};
use weights::{SharedBytes, WeightFile};

/// Sums in another order: rows of queries and keys change places, and value heads of a DeltaNet.
const SAME: f32 = 2e-4;

/// Families whose folders no GGUF holds, and why.
const REFUSED: &[(&str, &str)] = &[
    // The key of a window is not read for llama's files.
    ("mistral", "window"),
    // llama.cpp has no architecture for it: its converter writes another model.
    ("bamba", "attn_q.weight would be missing"),
    // A GGUF has the factors in its weights.
    ("falcon_h1", "another model"),
    ("falcon_h1_norm", "another model"),
    // A GGUF cannot say that the ends of YaRN's ramp are not rounded.
    ("gpt_oss", "another model"),
];

/// GGUFs of the reference whose tensors are others than ours, and why.
const OTHER_TENSORS: &[&str] = &[
    // Made without the draft block.
    "qwen3_next",
    "qwen3_5",
    // Gate and up projections of experts in one tensor; llama.cpp reads either form.
    "gemma4_moe",
    // Keys and values of latents in one tensor. llama.cpp reads no other.
    "minicpm3",
];

fn folders() -> Option<Vec<PathBuf>> {
    let named = std::env::var_os("INGLENOOK_REFERENCE").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/reference");
    let root = named.unwrap_or(beside);
    let mut all = Vec::new();
    for group in ["logits", "more-families", "mtp"] {
        let entries = std::fs::read_dir(root.join(group)).ok()?;
        all.extend(entries.map(|entry| entry.unwrap().path()));
    }
    all.retain(|folder| folder.join("model.safetensors").exists());
    all.sort();
    Some(all)
}

/// Logits after every position, then of two drafted tokens where the model drafts. (n, n_vocab)
fn logits(file: WeightFile) -> engine::Result<Vec<Vec<f32>>> {
    let options = LoadOptions {
        devices: Devices::Cpu,
        kv: KvDType::F32.both(),
        ctx: Some(256),
        draft_block: DraftBlockUse::IfPossible,
        ..LoadOptions::default()
    };
    let mut model = Model::load(Arc::new(file), &options, &mut |_| {})?;
    let seq = model.new_sequence()?;
    let n_vocab = model.info().n_vocab as u64;
    let tokens: Vec<TokenId> = (0..90u64).map(|i| ((i * 7919 + 17) % n_vocab) as u32).collect();
    let rows = model.forward(&[Chunk { seq, tokens: &tokens, logits: LogitsSelection::All }])?;
    let mut all: Vec<Vec<f32>> = (0..rows.n_rows()).map(|row| rows.row(row).unwrap().to_vec()).collect();
    if let Some(hidden) = rows.hidden(tokens.len() - 1).map(<[f32]>::to_vec) {
        all.extend(model.draft_logits(seq, (tokens.len(), 7), &hidden, 2)?);
    }
    Ok(all)
}

fn converted(folder: &Path, format: &str) -> engine::Result<WeightFile> {
    let source = WeightFile::open(folder)?;
    let mut bytes = Vec::new();
    convert::plan(&source, &Formats::parse(format)?, Some(2))?.write(&mut bytes).unwrap();
    Ok(WeightFile::from_bytes("converted", SharedBytes::from_vec(bytes))?)
}

/// Returns what is wrong with a folder's conversion.
fn check(folder: &Path) -> Result<(), String> {
    let name = folder.file_name().unwrap().to_str().unwrap();
    let refused = REFUSED.iter().find(|(family, _)| *family == name);
    let made = match (converted(folder, "f32"), refused) {
        (Ok(made), None) => made,
        (Ok(_), Some(_)) => return Err("it is converted now: take it from the list".into()),
        (Err(error), None) => return Err(error.to_string()),
        (Err(error), Some((_, reason))) if error.to_string().contains(reason) => return Ok(()),
        (Err(error), Some(_)) => return Err(format!("refused for another reason: {error}")),
    };
    check_tensors(folder, name, &made)?;
    let before = logits(WeightFile::open(folder).unwrap()).map_err(|error| error.to_string())?;
    let after = logits(made).map_err(|error| error.to_string())?;
    if before.len() != after.len() {
        return Err(format!("{} rows, {} as a GGUF", before.len(), after.len()));
    }
    let off =
        test_support::largest(before.iter().zip(&after).map(|(a, b)| test_support::largest_difference(a, b)));
    if off > SAME { Err(format!("logits are off by {off}")) } else { Ok(()) }
}

/// Tensors by name.
type Shapes = BTreeMap<String, Vec<usize>>;

/// Lists the tensors of `a` that `b` lacks, or has in another shape.
fn others(a: &Shapes, b: &Shapes) -> Vec<String> {
    let differing = a.iter().filter(|&(name, shape)| b.get(name) != Some(shape));
    differing.map(|(name, shape)| format!("{name}{shape:?}")).collect()
}

/// The tensors are those of llama.cpp's converter, where the reference has its file.
fn check_tensors(folder: &Path, name: &str, made: &WeightFile) -> Result<(), String> {
    let theirs = folder.join(format!("{name}.q8_0.gguf"));
    if OTHER_TENSORS.contains(&name) && !folder.parent().unwrap().ends_with("mtp") || !theirs.exists() {
        return Ok(());
    }
    let shapes = |file: &WeightFile| -> Shapes {
        // Outermost dimensions of 1 are the same to every reader.
        let shape = |shape: &[usize]| shape.iter().copied().skip_while(|n| *n == 1).collect();
        file.tensors().map(|tensor| (tensor.name.to_owned(), shape(tensor.shape))).collect()
    };
    let (ours, theirs) = (shapes(made), shapes(&WeightFile::open(&theirs).unwrap()));
    let (only_ours, only_theirs) = (others(&ours, &theirs), others(&theirs, &ours));
    if only_ours.is_empty() && only_theirs.is_empty() {
        return Ok(());
    }
    Err(format!("tensors: {} here, {} there", only_ours.join(" "), only_theirs.join(" ")))
}

#[test]
fn folders_become_the_same_models() {
    let Some(folders) = folders() else {
        skip!(Missing::Reference, "the small set has no folders of these families")
    };
    let mut wrong = Vec::new();
    for folder in folders {
        match check(&folder) {
            Ok(()) => eprintln!("{}: the same", folder.display()),
            Err(error) => wrong.push(format!("{}: {error}", folder.display())),
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// A draft block gets the format of the rest, from either container.
#[test]
fn draft_blocks_come_along() {
    let Some(folders) = folders() else { skip!(Missing::Reference, "the small set has no draft blocks") };
    let folder = folders.into_iter().find(|folder| folder.ends_with("mtp/qwen3_5")).unwrap();
    for source in [folder.clone(), folder.join("qwen3_5.q8_0.gguf")] {
        let made = converted(&source, "q4_0").unwrap();
        let dtype = |name: &str| made.tensor(name).map(|tensor| tensor.dtype.name().to_owned());
        for name in ["blk.4.nextn.eh_proj.weight", "blk.4.attn_q.weight", "blk.4.ffn_up.weight"] {
            assert_eq!(dtype(name).as_deref(), Some("Q4_0"), "{}: {name}", source.display());
        }
        let metadata = made.metadata();
        assert_eq!(metadata.u32("qwen35.nextn_predict_layers").unwrap(), 1);
        assert_eq!(metadata.u32("qwen35.block_count").unwrap(), 5);
        assert!(logits(made).unwrap().len() > 90, "it drafts");
    }
}

/// What the estimate adds for a draft block is what loading takes.
#[test]
fn estimates_count_the_draft_block() {
    let Some(folders) = folders() else { skip!(Missing::Reference, "the small set has no draft blocks") };
    let folder = folders.into_iter().find(|folder| folder.ends_with("mtp/qwen3_5")).unwrap();
    for path in [folder.clone(), folder.join("qwen3_5.q8_0.gguf")] {
        let open = || WeightFile::open(&path).unwrap();
        let sizes = MemoryEstimate::of(&open()).unwrap();
        let options = LoadOptions {
            draft_block: DraftBlockUse::Required,
            devices: Devices::Cpu,
            ..LoadOptions::default()
        };
        let model = Model::load(Arc::new(open()), &options, &mut |_| {}).unwrap();
        let info = model.info();
        assert_eq!(sizes.weights, info.n_weight_bytes, "{}", path.display());
        let context = sizes.needs(512, KvDType::F16.both()).context;
        assert_eq!(context, info.kv_bytes_per_token * 512 + info.kv_fixed_bytes, "{}", path.display());
        assert_eq!(sizes.n_layers(), 4);
    }
}

/// The numbers of a NumPy file of float32.
fn npy(path: &Path) -> Vec<f32> {
    let bytes = std::fs::read(path).unwrap();
    let n_header = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    bytes[10 + n_header..].chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

/// Logits after the last token of each prompt, one prompt after another.
fn last_logits(file: WeightFile, prompts: &[Vec<TokenId>]) -> Vec<f32> {
    let options = LoadOptions {
        devices: Devices::Scalar,
        kv: KvDType::F32.both(),
        ctx: Some(256),
        ..LoadOptions::default()
    };
    let mut model = Model::load(Arc::new(file), &options, &mut |_| {}).unwrap();
    let mut all = Vec::new();
    for tokens in prompts {
        let seq = model.new_sequence().unwrap();
        let rows = model.forward(&[Chunk { seq, tokens, logits: LogitsSelection::Last }]).unwrap();
        all.extend_from_slice(rows.row(0).unwrap());
        model.free(seq);
    }
    all
}

/// Converted to Q8_0, every tensor of LFM2 with experts has the bytes of llama.cpp's file. The reference's exact logits
/// are of that file with the convolutions' projections as they were before, and those are met.
#[test]
fn lfm2_with_experts_is_exact() {
    let Some(folders) = folders() else {
        skip!(Missing::Reference, "the small set has no LFM2 with experts")
    };
    let folder = folders.into_iter().find(|folder| folder.ends_with("more-families/lfm2_moe")).unwrap();
    let theirs = WeightFile::open(&folder.join("lfm2_moe.q8_0.gguf")).unwrap();
    let source = WeightFile::open(&folder).unwrap();
    let made = |is_kept: &dyn Fn(&str) -> bool| {
        let dtype = |tensor: weights::TensorView<'_>| {
            let dtype = if is_kept(tensor.name) { weights::DType::F32 } else { tensor.dtype };
            (tensor.name.to_owned(), dtype)
        };
        let formats = Formats::Each(theirs.tensors().map(dtype).collect());
        let mut bytes = Vec::new();
        convert::plan(&source, &formats, Some(1)).unwrap().write(&mut bytes).unwrap();
        WeightFile::from_bytes("converted", SharedBytes::from_vec(bytes)).unwrap()
    };
    let ours = made(&|_| false);
    for tensor in theirs.tensors() {
        assert!(ours.tensor(tensor.name).unwrap().data[..] == tensor.data[..], "{}", tensor.name);
    }
    let prompts: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.join("ref.hf.json")).unwrap()).unwrap();
    let prompts = prompts["prompts"].as_array().unwrap();
    let prompts: Vec<Vec<TokenId>> =
        prompts.iter().map(|prompt| serde_json::from_value(prompt["tokens"].clone()).unwrap()).collect();
    let found = last_logits(made(&|name| name.contains("shortconv.") && name.contains("_proj")), &prompts);
    let expected = npy(&folder.join("ref.q8_0.exact.last.npy"));
    let off = test_support::largest_difference(&found, &expected);
    assert!(off < 1e-4, "off by {off}");
}
