//! Reads what other implementations computed: prompts, best logits by position, greedy continuations.

use std::path::Path;

use serde_json::Value;

/// One prompt and what followed it.
pub struct Case {
    pub tokens: Vec<u32>,
    /// For each position the best ids with their logits, largest first.
    pub top: Vec<Vec<(u32, f32)>>,
    /// Ids continued by argmax.
    pub greedy: Vec<u32>,
    /// By how much each of them was better than the second best, where the reference says so.
    pub margins: Vec<f32>,
    /// All logits after the last position. (n_vocab)
    pub last: Vec<f32>,
}

/// The prompts of `logits/ARCH`, with the answers of `stem` ("ref.hf", "ref.q8_0.exact").
pub fn cases(dir: &Path, stem: &str) -> Vec<Case> {
    let prompts = json(&dir.join("ref.hf.json"));
    let answers = json(&dir.join(format!("{stem}.json")));
    let last = npy(&dir.join(format!("{stem}.last.npy")));
    let prompts = list(&prompts["prompts"]);
    assert_eq!(prompts.len(), last.len(), "{}: {stem}", dir.display());
    prompts
        .iter()
        .zip(list(&answers["prompts"]))
        .zip(last)
        .map(|((prompt, answer), last)| Case {
            tokens: ids(&prompt["tokens"]),
            top: list(&answer["top10"]).iter().map(|t| pairs(&t[0], &t[1])).collect(),
            greedy: ids(&answer["greedy"]),
            margins: answer["greedy_margin"].as_array().map_or(Vec::new(), |m| m.iter().map(float).collect()),
            last,
        })
        .collect()
}

/// The prompts of `real/stories260K`, with the answers of one file.
pub fn story_cases(dir: &Path, stem: &str) -> Vec<Case> {
    let answers = json(&dir.join(format!("{stem}.json")));
    let n_vocab = answers["vocab_size"].as_u64().unwrap() as usize;
    let bytes = std::fs::read(dir.join(format!("{stem}.last.f32"))).unwrap();
    let last = floats(&bytes);
    let cases = list(&answers["prompts"]).iter().zip(last.chunks_exact(n_vocab));
    cases
        .map(|(p, last)| Case {
            tokens: ids(&p["ids"]),
            top: list(&p["top_ids"]).iter().zip(list(&p["top_logits"])).map(|(i, l)| pairs(i, l)).collect(),
            greedy: ids(&p["greedy32"]),
            margins: Vec::new(),
            last: last.to_vec(),
        })
        .collect()
}

/// How far llama.cpp is from exact arithmetic on one file, over all prompts and positions.
pub struct Theirs {
    /// Mean difference of a logit.
    pub mean: f64,
    /// Share of positions with the same best id.
    pub top_1: f64,
}

/// None where a family has no such comparison of that format.
pub fn theirs(dir: &Path, format: &str) -> Option<Theirs> {
    mean_of(dir, format, "llamacpp_vs_exact")
}

/// One of a family's comparisons, over all prompts and positions.
pub fn mean_of(dir: &Path, format: &str, comparison: &str) -> Option<Theirs> {
    let path = dir.join("agreement.json");
    let all = if path.exists() { json(&path) } else { return None };
    let prompts = all.get(format)?.get(comparison)?.as_array()?;
    let sum = |key: &str| {
        prompts.iter().map(|p| f64::from(float(&p[key])) * f64::from(float(&p["n"]))).sum::<f64>()
    };
    let n_positions: f64 = prompts.iter().map(|p| f64::from(float(&p["n"]))).sum();
    Some(Theirs { mean: sum("mean") / n_positions, top_1: sum("argmax_agree") / n_positions })
}

/// A float32 array of several dimensions, row by row of the last.
pub fn npy(path: &Path) -> Vec<Vec<f32>> {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let header_len = u16::from_le_bytes([bytes[8], bytes[9]]) as usize;
    let header = std::str::from_utf8(&bytes[10..10 + header_len]).unwrap();
    assert!(header.contains("'<f4'") && header.contains("'fortran_order': False"), "{header}");
    let shape = header.split("'shape': (").nth(1).unwrap().split(')').next().unwrap();
    let n_cols: usize = shape.trim_end_matches(',').split(',').next_back().unwrap().trim().parse().unwrap();
    floats(&bytes[10 + header_len..]).chunks_exact(n_cols).map(<[f32]>::to_vec).collect()
}

/// A file of JSON.
pub fn json(path: &Path) -> Value {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_slice(&bytes).unwrap()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

/// A number.
pub fn float(value: &Value) -> f32 {
    value.as_f64().unwrap() as f32
}

/// An array.
pub fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap()
}

/// An array of token ids.
pub fn ids(value: &Value) -> Vec<u32> {
    list(value).iter().map(|id| id.as_u64().unwrap() as u32).collect()
}

/// Ids with their logits.
pub fn pairs(ids_of: &Value, logits: &Value) -> Vec<(u32, f32)> {
    ids(ids_of).into_iter().zip(list(logits).iter().map(float)).collect()
}
