//! Forks, truncation, rewind points and snapshots: a sequence continues as if its tokens had been read just now.
//!
//! On models whose layers keep everything, a window, or a state.
//!
//! Exact comparisons throughout: bit by bit, within one backend.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::kv::size::Rewind;
use engine::{Chunk, Devices, KvDType, LoadOptions, LogitsSelection, Model, SequenceId};
use inglenook_tests::{reference_dir, reference_is_small};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use weights::WeightFile;

use crate::stored_chunks::StoredChunks;
use test_support::{Missing, skip_part};

/// Models by what their layers keep: a file, and a window for layers that have none of their own.
const KINDS: [(&str, Option<usize>); 18] = [
    ("llama/llama.q8_0.gguf", None),
    ("llama/llama.q8_0.gguf", Some(20)),
    ("smollm3/smollm3.q8_0.gguf", Some(33)),
    ("mistral", None),
    ("gemma2", None),
    ("gemma3", None),
    ("gpt_oss", None),
    ("gemma4_e", None),
    ("../more-families/gemma3n", None),
    ("lfm2", None),
    ("qwen3_5", None),
    ("qwen3_5_moe", None),
    // a window beside states
    ("qwen3_5/qwen3_5.q8_0.gguf", Some(20)),
    // states without keys and values, beside them in other layers, beside them in the same layer
    ("../more-families/mamba2", None),
    ("../more-families/nemotron_h_moe", None),
    ("../more-families/falcon_h1_norm", None),
    // a compressed cache
    ("../more-families/deepseek_v3", None),
    ("../more-families/minicpm3", Some(40)),
];

/// Those that are present: the project's own small set has only the first few.
fn kinds() -> impl Iterator<Item = (PathBuf, Option<usize>, String)> {
    let kinds = KINDS.into_iter().map(|(model, window)| {
        (reference_dir().join("logits").join(model), window, format!("{model}, window {window:?}"))
    });
    kinds.filter(|(path, _, what)| {
        assert!(path.exists() || reference_is_small(), "{what}: no such model");
        if !path.exists() {
            skip_part!(Missing::Reference, "{what}: not in the small set");
        }
        path.exists()
    })
}

fn load(path: &Path, kv_window: Option<usize>, devices: Devices, threads: usize) -> Model {
    let file = Arc::new(WeightFile::open(path).unwrap());
    let options = LoadOptions {
        devices,
        threads: Some(threads),
        kv: KvDType::F16.both(),
        kv_window,
        ctx: Some(512),
        max_sequences: 4,
        max_rows: Some(48),
        // little enough that old positions have to go
        rewind_bytes: 1 << 20,
        ..LoadOptions::default()
    };
    Model::load(file, &options, &mut |_| {}).unwrap()
}

type Bits = Vec<u32>;

/// Logits after the last of `tokens`, which continue `seq`.
fn last(model: &mut Model, seq: SequenceId, tokens: &[u32]) -> Bits {
    let logits = model.forward(&[Chunk { seq, tokens, logits: LogitsSelection::Last }]).unwrap();
    logits.row(0).unwrap().iter().map(|logit| logit.to_bits()).collect()
}

/// A model with its history, and one that reads every text from its start.
struct Pair {
    model: Model,
    fresh: Model,
    expected: HashMap<Vec<u32>, Bits>,
    n_checked: usize,
}

impl Pair {
    fn append(&mut self, what: &str, seq: SequenceId, tokens: &[u32]) {
        let all = [self.model.tokens(seq).unwrap(), tokens].concat();
        let found = last(&mut self.model, seq, tokens);
        assert_eq!(self.model.tokens(seq).unwrap(), all);
        let Self { fresh, expected, .. } = self;
        let expected = expected.entry(all).or_insert_with_key(|all| {
            let seq = fresh.new_sequence().unwrap();
            let bits = last(fresh, seq, all);
            fresh.free(seq);
            bits
        });
        assert!(found == *expected, "{what}: {} tokens differ from a fresh start", tokens.len());
        self.n_checked += 1;
    }

    fn truncate(&mut self, seq: SequenceId, n: usize) {
        let before = self.model.tokens(seq).unwrap().to_vec();
        let held = self.model.truncate(seq, n).unwrap();
        assert!(held <= n.min(before.len()));
        match self.model.rewind() {
            Rewind::Anywhere => assert_eq!(held, n.min(before.len())),
            Rewind::Near if n + 64 >= before.len() => assert_eq!(held, n.min(before.len())),
            Rewind::Near | Rewind::Nowhere => {}
        }
        assert_eq!(self.model.tokens(seq).unwrap(), &before[..held]);
    }
}

