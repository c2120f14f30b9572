//! What the forward pass promises: a token's logits depend on the tokens before it, and on nothing else.
//!
//! Exact comparisons throughout: bit by bit, within one backend and one instruction-set level.

use std::path::PathBuf;
use std::sync::Arc;

use engine::{BackendKind, Chunk, Devices, KvDType, LoadOptions, LogitsSelection, Model, SequenceId};
use kernels::cpu::isa::IsaLevel;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use weights::WeightFile;

use crate::stored_chunks::StoredChunks;

/// One model of each family that the project keeps itself.
const MODELS: [&str; 2] = ["llama/llama.q8_0.gguf", "smollm3/smollm3.q8_0.gguf"];

fn path(model: &str) -> PathBuf {
    inglenook_tests::reference_dir().join("logits").join(model)
}

fn load(model: &str, options: &LoadOptions) -> Model {
    let file = Arc::new(WeightFile::open(&path(model)).unwrap());
    Model::load(file, options, &mut |_| {}).unwrap()
}

fn options(devices: Devices) -> LoadOptions {
    LoadOptions { devices, threads: Some(2), ctx: Some(256), max_sequences: 6, ..LoadOptions::default() }
}

/// Every backend and level of this machine, with a name for messages.
fn everywhere() -> Vec<(String, LoadOptions)> {
    let mut all = vec![("scalar".to_owned(), options(Devices::Scalar))];
    for level in IsaLevel::present() {
        all.push((level.name().to_owned(), LoadOptions { isa: Some(level), ..options(Devices::Cpu) }));
    }
    all
}

fn prompt(rng: &mut SmallRng, n: usize) -> Vec<u32> {
    (0..n).map(|_| rng.random_range(0..512)).collect()
}

/// Logits after every token, as bits. (n_tokens, n_vocab)
fn logits(model: &mut Model, tokens: &[u32]) -> Vec<Vec<u32>> {
    let seq = model.new_sequence().unwrap();
    let rows = rows(model, &[Chunk { seq, tokens, logits: LogitsSelection::All }]);
    model.free(seq);
    rows
}

fn rows(model: &mut Model, batch: &[Chunk]) -> Vec<Vec<u32>> {
    let logits = model.forward(batch).unwrap();
    (0..logits.n_rows()).map(|r| logits.row(r).unwrap().iter().map(|l| l.to_bits()).collect()).collect()
}

/// Feeds several prompts at once in random pieces, and compares each token's logits with `expected`.
fn check_random_batches(
    what: &str,
    model: &mut Model,
    prompts: &[Vec<u32>],
    expected: &[Vec<Vec<u32>>],
    rng: &mut SmallRng,
) {
    let sequences: Vec<SequenceId> = prompts.iter().map(|_| model.new_sequence().unwrap()).collect();
    let mut n_done = vec![0; prompts.len()];
    while n_done.iter().zip(prompts).any(|(n, p)| *n < p.len()) {
        let mut batch = Vec::new();
        let mut wanted = Vec::new();
        for (i, prompt) in prompts.iter().enumerate() {
            let n = rng.random_range(0..=40).min(prompt.len() - n_done[i]);
            if n == 0 {
                continue;
            }
            let tokens = &prompt[n_done[i]..n_done[i] + n];
            let all = rng.random_bool(0.5);
            wanted.extend((if all { n_done[i] } else { n_done[i] + n - 1 }..n_done[i] + n).map(|at| (i, at)));
            batch.push(Chunk {
                seq: sequences[i],
                tokens,
                logits: if all { LogitsSelection::All } else { LogitsSelection::Last },
            });
            n_done[i] += n;
        }
        for (row, (i, at)) in rows(model, &batch).iter().zip(wanted) {
            assert_eq!(*row, expected[i][at], "{what}: prompt {i}, position {at}");
        }
    }
    sequences.into_iter().for_each(|seq| model.free(seq));
}

