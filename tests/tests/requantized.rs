//! Contexts whose old chunks were requantized: the same in any batches, with speculation or without.
//!
//! They are stored and restored bit by bit for every family that has them, and are never taken for exact ones.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::kv::requantize::KvRequantize;
use engine::speculate::{DraftLength, DraftSource, Speculation};
use engine::{
    Chunk, Devices, FaultPlan, GpuFault, KvDType, LoadOptions, LogitsSelection, Model, Request, RopeScaling,
    Sampling, SequenceId, generate,
};
use weights::WeightFile;

use crate::checkpoints::families;
use crate::stored_chunks::StoredChunks;

/// With positions beyond those it was trained for, where it can have them.
fn load(path: &Path, kv_requantize: KvRequantize, kv: KvDType, threads: usize) -> Model {
    let file = Arc::new(WeightFile::open(path).unwrap());
    let options = LoadOptions {
        devices: Devices::Cpu,
        threads: Some(threads),
        kv: kv.both(),
        kv_requantize,
        ctx: Some(2048),
        rope_scaling: RopeScaling::yarn(2.0),
        max_sequences: 3,
        ..LoadOptions::default()
    };
    let plain = LoadOptions { rope_scaling: None, ..options.clone() };
    let stretched = Model::load(file.clone(), &options, &mut |_| {});
    stretched.unwrap_or_else(|_| Model::load(file, &plain, &mut |_| {}).unwrap())
}

fn tokens(n: usize, seed: u32) -> Vec<u32> {
    (0..n as u32).map(|i| (i * 31 + i / 7 * seed + seed) % 300).collect()
}

/// Logits after the last of `tokens`, read in runs of `n`, as bits.
fn read(model: &mut Model, seq: SequenceId, tokens: &[u32], n: usize) -> Vec<u32> {
    let mut last = Vec::new();
    for tokens in tokens.chunks(n) {
        let logits = model.forward(&[Chunk { seq, tokens, logits: LogitsSelection::Last }]).unwrap();
        last = logits.row(0).unwrap().iter().map(|logit| logit.to_bits()).collect();
    }
    last
}

/// Models of every family whose contexts age, and are as long as `n_ctx`.
fn that_age(n_ctx: usize, precisions: &[KvDType], check: &mut dyn FnMut(&Path, KvDType)) {
    let mut n_checked = 0;
    for path in families() {
        for &kv in precisions {
            let model = load(&path, KvRequantize::After(256), kv, 1);
            let ages = model.info().kv_requantize == KvRequantize::After(256);
            if ages && model.n_ctx() >= n_ctx {
                check(&path, kv);
                n_checked += 1;
            }
        }
    }
    assert!(n_checked >= 2, "{n_checked}");
}

#[test]
fn an_aged_context_comes_back_bit_by_bit() {
    let (text, tail) = (tokens(1100, 3), tokens(6, 11));
    that_age(1200, &[KvDType::F32, KvDType::F16], &mut |path, kv| {
        let what = format!("{} {kv:?}", path.display());
        let mut model = load(path, KvRequantize::After(256), kv, 2);
        let seq = model.new_sequence().unwrap();
        read(&mut model, seq, &text[..800], 256);
        model.save_rewind_point(seq).unwrap();
        read(&mut model, seq, &text[800..], 256);
        assert_eq!(model.n_requantized(seq).unwrap(), 3, "{what}");
        let stored = StoredChunks::of(&model, seq, &[800]);
        let expected = read(&mut model, seq, &tail, 6);
        assert_eq!(model.truncate(seq, 800).unwrap(), 800, "{what}");
        let expected_before = read(&mut model, seq, &tail, 6);

        let mut other = load(path, KvRequantize::After(256), kv, 1);
        let seq = stored.restore_all(&mut other).unwrap();
        assert_eq!((other.tokens(seq).unwrap(), other.n_requantized(seq).unwrap()), (&text[..], 3), "{what}");
        assert!(read(&mut other, seq, &tail, 6) == expected, "{what}: at the end");
        other.free(seq);
        let seq = stored.restore(&mut other, 800).unwrap();
        assert_eq!(other.len(seq).unwrap(), 800, "{what}");
        assert!(read(&mut other, seq, &tail, 6) == expected_before, "{what}: before the reply");
        other.free(seq);
        // and what has aged once more since goes on as it would have
        let seq = stored.restore_all(&mut other).unwrap();
        let mut whole = load(path, KvRequantize::After(256), kv, 2);
        let twin = whole.new_sequence().unwrap();
        read(&mut whole, twin, &text, 256);
        let more = tokens(400.min(whole.n_ctx() - 1100), 17);
        assert!(read(&mut other, seq, &more, 100) == read(&mut whole, twin, &more, 256), "{what}: on and on");
    });
}

