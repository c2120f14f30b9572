//! Quantization presets such as `q4_k_m`: which block format each tensor of a model gets.
//!
//! Follows the rules of llama.cpp's `llama-quantize` without a calibration text, so that names mean the same: tensors where
//! errors cost more get more bits. Works on GGUF tensor names; knows nothing of architectures.

use crate::dtype::DType;

/// A quantization preset, by its usual name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(non_camel_case_types, missing_docs)] // variants are named as in llama.cpp
pub enum QuantPreset {
    F32,
    F16,
    BF16,
    Q8_0,
    Q6_K,
    Q5_K_M,
    Q5_K_S,
    Q5_1,
    Q5_0,
    Q4_K_M,
    Q4_K_S,
    Q4_1,
    Q4_0,
    IQ4_XS,
    IQ4_NL,
    Q3_K_L,
    Q3_K_M,
    Q3_K_S,
    Q2_K,
    Q2_K_S,
    TQ2_0,
    TQ1_0,
    /// Experts in MXFP4, everything else in Q8_0: as gpt-oss is published.
    MXFP4_MOE,
}

/// A preset, its name, its number in GGUF files (`general.file_type`), and the format of most tensors.
type PresetRow = (QuantPreset, &'static str, u32, DType);

static TABLE: &[PresetRow] = &[
    (QuantPreset::F32, "f32", 0, DType::F32),
    (QuantPreset::F16, "f16", 1, DType::F16),
    (QuantPreset::BF16, "bf16", 32, DType::BF16),
    (QuantPreset::Q8_0, "q8_0", 7, DType::Q8_0),
    (QuantPreset::Q6_K, "q6_k", 18, DType::Q6_K),
    (QuantPreset::Q5_K_M, "q5_k_m", 17, DType::Q5_K),
    (QuantPreset::Q5_K_S, "q5_k_s", 16, DType::Q5_K),
    (QuantPreset::Q5_1, "q5_1", 9, DType::Q5_1),
    (QuantPreset::Q5_0, "q5_0", 8, DType::Q5_0),
    (QuantPreset::Q4_K_M, "q4_k_m", 15, DType::Q4_K),
    (QuantPreset::Q4_K_S, "q4_k_s", 14, DType::Q4_K),
    (QuantPreset::Q4_1, "q4_1", 3, DType::Q4_1),
    (QuantPreset::Q4_0, "q4_0", 2, DType::Q4_0),
    (QuantPreset::IQ4_XS, "iq4_xs", 30, DType::IQ4_XS),
    (QuantPreset::IQ4_NL, "iq4_nl", 25, DType::IQ4_NL),
    (QuantPreset::Q3_K_L, "q3_k_l", 13, DType::Q3_K),
    (QuantPreset::Q3_K_M, "q3_k_m", 12, DType::Q3_K),
    (QuantPreset::Q3_K_S, "q3_k_s", 11, DType::Q3_K),
    (QuantPreset::Q2_K, "q2_k", 10, DType::Q2_K),
    (QuantPreset::Q2_K_S, "q2_k_s", 21, DType::Q2_K),
    (QuantPreset::TQ2_0, "tq2_0", 37, DType::TQ2_0),
    (QuantPreset::TQ1_0, "tq1_0", 36, DType::TQ1_0),
    (QuantPreset::MXFP4_MOE, "mxfp4_moe", 38, DType::Q8_0),
];

/// Other names in use.
const ALIASES: [(&str, QuantPreset); 4] = [
    ("q3_k", QuantPreset::Q3_K_M),
    ("q4_k", QuantPreset::Q4_K_M),
    ("q5_k", QuantPreset::Q5_K_M),
    ("mxfp4", QuantPreset::MXFP4_MOE),
];

/// Facts about a model that a choice depends on, besides the tensors themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelDims {
    /// Number of layers.
    pub n_layers: usize,
    /// Query heads per key-value head.
    pub n_queries_per_kv: usize,
}

/// A tensor to be stored.
#[derive(Debug, Clone, Copy)]
pub struct TensorDesc<'a> {
    /// Name as in a GGUF file.
    pub name: &'a str,
    /// Dimensions, outermost first.
    pub dims: &'a [usize],
}

/// [`ModelDims`] and counts from the tensors.
struct ModelCounts {
    n_layers: usize,
    n_experts: usize,
    n_queries_per_kv: usize,
}

/// Role of a tensor, as far as presets distinguish it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TensorRole {
    /// Norms, biases, routers, convolutions, positions: small, and errors there spread.
    Small,
    /// A matrix kept in half precision.
    Half,
    Embedding,
    Output,
    Key,
    /// Values, alone or together with queries and keys.
    Value,
    AttentionOut,
    Down,
    Other,
}

