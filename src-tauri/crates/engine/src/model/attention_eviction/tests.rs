//! EvictingPrefill on a small model of random weights, and its parts alone.

use kernels::{KvDType, KvLayerLayout, RopeStyle};

use super::*;
use crate::scheduler::tests::{model, small};

const FORGET: AttentionEviction = AttentionEviction { n_most: 96, n_keep: 48, n_first: 4, n_newest: 20 };

fn text(n: usize, seed: u32) -> Vec<TokenId> {
    (0..n as u32).map(|i| (i * 37 + seed * 101 + i * i % 11) % 60).collect()
}

#[test]
fn a_turned_key_is_the_key_of_its_new_place() {
    let rope = RopeShape {
        n_heads: 1,
        head_dim: 32,
        n_rot: 32,
        inv_freq: (0..16).map(|i| 10_000f32.powf(-i as f32 / 16.0)).collect(),
        mscale: 1.3,
        style: RopeStyle::Half,
    };
    let layout = KvLayerLayout { n_kv_heads: 1, head_dim: 32, dtype: KvDType::F32, window: None };
    let plain: Vec<f32> = (0..32).map(|i| (i as f32 * 0.7).sin()).collect();
    let at = |position: u32| {
        let (mut cos, mut sin, mut key) = ([0.0; 16], [0.0; 16], plain.clone());
        rope::angles(&rope, position, &mut cos, &mut sin);
        rope::scalar(&mut key, 32, rope.style, &cos, &sin);
        key
    };
    let mut rows = KvRows::zeroed(layout, 200);
    (0..200).for_each(|p| rows.key_mut(0, p).copy_from_slice(&at(p as u32)));
    let stays = vec![vec![0, 1, 77, 150, 199]];
    let moved = moved(&rows, 0, &stays, Some(rope.clone()));
    for to in 0..5 {
        let expected = at(to as u32);
        for (a, b) in moved.key(0, to).iter().zip(&expected) {
            assert!((a - b).abs() < 1e-4, "{to}: {a} for {b}");
        }
    }
}

#[test]
fn what_is_attended_to_stays() {
    let mut mass = vec![0.0; 96];
    mass[40] = 5.0;
    let stays = choose(&mass, FORGET);
    assert_eq!(stays.len(), FORGET.n_keep);
    assert!(
        stays.is_sorted() && (0..4).chain(38..43).chain(76..96).all(|at| stays.contains(&at)),
        "{stays:?}"
    );
}

#[test]
fn a_long_text_is_read_and_gone_on_with() {
    let mut model = model();
    let seq = model.new_sequence().unwrap();
    let prompt = text(300, 1);
    let shown = model.prefill_evicting(seq, &prompt, FORGET, &mut |_| true).unwrap();
    assert!(shown.len() <= FORGET.n_most, "{}", shown.len());
    assert_eq!((shown[..4].to_vec(), shown.last()), (prompt[..4].to_vec(), prompt.last()));
    assert!(shown[4..28].iter().all(|id| *id >= EVICTED_TOKEN), "what was forgotten is nobody's token");
    let held = model.len(seq).unwrap();
    assert!(held >= FORGET.n_keep && held < shown.len());
    // The rest of it, as a scheduler would read it.
    let logits =
        model.forward(&[Chunk { seq, tokens: &shown[held..], logits: LogitsSelection::Last }]).unwrap();
    let first = logits.row(0).unwrap().to_vec();
    // More of the same text goes on from there; nothing is read again.
    let longer = [&prompt[..], &text(10, 2)].concat();
    let n_before = model.len(seq).unwrap();
    let shown = model.prefill_evicting(seq, &longer, FORGET, &mut |_| true).unwrap();
    assert_eq!(model.len(seq).unwrap(), n_before, "{}", shown.len());
    // Another text begins anew, and the same one again comes to the same.
    model.prefill_evicting(seq, &text(200, 3), FORGET, &mut |_| true).unwrap();
    let shown = model.prefill_evicting(seq, &prompt, FORGET, &mut |_| true).unwrap();
    let held = model.len(seq).unwrap();
    let logits =
        model.forward(&[Chunk { seq, tokens: &shown[held..], logits: LogitsSelection::Last }]).unwrap();
    assert_eq!(logits.row(0).unwrap(), first);
}

#[test]
fn a_sequence_that_holds_more_goes_back_first() {
    let mut model = model();
    let (seq, prompt) = (model.new_sequence().unwrap(), text(120, 5));
    model.forward(&[Chunk { seq, tokens: &prompt[..110], logits: LogitsSelection::None }]).unwrap();
    let shown = model.prefill_evicting(seq, &prompt, FORGET, &mut |_| true).unwrap();
    assert_eq!(shown.len(), prompt.len() - FORGET.n_most + FORGET.n_keep);
    let fresh = model.new_sequence().unwrap();
    assert_eq!(model.prefill_evicting(fresh, &prompt, FORGET, &mut |_| true).unwrap(), shown);
}

#[test]
fn a_text_that_fits_is_left_alone() {
    let mut model = model();
    let seq = model.new_sequence().unwrap();
    let prompt = text(90, 4);
    assert_eq!(model.prefill_evicting(seq, &prompt, FORGET, &mut |_| true).unwrap(), prompt);
    let wrong = AttentionEviction { n_first: 40, ..FORGET };
    assert_eq!(
        model.prefill_evicting(seq, &prompt, wrong, &mut |_| true).unwrap_err().code(),
        "request.forget"
    );
}

/// With windows, sinks, norms of queries and keys, experts: what has been forgotten goes on, the same in whatever pieces it
/// is read.
#[test]
fn every_kind_of_attention_forgets() {
    for (name, n_layers) in [("qwen3-4b", 2), ("gemma-3-1b", 6), ("gpt-oss-20b", 2)] {
        let mut model = small(name, n_layers);
        let prompt = text(300, 1);
        let mut ends = Vec::new();
        for n_rows in [128, 7] {
            let seq = model.new_sequence().unwrap();
            let mut reading = model.begin_evicting_prefill(seq, prompt.clone(), FORGET).unwrap();
            while model.step_evicting_prefill(&mut reading, n_rows).unwrap() {}
            let shown = model.finish_evicting_prefill(reading);
            assert!(shown.len() <= FORGET.n_most, "{name}: {}", shown.len());
            let held = model.len(seq).unwrap();
            assert!(held >= FORGET.n_keep && model.has_evicted(seq), "{name}");
            let chunk = Chunk { seq, tokens: &shown[held..], logits: LogitsSelection::Last };
            ends.push(model.forward(&[chunk]).unwrap().row(0).unwrap().to_vec());
            model.free(seq);
        }
        assert_eq!(ends[0], ends[1], "{name}: in whatever pieces it is read");
        assert_eq!(model.kv_usage().n_pages, 0);
    }
}