#[test]
fn logits_do_not_depend_on_batch_chunks_threads_or_pages() {
    for name in MODELS {
        for (level, options) in everywhere() {
            let mut rng = SmallRng::seed_from_u64(1);
            let prompts: Vec<Vec<u32>> = [90, 33, 7].iter().map(|&n| prompt(&mut rng, n)).collect();
            let mut model = load(name, &options);
            let expected: Vec<_> = prompts.iter().map(|p| logits(&mut model, p)).collect();
            for (threads, max_rows) in [(1, 64), (2, 5), (3, 17)] {
                let other =
                    LoadOptions { threads: Some(threads), max_rows: Some(max_rows), ..options.clone() };
                let mut model = load(name, &other);
                for round in 0..2 {
                    let what = format!("{name} {level}, {threads} threads, {max_rows} rows, round {round}");
                    check_random_batches(&what, &mut model, &prompts, &expected, &mut rng);
                }
            }
        }
    }
}

#[test]
fn truncated_and_forked_sequences_continue_as_if_new() {
    for name in MODELS {
        for (level, options) in everywhere() {
            let mut rng = SmallRng::seed_from_u64(2);
            let mut model = load(name, &options);
            let common = prompt(&mut rng, 75);
            let (a, b) = (prompt(&mut rng, 20), prompt(&mut rng, 20));
            let with = |tail: &[u32]| [&common[..70], tail].concat();
            let (expected_a, expected_b) = (logits(&mut model, &with(&a)), logits(&mut model, &with(&b)));

            let first = model.new_sequence().unwrap();
            rows(&mut model, &[Chunk { seq: first, tokens: &common, logits: LogitsSelection::None }]);
            assert_eq!(model.truncate(first, 70).unwrap(), 70);
            let second = model.fork(first).unwrap();
            let batch = [
                Chunk { seq: second, tokens: &b, logits: LogitsSelection::All },
                Chunk { seq: first, tokens: &a, logits: LogitsSelection::All },
            ];
            let both = rows(&mut model, &batch);
            assert_eq!(both[..20], expected_b[70..], "{name} {level}: the fork");
            assert_eq!(both[20..], expected_a[70..], "{name} {level}: the original");
            assert_eq!(model.tokens(first).unwrap(), with(&a));
        }
    }
}

#[test]
fn a_restored_snapshot_continues_bit_by_bit() {
    for name in MODELS {
        for kv in crate::checkpoints::precisions() {
            let options = LoadOptions { kv, ..options(Devices::Cpu) };
            let mut rng = SmallRng::seed_from_u64(3);
            let (prompt, tail) = (prompt(&mut rng, 77), prompt(&mut rng, 9));
            let mut model = load(name, &options);
            let seq = model.new_sequence().unwrap();
            rows(&mut model, &[Chunk { seq, tokens: &prompt, logits: LogitsSelection::None }]);
            let stored = StoredChunks::of(&model, seq, &[]);
            let expected = rows(&mut model, &[Chunk { seq, tokens: &tail, logits: LogitsSelection::All }]);

            let mut other = load(name, &LoadOptions { threads: Some(1), ..options });
            // other pages than in the first model
            let before = other.new_sequence().unwrap();
            rows(&mut other, &[Chunk { seq: before, tokens: &tail, logits: LogitsSelection::None }]);
            let seq = stored.restore_all(&mut other).unwrap();
            assert_eq!(other.tokens(seq).unwrap(), prompt);
            let found = rows(&mut other, &[Chunk { seq, tokens: &tail, logits: LogitsSelection::All }]);
            assert_eq!(found, expected, "{name} {kv:?}");

            let mut damaged = stored.clone();
            damaged.flip(&stored.head, usize::MAX - 7);
            assert_eq!(damaged.restore_all(&mut other).unwrap_err().code(), "snapshot.checksum");
        }
    }
}

#[test]
fn f46_a_snapshot_of_another_model_device_or_precision_is_refused() {
    let all = options(Devices::Cpu);
    let mut model = load(MODELS[0], &all);
    let seq = model.new_sequence().unwrap();
    rows(&mut model, &[Chunk { seq, tokens: &[1, 2, 3], logits: LogitsSelection::None }]);
    let stored = StoredChunks::of(&model, seq, &[]);
    let cases = [
        (MODELS[1], all.clone(), "snapshot.model"),
        (MODELS[0], LoadOptions { kv: KvDType::F32.both(), ..all.clone() }, "snapshot.kv_dtype"),
        (MODELS[0], LoadOptions { kv: KvDType::Q8_0.both(), ..all.clone() }, "snapshot.kv_dtype"),
        (MODELS[0], options(Devices::Scalar), "snapshot.backend"),
        (MODELS[0], LoadOptions { ctx: Some(2), ..all.clone() }, "snapshot.context"),
    ];
    for (name, options, code) in cases {
        assert_eq!(stored.restore_all(&mut load(name, &options)).unwrap_err().code(), code);
    }
}

