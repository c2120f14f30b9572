//! Sequences whose pages and states were destroyed continue bit by bit as if they had not been: passed windows,
//! recurrent states, shared pages, rewind points, marks, requantized pages.

use std::path::Path;
use std::sync::Arc;

use kernels::Retention;
use weights::{SharedBytes, WeightFile};

use super::super::{Chunk, Devices, LogitsSelection};
use super::*;
use crate::TokenId;
use crate::kv::requantize::KvRequantize;
use crate::shape::{self, Shape};

/// Small versions of the families whose sequences lose something as they grow, and one with full attention only.
const FAMILIES: [&str; 7] = ["llama", "gemma3", "gpt_oss", "qwen2-window", "lfm2", "qwen3_5", "qwen3_5_moe"];

fn options() -> LoadOptions {
    LoadOptions {
        devices: Devices::Cpu,
        threads: Some(1),
        max_rows: Some(48),
        max_sequences: 4,
        ..LoadOptions::default()
    }
}

fn family(name: &str) -> Model {
    let families = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/reference/families");
    let file = Arc::new(WeightFile::open(&families.join(name)).unwrap());
    Model::load(file, &LoadOptions { ctx: Some(256), ..options() }, &mut |_| {}).unwrap()
}

/// Requantizing contexts, in small.
fn that_ages(kv_requantize: KvRequantize) -> Model {
    let shape = shape::find("llama-3.2-1b").unwrap();
    let (n_heads, n_kv_heads, n_vocab) = (4, 2, 600);
    let shape = Shape { n_layers: 2, d_model: 128, d_ff: 128, n_heads, n_kv_heads, n_vocab, ..shape };
    let mut bytes = Vec::new();
    shape::write(&shape, shape::mix("q8_0").unwrap(), 1, &mut bytes).unwrap();
    let file = Arc::new(WeightFile::from_bytes("small", SharedBytes::from_vec(bytes)).unwrap());
    let options = LoadOptions { kv_requantize, ctx: Some(2048), max_rows: Some(128), ..options() };
    let model = Model::load(file, &options, &mut |_| {}).unwrap();
    assert_eq!(model.info().kv_requantize, kv_requantize);
    model
}

fn text(n: usize, seed: u32) -> Vec<TokenId> {
    (0..n as u32).map(|i| (i * 37 + seed * 101 + i * i % 11) % 100).collect()
}

/// Overwrites everything with garbage, as a failed device leaves it.
fn ruin(model: &mut Model, back_to: &[(SequenceId, usize)]) {
    model.cache.mark_lost(0, back_to);
    let capacity = model.replicas[0].executor.capacity();
    for layer in 0..model.replicas[0].executor.graph().kv().layers.len() {
        let retention = model.replicas[0].executor.graph().kv().layers[layer].retention();
        for page in 0..capacity.all_pages(retention) as u32 {
            let n_bytes = model.replicas[0].executor.kv_layout(layer, page).page_bytes();
            model.replicas[0].executor.write_kv_page(layer, page, &vec![0x25; n_bytes]).unwrap();
        }
    }
    let n_floats: usize = model.replicas[0].executor.graph().kv().states.iter().sum();
    for slot in 0..capacity.n_states as u32 {
        model.replicas[0].executor.write_state(slot, &vec![0x25; 4 * n_floats]).unwrap();
    }
}

/// Computes the chunks and returns each one's last logits as bits.
fn read(model: &mut Model, chunks: &[(SequenceId, &[TokenId])]) -> Vec<u32> {
    let batch: Vec<Chunk> =
        chunks.iter().map(|&(seq, tokens)| Chunk { seq, tokens, logits: LogitsSelection::Last }).collect();
    let logits = model.forward(&batch).unwrap();
    (0..logits.n_rows()).flat_map(|row| logits.row(row).unwrap().iter().map(|x| x.to_bits())).collect()
}

/// Three sequences, two with the same prompt, before and after `now`.
fn story(model: &mut Model, now: &mut dyn FnMut(&mut Model)) -> (Vec<Vec<u32>>, Vec<usize>) {
    let (prompt, mut logits, mut reached) = (text(150, 1), Vec::new(), Vec::new());
    let a = model.new_sequence().unwrap();
    for (tokens, keeps) in [(&prompt[..100], true), (&prompt[100..149], true), (&prompt[149..], false)] {
        logits.push(read(model, &[(a, tokens)]));
        if keeps {
            model.save_rewind_point(a).unwrap();
        }
    }
    let b = model.fork(a).unwrap();
    logits.push(read(model, &[(a, &text(20, 2))]));
    logits.push(read(model, &[(b, &text(30, 3))]));
    let c = model.new_sequence().unwrap();
    logits.push(read(model, &[(c, &text(40, 4))]));
    assert!(model.set_mark(a));
    now(model);
    logits.push(read(model, &[(a, &[7, 8, 9]), (b, &[5]), (c, &text(60, 5))]));
    // rejected drafts are removed
    reached.push(model.truncate(a, 171).unwrap());
    model.clear_mark(a);
    logits.push(read(model, &[(b, &[6]), (a, &[11])]));
    // the same prompt again
    for (seq, n) in [(a, 149), (b, 100)] {
        reached.push(model.truncate(seq, n).unwrap());
        logits.push(read(model, &[(seq, &text(25, 6))]));
    }
    let d = model.fork(b).unwrap();
    logits.push(read(model, &[(d, &[1, 2]), (b, &[3])]));
    (logits, reached)
}