#[test]
fn an_aged_context_is_the_same_in_any_runs() {
    let text = tokens(1200, 5);
    that_age(1200, &[KvDType::F16], &mut |path, kv| {
        let mut results = BTreeSet::new();
        for (threads, runs) in [(1, 256), (2, 97)] {
            let mut model = load(path, KvRequantize::After(300), kv, threads);
            let seq = model.new_sequence().unwrap();
            results.insert(read(&mut model, seq, &text, runs));
        }
        assert_eq!(results.len(), 1, "{} {kv:?}", path.display());
    });
}

/// On a GPU, with a fault of it that a test wants.
fn on_gpu(path: &Path, kv: KvDType, faults: FaultPlan) -> Model {
    load_on(Devices::Gpu { layers: None }, path, kv, faults)
}

fn load_on(devices: Devices, path: &Path, kv: KvDType, faults: FaultPlan) -> Model {
    let options = LoadOptions {
        devices,
        faults,
        kv: kv.both(),
        kv_requantize: KvRequantize::After(256),
        ctx: Some(2048),
        rope_scaling: RopeScaling::yarn(2.0),
        max_sequences: 2,
        ..LoadOptions::default()
    };
    let model = Model::load(Arc::new(WeightFile::open(path).unwrap()), &options, &mut |_| {}).unwrap();
    assert_eq!(
        (model.info().fallback_error.as_ref(), model.info().kv_requantize),
        (None, KvRequantize::After(256))
    );
    model
}

/// A family whose contexts are long enough.
fn one_that_ages() -> PathBuf {
    let mut paths = Vec::new();
    that_age(1200, &[KvDType::F16], &mut |path, _| paths.push(path.to_path_buf()));
    let is_llama = |path: &PathBuf| path.to_string_lossy().contains("llama");
    let at = paths.iter().position(is_llama).unwrap_or(0);
    paths.swap_remove(at)
}

#[test]
fn a_requantized_context_on_a_gpu_is_the_same_in_any_batches() {
    let (path, text) = (one_that_ages(), tokens(1100, 5));
    for kv in [KvDType::F16, KvDType::F32] {
        let results = [256, 97].map(|runs| {
            let mut model = on_gpu(&path, kv, FaultPlan::default());
            let seq = model.new_sequence().unwrap();
            let last = read(&mut model, seq, &text, runs);
            assert_eq!(model.n_requantized(seq).unwrap(), 3);
            last
        });
        assert!(results[0] == results[1], "{kv:?}");
        let mut model = load_on(Devices::Scalar, &path, kv, FaultPlan::default());
        let seq = model.new_sequence().unwrap();
        let expected = read(&mut model, seq, &text, 256);
        let floats = |bits: &[u32]| bits.iter().map(|bits| f32::from_bits(*bits)).collect::<Vec<f32>>();
        let (expected, found) = (floats(&expected), floats(&results[0]));
        let square = expected.iter().map(|x| x * x).sum::<f32>() / expected.len() as f32;
        let far = test_support::largest_difference(&found, &expected);
        // keys on the border between two integers go either way
        assert!(far < 0.02 * square.sqrt(), "{kv:?}: {far} of {square}");
    }
}

/// What has aged is read again, and ages where it did.
#[test]
fn requantized_contexts_outlive_a_gpu_that_fails() {
    let (path, text) = (one_that_ages(), tokens(1100, 5));
    let last = |faults: FaultPlan| {
        let mut model = on_gpu(&path, KvDType::F16, faults);
        let seq = model.new_sequence().unwrap();
        let last = read(&mut model, seq, &text, 256);
        assert_eq!((model.n_requantized(seq).unwrap(), model.len(seq).unwrap()), (3, text.len()));
        (last, std::iter::from_fn(|| model.take_gpu_incident()).count())
    };
    let (expected, n_troubles) = last(FaultPlan::default());
    assert_eq!(n_troubles, 0);
    for at in [1, 4] {
        let (found, n_troubles) = last(FaultPlan::before(at, GpuFault::Memory));
        assert!(found == expected && n_troubles == 1, "{at}: {n_troubles}");
    }
}

#[test]
fn guesses_change_nothing_of_what_ages() {
    let mut paths = Vec::new();
    that_age(1200, &[KvDType::F16], &mut |path, _| paths.push(path.to_path_buf()));
    // repeats itself, so that something is guessed
    let prompt: Vec<u32> = tokens(40, 3).into_iter().cycle().take(700).collect();
    let answer = |speculation: Option<Speculation>| {
        let mut model = load(&paths[0], KvRequantize::After(256), KvDType::F16, 2);
        let request = Request {
            id: 1,
            prompt: prompt.clone(),
            sequence: None,
            sampling: Sampling { temperature: 0.0, ..Sampling::default() },
            max_tokens: Some(200),
            stop: Vec::new(),
            ignore_eos: true,
            markup_tokens: Vec::new(),
            budget: None,
            speculation,
            script: engine::speculate::Script::default(),
            constraint: None,
            logprobs: None,
            resumed: Vec::new(),
        };
        let made = generate(&mut model, request, &mut |_| true).unwrap();
        (made.ids, made.done.n_drafted)
    };
    let (plain, _) = answer(None);
    let length = DraftLength::Always(24);
    let (guessed, n_drafted) = answer(Some(Speculation { source: DraftSource::Lookup, length }));
    assert!(n_drafted > 0, "something was guessed");
    assert_eq!(plain, guessed);
}