/// Parts of names of matrices that stay in single precision.
const SMALL: [&str; 11] = [
    "_norm.weight",
    "ffn_gate_inp",
    "position_embd",
    "token_types",
    "ssm_conv1d",
    "shortconv.conv",
    "altup_correct",
    "altup_predict",
    "altup_router",
    "attn_rel_b",
    "time_mix_",
];

impl TensorRole {
    fn of(tensor: &TensorDesc) -> Self {
        let name = tensor.name;
        let is_matrix = tensor.dims.len() > 1 && name.ends_with(".weight");
        let has = |what: &str| name.contains(what);
        match name {
            _ if !is_matrix || SMALL.iter().any(|small| has(small)) => Self::Small,
            "output.weight" => Self::Output,
            "token_embd.weight" | "per_layer_token_embd.weight" => Self::Embedding,
            _ if ["per_layer_model_proj", "altup_", "laurel_"].into_iter().any(has) => Self::Half,
            _ if has("attn_v.weight") || has("attn_qkv.weight") || has("attn_kv_b.weight") => Self::Value,
            _ if has("attn_k.weight") => Self::Key,
            _ if has("attn_output.weight") => Self::AttentionOut,
            _ if has("ffn_down") => Self::Down,
            _ => Self::Other,
        }
    }
}

/// Layer number in a tensor name.
fn layer(name: &str) -> Option<usize> {
    name.strip_prefix("blk.")?.split('.').next()?.parse().ok()
}

/// Position of a layer among those that have the tensor; `index` counts from 0.
#[derive(Clone, Copy)]
struct LayerOrdinal {
    index: usize,
    of: usize,
}

impl LayerOrdinal {
    fn is_first_eighth(self) -> bool {
        self.index < self.of / 8
    }

    /// True for the first and last eighth, and every third layer between.
    fn gets_more_bits(self) -> bool {
        let eighth = self.of / 8;
        self.is_first_eighth() || self.index >= 7 * self.of / 8 || (self.index - eighth) % 3 == 2
    }
}