#[test]
fn every_kind_of_state_is_recomputed_bit_by_bit() {
    for name in FAMILIES {
        let expected = story(&mut family(name), &mut |_| {});
        let found = story(&mut family(name), &mut |model| ruin(model, &[]));
        assert_eq!(found.1, expected.1, "{name}: positions");
        assert!(found.0 == expected.0, "{name}");
        // and once more, before anything was recomputed
        let found = story(&mut family(name), &mut |model| (0..2).for_each(|_| ruin(model, &[])));
        assert!(found == expected, "{name}, twice");
    }
}

#[test]
fn lost_sequences_can_be_rewound_and_forked_before_replay() {
    for name in FAMILIES {
        let (prompt, mut all) = (text(140, 1), Vec::new());
        for is_ruined in [false, true] {
            let mut model = family(name);
            let a = model.new_sequence().unwrap();
            read(&mut model, &[(a, &prompt)]);
            let other = model.new_sequence().unwrap();
            read(&mut model, &[(other, &prompt[..70])]);
            if is_ruined {
                // of a failed run
                ruin(&mut model, &[(a, 120)]);
                assert_eq!(model.len(a).unwrap(), 120);
            } else {
                model.truncate(a, 0).unwrap();
                read(&mut model, &[(a, &prompt[..120])]);
            }
            let twin = model.fork(a).unwrap();
            let n = model.truncate(other, 64).unwrap();
            let logits = read(&mut model, &[(other, &prompt[n..90]), (twin, &[3]), (a, &[4, 5])]);
            all.push((logits, model.kv_usage().n_pages));
            assert!(!model.cache.is_lost(a) && !model.cache.is_lost(twin));
            model.free(a);
            model.free(twin);
            model.free(other);
            let pools = model.kv_pools();
            assert!(pools.iter().all(|pool| pool.n_held == 0), "{name}: {pools:?}");
        }
        assert!(all[0].0 == all[1].0, "{name}");
    }
}

/// What another sequence has recomputed is not computed again.
#[test]
fn shared_pages_are_recomputed_once() {
    let mut model = family("llama");
    let a = model.new_sequence().unwrap();
    read(&mut model, &[(a, &text(130, 1))]);
    let b = model.fork(a).unwrap();
    ruin(&mut model, &[]);
    read(&mut model, &[(a, &[1])]);
    let again = model.cache.begin_replay(b).unwrap().unwrap();
    assert_eq!((again.tokens.len(), model.len(b).unwrap()), (130, 128), "whole pages are available");
    model.cache.abort_replay(b, again);
    assert_eq!(model.len(b).unwrap(), 130);
}

#[test]
fn replay_requantizes_at_the_same_positions() {
    for kv_requantize in [KvRequantize::After(256), KvRequantize::Pressure] {
        let mut all = Vec::new();
        for is_ruined in [false, true] {
            let mut model = that_ages(kv_requantize);
            let a = model.new_sequence().unwrap();
            read(&mut model, &[(a, &text(1300, 1))]);
            if kv_requantize == KvRequantize::Pressure {
                assert!(model.requantize_some() && model.requantize_some());
                read(&mut model, &[(a, &text(20, 2))]);
                assert!(model.requantize_some());
            }
            let n_requantized = model.n_requantized(a).unwrap();
            assert!(n_requantized > 2, "{kv_requantize}: {n_requantized}");
            let b = model.fork(a).unwrap();
            if is_ruined {
                ruin(&mut model, &[]);
            }
            let logits = read(&mut model, &[(a, &text(9, 3)), (b, &text(5, 4))]);
            let requantized =
                (model.cache.requantized(a).unwrap().clone(), model.cache.requantized(b).unwrap().clone());
            all.push((logits, requantized));
        }
        assert!(all[0] == all[1], "{kv_requantize}");
    }
}

/// Other sequences continue, and one that cannot be recomputed has its own error.
#[test]
fn only_the_evicted_context_is_lost() {
    let mut model = family("llama");
    let (a, b) = (model.new_sequence().unwrap(), model.new_sequence().unwrap());
    let eviction = super::super::AttentionEviction { max_tokens: 96, n_kept: 48, n_oldest: 4, n_newest: 20 };
    let shown = model.prefill_evicting(a, &text(200, 1), eviction, &mut |_| true).unwrap();
    let n_held = model.len(a).unwrap();
    read(&mut model, &[(a, &shown[n_held..]), (b, &text(40, 2))]);
    let twin = model.fork(b).unwrap();
    let expected = read(&mut model, &[(twin, &[3])]);
    ruin(&mut model, &[]);
    let failed =
        model.forward(&[Chunk { seq: a, tokens: &[1], logits: LogitsSelection::Last }]).err().unwrap();
    assert_eq!((failed.code(), model.len(a).unwrap()), ("kv.forgotten", 0));
    assert!(read(&mut model, &[(b, &[3])]) == expected);
    assert_eq!(model.replicas[0].executor.graph().kv().layers[0].retention(), Retention::All);
}
