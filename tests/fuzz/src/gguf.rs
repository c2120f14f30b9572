//! GGUF: files as they are, and files whose pairs and tensors are made up, which must come back as written.

use arbitrary::{Arbitrary, Unstructured};
use engine::arch::ARCHITECTURES;
use weights::write::{GgufWriter, OwnedValue};
use weights::{DType, SharedBytes, WeightFile};

use crate::{FuzzTarget, model_file};

/// Reads GGUF files and what models they hold.
pub static GGUF: FuzzTarget = FuzzTarget { name: "gguf", read, max_bytes: 128 << 20 };

const MAGIC: &[u8] = b"GGUF";

/// Keys of models, without the name of the architecture.
const MODEL_KEYS: &[&str] = &[
    "block_count",
    "embedding_length",
    "feed_forward_length",
    "context_length",
    "vocab_size",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.layer_norm_rms_epsilon",
    "attention.layer_norm_epsilon",
    "attention.sliding_window",
    "attention.q_lora_rank",
    "attention.kv_lora_rank",
    "rope.freq_base",
    "rope.dimension_count",
    "rope.dimension_sections",
    "rope.scaling.type",
    "rope.scaling.factor",
    "rope.scaling.original_context_length",
    "expert_count",
    "expert_used_count",
    "expert_feed_forward_length",
    "expert_shared_feed_forward_length",
    "leading_dense_block_count",
    "nextn_predict_layers",
    "full_attention_interval",
    "ssm.conv_kernel",
    "ssm.inner_size",
    "ssm.state_size",
    "ssm.time_step_rank",
    "ssm.group_count",
    "shortconv.l_cache",
    "pooling_type",
    "logit_scale",
];

/// Keys that stand as they are.
const PLAIN_KEYS: &[&str] = &[
    "general.alignment",
    "split.count",
    "tokenizer.ggml.model",
    "tokenizer.ggml.pre",
    "tokenizer.ggml.tokens",
    "tokenizer.ggml.merges",
    "tokenizer.ggml.scores",
    "tokenizer.ggml.token_type",
    "tokenizer.ggml.bos_token_id",
    "tokenizer.ggml.eos_token_id",
    "tokenizer.ggml.unknown_token_id",
    "tokenizer.ggml.precompiled_charsmap",
    "tokenizer.ggml.add_bos_token",
    "tokenizer.chat_template",
    "clip.projector_type",
    "clip.has_vision_encoder",
    "clip.vision.image_size",
    "clip.vision.patch_size",
    "clip.vision.block_count",
    "clip.vision.embedding_length",
    "clip.vision.feed_forward_length",
    "clip.vision.attention.head_count",
    "clip.vision.projection_dim",
];

/// Texts with a meaning somewhere.
const WORDS: &[&str] =
    &["gpt2", "llama", "bert", "t5", "default", "llama-bpe", "qwen2", "yarn", "linear", "gemma3"];

const DTYPES: &[DType] =
    &[DType::F32, DType::F16, DType::BF16, DType::Q4_0, DType::Q8_0, DType::Q4_K, DType::Q6_K, DType::Q5_K];

fn read(input: &[u8]) {
    if !input.starts_with(MAGIC) {
        if let Ok(model) = MadeModel::arbitrary(&mut Unstructured::new(input)) {
            model.check();
        }
        return;
    }
    let bytes = SharedBytes::from_vec(input.to_vec());
    let head = SharedBytes::from_vec(input.to_vec());
    if let Ok(outline) = WeightFile::from_header("fuzz", head, input.len() as u64 * 1000) {
        model_file::read(&outline);
    }
    if let Ok(file) = WeightFile::from_bytes("fuzz", bytes) {
        model_file::read(&file);
    }
}

#[derive(Debug, Arbitrary)]
enum MadeKey {
    OfModel(u8),
    Plain(u8),
    Other(String),
}

#[derive(Debug, Arbitrary)]
enum MadeValue {
    U32(u32),
    Small(u8),
    I32(i32),
    U64(u64),
    F32(f32),
    Bool(bool),
    Word(u8),
    Str(String),
    U32s(Vec<u32>),
    I32s(Vec<i32>),
    F32s(Vec<f32>),
    Bools(Vec<bool>),
    Strs(Vec<String>),
}

impl MadeValue {
    fn owned(self) -> OwnedValue {
        match self {
            Self::U32(value) => OwnedValue::U32(value),
            Self::Small(value) => OwnedValue::U32(value.into()),
            Self::I32(value) => OwnedValue::I32(value),
            Self::U64(value) => OwnedValue::U64(value),
            Self::F32(value) => OwnedValue::F32(value),
            Self::Bool(value) => OwnedValue::Bool(value),
            Self::Word(at) => OwnedValue::Str(WORDS[usize::from(at) % WORDS.len()].to_owned()),
            Self::Str(value) => OwnedValue::Str(value),
            Self::U32s(values) => OwnedValue::U32s(values),
            Self::I32s(values) => OwnedValue::I32s(values),
            Self::F32s(values) => OwnedValue::F32s(values),
            Self::Bools(values) => OwnedValue::Bools(values),
            Self::Strs(values) => OwnedValue::Strs(values),
        }
    }
}

#[derive(Debug, Arbitrary)]
struct MadeTensor {
    name: Option<String>,
    dtype: u8,
    n_rows: u8,
    n_blocks: u8,
}

/// A model file of whatever the bytes say.
#[derive(Debug, Arbitrary)]
struct MadeModel {
    architecture: u8,
    pairs: Vec<(MadeKey, MadeValue)>,
    tensors: Vec<MadeTensor>,
}

impl MadeModel {
    /// Writes it, reads it back, and reads its model.
    fn check(self) {
        let architecture = ARCHITECTURES[usize::from(self.architecture) % ARCHITECTURES.len()].gguf_name();
        let mut writer = GgufWriter::new();
        writer.set("general.architecture", OwnedValue::Str(architecture.into()));
        for (n, (key, value)) in self.pairs.into_iter().enumerate() {
            let key = match key {
                MadeKey::OfModel(at) => {
                    format!("{architecture}.{}", MODEL_KEYS[usize::from(at) % MODEL_KEYS.len()])
                }
                MadeKey::Plain(at) => PLAIN_KEYS[usize::from(at) % PLAIN_KEYS.len()].to_owned(),
                MadeKey::Other(key) => format!("x.{n}.{key}"),
            };
            writer.set(&key, value.owned());
        }
        let n_tensors = self.tensors.len();
        for (n, tensor) in self.tensors.into_iter().enumerate() {
            let dtype = DTYPES[usize::from(tensor.dtype) % DTYPES.len()];
            let shape = [usize::from(tensor.n_rows) % 8 + 1, (usize::from(tensor.n_blocks) % 4 + 1) * 256];
            let name = format!("{}.{n}", tensor.name.unwrap_or_default());
            writer.tensor(&name, dtype, &shape, vec![0; shape[0] * dtype.row_bytes(shape[1])]);
        }
        // Refused where a pair or a name breaks a rule of the format, such as an alignment of 3.
        let bytes = writer.to_bytes();
        if let Ok(file) = WeightFile::from_bytes("made", SharedBytes::from_vec(bytes)) {
            assert_eq!(file.n_tensors(), n_tensors, "tensors that come back");
            model_file::read(&file);
        }
    }
}
