//! Stored contexts are restored bit by bit, for every family and precision. The prefix that an edit or a new version
//! leaves valid is not computed again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::kv::size::Rewind;
use engine::{
    Chunk, Devices, GenerationStats, KvDType, KvPrecision, LoadOptions, LogitsSelection, Model, Request,
    Sampling, SequenceId, generate,
};
use inglenook_tests::reference_dir;
use weights::WeightFile;

use crate::stored_chunks::StoredChunks;
use test_support::{Missing, skip_part};

fn options(kv: KvPrecision, threads: usize) -> LoadOptions {
    LoadOptions {
        devices: Devices::Cpu,
        threads: Some(threads),
        kv,
        ctx: Some(4096),
        max_sequences: 2,
        ..LoadOptions::default()
    }
}

fn load(path: &Path, options: &LoadOptions) -> engine::Result<Model> {
    Model::load(Arc::new(WeightFile::open(path).unwrap()), options, &mut |_| {})
}

fn tokens(n: usize, seed: u32) -> Vec<u32> {
    (0..n as u32).map(|i| (i * 31 + i / 7 * seed + seed) % 300).collect()
}

/// Logits after each of `tokens`, as bits.
fn rows(model: &mut Model, seq: SequenceId, tokens: &[u32]) -> Vec<Vec<u32>> {
    let logits = model.forward(&[Chunk { seq, tokens, logits: LogitsSelection::All }]).unwrap();
    (0..logits.n_rows()).map(|r| logits.row(r).unwrap().iter().map(|l| l.to_bits()).collect()).collect()
}

/// Each format, and some for keys with others for values.
pub fn precisions() -> [KvPrecision; 6] {
    let mixed = |keys, values| KvPrecision { keys, values };
    let both = [KvDType::F32, KvDType::F16, KvDType::Q8_0, KvDType::Q4_0].map(KvDType::both);
    let [f32s, f16s, q8_0, q4_0] = both;
    [f32s, f16s, q8_0, q4_0, mixed(KvDType::Q8_0, KvDType::Q4_0), mixed(KvDType::F16, KvDType::Q8_0)]
}

/// One file of each family.
pub fn families() -> Vec<PathBuf> {
    let list = |dir: &Path| {
        let mut paths: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    let folders = list(&reference_dir().join("logits")).into_iter().filter(|path| path.is_dir());
    let is_gguf = |path: &PathBuf| path.extension().is_some_and(|ext| ext == "gguf");
    folders.map(|dir| list(&dir).into_iter().rfind(is_gguf).unwrap_or(dir)).collect()
}

#[test]
fn every_family_comes_back_bit_by_bit_in_every_precision() {
    let (text, tail) = (tokens(330, 3), tokens(6, 11));
    let mut n_checked = 0;
    for path in families() {
        for kv in precisions() {
            let what = format!("{} {kv:?}", path.display());
            let mut model = match load(&path, &options(kv, 2)) {
                Ok(model) => model,
                Err(error) => {
                    // heads that no block of that precision fits: floats have no blocks
                    assert_eq!(error.code(), "model.kv_dtype", "{what}");
                    assert!(kv.keys.is_quantized() || kv.values.is_quantized(), "{what}");
                    continue;
                }
            };
            let seq = model.new_sequence().unwrap();
            rows(&mut model, seq, &text[..300]);
            model.save_rewind_point(seq).unwrap();
            rows(&mut model, seq, &text[300..]);
            let stored = StoredChunks::of(&model, seq, &[300]);
            let expected = rows(&mut model, seq, &tail);
            assert_eq!(model.truncate(seq, 300).unwrap(), 300, "{what}");
            let expected_before = rows(&mut model, seq, &tail);

            let mut other = load(&path, &options(kv, 1)).unwrap();
            let seq = stored.restore_all(&mut other).unwrap();
            assert_eq!(other.tokens(seq).unwrap(), text, "{what}");
            assert!(rows(&mut other, seq, &tail) == expected, "{what}: at the end");
            other.free(seq);
            let seq = stored.restore(&mut other, 300).unwrap();
            assert_eq!(other.len(seq).unwrap(), 300, "{what}");
            assert!(rows(&mut other, seq, &tail) == expected_before, "{what}: before the reply");
            n_checked += 1;
        }
    }
    assert!(n_checked >= 4, "{n_checked}");
}

/// A prompt in its own sequence, and that many tokens of an answer.
fn turn(model: &mut Model, seq: SequenceId, prompt: Vec<u32>, n_answer: usize) -> GenerationStats {
    let request = Request {
        id: 1,
        prompt,
        sequence: Some(seq),
        sampling: Sampling { temperature: 0.0, ..Sampling::default() },
        max_tokens: Some(n_answer),
        stop: Vec::new(),
        ignore_eos: true,
        markup_tokens: Vec::new(),
        budget: None,
        speculation: None,
        script: engine::speculate::Script::default(),
        constraint: None,
        logprobs: None,
        resumed: Vec::new(),
    };
    generate(model, request, &mut |_| true).unwrap().done
}

/// Edits of the last question at any of its words, and new versions of its answer: only what comes after is computed.
#[test]
fn no_token_of_a_common_prefix_is_computed_again() {
    let mut n_near = 0;
    for path in families().iter().filter(|path| {
        let family = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        ["gpt_oss", "gemma3", "llama"].contains(&family.unwrap_or_default())
    }) {
        for n_question in [20, 300, 550, 1700] {
            let mut model = load(path, &options(KvDType::F16.both(), 2)).unwrap();
            if model.n_ctx() < 200 + 100 + n_question + 150 {
                continue;
            }
            n_near += usize::from(model.rewind() == Rewind::Near);
            let seq = model.new_sequence().unwrap();
            turn(&mut model, seq, tokens(200, 3), 100);
            let before = model.tokens(seq).unwrap().to_vec();
            let prompt = [&before[..], &tokens(n_question, 5)].concat();
            assert_eq!(turn(&mut model, seq, prompt.clone(), 150).n_reused, before.len());
            let what = format!("{}, {n_question} tokens asked", path.display());
            let again = turn(&mut model, seq, prompt.clone(), 150);
            assert_eq!(again.n_reused, prompt.len() - 1, "{what}: a new version");
            let positions = match model.rewind() {
                // what every turn's end stores
                Rewind::Anywhere => vec![before.len(), prompt.len()],
                Rewind::Near | Rewind::Nowhere => model.rewind_positions(seq).unwrap(),
            };
            let stored = StoredChunks::of(&model, seq, &positions);
            for n in [n_question - 1, n_question / 2, n_question / 3, 0] {
                let n = before.len() + n;
                let edited = [&prompt[..n], &[299, 298, 297]].concat();
                let twin = model.fork(seq).unwrap();
                assert_eq!(turn(&mut model, twin, edited, 20).n_reused, n, "{what}: edited after {n}");
                model.free(twin);
            }
            // and after a start of the program
            let mut model = load(path, &options(KvDType::F16.both(), 1)).unwrap();
            for n in [prompt.len() - 1, prompt.len() - 10, before.len()] {
                let seq = stored.restore(&mut model, n).unwrap();
                assert_eq!(model.len(seq).unwrap(), n, "{what}: restored after {n}");
                model.free(seq);
            }
        }
    }
    if n_near < 4 && inglenook_tests::reference_is_small() {
        skip_part!(Missing::Reference, "{n_near} of the small set's models have a window");
    } else {
        assert!(n_near >= 4, "{n_near}");
    }
}