/// Exact chunks have the same file whether contexts are requantized or not. Requantized ones, and those computed after
/// them, have another. That file is refused where contexts are exact or requantized otherwise.
#[test]
fn what_aged_is_never_taken_for_what_is_exact() {
    let text = tokens(1100, 3);
    that_age(1200, &[KvDType::F16], &mut |path, kv| {
        let what = format!("{} {kv:?}", path.display());
        let of = |aging: KvRequantize, n: usize| {
            let mut model = load(path, aging, kv, 2);
            let seq = model.new_sequence().unwrap();
            read(&mut model, seq, &text[..n], 256);
            let stored = StoredChunks::of(&model, seq, &[]);
            let names: BTreeSet<String> = stored.pieces.keys().cloned().collect();
            (stored, names)
        };
        let ((_, exact), (stored, aged)) = (of(KvRequantize::Off, 1100), of(KvRequantize::After(256), 1100));
        let (_, other) = of(KvRequantize::After(512), 1100);
        // of four stretches three have aged, and the fourth saw that
        assert_eq!(exact.intersection(&aged).count(), 0, "{what}");
        assert_eq!(
            exact.intersection(&other).count(),
            1,
            "{what}: the third, which nothing of that concerned"
        );
        assert!(
            aged.intersection(&other).count() >= 1,
            "{what}: what aged of the first exact stretches is the same"
        );
        assert_eq!(
            of(KvRequantize::Off, 500).1,
            of(KvRequantize::After(256), 500).1,
            "{what}: nothing has aged yet"
        );
        for aging in [KvRequantize::Off, KvRequantize::Pressure, KvRequantize::After(512)] {
            let mut model = load(path, aging, kv, 1);
            let error = stored.restore_all(&mut model).unwrap_err();
            assert_eq!(error.code(), "snapshot.prefix", "{what} {aging}");
            assert_eq!(model.kv_usage().n_pages + model.kv_usage().n_requantized_pages, 0);
        }
    });
}

/// A chunk that is stored exactly serves after requantization: requantized again it is the same.
#[test]
fn an_exact_stretch_serves_an_aged_context() {
    let (text, tail) = (tokens(1100, 3), tokens(6, 11));
    that_age(1200, &[KvDType::F16], &mut |path, kv| {
        let mut model = load(path, KvRequantize::After(256), kv, 2);
        let seq = model.new_sequence().unwrap();
        let mut pieces = std::collections::HashMap::new();
        for n in [500, 600, 800, 1100] {
            let n_held = model.len(seq).unwrap();
            read(&mut model, seq, &text[n_held..n], 256);
            let stored = StoredChunks::of(&model, seq, &[]);
            let aged = model.pieces(seq, &[n]).unwrap().into_iter().filter(|piece| piece.fallback.is_some());
            let aged: BTreeSet<String> = aged.map(|piece| piece.name).collect();
            pieces.extend(stored.pieces.into_iter().filter(|(name, _)| !aged.contains(name)));
        }
        let stored = StoredChunks { pieces, ..StoredChunks::of(&model, seq, &[]) };
        let expected = read(&mut model, seq, &tail, 6);
        let mut other = load(path, KvRequantize::After(256), kv, 1);
        let seq = stored.restore_all(&mut other).unwrap();
        assert!(read(&mut other, seq, &tail, 6) == expected, "{} {kv:?}", path.display());
    });
}

#[test]
fn under_pressure_contexts_age_and_go_on_and_come_back() {
    let (text, tail) = (tokens(1100, 3), tokens(6, 11));
    that_age(1200, &[KvDType::F16], &mut |path, kv| {
        let what = format!("{} {kv:?}", path.display());
        let mut model = load(path, KvRequantize::Pressure, kv, 2);
        let (a, b) = (model.new_sequence().unwrap(), model.new_sequence().unwrap());
        read(&mut model, a, &text, 256);
        read(&mut model, b, &text[..600], 256);
        model.save_rewind_point(b).unwrap();
        let (exact, before) = (read(&mut model, b, &tail, 6), model.kv_used_bytes());
        model.truncate(b, 600).unwrap();
        while model.requantize_some() {}
        assert_eq!((model.n_requantized(a).unwrap(), model.n_requantized(b).unwrap()), (3, 1), "{what}");
        assert!(model.kv_used_bytes() < before, "{what}");
        let stored = StoredChunks::of(&model, a, &[]);
        let expected = read(&mut model, a, &tail, 6);
        assert!(read(&mut model, b, &tail, 6) != exact, "{what}: it was read");
        let mut other = load(path, KvRequantize::Pressure, kv, 1);
        let seq = stored.restore_all(&mut other).unwrap();
        assert!(read(&mut other, seq, &tail, 6) == expected, "{what}");
        assert!(stored.restore_all(&mut load(path, KvRequantize::Off, kv, 1)).is_err(), "{what}");
    });
}
