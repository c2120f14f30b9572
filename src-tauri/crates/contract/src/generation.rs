//! How tokens are sampled and contexts are kept: the engine's options as plain data, which
//! `inference` translates.

use serde::{Deserialize, Deserializer, Serialize};

/// How the next token is chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sampling {
    /// 0 always takes the most likely token.
    pub temperature: f32,
    /// Only the `top_k` most likely tokens; 0 turns it off.
    pub top_k: u32,
    /// Only the most likely tokens that together have this probability; 1 turns it off.
    pub top_p: f32,
    /// Only tokens with at least this share of the most likely token's probability; 0 turns it off.
    pub min_p: f32,
    /// Above 1, tokens of the last `repeat_last_n` become less likely; 1 turns it off.
    pub repeat_penalty: f32,
    /// Tokens that `repeat_penalty` looks back over.
    pub repeat_last_n: u32,
    /// Subtracted once from the logit of every token that was generated; 0 turns it off.
    pub presence_penalty: f32,
    /// Subtracted from a token's logit for each time that it was generated; 0 turns it off.
    pub frequency_penalty: f32,
    /// Makes tokens less likely that would go on repeating a passage.
    pub dry: DrySampling,
    /// Sometimes leaves out the most likely tokens.
    pub xtc: XtcSampling,
    /// Added to the logits before everything else.
    pub logit_bias: Vec<LogitBias>,
    /// The same seed draws the same tokens. None: another seed each time.
    pub seed: Option<u64>,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.7,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            repeat_penalty: 1.0,
            repeat_last_n: 64,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            dry: DrySampling::default(),
            xtc: XtcSampling::default(),
            logit_bias: Vec::new(),
            seed: None,
        }
    }
}

/// The DRY penalty: `multiplier · base^(length - allowed_length)` for a token that would lengthen a repetition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DrySampling {
    /// 0 turns it off.
    pub multiplier: f32,
    /// At least 1.
    pub base: f32,
    /// Longest repetition without a penalty, in tokens.
    pub allowed_length: u32,
    /// Number of recent tokens that are searched. None: all.
    pub last_n: Option<u32>,
    /// Texts that end a repetition.
    pub sequence_breakers: Vec<String>,
}

impl Default for DrySampling {
    fn default() -> Self {
        Self {
            multiplier: 0.0,
            base: 1.75,
            allowed_length: 2,
            last_n: None,
            sequence_breakers: ["\n", ":", "\"", "*"].map(str::to_owned).to_vec(),
        }
    }
}

/// XTC: leaves out all likely tokens but the least likely of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct XtcSampling {
    /// How often; 0 turns it off.
    pub probability: f32,
    /// Probability from which a token is likely; above 0.5 none is left out.
    pub threshold: f32,
}

impl Default for XtcSampling {
    fn default() -> Self {
        Self { probability: 0.0, threshold: 0.1 }
    }
}

/// A change of one token's likelihood.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogitBias {
    /// The token.
    pub token: u32,
    /// Added to its logit. -100 or less bans the token; 100 makes it all but certain.
    #[serde(deserialize_with = "finite")]
    pub bias: f32,
}

/// The nearest finite number of 32 bits: JSON, in which requests travel on, has no infinity.
fn finite<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f32, D::Error> {
    Ok(nearest_f32(f64::deserialize(deserializer)?))
}

/// The nearest finite number of 32 bits.
pub fn nearest_f32(number: f64) -> f32 {
    number.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32
}

/// Where speculative decoding takes its drafts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DraftSource {
    /// Earlier occurrences in the text itself, and the model's own draft block where it is loaded.
    Lookup,
    /// The draft model; without one there are no drafts.
    Model,
}

/// How many drafted tokens are verified in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DraftLength {
    /// As many as pay off, up to this number.
    Paying(usize),
    /// Always this number where there are drafts; for tests and measurements.
    Always(usize),
}

impl DraftLength {
    /// The longest draft where the user names none.
    pub const DEFAULT_TOKENS: usize = 32;
}

/// How a request speculates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Speculation {
    /// Source of the drafts.
    pub guesses: DraftSource,
    /// Tokens of one draft.
    pub length: DraftLength,
}

/// When old positions of a context are requantised to fewer bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KvAging {
    /// Never: contexts are exact.
    #[default]
    Off,
    /// When contexts would otherwise have to leave memory.
    Pressure,
    /// This many tokens after them.
    After(usize),
}

impl KvAging {
    /// The newest tokens that always stay exact.
    pub const MIN_EXACT_TOKENS: usize = 256;

    /// Distance of `After` where the user gives none: half of the context that models usually get.
    pub const DEFAULT_AFTER_TOKENS: usize = 4096;
}

/// How positions are scaled beyond the trained context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RopeScaling {
    /// YaRN (Peng et al. 2023, arXiv 2309.00071), in percent of the trained context.
    Yarn {
        /// 200 doubles the context.
        percent: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bias_stays_a_number_on_its_way() {
        for (written, expected) in
            [("1.5", 1.5), ("3.8e199", f32::MAX), ("-4.8e71", f32::MIN), ("1e-300", 0.0)]
        {
            let read: LogitBias =
                serde_json::from_str(&format!(r#"{{"token":7,"bias":{written}}}"#)).unwrap();
            assert_eq!(read.bias, expected, "{written}");
            let again: LogitBias = serde_json::from_str(&serde_json::to_string(&read).unwrap()).unwrap();
            assert_eq!(again, read);
        }
    }
}
