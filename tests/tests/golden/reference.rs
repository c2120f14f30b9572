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
    /// All logits after the last position. (n_vocab)
    pub last: Vec<f32>,
}

/// The four prompts of `logits/ARCH`, with the answers of `stem` ("ref.hf", "ref.q8_0.exact").
pub fn cases(dir: &Path, stem: &str) -> Vec<Case> {
    let prompts = json(&dir.join("ref.hf.json"));
    let answers = json(&dir.join(format!("{stem}.json")));
    let last = npy(&dir.join(format!("{stem}.last.npy")));
    let prompts = prompts["prompts"].as_array().unwrap().iter();
    prompts
        .zip(answers["prompts"].as_array().unwrap())
        .zip(last)
        .map(|((prompt, answer), last)| Case {
            tokens: ids(&prompt["tokens"]),
            top: list(&answer["top10"]).iter().map(|t| pairs(&t[0], &t[1])).collect(),
            greedy: ids(&answer["greedy"]),
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
            last: last.to_vec(),
        })
        .collect()
}

/// A two-dimensional float32 array, row by row.
pub fn npy(path: &Path) -> Vec<Vec<f32>> {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let header_len = u16::from_le_bytes([bytes[8], bytes[9]]) as usize;
    let header = std::str::from_utf8(&bytes[10..10 + header_len]).unwrap();
    assert!(header.contains("'<f4'") && header.contains("'fortran_order': False"), "{header}");
    let shape = header.split("'shape': (").nth(1).unwrap().split(')').next().unwrap();
    let n_cols: usize = shape.split(',').nth(1).unwrap().trim().parse().unwrap();
    floats(&bytes[10 + header_len..]).chunks_exact(n_cols).map(<[f32]>::to_vec).collect()
}

fn json(path: &Path) -> Value {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_slice(&bytes).unwrap()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap()
}

fn ids(value: &Value) -> Vec<u32> {
    list(value).iter().map(|id| id.as_u64().unwrap() as u32).collect()
}

fn pairs(ids_of: &Value, logits: &Value) -> Vec<(u32, f32)> {
    ids(ids_of).into_iter().zip(list(logits).iter().map(|l| l.as_f64().unwrap() as f32)).collect()
}
