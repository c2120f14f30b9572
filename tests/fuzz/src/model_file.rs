//! What is read of a model file before it runs: structure, tensors, tokenizer, template, vision tower, memory.

use engine::arch;
use engine::capabilities::ModelCapabilities;
use engine::memory_estimate::MemoryEstimate;
use engine::template::ChatTemplate;
use engine::tokenizer::Tokenizer;
use engine::{KvDType, vision};
use weights::WeightFile;

use crate::tokenizer::check_tokenizer;

/// Reads everything. Errors are fine, panics are not.
pub fn read(file: &WeightFile) {
    for tensor in file.tensors() {
        assert_eq!(file.tensor(tensor.name).map(|found| found.data.len()), Some(tensor.data.len()));
    }
    for (key, value) in file.metadata().iter() {
        assert_eq!(file.metadata().get(key).map(|found| format!("{found:?}")), Some(format!("{value:?}")));
    }
    file.fingerprint();
    if let Ok(family) = arch::find(file)
        && let Ok((spec, _)) = arch::spec_and_notes(file, family)
    {
        let _ = arch::tensors(file, family, &spec);
        let _ = arch::stored_tensors(file, family, &spec);
    }
    if let Ok(estimate) = MemoryEstimate::of(file) {
        estimate.needs(4096, KvDType::F16.both());
        estimate.longest_within(None, 1 << 30, KvDType::Q8_0.both());
    }
    if let Ok(tokenizer) = Tokenizer::from_weights(file) {
        check_tokenizer(&tokenizer, "Hello <s>world</s> 123 äö\n");
    }
    if let Ok(Some(template)) = ChatTemplate::from_weights(file) {
        ModelCapabilities::from_template(&template);
    }
    if let Ok(Some(_)) = vision::find(file) {
        let _ = vision::image_settings(file);
        vision::TowerBytes::of(file);
    }
}
