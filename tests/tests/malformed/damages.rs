//! Files damaged on purpose: the starter model bent in each place that a header has, and hand-written safetensors.
//! They need nothing from outside, so they are checked wherever the project is.

use std::fs;

use inglenook_tests::workspace_root;

/// Offsets in every GGUF: magic, version, number of tensors, number of keys, length and text of the first key.
const VERSION: usize = 4;
const N_TENSORS: usize = 8;
const N_KEYS: usize = 16;
const KEY_LEN: usize = 24;

/// (file name, `load` or `refuse`, bytes)
pub fn all() -> Vec<(String, &'static str, Vec<u8>)> {
    let whole = fs::read(workspace_root().join("models/starter/starter.gguf"))
        .expect("the starter is in the project");
    let mut cases = vec![("own-whole.gguf".to_string(), "load", whole.clone())];
    for (name, damage) in GGUF {
        let mut bytes = whole.clone();
        damage(&mut bytes);
        cases.push((format!("own-{name}.gguf"), "refuse", bytes));
    }
    for (name, expect, header, n_bytes) in SAFETENSORS {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header.as_bytes());
        bytes.resize(bytes.len() + n_bytes, 0);
        cases.push((format!("own-{name}.safetensors"), expect, bytes));
    }
    cases
}

type Damage = fn(&mut Vec<u8>);

const GGUF: &[(&str, Damage)] = &[
    ("empty", |b| b.clear()),
    ("magic-only", |b| b.truncate(4)),
    ("magic-wrong", |b| b[0] = b'g'),
    ("version-1", |b| put_u32(b, VERSION, 1)),
    ("version-99", |b| put_u32(b, VERSION, 99)),
    ("version-swapped", |b| put_u32(b, VERSION, 3u32.swap_bytes())),
    ("tensors-max", |b| put_u64(b, N_TENSORS, u64::MAX)),
    ("tensors-one-more", |b| add_u64(b, N_TENSORS, 1)),
    ("keys-huge", |b| put_u64(b, N_KEYS, 1 << 60)),
    ("keys-one-fewer", |b| add_u64(b, N_KEYS, -1)),
    ("key-len-wraps", |b| put_u64(b, KEY_LEN, u64::MAX - 8)),
    ("key-type-unknown", |b| {
        let at = KEY_LEN + 8 + get_u64(b, KEY_LEN) as usize;
        put_u32(b, at, 13);
    }),
    ("cut-in-metadata", |b| b.truncate(300)),
    ("cut-in-data", |b| b.truncate(b.len() - 100)),
    ("cut-in-half", |b| b.truncate(b.len() / 2)),
];

const SAFETENSORS: &[(&str, &str, &str, usize)] = &[
    ("whole", "load", r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#, 8),
    ("not-json", "refuse", r#"{"a":"#, 8),
    ("array", "refuse", "[1,2]", 8),
    ("beyond", "refuse", r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#, 4),
    ("trailing", "refuse", r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#, 12),
    ("reversed", "refuse", r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}"#, 8),
    ("wrong-size", "refuse", r#"{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}"#, 8),
    (
        "shape-wraps",
        "refuse",
        r#"{"a":{"dtype":"F32","shape":[9223372036854775808,2],"data_offsets":[0,8]}}"#,
        8,
    ),
    (
        "overlap",
        "refuse",
        r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}"#,
        12,
    ),
];

fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn put_u64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn add_u64(bytes: &mut [u8], at: usize, change: i64) {
    put_u64(bytes, at, get_u64(bytes, at).strict_add_signed(change));
}

fn get_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
