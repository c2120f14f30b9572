//! One fixed batch with its optimizer settings, to compare training steps with other programs.

use serde::Deserialize;

use super::optimizer::AdamW;
use super::trainer::TrainingExample;
use crate::error::{EngineError, Result};
use crate::tokenizer::TokenId;

/// A batch that is trained again and again, at one learning rate.
#[derive(Debug, Clone, PartialEq)]
pub struct FixedBatch {
    /// Its texts.
    pub examples: Vec<TrainingExample>,
    /// Learning rate.
    pub lr: f64,
    /// Optimizer settings.
    pub adam: AdamW,
}

/// The file as it is written.
#[derive(Deserialize)]
struct BatchJson {
    ids: Vec<Vec<TokenId>>,
    loss_mask: Vec<Vec<u8>>,
    lr: f64,
    betas: Option<[f64; 2]>,
    eps: Option<f64>,
    weight_decay: Option<f64>,
}

impl FixedBatch {
    /// Reads `{"ids":[[…]],"loss_mask":[[…]],"lr":…,"betas":[…],"eps":…,"weight_decay":…}`.
    ///
    /// Errors: `tune.batch`, naming what is wrong.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |why: String| {
            let remedy =
                "Write ids and loss_mask as lists of equally long lists, and the learning rate as lr.";
            EngineError::new("tune.batch", format!("the batch cannot be used: {why}"), remedy)
        };
        let json: BatchJson = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        if json.ids.len() != json.loss_mask.len() {
            return Err(wrong(format!(
                "{} rows of ids, {} of loss_mask",
                json.ids.len(),
                json.loss_mask.len()
            )));
        }
        let mut examples = Vec::with_capacity(json.ids.len());
        for (row, (ids, mask)) in json.ids.into_iter().zip(json.loss_mask).enumerate() {
            if ids.len() != mask.len() || ids.is_empty() {
                return Err(wrong(format!("row {row} has {} ids and {} masks", ids.len(), mask.len())));
            }
            examples.push(TrainingExample { ids, is_learned: mask.iter().map(|m| *m != 0).collect() });
        }
        let usual = AdamW::default();
        let adam = AdamW {
            betas: json.betas.unwrap_or(usual.betas),
            eps: json.eps.unwrap_or(usual.eps),
            weight_decay: json.weight_decay.unwrap_or(usual.weight_decay),
        };
        let is_share = |x: f64| (0.0..1.0).contains(&x);
        let is_valid = json.lr.is_finite() && json.lr >= 0.0 && adam.betas.iter().all(|beta| is_share(*beta));
        if !(is_valid && adam.eps.is_finite() && adam.eps >= 0.0 && adam.weight_decay.is_finite()) {
            return Err(wrong("lr, betas, eps or weight_decay is out of range".into()));
        }
        Ok(Self { examples, lr: json.lr, adam })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_examples() {
        let text = r#"{"ids":[[1,2,3],[4,5]],"loss_mask":[[0,1,1],[0,1]],"lr":0.001,"betas":[0.9,0.99]}"#;
        let batch = FixedBatch::parse(text).expect("a batch");
        assert_eq!(batch.examples[1].ids, [4, 5]);
        assert_eq!(batch.examples[0].n_learned(), 2);
        assert_eq!(batch.adam.betas, [0.9, 0.99]);
    }

    #[test]
    fn wrong_batches_say_why() {
        for (text, why) in [
            ("[]", "expected"),
            (r#"{"ids":[[1]],"loss_mask":[],"lr":1}"#, "1 rows of ids, 0"),
            (r#"{"ids":[[1,2]],"loss_mask":[[1]],"lr":1}"#, "row 0 has 2 ids and 1"),
            (r#"{"ids":[[]],"loss_mask":[[]],"lr":1}"#, "row 0 has 0"),
            (r#"{"ids":[[1]],"loss_mask":[[1]],"lr":1,"betas":[1,2]}"#, "out of range"),
            (r#"{"ids":[[1]],"loss_mask":[[1]],"lr":-1}"#, "out of range"),
            (r#"{"ids":[[-1]],"loss_mask":[[1]],"lr":1}"#, "invalid value"),
        ] {
            let error = FixedBatch::parse(text).expect_err(text).to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
