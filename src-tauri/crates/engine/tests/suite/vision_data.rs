//! What the reference of vision towers holds: arrays, pictures, prompts.

use std::path::{Path, PathBuf};

use engine::speculate::Script;
use engine::{Chunk, LogitsSelection, Model, Request, Sampling, TokenId};
use serde_json::Value;

/// The conformance data beside the checkout, or where `INGLENOOK_REFERENCE` says. `None`: they are not here.
#[allow(dead_code)] // not every test program needs the whole set
pub fn full_set() -> Option<PathBuf> {
    let named = std::env::var_os("INGLENOOK_REFERENCE").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/reference");
    Some(named.unwrap_or(beside).join("vision")).filter(|folder| folder.is_dir())
}

/// Shape and data of a NumPy file, and the name of its numbers.
fn array(path: &Path) -> (Vec<usize>, Vec<u8>, String) {
    let bytes = std::fs::read(path).unwrap();
    let n_header = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let (header, data) = bytes[10..].split_at(n_header);
    let header = std::str::from_utf8(header).unwrap();
    let shape = header.split_once("'shape': (").unwrap().1.split_once(')').unwrap().0;
    let shape = shape.split(',').filter_map(|n| n.trim().parse().ok()).collect();
    (shape, data.to_vec(), header.to_owned())
}

/// Shape and numbers of a float16 or float32 array.
pub fn npy(path: &Path) -> (Vec<usize>, Vec<f32>) {
    let (shape, data, header) = array(path);
    let values = match header.contains("<f2") {
        true => data.chunks_exact(2).map(|b| half::f16::from_le_bytes([b[0], b[1]]).to_f32()).collect(),
        false => data.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
    };
    (shape, values)
}

/// Shape and numbers of an array of bytes.
#[allow(dead_code)]
pub fn npy_bytes(path: &Path) -> (Vec<usize>, Vec<u8>) {
    let (shape, data, _) = array(path);
    (shape, data)
}

pub fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The largest difference; NaN is larger than any.
pub fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, |worst, x| if x <= worst { worst } else { x })
}

/// Prompts with images, and what transformers answered.
#[allow(dead_code)] // not every test program needs the whole set
pub struct Prompt {
    pub name: String,
    pub images: Vec<String>,
    pub tokens: Vec<TokenId>,
    pub greedy: Vec<TokenId>,
    pub margins: Vec<f32>,
    pub last: Vec<f32>,
}

#[allow(dead_code)] // not every test program needs the whole set
pub fn prompts(folder: &Path) -> Vec<Prompt> {
    let all = json(&folder.join("ref.hf.json"));
    let (shape, last) = npy(&folder.join("ref.hf.last.npy"));
    let ids = |value: &Value| -> Vec<TokenId> { serde_json::from_value(value.clone()).unwrap() };
    let prompts = all["prompts"].as_array().unwrap().iter().zip(last.chunks_exact(shape[1]));
    prompts
        .map(|(prompt, last)| Prompt {
            name: prompt["name"].as_str().unwrap().into(),
            images: serde_json::from_value(prompt["images"].clone()).unwrap(),
            tokens: ids(&prompt["tokens"]),
            greedy: ids(&prompt["greedy"]),
            margins: serde_json::from_value(prompt["greedy_margin"].clone()).unwrap(),
            last: last.to_vec(),
        })
        .collect()
}

/// The logits after the last token of a text.
#[allow(dead_code)] // not every test program needs the whole set
pub fn last_logits(model: &mut Model, tokens: &[TokenId]) -> Vec<f32> {
    let seq = model.new_sequence().unwrap();
    let chunk = Chunk { seq, tokens, logits: LogitsSelection::Last };
    let last = model.forward(&[chunk]).unwrap().row(0).unwrap().to_vec();
    model.free(seq);
    last
}

/// Asks for the likeliest `n` tokens after a prompt.
#[allow(dead_code)] // not every test program needs the whole set
pub fn greedy(prompt: Vec<TokenId>, n: usize) -> Request {
    Request {
        id: 1,
        prompt,
        sequence: None,
        sampling: Sampling { temperature: 0.0, ..Sampling::default() },
        max_tokens: Some(n),
        stop: Vec::new(),
        ignore_eos: true,
        markup_tokens: Vec::new(),
        budget: None,
        speculation: None,
        script: Script::default(),
        constraint: None,
        logprobs: None,
        resumed: Vec::new(),
    }
}
