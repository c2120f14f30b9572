//! Models of published shapes with random weights, for benchmarks: as many bytes as the real ones, but meaningless
//! output.
//!
//! The vocabulary is made up but complete, so any GGUF reader can load the files.

use std::io::Write;
use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use weights::quant::presets::{ModelDims, QuantPreset, TensorDesc};
use weights::write::{GgufWriter, OwnedValue};
use weights::{DType, WeightFile};

use crate::arch;
use crate::error::{EngineError, Result};
use crate::spec::{Role, TensorSpec};

mod published;
mod tower;
mod vocabulary;

pub use published::SHAPES;
pub use tower::{TowerShape, find_tower, write_tower};

/// Hyperparameters of one published model.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Name of the shape.
    pub name: &'static str,
    /// As in a GGUF's `general.architecture`.
    pub architecture: &'static str,
    /// Number of layers.
    pub n_layers: u32,
    /// Width of the residual stream.
    pub d_model: u32,
    /// Query heads per layer.
    pub n_heads: u32,
    /// Key-value heads per layer.
    pub n_kv_heads: u32,
    /// Size of a head.
    pub head_dim: u32,
    /// Width of the feed-forward part.
    pub d_ff: u32,
    /// Tokens in the vocabulary.
    pub n_vocab: u32,
    /// Positions the model was trained for.
    pub context_length: u32,
    /// Base of the rotary frequencies.
    pub rope_base: f32,
    /// How the rotary frequencies of full attention differ from the plain ones.
    pub rope_divisors: RopeDivisors,
    /// Epsilon of the norms.
    pub eps: f32,
    /// Whether the output matrix is the embedding table.
    pub tied_embeddings: bool,
    /// Tensors whose presence in a layer says what no metadata does. The flags are repeated until every layer has one.
    pub stored: &'static [(Role, &'static [bool])],
    /// Further GGUF pairs in groups, keys without the architecture. The last of equal keys holds.
    pub more: &'static [&'static [(&'static str, ShapeFact)]],
}

/// How rotary frequencies are changed, as a tensor of the file says.
#[derive(Debug, Clone, Copy)]
pub enum RopeDivisors {
    /// They are not.
    None,
    /// Llama 3's ramp: long waves are divided.
    Llama3 {
        /// Divisor of the long waves.
        factor: f32,
        /// Context of the original training, in tokens.
        context: f32,
    },
    /// Only the first pairs of a head are rotated.
    FirstPairs {
        /// Number of rotated pairs.
        n_pairs: u32,
    },
}

/// Value of a GGUF pair.
#[derive(Debug, Clone, Copy)]
pub enum ShapeFact {
    /// An integer.
    Count(u32),
    /// Integers.
    Counts(&'static [u32]),
    /// An integer for each layer, repeated from the start until every layer has one.
    CountsByLayer(&'static [u32]),
    /// A flag for each layer, repeated likewise.
    FlagsByLayer(&'static [bool]),
    /// A real number.
    Real(f32),
    /// Real numbers.
    Reals(&'static [f32]),
    /// A string.
    Text(&'static str),
}

impl ShapeFact {
    fn value(self, n_layers: usize) -> OwnedValue {
        match self {
            Self::Count(n) => OwnedValue::U32(n),
            Self::Counts(counts) => integers(counts.iter()),
            Self::CountsByLayer(counts) => integers(counts.iter().cycle().take(n_layers)),
            Self::FlagsByLayer(flags) => {
                OwnedValue::Bools(flags.iter().copied().cycle().take(n_layers).collect())
            }
            Self::Real(x) => OwnedValue::F32(x),
            Self::Reals(all) => OwnedValue::F32s(all.to_vec()),
            Self::Text(text) => OwnedValue::Str(text.to_owned()),
        }
    }
}

fn integers<'a>(counts: impl Iterator<Item = &'a u32>) -> OwnedValue {
    OwnedValue::I32s(counts.map(|n| i32::try_from(*n).unwrap_or(i32::MAX)).collect())
}

/// Finds the mix by name: "q8_0", "f16", "q4_k_m" …
///
/// Errors: `bench.dtype_unknown`, naming the available ones.
pub fn mix(name: &str) -> Result<QuantPreset> {
    QuantPreset::from_name(name).ok_or_else(|| {
        EngineError::new(
            "bench.dtype_unknown",
            format!("weights cannot be written as \"{name}\""),
            format!("Choose one of: {}.", QuantPreset::names().collect::<Vec<_>>().join(", ")),
        )
    })
}

/// Finds the shape by name. `name/8` has the first eight of its layers, so that a model too large for a machine can be
/// measured there.
///
/// Errors: `bench.shape_unknown`, naming the available ones; `bench.shape_layers`.
pub fn find(name: &str) -> Result<Shape> {
    let (name, n_layers) = match name.split_once('/') {
        Some((name, n_layers)) => (name, Some(n_layers)),
        None => (name, None),
    };
    let shape = SHAPES.iter().copied().find(|shape| shape.name == name).ok_or_else(|| {
        let known: Vec<&str> = SHAPES.iter().map(|shape| shape.name).collect();
        EngineError::new(
            "bench.shape_unknown",
            format!("there is no shape \"{name}\""),
            format!("Choose one of: {}.", known.join(", ")),
        )
    })?;
    let Some(text) = n_layers else { return Ok(shape) };
    let n_layers = text.parse().ok().filter(|n| (1..=shape.n_layers).contains(n)).ok_or_else(|| {
        EngineError::new(
            "bench.shape_layers",
            format!("{name} can't have \"{text}\" layers"),
            format!("Choose a number from 1 to {}.", shape.n_layers),
        )
    })?;
    Ok(Shape { n_layers, ..shape })
}

/// Writes a GGUF of that shape. Equal seeds write equal bytes.
///
/// Errors: `bench.write`.
pub fn write(shape: &Shape, mix: QuantPreset, seed: u64, out: &mut dyn Write) -> Result<()> {
    let written = writer(shape, mix, seed)?.write(out);
    written.map_err(|e| {
        EngineError::new(
            "bench.write",
            format!("the model could not be written: {e}"),
            "Free some disk space.",
        )
    })
}

/// Returns the header of a file of that shape: its tensors have no data.
pub fn outline(shape: &Shape, mix: QuantPreset) -> Result<WeightFile> {
    Ok(writer(shape, mix, 0)?.outline(shape.name)?)
}

/// Returns the format of each tensor.
fn dtypes(shape: &Shape, mix: QuantPreset, named: &[(String, Vec<usize>)]) -> Vec<DType> {
    let facts = ModelDims {
        n_layers: shape.n_layers as usize,
        n_queries_per_kv: (shape.n_heads / shape.n_kv_heads) as usize,
    };
    let tensors: Vec<TensorDesc> = named.iter().map(|(name, dims)| TensorDesc { name, dims }).collect();
    mix.dtypes(&tensors, &facts)
}

/// Creates the writer. Tensors are made when they are written.
pub(crate) fn writer(shape: &Shape, mix: QuantPreset, seed: u64) -> Result<GgufWriter> {
    let mut writer = GgufWriter::new();
    metadata(shape, &mut writer);
    vocabulary::write(shape.n_vocab as usize, &mut writer);
    let mut rng = SmallRng::seed_from_u64(seed);
    let (ones, minus_ones) = (BlockPool::constant(1.0), BlockPool::constant(-1.0));
    let mut pools: Vec<(DType, BlockPool)> = Vec::new();
    let (mut named, mut roles) = (Vec::new(), Vec::new());
    for (role, layer, dims) in tensors(shape)? {
        named.push((arch::gguf_tensor_name(shape.architecture, role, layer)?, dims));
        roles.push(role);
    }
    for (((name, dims), dtype), role) in named.iter().zip(dtypes(shape, mix, &named)).zip(roles) {
        let is_matrix = dims.len() > 1;
        let pool = match pools.iter().find(|(d, _)| *d == dtype) {
            // A state that grew instead of fading would soon be infinite.
            _ if matches!(role, Role::DeltaDecay | Role::SsmDecay) => minus_ones.clone(),
            _ if !is_matrix => ones.clone(),
            Some((_, pool)) => pool.clone(),
            None => {
                let pool = BlockPool::random(dtype, &mut rng);
                pools.push((dtype, pool.clone()));
                pool
            }
        };
        let n_bytes =
            dims[..dims.len() - 1].iter().product::<usize>() * dtype.row_bytes(dims[dims.len() - 1]);
        let seed = rng.random();
        let fill = move |out: &mut dyn Write| pool.write(n_bytes, seed, out);
        writer.tensor_from(name, dtype, dims, Box::new(fill));
    }
    if let Some(divisors) = rope_divisors(shape) {
        writer.encode("rope_freqs.weight", DType::F32, &[divisors.len()], &divisors);
    }
    Ok(writer)
}

fn metadata(shape: &Shape, writer: &mut GgufWriter) {
    let arch = shape.architecture;
    let counts = [
        ("block_count", shape.n_layers),
        ("context_length", shape.context_length),
        ("embedding_length", shape.d_model),
        ("feed_forward_length", shape.d_ff),
        ("attention.head_count", shape.n_heads),
        ("attention.head_count_kv", shape.n_kv_heads),
        ("attention.key_length", shape.head_dim),
        ("attention.value_length", shape.head_dim),
        ("rope.dimension_count", shape.head_dim),
        ("vocab_size", shape.n_vocab),
    ];
    writer.set("general.architecture", OwnedValue::Str(arch.to_owned()));
    writer.set("general.name", OwnedValue::Str(format!("{} with random weights", shape.name)));
    for (key, n) in counts {
        writer.set(&format!("{arch}.{key}"), OwnedValue::U32(n));
    }
    writer.set(&format!("{arch}.attention.layer_norm_rms_epsilon"), OwnedValue::F32(shape.eps));
    writer.set(&format!("{arch}.rope.freq_base"), OwnedValue::F32(shape.rope_base));
    for (key, fact) in shape.more.iter().copied().flatten() {
        writer.set(&format!("{arch}.{key}"), fact.value(shape.n_layers as usize));
    }
}

/// Returns every tensor by role, with its dimensions outermost first, as the family reads such a file.
fn tensors(shape: &Shape) -> Result<Vec<TensorSpec>> {
    let mut writer = GgufWriter::new();
    metadata(shape, &mut writer);
    let dims = [shape.n_vocab as usize, shape.d_model as usize];
    let tables = if shape.tied_embeddings { &TABLES[..1] } else { TABLES };
    for role in tables {
        let name = arch::gguf_tensor_name(shape.architecture, *role, None)?;
        writer.tensor_from(&name, DType::F16, &dims, Box::new(|_| Ok(())));
    }
    for (role, layers) in shape.stored {
        let is_stored = layers.iter().copied().cycle().take(shape.n_layers as usize);
        for layer in (0..).zip(is_stored).filter(|(_, is_stored)| *is_stored).map(|(layer, _)| layer) {
            let name = arch::gguf_tensor_name(shape.architecture, *role, Some(layer))?;
            writer.tensor_from(&name, DType::F16, &[1, 1], Box::new(|_| Ok(())));
        }
    }
    let file = writer.outline(shape.name)?;
    let family = arch::find(&file)?;
    let mut spec = arch::spec(&file, family)?;
    spec.draft = arch::draft_block(&file, family, &spec)?;
    Ok(spec.tensors())
}

/// Tensors whose shape or presence says what no metadata does.
const TABLES: &[Role] = &[Role::TokenEmbedding, Role::Output];

/// Divisor of a frequency that does not rotate.
const NO_ROTATION: f32 = 1e30;

/// Returns the divisor of each rotary frequency. `None`: they are plain. (head_dim / 2)
fn rope_divisors(shape: &Shape) -> Option<Vec<f32>> {
    let pairs = 0..shape.head_dim / 2;
    match shape.rope_divisors {
        RopeDivisors::None => None,
        // Short waves are kept, long ones divided, with a ramp between.
        RopeDivisors::Llama3 { factor, context } => {
            let pair = |pair: u32| {
                let frequency = shape.rope_base.powf(-2.0 * pair as f32 / shape.head_dim as f32);
                let n_waves = context * frequency / (2.0 * std::f32::consts::PI);
                let kept = ((n_waves - 1.0) / 3.0).clamp(0.0, 1.0);
                1.0 / (kept + (1.0 - kept) / factor)
            };
            Some(pairs.map(pair).collect())
        }
        RopeDivisors::FirstPairs { n_pairs } => {
            Some(pairs.map(|pair| if pair < n_pairs { 1.0 } else { NO_ROTATION }).collect())
        }
    }
}

/// Encoded blocks that tensors are filled from: encoding every weight of a large model would take minutes.
#[derive(Clone)]
struct BlockPool {
    block_bytes: usize,
    bytes: Arc<[u8]>,
}

impl BlockPool {
    /// Values of a pool: a few thousand blocks of any format.
    const N_VALUES: usize = 1 << 17;
    /// Bytes copied from one random offset, about. Less than a row, so that no two rows are alike.
    const PIECE_BYTES: usize = 1021;
    /// Spread of the values, so that activations neither fade nor grow much over the layers.
    const SPREAD: f32 = 0.02;

    fn random(dtype: DType, rng: &mut SmallRng) -> Self {
        // The sum of four uniform draws is close enough to a normal distribution.
        let mut draw = || (0..4).map(|_| rng.random_range(-1.0f32..1.0)).sum::<f32>() * Self::SPREAD;
        let values: Vec<f32> = (0..Self::N_VALUES).map(|_| draw()).collect();
        let encode = dtype.encoder().expect("a mix has only formats that can be encoded");
        let mut bytes = vec![0; dtype.row_bytes(Self::N_VALUES)];
        encode(&values, &mut bytes);
        Self { block_bytes: dtype.block_bytes(), bytes: bytes.into() }
    }

    /// Creates a pool of one value, in float32.
    fn constant(value: f32) -> Self {
        let bytes: Vec<u8> = std::iter::repeat_n(value.to_le_bytes(), Self::PIECE_BYTES).flatten().collect();
        Self { block_bytes: 4, bytes: bytes.into() }
    }

    /// Writes pieces from random offsets, `n_bytes` in total.
    fn write(&self, n_bytes: usize, seed: u64, out: &mut dyn Write) -> std::io::Result<()> {
        let mut rng = SmallRng::seed_from_u64(seed);
        let piece = (Self::PIECE_BYTES / self.block_bytes).max(1) * self.block_bytes;
        let n_starts = (self.bytes.len() - piece) / self.block_bytes + 1;
        let mut n_left = n_bytes;
        while n_left > 0 {
            let start = rng.random_range(0..n_starts) * self.block_bytes;
            let n = n_left.min(piece);
            out.write_all(&self.bytes[start..start + n])?;
            n_left -= n;
        }
        Ok(())
    }
}

/// A small model of a family, for tests.
#[cfg(test)]
pub(crate) fn tiny(architecture: &'static str, tied_embeddings: bool) -> Shape {
    Shape {
        name: "tiny",
        architecture,
        n_layers: 9,
        d_model: 256,
        n_heads: 4,
        n_kv_heads: 2,
        head_dim: 64,
        d_ff: 512,
        n_vocab: 600,
        context_length: 512,
        rope_divisors: RopeDivisors::Llama3 { factor: 8.0, context: 64.0 },
        tied_embeddings,
        ..SHAPES[0]
    }
}

#[cfg(test)]
mod tests {
    use weights::SharedBytes;

    use super::*;

    #[test]
    fn written_shapes_are_models() {
        for (architecture, tied) in [("llama", false), ("llama", true), ("smollm3", true)] {
            for name in QuantPreset::names() {
                let shape = tiny(architecture, tied);
                let mut bytes = Vec::new();
                write(&shape, mix(name).unwrap(), 1, &mut bytes).unwrap();
                let file = WeightFile::from_bytes("tiny", SharedBytes::from_vec(bytes)).unwrap();
                let family = arch::find(&file).unwrap();
                let spec = arch::spec(&file, family).unwrap();
                let n_tensors = arch::tensors(&file, family, &spec).unwrap().len();
                assert_eq!(n_tensors, 2 + usize::from(!tied) + 9 * 9);
                assert_eq!((spec.n_vocab, spec.layers.len(), spec.context_length), (600, 9, 512));
            }
        }
    }

    /// Millions of parameters according to the models' own pages, including norms and biases.
    #[test]
    fn published_shapes_have_their_parameters() {
        let published = [
            ("llama-3.2-1b", 1236),
            ("llama-3.1-8b", 8030),
            ("smollm3-3b", 3075),
            ("gemma-3-1b", 1000),
            ("gemma-3-4b", 3880),
            ("qwen3-4b", 4022),
            ("gpt-oss-20b", 20_914),
            ("qwen3.5-4b", 4206),
            // An attention layer of 107 and a projection of 13 more.
            ("qwen3.5-4b-mtp", 4327),
            ("qwen3.6-35b-a3b", 34_660),
            // Its file has 7,518: it stores keys and values for 18 layers that take those of others.
            ("gemma-4-e4b", 7463),
            ("gemma-4-26b-a4b", 25_233),
            // Their files have 4,457 and 6,869, for the same reason.
            ("gemma-3n-e2b", 4437),
            ("gemma-3n-e4b", 6837),
            ("lfm2-1.2b", 1170),
        ];
        assert_eq!(
            published.map(|(name, _)| name).as_slice(),
            SHAPES.iter().map(|s| s.name).collect::<Vec<_>>()
        );
        for (name, millions) in published {
            let tensors = tensors(&find(name).unwrap()).unwrap();
            let n: usize = tensors.iter().map(|(_, _, dims)| dims.iter().product::<usize>()).sum();
            assert!((n / 1_000_000).abs_diff(millions) <= 1, "{name}: {n} parameters");
        }
    }

    #[test]
    fn presets_match_published_files() {
        let shape = find("llama-3.1-8b").unwrap();
        let name =
            |(role, layer, dims)| (arch::gguf_tensor_name(shape.architecture, role, layer).unwrap(), dims);
        let named: Vec<(String, Vec<usize>)> = tensors(&shape).unwrap().into_iter().map(name).collect();
        let dtypes = dtypes(&shape, QuantPreset::Q4_K_M, &named);
        let dtype = |name: &str| dtypes[named.iter().position(|(n, _)| n == name).unwrap()];
        assert_eq!(dtype("output.weight"), DType::Q6_K);
        assert_eq!(dtype("token_embd.weight"), DType::Q4_K);
        let more: Vec<usize> =
            (0..32).filter(|l| dtype(&format!("blk.{l}.ffn_down.weight")) == DType::Q6_K).collect();
        // The layers of the published Llama-3.1-8B-Instruct-Q4_K_M.
        assert_eq!(more, [0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31]);
        assert_eq!(mix("q5_9").unwrap_err().code(), "bench.dtype_unknown");
        assert_eq!(find("gemma-3-5b").unwrap_err().code(), "bench.shape_unknown");
    }

    #[test]
    fn a_part_of_a_shape_has_its_first_layers() {
        let shape = find("qwen3.6-35b-a3b/8").unwrap();
        let found = tensors(&shape).unwrap();
        let whole = tensors(&find("qwen3.6-35b-a3b").unwrap()).unwrap();
        assert_eq!((shape.n_layers, found.iter().filter_map(|(_, layer, _)| *layer).max()), (8, Some(7)));
        assert!(found.iter().all(|tensor| whole.contains(tensor)));
        for wrong in ["qwen3-4b/0", "qwen3-4b/99", "qwen3-4b/", "qwen3-4b/x"] {
            assert_eq!(find(wrong).unwrap_err().code(), "bench.shape_layers", "{wrong}");
        }
    }
}
