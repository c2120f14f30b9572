//! The second batch of reference families: exact arithmetic to a tolerance, the cpu backend within the error of
//! other quantised activations.
//!
//! Routers of these models have no near-ties, so that mixtures are held to every position.

use std::path::Path;

use engine::Devices;
use test_support::{Missing, skip};

use super::reference::{Case, Theirs, cases, mean_of, theirs};
use super::{Line, N_CTX, TOLERANCE, judge, run, safetensors_lines_of};

/// Families that must be there and agree. Grows as they come in.
const FAMILIES: &[&str] = &[
    "apertus",
    "arcee",
    "bamba",
    "cohere2",
    "deepseek_v2",
    "deepseek_v2_group",
    "deepseek_v3",
    "deepseek_v3_moonlight",
    "dots1",
    "ernie4_5",
    "ernie4_5_moe",
    "exaone4",
    "exaone4_full",
    "falcon_h1",
    "falcon_h1_norm",
    "gemma3n",
    "glm4_moe",
    "granite",
    "granitemoe",
    "granitemoehybrid",
    "granitemoehybrid_dense",
    "granitemoehybrid_rope",
    "hunyuan_v1_dense",
    "hunyuan_v1_moe",
    "lfm2_moe",
    "mamba2",
    "minicpm3",
    "nemotron_h",
    "nemotron_h_moe",
    "olmo2",
    "olmo3",
    "phi4_mini",
    "phimoe",
    "qwen3_next",
    "seed_oss",
    "stablelm",
    "stablelm_parallel",
    "starcoder2",
    "starcoder2_window",
];

/// GGUFs whose exact logits are of other weights: the convolutions' projections are not quantized there.
/// `engine/tests/conversion.rs` meets them with a file that keeps those projections.
const INEXACT: &[&str] = &["lfm2_moe"];

/// LongRoPE with short divisors up to a length. At each greedy step the reference recomputes all positions.
/// Where a continuation passes the length, only its first token is comparable.
const BY_LENGTH: &[(&str, usize)] = &[("phi4_mini", 64)];

#[test]
fn more_families() {
    let root = inglenook_tests::reference_dir().join("more-families");
    if !root.exists() && inglenook_tests::reference_is_small() {
        skip!(Missing::Reference, "the small set has none of these families");
    }
    let mut lines = Vec::new();
    for family in FAMILIES {
        let n_before = lines.len();
        family_lines(&root, family, &mut lines);
        assert!(lines.len() >= n_before + 2, "{family} lacks a config or its safetensors");
    }
    run("Golden logits of more families", &lines);
}

fn family_lines(root: &Path, family: &'static str, lines: &mut Vec<Line>) {
    let dir = root.join(family);
    assert!(dir.join("ref.hf.json").exists(), "{} has no {family}", root.display());
    safetensors_lines_of(
        root,
        family,
        false,
        &move |dir: &Path, stem: &str| comparable(family, cases(dir, stem)),
        lines,
    );
    let path = dir.join(format!("{family}.q8_0.gguf"));
    if !path.exists() {
        return;
    }
    if !INEXACT.contains(&family) {
        let (folder, file) = (dir.clone(), path.clone());
        lines.push(Line::new(family, "GGUF", "q8_0", move || {
            let load = |n_ctx| judge::load(&file, super::float_devices(), n_ctx);
            let exact = comparable(family, cases(&folder, "ref.q8_0.exact"));
            judge::exactly(&load, &exact, TOLERANCE, false)
        }));
    }
    if super::float_devices() != Devices::Scalar {
        return;
    }
    lines.push(Line::new(family, "GGUF, noise", "q8_0, cpu", move || {
        let exact = cases(&dir, "ref.q8_0.exact");
        // Rounding activations may cost no more than rounding the weights did, or than it costs llama.cpp where that
        // computes the same model.
        let of_weights =
            mean_of(&dir, "q8_0", "exact_vs_hf").ok_or("agreement.json has no figures of q8_0")?;
        let of_llama = match dir.join("ref.q8_0.llamacpp.last.npy").exists() {
            true => theirs(&dir, "q8_0"),
            false => None,
        };
        let yardstick = match of_llama {
            Some(theirs) => {
                Theirs { mean: theirs.mean.max(of_weights.mean), top_1: theirs.top_1.min(of_weights.top_1) }
            }
            None => of_weights,
        };
        let load = |n_ctx| judge::load(&path, Devices::Cpu, n_ctx);
        let fits = |case: &Case| if is_by_length(family) { case.tokens.len() } else { N_CTX };
        judge::noise_of_every_position(&load, &exact, &yardstick, &fits)
    }));
}

fn is_by_length(family: &str) -> bool {
    BY_LENGTH.iter().any(|(name, _)| *name == family)
}

/// The cases without the greedy tokens that the reference computed with other rotations than the prompt.
fn comparable(family: &str, mut cases: Vec<Case>) -> Vec<Case> {
    let Some((_, limit)) = BY_LENGTH.iter().find(|(name, _)| *name == family) else { return cases };
    for case in &mut cases {
        if case.tokens.len() <= *limit && case.tokens.len() + case.greedy.len() > *limit {
            case.greedy.truncate(*limit - case.tokens.len() + 1);
        }
    }
    cases
}