fn random_history(what: &str, pair: &mut Pair, n_steps: usize, seed: u64) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut live: Vec<SequenceId> = Vec::new();
    for step in 0..n_steps {
        if live.is_empty() {
            live.push(pair.model.new_sequence().unwrap());
        }
        let at = rng.random_range(0..live.len());
        let seq = live[at];
        let n_held = pair.model.len(seq).unwrap();
        match rng.random_range(0..14) {
            0 => live.extend(pair.model.new_sequence().ok()),
            1 | 2 => live.extend(pair.model.fork(seq).ok()),
            3 if live.len() > 1 => pair.model.free(live.swap_remove(at)),
            4 | 5 => pair.truncate(seq, rng.random_range(0..=n_held)),
            6 => pair.truncate(seq, n_held.saturating_sub(rng.random_range(0..40))),
            7 | 8 => pair.model.save_rewind_point(seq).unwrap(),
            9 => {
                let kept = pair.model.rewind_positions(seq).unwrap();
                let stored = StoredChunks::of(&pair.model, seq, &kept);
                pair.model.free(seq);
                let n = rng.random_range(0..=n_held);
                live[at] = stored.restore(&mut pair.model, if n % 3 == 0 { n } else { n_held }).unwrap();
                let held = pair.model.tokens(live[at]).unwrap();
                assert_eq!(held, &stored.tokens[..held.len()]);
                assert!(n % 3 == 0 || held.len() == n_held);
            }
            _ => {
                // few different tokens, so that texts meet again
                let n = rng.random_range(1..70).min(400 - n_held.min(399));
                let tokens: Vec<u32> = (0..n).map(|_| rng.random_range(0..300)).collect();
                pair.append(&format!("{what}, step {step}"), seq, &tokens);
            }
        }
    }
    live.into_iter().for_each(|seq| pair.model.free(seq));
    let usage = pair.model.kv_usage();
    assert_eq!((usage.n_pages, usage.n_window_pages, usage.n_states, usage.n_rewind_points), (0, 0, 0, 0));
}

#[test]
fn every_history_continues_as_if_read_anew() {
    for (path, window, what) in kinds() {
        for (seed, devices) in [(1, Devices::Cpu), (2, Devices::Scalar)] {
            let load = |threads| load(&path, window, devices.clone(), threads);
            let (model, fresh) = (load(2), load(1));
            let n_steps = if devices == Devices::Scalar { 25 } else { 80 };
            let mut pair = Pair { model, fresh, expected: HashMap::new(), n_checked: 0 };
            random_history(&format!("{what}, {devices:?}"), &mut pair, n_steps, seed);
            assert!(pair.n_checked > n_steps / 8, "{what}: {} checks", pair.n_checked);
        }
    }
}

/// A window's pages stay as few as they were, however far the text runs past it.
#[test]
fn memory_of_windows_stays_bounded() {
    let mut n_windowed = 0;
    for (path, window, what) in kinds() {
        let mut model = load(&path, window, Devices::Cpu, 2);
        let seq = model.new_sequence().unwrap();
        let tokens: Vec<u32> = (0..500).map(|i| i * 37 % 300).collect();
        let mut most = [0; 2];
        for (half, tokens) in tokens.chunks(250).enumerate() {
            for tokens in tokens.chunks(10) {
                last(&mut model, seq, tokens);
                most[half] = most[half].max(model.kv_usage().n_window_pages);
            }
        }
        let usage = model.kv_usage();
        assert_eq!(usage.n_pages, 500usize.div_ceil(32), "{what}");
        assert_eq!(usage.n_states, usize::from(model.rewind() == Rewind::Nowhere), "{what}");
        let windows = model.spec().layers.iter().filter_map(|layer| layer.mixer.attention()?.window);
        if let Some(window) = windows.max() {
            n_windowed += 1;
            assert!(most[1] <= most[0], "{what}: {most:?}");
            assert!(most[1] <= (window + 64 + 10).div_ceil(32) + 1, "{what}: {most:?}");
        }
        // the estimate before loading bounds what is taken
        let told = engine::kv::size::kv_bytes(model.spec(), KvDType::F16.both(), 512, 4);
        let KvTold { full, windowed, states } = KvTold::of(&model);
        assert_eq!((told.full, told.states), (full, states), "{what}");
        assert!(windowed <= told.windowed, "{what}");
    }
    assert!(n_windowed >= 2);
}

/// The loaded model's figures.
struct KvTold {
    full: u64,
    windowed: u64,
    states: u64,
}

impl KvTold {
    fn of(model: &Model) -> Self {
        let bytes = model.info().kv_bytes;
        Self { full: bytes.full, windowed: bytes.windowed, states: bytes.states }
    }
}

/// The position before the reply is stored too: where a template that drops old reasoning goes back to.
#[test]
fn a_restored_sequence_goes_back_before_the_reply() {
    for (path, window, what) in kinds() {
        let mut model = load(&path, window, Devices::Cpu, 2);
        let tokens: Vec<u32> = (0..300).map(|i| i * 31 % 300).collect();
        let seq = model.new_sequence().unwrap();
        last(&mut model, seq, &tokens[..200]);
        model.save_rewind_point(seq).unwrap();
        let expected = {
            let twin = model.fork(seq).unwrap();
            last(&mut model, twin, &[7, 8, 9])
        };
        last(&mut model, seq, &tokens[200..]);
        let stored = StoredChunks::of(&model, seq, &[200]);
        let mut other = load(&path, window, Devices::Cpu, 1);
        let seq = stored.restore(&mut other, 210).unwrap();
        let n = other.len(seq).unwrap();
        assert_eq!(other.truncate(seq, 200).unwrap(), 200, "{what}: {n}");
        assert!(last(&mut other, seq, &[7, 8, 9]) == expected, "{what}");
        let before = other.kv_usage();
        for name in stored.pieces.keys().filter(|name| !name.contains('-') || **name == stored.head) {
            let mut damaged = stored.clone();
            damaged.flip(name, 12345);
            assert!(damaged.restore_all(&mut other).is_err(), "{what}");
            assert_eq!(other.kv_usage(), before);
        }
    }
}
