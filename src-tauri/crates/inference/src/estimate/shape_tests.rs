//! The catalogue's sizes against the arithmetic of the models' published configurations.

use engine::arch;
use engine::memory_estimate::MemoryEstimate;
use engine::shape::{self, Shape};

use super::offers;

/// Id, quantisation mix, and the numbers of its config.json: architecture, layers, width, heads,
/// key heads, head size, feed-forward width, vocabulary, thousands of positions. The last says
/// whether the output is the embedding table. Families with the same tensors split otherwise count
/// as llama.
type ShapeRow = (&'static str, &'static str, &'static str, [u32; 8], bool);

const ROWS: &[ShapeRow] = &[
    ("smollm2-135m", "q8_0", "llama", [30, 576, 9, 3, 64, 1536, 49_152, 8], true),
    ("smollm2-360m", "q8_0", "llama", [32, 960, 15, 5, 64, 2560, 49_152, 8], true),
    ("smollm2-1.7b", "q4_k_m", "llama", [24, 2048, 32, 32, 64, 8192, 49_152, 8], true),
    ("llama-3.2-3b", "q4_k_m", "llama", [28, 3072, 24, 8, 128, 8192, 128_256, 128], true),
    ("llama-3.1-70b", "q4_k_m", "llama", [80, 8192, 64, 8, 128, 28_672, 128_256, 128], false),
    ("mistral-7b-v0.3", "q4_k_m", "llama", [32, 4096, 32, 8, 128, 14_336, 32_768, 32], false),
    ("mistral-nemo-12b", "q4_k_m", "llama", [40, 5120, 32, 8, 128, 14_336, 131_072, 128], false),
    ("qwen2.5-coder-0.5b", "q4_k_m", "qwen2", [24, 896, 14, 2, 64, 4864, 151_936, 32], true),
    ("qwen2.5-coder-1.5b", "q4_k_m", "qwen2", [28, 1536, 12, 2, 128, 8960, 151_936, 32], true),
    ("qwen2.5-coder-3b", "q4_k_m", "qwen2", [36, 2048, 16, 2, 128, 11_008, 151_936, 32], true),
    ("qwen2.5-coder-7b", "q4_k_m", "qwen2", [28, 3584, 28, 4, 128, 18_944, 152_064, 32], false),
    ("qwen2.5-coder-14b", "q4_k_m", "qwen2", [48, 5120, 40, 8, 128, 13_824, 152_064, 32], false),
    ("qwen2.5-coder-32b", "q4_k_m", "qwen2", [64, 5120, 40, 8, 128, 27_648, 152_064, 32], false),
    ("qwen3-0.6b", "q8_0", "qwen3", [28, 1024, 16, 8, 128, 3072, 151_936, 40], true),
    ("qwen3-1.7b", "q8_0", "qwen3", [28, 2048, 16, 8, 128, 6144, 151_936, 40], true),
    ("qwen3-8b", "q4_k_m", "qwen3", [36, 4096, 32, 8, 128, 12_288, 151_936, 40], false),
    ("qwen3-14b", "q4_k_m", "qwen3", [40, 5120, 40, 8, 128, 17_408, 151_936, 40], false),
    ("qwen3-32b", "q4_k_m", "qwen3", [64, 5120, 64, 8, 128, 25_600, 151_936, 40], false),
    ("phi-3.5-mini", "q4_k_m", "llama", [32, 3072, 32, 32, 96, 8192, 32_064, 128], false),
    ("phi-4-mini", "q4_k_m", "llama", [32, 3072, 24, 8, 128, 8192, 200_064, 128], true),
    ("phi-4", "q4_k_m", "llama", [40, 5120, 40, 10, 128, 17_920, 100_352, 16], false),
    ("gemma-3-270m", "q8_0", "gemma3", [18, 640, 4, 1, 256, 2048, 262_144, 32], true),
    ("gemma-3-12b", "q4_k_m", "gemma3", [48, 3840, 16, 8, 256, 15_360, 262_208, 128], true),
];

/// Shapes that the engine has itself, and the mixes of the catalogue's files.
const KNOWN: &[(&str, &str)] = &[
    ("llama-3.2-1b", "q4_k_m"),
    ("llama-3.1-8b", "q4_k_m"),
    ("smollm3-3b", "q4_k_m"),
    ("gemma-3-1b", "q4_k_m"),
    ("gemma-3-4b", "q4_k_m"),
    ("qwen3-4b", "q4_k_m"),
    ("gpt-oss-20b", "mxfp4_moe"),
];

/// A publisher's mix may differ from ours in a few tensors; one that fuses three of them has one format for all.
const BYTES_WITHIN: f64 = 0.05;
/// Parameters are what they are.
const PARAMETERS_WITHIN: f64 = 0.02;

/// Models whose files hold an output matrix although it is tied to the embeddings.
const OWN_OUTPUT: [&str; 3] = ["qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b", "qwen2.5-coder-3b"];

/// Parameters and bytes by its tensors.
fn computed(shape: &Shape, mix: &str) -> engine::Result<(u64, u64)> {
    let outline = shape::outline(shape, shape::mix(mix)?)?;
    let family = arch::find(&outline)?;
    let stored = arch::stored_tensors(&outline, family, &arch::spec(&outline, family)?)?;
    Ok((stored.iter().map(|part| part.n_values).sum(), MemoryEstimate::of(&outline)?.weights))
}

fn shape_of(row: &ShapeRow) -> Shape {
    let (name, _, architecture, numbers, tied_embeddings) = *row;
    let [n_layers, d_model, n_heads, n_kv_heads, head_dim, d_ff, n_vocab, thousands] = numbers;
    // a family's other numbers come from one of its shapes, if there is one
    let like = shape::SHAPES.iter().find(|it| it.architecture == architecture);
    let base = *like.unwrap_or(&shape::SHAPES[0]);
    let more = if like.is_some() { base.more } else { &[] };
    Shape {
        name,
        architecture,
        n_layers,
        d_model,
        n_heads,
        n_kv_heads,
        head_dim,
        d_ff,
        n_vocab,
        context_length: thousands * 1024,
        tied_embeddings,
        more,
        rope_divisors: engine::shape::RopeDivisors::None,
        ..base
    }
}

#[test]
fn sizes_are_those_of_the_published_configurations() {
    let facts = offers::facts().unwrap();
    let known = KNOWN.iter().map(|(name, mix)| (shape::find(name).unwrap(), *mix));
    let mut wrong = Vec::new();
    for (shape, mix) in ROWS.iter().map(|row| (shape_of(row), row.1)).chain(known) {
        let (parameters, tied_bytes) = match computed(&shape, mix) {
            Ok(found) => found,
            Err(error) => {
                wrong.push(format!("{}: {error}", shape.name));
                continue;
            }
        };
        let bytes = match OWN_OUTPUT.contains(&shape.name) {
            true => computed(&Shape { tied_embeddings: false, ..shape }, mix).unwrap().1,
            false => tied_bytes,
        };
        let row = &facts[shape.name];
        let off = |listed: u64, computed: u64| listed as f64 / computed as f64 - 1.0;
        let (b, p) = (off(row.bytes, bytes), off(row.parameters.unwrap(), parameters));
        let is_context = row.context_length == Some(shape.context_length);
        if b.abs() > BYTES_WITHIN || p.abs() > PARAMETERS_WITHIN || !is_context {
            wrong.push(format!(
                "{}: {} MB are {} by its tensors ({:+.1} %), {} M parameters {} ({:+.1} %), context {:?} of {}",
                shape.name,
                row.bytes / 1_000_000,
                bytes / 1_000_000,
                b * 100.0,
                row.parameters.unwrap() / 1_000_000,
                parameters / 1_000_000,
                p * 100.0,
                row.context_length,
                shape.context_length
            ));
        }
    }
    assert!(wrong.is_empty(), "models/sizes.toml:\n{}", wrong.join("\n"));
}