impl QuantPreset {
    /// Preset by its name, such as "Q4_K_M", ignoring case.
    pub fn from_name(name: &str) -> Option<Self> {
        let alias =
            || ALIASES.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(name)).map(|(_, mix)| *mix);
        TABLE.iter().find(|row| row.1.eq_ignore_ascii_case(name)).map(|row| row.0).or_else(alias)
    }

    /// All names, most bits first.
    pub fn names() -> impl Iterator<Item = &'static str> {
        TABLE.iter().map(|row| row.1)
    }

    fn row(self) -> &'static PresetRow {
        TABLE.iter().find(|row| row.0 == self).expect("a test finds every mix in the table")
    }

    /// Usual name, in lower case.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Number for `general.file_type` in GGUF files.
    pub fn file_type(self) -> u32 {
        self.row().2
    }

    /// Format of most tensors.
    pub fn base(self) -> DType {
        self.row().3
    }

    /// Format of each tensor of a model, in the given order. A format whose blocks do not divide a tensor's rows is replaced
    /// by one with smaller blocks.
    pub fn dtypes(self, tensors: &[TensorDesc], facts: &ModelDims) -> Vec<DType> {
        let roles: Vec<TensorRole> = tensors.iter().map(TensorRole::of).collect();
        let experts = tensors.iter().filter(|tensor| tensor.dims.len() > 2 && tensor.name.contains("_exps."));
        let counts = ModelCounts {
            n_layers: facts.n_layers,
            n_experts: experts.map(|tensor| tensor.dims[0]).max().unwrap_or(0),
            n_queries_per_kv: facts.n_queries_per_kv,
        };
        let has_output = roles.contains(&TensorRole::Output);
        let n_values = roles.iter().filter(|role| **role == TensorRole::Value).count();
        // Value tensors are counted, since not every layer has one; other tensors use their layer number.
        let mut value_layers: Vec<Option<usize>> = tensors
            .iter()
            .zip(&roles)
            .filter(|(_, role)| **role == TensorRole::Value)
            .map(|(tensor, _)| layer(tensor.name))
            .collect();
        value_layers.sort_unstable();
        let choose = |(tensor, role): (&TensorDesc, TensorRole)| {
            let layer = layer(tensor.name);
            let nth = match role {
                TensorRole::Value => {
                    LayerOrdinal { index: value_layers.partition_point(|l| *l < layer), of: n_values }
                }
                _ => LayerOrdinal { index: layer.unwrap_or(0), of: facts.n_layers },
            };
            let role = if role == TensorRole::Embedding && !has_output { TensorRole::Output } else { role };
            let n_cols = tensor.dims.last().copied().unwrap_or(1);
            fitting_dtype(self.choose_dtype(role, nth, tensor.dims, &counts), n_cols)
        };
        tensors.iter().zip(roles).map(choose).collect()
    }

    fn choose_dtype(
        self,
        role: TensorRole,
        nth: LayerOrdinal,
        dims: &[usize],
        counts: &ModelCounts,
    ) -> DType {
        let base = self.base();
        match role {
            TensorRole::Small => DType::F32,
            _ if base.block_len() == 1 => base,
            TensorRole::Half => DType::F16,
            TensorRole::Output => self.output(dims),
            _ if self == Self::MXFP4_MOE => {
                if dims.len() > 2 {
                    DType::MXFP4
                } else {
                    base
                }
            }
            TensorRole::Embedding if matches!(self, Self::TQ1_0 | Self::TQ2_0) => DType::Q4_K,
            TensorRole::Value => self.value(nth, counts),
            TensorRole::Key if counts.n_experts == 8 => DType::Q8_0,
            TensorRole::AttentionOut => self.attention_out(counts),
            TensorRole::Down => self.down(nth),
            TensorRole::Embedding | TensorRole::Key | TensorRole::Other => base,
        }
    }

    fn output(self, dims: &[usize]) -> DType {
        let base = self.base();
        let fits = dims.last().is_some_and(|n_cols| n_cols.is_multiple_of(base.block_len()));
        if base == DType::Q8_0 || !fits { DType::Q8_0 } else { DType::Q6_K }
    }

    fn value(self, nth: LayerOrdinal, counts: &ModelCounts) -> DType {
        let many_queries = counts.n_queries_per_kv >= 4;
        let dtype = match self {
            // Small beside the other matrices, and the same for every model with so few experts.
            _ if counts.n_experts == 8 => return DType::Q8_0,
            Self::Q2_K | Self::Q2_K_S if many_queries => DType::Q4_K,
            Self::Q2_K => DType::Q3_K,
            Self::Q3_K_M if nth.index >= 2 => DType::Q4_K,
            Self::Q3_K_M | Self::Q3_K_L => DType::Q5_K,
            Self::IQ4_NL | Self::IQ4_XS if many_queries => DType::Q5_K,
            Self::Q4_K_M | Self::Q5_K_M if nth.gets_more_bits() => DType::Q6_K,
            Self::Q4_K_S if nth.index < 4 => DType::Q5_K,
            _ => self.base(),
        };
        // Models of 70 billion: eight query heads make values an eighth of the size of queries.
        let is_70b = counts.n_layers == 80 && counts.n_queries_per_kv == 8;
        if is_70b && matches!(dtype, DType::Q3_K | DType::Q4_K) { DType::Q5_K } else { dtype }
    }

    fn down(self, nth: LayerOrdinal) -> DType {
        match self {
            Self::Q2_K => DType::Q3_K,
            Self::Q2_K_S if nth.is_first_eighth() => DType::Q4_K,
            Self::Q3_K_M if nth.index >= nth.of / 16 => DType::Q4_K,
            Self::Q3_K_M | Self::Q3_K_L => DType::Q5_K,
            Self::Q4_K_M | Self::Q5_K_M if nth.gets_more_bits() => DType::Q6_K,
            Self::Q4_K_S | Self::IQ4_NL | Self::IQ4_XS if nth.is_first_eighth() => DType::Q5_K,
            _ => self.base(),
        }
    }

    fn attention_out(self, counts: &ModelCounts) -> DType {
        let is_small = matches!(self, Self::Q2_K | Self::Q3_K_S | Self::Q3_K_M | Self::IQ4_NL | Self::IQ4_XS)
            || matches!(self, Self::Q4_K_S | Self::Q4_K_M);
        match self {
            _ if counts.n_experts == 8 => {
                if is_small {
                    DType::Q5_K
                } else {
                    self.base()
                }
            }
            Self::Q2_K => DType::Q3_K,
            Self::Q3_K_M => DType::Q4_K,
            Self::Q3_K_L => DType::Q5_K,
            _ => self.base(),
        }
    }
}