#[test]
fn two_devices_share_one_plan() {
    for name in MODELS {
        let mut scalar = load(name, &options(Devices::Scalar));
        let mut cpu = load(name, &options(Devices::Cpu));
        let n_layers = scalar.info().n_layers;
        let mut rng = SmallRng::seed_from_u64(4);
        let tokens = prompt(&mut rng, 50);
        let far = distance(&logits(&mut scalar, &tokens), &logits(&mut cpu, &tokens));
        for n_first in 1..n_layers {
            let parts = vec![(BackendKind::Scalar, n_first), (BackendKind::Cpu, n_layers - n_first)];
            let mut split = load(name, &options(Devices::Split(parts)));
            let expected = logits(&mut split, &tokens);
            let near = distance(&logits(&mut scalar, &tokens), &expected);
            assert!(near <= far * 1.5, "{name}: {n_first} scalar layers are {near} away, none {far}");
            check_random_batches(name, &mut split, std::slice::from_ref(&tokens), &[expected], &mut rng);
        }
    }
}

/// Their last layers attend the keys and values of an earlier one, on whichever device that is.
#[test]
fn layers_that_share_keys_and_values_stay_on_one_device() {
    let whole = |devices: Devices| load("gemma4_e", &options(devices));
    let (mut scalar, mut cpu) = (whole(Devices::Scalar), whole(Devices::Cpu));
    let n_layers = scalar.info().n_layers;
    let tokens = prompt(&mut SmallRng::seed_from_u64(4), 40);
    let far = distance(&logits(&mut scalar, &tokens), &logits(&mut cpu, &tokens));
    for n_first in 1..n_layers {
        let parts = vec![(BackendKind::Scalar, n_first), (BackendKind::Cpu, n_layers - n_first)];
        let near =
            distance(&logits(&mut scalar, &tokens), &logits(&mut whole(Devices::Split(parts)), &tokens));
        assert!(near <= far * 1.5, "{n_first} scalar layers are {near} away, none {far}");
    }
}

/// Mean absolute difference.
fn distance(a: &[Vec<u32>], b: &[Vec<u32>]) -> f64 {
    let pairs = a.iter().flatten().zip(b.iter().flatten());
    let sum: f64 = pairs.map(|(&a, &b)| f64::from((f32::from_bits(a) - f32::from_bits(b)).abs())).sum();
    sum / a.iter().map(Vec::len).sum::<usize>() as f64
}

#[test]
fn a_failed_batch_leaves_every_sequence_as_it_was() {
    let mut model = load(MODELS[0], &LoadOptions { ctx: Some(40), ..options(Devices::Cpu) });
    let (a, b) = (model.new_sequence().unwrap(), model.new_sequence().unwrap());
    rows(&mut model, &[Chunk { seq: a, tokens: &[1; 30], logits: LogitsSelection::None }]);
    type Batch<'a> = &'a [(SequenceId, &'a [u32])];
    let bad: [(&str, Batch); 4] = [
        ("request.context_full", &[(b, &[1; 5]), (a, &[1; 11])]),
        ("request.sequence_repeated", &[(a, &[1]), (a, &[1])]),
        ("request.token_unknown", &[(a, &[512])]),
        ("kv.unknown_sequence", &[(SequenceId(99), &[1])]),
    ];
    for (code, batch) in bad {
        let chunks: Vec<Chunk> =
            batch.iter().map(|&(seq, tokens)| Chunk { seq, tokens, logits: LogitsSelection::Last }).collect();
        assert_eq!(model.forward(&chunks).unwrap_err().code(), code);
        assert_eq!((model.len(a).unwrap(), model.len(b).unwrap()), (30, 0), "after {code}");
    }
}
