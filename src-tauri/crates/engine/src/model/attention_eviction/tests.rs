//! Evicting prefill on a small model with random weights, and its parts alone.

use kernels::{KvDType, KvLayerLayout, N_COORDINATES, RopeStyle};

use super::*;
use crate::scheduler::tests::{model, small};

const EVICTION: AttentionEviction =
    AttentionEviction { max_tokens: 96, n_kept: 48, n_oldest: 4, n_newest: 20 };

fn text(n: usize, seed: u32) -> Vec<TokenId> {
    (0..n as u32).map(|i| (i * 37 + seed * 101 + i * i % 11) % 60).collect()
}

#[test]
fn rotated_keys_equal_keys_computed_at_the_new_position() {
    let rope = RopeShape {
        n_heads: 1,
        head_dim: 32,
        n_rot: 32,
        inv_freq: (0..16).map(|i| 10_000f32.powf(-i as f32 / 16.0)).collect(),
        axes: [].into(),
        mscale: 1.3,
        style: RopeStyle::Half,
    };
    let plain: Vec<f32> = (0..32).map(|i| (i as f32 * 0.7).sin()).collect();
    for dtype in [KvDType::F32, KvDType::Q8_0] {
        let layout = KvLayerLayout { n_kv_heads: 1, head_dim: 32, precision: dtype.both(), window: None };
        let at = |position: u32| {
            let (mut cos, mut sin, mut key) = ([0.0; 16], [0.0; 16], plain.clone());
            rope::angles(&rope, [position; N_COORDINATES], &mut cos, &mut sin);
            rope::scalar(&mut key, 32, rope.style, &cos, &sin);
            if dtype.is_quantized() {
                hadamard::scalar(&mut key, 32);
            }
            key
        };
        let mut rows = KvRows::zeroed(layout, 200);
        (0..200).for_each(|p| rows.key_mut(0, p).copy_from_slice(&at(p as u32)));
        let kept = vec![vec![0, 1, 77, 150, 199]];
        let move_rows = move_rows(&rows, 0, &kept, Some(rope.clone()));
        for to in 0..5 {
            let expected = at(to as u32);
            for (a, b) in move_rows.key(0, to).iter().zip(&expected) {
                assert!((a - b).abs() < 1e-4, "{dtype:?} {to}: {a} for {b}");
            }
        }
    }
}

#[test]
fn attended_tokens_stay() {
    let mut mass = vec![0.0; 96];
    mass[40] = 5.0;
    let kept = select_kept(&mass, EVICTION);
    assert_eq!(kept.len(), EVICTION.n_kept);
    assert!(kept.is_sorted() && (0..4).chain(38..43).chain(76..96).all(|at| kept.contains(&at)), "{kept:?}");
}

#[test]
fn long_texts_are_evicted_and_continued() {
    let mut model = model();
    let seq = model.new_sequence().unwrap();
    let prompt = text(300, 1);
    let shown = model.prefill_evicting(seq, &prompt, EVICTION, &mut |_| true).unwrap();
    assert!(shown.len() <= EVICTION.max_tokens, "{}", shown.len());
    assert_eq!((shown[..4].to_vec(), shown.last()), (prompt[..4].to_vec(), prompt.last()));
    assert!(shown[4..28].iter().all(|id| *id >= EVICTED_TOKEN), "evicted tokens are no real tokens");
    let held = model.len(seq).unwrap();
    assert!(held >= EVICTION.n_kept && held < shown.len());
    // The rest, as a scheduler prefills it.
    let logits =
        model.forward(&[Chunk { seq, tokens: &shown[held..], logits: LogitsSelection::Last }]).unwrap();
    let first = logits.row(0).unwrap().to_vec();
    // A longer version of the text continues from there; nothing is computed again.
    let longer = [&prompt[..], &text(10, 2)].concat();
    let n_before = model.len(seq).unwrap();
    let shown = model.prefill_evicting(seq, &longer, EVICTION, &mut |_| true).unwrap();
    assert_eq!(model.len(seq).unwrap(), n_before, "{}", shown.len());
    // Another text starts from the beginning, and repeating the first one gives the same result.
    model.prefill_evicting(seq, &text(200, 3), EVICTION, &mut |_| true).unwrap();
    let shown = model.prefill_evicting(seq, &prompt, EVICTION, &mut |_| true).unwrap();
    let held = model.len(seq).unwrap();
    let logits =
        model.forward(&[Chunk { seq, tokens: &shown[held..], logits: LogitsSelection::Last }]).unwrap();
    assert_eq!(logits.row(0).unwrap(), first);
}

#[test]
fn longer_sequences_rewind_first() {
    let mut model = model();
    let (seq, prompt) = (model.new_sequence().unwrap(), text(120, 5));
    model.forward(&[Chunk { seq, tokens: &prompt[..110], logits: LogitsSelection::None }]).unwrap();
    let shown = model.prefill_evicting(seq, &prompt, EVICTION, &mut |_| true).unwrap();
    assert_eq!(shown.len(), prompt.len() - EVICTION.max_tokens + EVICTION.n_kept);
    let fresh = model.new_sequence().unwrap();
    assert_eq!(model.prefill_evicting(fresh, &prompt, EVICTION, &mut |_| true).unwrap(), shown);
}

#[test]
fn texts_that_fit_are_not_evicted() {
    let mut model = model();
    let seq = model.new_sequence().unwrap();
    let prompt = text(90, 4);
    assert_eq!(model.prefill_evicting(seq, &prompt, EVICTION, &mut |_| true).unwrap(), prompt);
    let wrong = AttentionEviction { n_oldest: 40, ..EVICTION };
    assert_eq!(
        model.prefill_evicting(seq, &prompt, wrong, &mut |_| true).unwrap_err().code(),
        "request.forget"
    );
}

/// Windows, sinks, query and key norms, experts: generation after eviction is the same for every chunking of the
/// prompt.
#[test]
fn every_kind_of_attention_evicts() {
    for (name, n_layers) in [("qwen3-4b", 2), ("gemma-3-1b", 6), ("gpt-oss-20b", 2)] {
        let mut model = small(name, n_layers);
        let prompt = text(300, 1);
        let mut ends = Vec::new();
        for n_rows in [128, 7] {
            let seq = model.new_sequence().unwrap();
            let mut prefill = model.begin_evicting_prefill(seq, prompt.clone(), EVICTION).unwrap();
            while model.step_evicting_prefill(&mut prefill, n_rows).unwrap() {}
            let shown = model.finish_evicting_prefill(prefill);
            assert!(shown.len() <= EVICTION.max_tokens, "{name}: {}", shown.len());
            let held = model.len(seq).unwrap();
            assert!(held >= EVICTION.n_kept && model.has_evicted(seq), "{name}");
            let chunk = Chunk { seq, tokens: &shown[held..], logits: LogitsSelection::Last };
            ends.push(model.forward(&[chunk]).unwrap().row(0).unwrap().to_vec());
            model.free(seq);
        }
        assert_eq!(ends[0], ends[1], "{name}: in whatever pieces it is read");
        assert_eq!(model.kv_usage().n_pages, 0);
    }
}