/// `wanted`, or the next best format whose blocks divide a row: blocks of 32, or finally F16.
pub fn fitting_dtype(wanted: DType, n_cols: usize) -> DType {
    let fits = |dtype: DType| n_cols.is_multiple_of(dtype.block_len());
    let smaller = match wanted {
        _ if fits(wanted) => return wanted,
        DType::IQ4_XS => DType::IQ4_NL,
        DType::Q2_K | DType::Q3_K | DType::TQ1_0 | DType::TQ2_0 => DType::Q4_0,
        DType::Q4_K => DType::Q5_0,
        DType::Q5_K => DType::Q5_1,
        DType::Q6_K => DType::Q8_0,
        _ => DType::F16,
    };
    if fits(smaller) { smaller } else { DType::F16 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LLAMA: ModelDims = ModelDims { n_layers: 32, n_queries_per_kv: 4 };

    /// The formats of one kind of matrix over the layers, in runs.
    fn runs(mix: QuantPreset, part: &str, facts: &ModelDims) -> String {
        let names: Vec<String> = (0..facts.n_layers)
            .flat_map(|l| [format!("blk.{l}.{part}.weight"), format!("blk.{l}.attn_k.weight")])
            .collect();
        let tensors: Vec<TensorDesc> =
            names.iter().map(|name| TensorDesc { name, dims: &[512, 512] }).collect();
        let dtypes = mix.dtypes(&tensors, facts);
        let mut runs: Vec<(DType, usize)> = Vec::new();
        for dtype in dtypes.into_iter().step_by(2) {
            match runs.last_mut() {
                Some(run) if run.0 == dtype => run.1 += 1,
                _ => runs.push((dtype, 1)),
            }
        }
        runs.iter().map(|(dtype, n)| format!("{n}×{dtype}")).collect::<Vec<_>>().join(" ")
    }

    fn one(mix: QuantPreset, name: &str, dims: &[usize], facts: &ModelDims) -> DType {
        let output = TensorDesc { name: "output.weight", dims: &[512, 512] };
        mix.dtypes(&[TensorDesc { name, dims }, output], facts)[0]
    }

    #[test]
    fn every_mix_is_in_the_table() {
        for row in TABLE {
            assert_eq!(row.0.row().1, row.1);
            assert_eq!(QuantPreset::from_name(row.1), Some(row.0));
            assert!(row.0.base().encoder().is_some(), "{}", row.1);
        }
        assert_eq!(TABLE.len(), QuantPreset::MXFP4_MOE as usize + 1);
        assert_eq!(QuantPreset::from_name("Q4_K"), Some(QuantPreset::Q4_K_M));
        assert_eq!(QuantPreset::from_name("q9"), None);
    }

    #[test]
    fn layers_get_what_they_get_in_published_files() {
        let cases = [
            (
                QuantPreset::Q4_K_M,
                "ffn_down",
                "4×Q6_K 2×Q4_K 1×Q6_K 2×Q4_K 1×Q6_K 2×Q4_K 1×Q6_K 2×Q4_K 1×Q6_K 2×Q4_K 1×Q6_K 2×Q4_K 1×Q6_K \
                 2×Q4_K 1×Q6_K 2×Q4_K 5×Q6_K",
            ),
            (QuantPreset::Q4_K_M, "ffn_up", "32×Q4_K"),
            (QuantPreset::Q4_K_S, "ffn_down", "4×Q5_K 28×Q4_K"),
            (QuantPreset::Q4_K_S, "attn_v", "4×Q5_K 28×Q4_K"),
            (QuantPreset::Q3_K_M, "ffn_down", "2×Q5_K 30×Q4_K"),
            (QuantPreset::Q3_K_M, "attn_v", "2×Q5_K 30×Q4_K"),
            (QuantPreset::Q3_K_M, "attn_output", "32×Q4_K"),
            (QuantPreset::Q3_K_L, "ffn_down", "32×Q5_K"),
            (QuantPreset::Q2_K, "attn_v", "32×Q4_K"),
            (QuantPreset::Q2_K, "ffn_down", "32×Q3_K"),
            (QuantPreset::Q2_K, "attn_k", "32×Q2_K"),
            (QuantPreset::IQ4_XS, "ffn_down", "4×Q5_K 28×IQ4_XS"),
            (QuantPreset::Q5_K_S, "ffn_down", "32×Q5_K"),
        ];
        for (mix, role, expected) in cases {
            assert_eq!(runs(mix, role, &LLAMA), expected, "{} {role}", mix.name());
        }
        let seventy = ModelDims { n_layers: 80, n_queries_per_kv: 8 };
        assert_eq!(runs(QuantPreset::Q3_K_S, "attn_v", &seventy), "80×Q5_K");
    }

    #[test]
    fn layers_without_values_are_not_counted() {
        // Attention in every fourth layer: the first eighth of the values is the first of eight.
        let names: Vec<String> = (0..8).map(|l| format!("blk.{}.attn_v.weight", l * 4 + 3)).collect();
        let tensors: Vec<TensorDesc> =
            names.iter().map(|name| TensorDesc { name, dims: &[256, 256] }).collect();
        let dtypes = QuantPreset::Q4_K_M.dtypes(&tensors, &LLAMA);
        let more: Vec<usize> = (0..8).filter(|&i| dtypes[i] == DType::Q6_K).collect();
        assert_eq!(more, [0, 3, 6, 7]);
    }

    #[test]
    fn what_is_small_stays_exact_and_what_does_not_fit_is_replaced() {
        let cases: &[(QuantPreset, &str, &[usize], DType)] = &[
            (QuantPreset::Q4_K_M, "blk.0.attn_norm.weight", &[256], DType::F32),
            (QuantPreset::F16, "blk.0.ffn_gate_inp.weight", &[32, 256], DType::F32),
            (QuantPreset::Q2_K, "blk.0.attn_q.bias", &[256], DType::F32),
            (QuantPreset::Q4_K_M, "token_embd.weight", &[512, 256], DType::Q4_K),
            (QuantPreset::Q4_K_M, "blk.9.attn_q.weight", &[512, 288], DType::Q5_0),
            (QuantPreset::Q5_K_M, "blk.9.attn_q.weight", &[512, 288], DType::Q5_1),
            (QuantPreset::Q6_K, "blk.9.attn_q.weight", &[512, 288], DType::Q8_0),
            (QuantPreset::IQ4_XS, "blk.9.attn_q.weight", &[512, 288], DType::IQ4_NL),
            (QuantPreset::Q3_K_S, "blk.9.attn_q.weight", &[512, 288], DType::Q4_0),
            (QuantPreset::Q8_0, "blk.9.attn_q.weight", &[512, 33], DType::F16),
            (QuantPreset::MXFP4_MOE, "blk.9.ffn_up_exps.weight", &[8, 64, 32], DType::MXFP4),
            (QuantPreset::MXFP4_MOE, "blk.9.attn_q.weight", &[64, 32], DType::Q8_0),
            (QuantPreset::MXFP4_MOE, "blk.9.ffn_up_exps.bias", &[8, 64], DType::F32),
            (QuantPreset::BF16, "blk.9.attn_v.weight", &[64, 32], DType::BF16),
            (QuantPreset::Q4_K_M, "altup_proj.weight", &[3, 256, 256], DType::F16),
            (QuantPreset::Q4_K_M, "blk.0.laurel_l.weight", &[64, 256], DType::F16),
            (QuantPreset::Q4_K_M, "blk.0.laurel_post_norm.weight", &[256], DType::F32),
            (QuantPreset::Q4_K_M, "blk.0.altup_router.weight", &[4, 256], DType::F32),
        ];
        for &(mix, name, dims, expected) in cases {
            assert_eq!(one(mix, name, dims, &LLAMA), expected, "{} {name} {dims:?}", mix.name());
        }
    }

    #[test]
    fn beside_eight_experts_attention_costs_little() {
        let dims = |name: &str| if name.contains("_exps.") { vec![8, 512, 512] } else { vec![512, 512] };
        let dtypes = |other: &str| {
            let names = ["blk.9.attn_k.weight", "blk.9.attn_v.weight", "blk.9.attn_output.weight", other];
            let dims = names.map(dims);
            let tensors: Vec<TensorDesc> =
                names.iter().zip(&dims).map(|(name, dims)| TensorDesc { name, dims }).collect();
            QuantPreset::Q4_K_S.dtypes(&tensors, &LLAMA)[..3].to_vec()
        };
        assert_eq!(dtypes("blk.9.ffn_up_exps.weight"), [DType::Q8_0, DType::Q8_0, DType::Q5_K]);
        assert_eq!(dtypes("blk.9.ffn_up.weight"), [DType::Q4_K, DType::Q5_K, DType::Q4_K]);
    }

    #[test]
    fn a_table_that_is_also_the_output_gets_its_format() {
        let table =
            |dims| QuantPreset::Q4_K_M.dtypes(&[TensorDesc { name: "token_embd.weight", dims }], &LLAMA)[0];
        assert_eq!(table(&[512, 512]), DType::Q6_K);
        assert_eq!(table(&[512, 288]), DType::Q8_0);
    }
}
