//! Malformed files at the level of `weights`: what must load opens, what is wrong in structure is refused with a
//! one-line error, and no random damage makes it panic. What only a model can judge (hyperparameters, missing
//! tensors) is refused above and tested there.

use std::panic::{AssertUnwindSafe, catch_unwind};

use inglenook_tests::reference_dir;
use test_support::{Missing, skip, skip_part};
use weights::{SharedBytes, WeightFile};

/// Refused by those who know what a model must have: keys, values and tensors of a kind that is sound in itself.
const FOR_THE_ENGINE: [&str; 5] = ["gguf-hp_", "gguf-miss_", "gguf-eps_", "gguf-arch_type", "gguf-nkv_zero"];
const TENSORS_FOR_THE_ENGINE: [&str; 3] = ["gguf-nt_minus", "gguf-type_i32_weight", "gguf-norm_2d"];

#[test]
fn every_file_is_opened_or_refused_as_the_reference_says() {
    let folder = reference_dir().join("malformed");
    let Ok(index) = std::fs::read(folder.join("index.json")) else {
        skip!(Missing::Reference, "no {}", folder.display());
    };
    let index: serde_json::Value = serde_json::from_slice(&index).expect("index.json is JSON");
    let mut wrong = Vec::new();
    for entry in index.as_array().expect("a list") {
        let name = entry["file"].as_str().expect("a name");
        let expected = entry["expect"].as_str().expect("an expectation");
        let above =
            FOR_THE_ENGINE.iter().chain(&TENSORS_FOR_THE_ENGINE).any(|prefix| name.starts_with(prefix));
        let outcome = match WeightFile::open(&folder.join(name)) {
            Ok(file) => {
                touch(&file);
                "load".to_owned()
            }
            Err(error) => {
                let text = error.to_string();
                assert!(!text.contains('\n') && text.len() < 400, "{name}: {text}");
                assert!(error.code().starts_with("weights.") && !error.remedy().is_empty(), "{name}");
                format!("refuse ({text})")
            }
        };
        println!("{name}: {outcome}");
        let right = expected == "either" || above || outcome.starts_with(expected);
        if !right {
            wrong.push(format!("{name}: {expected} expected: {outcome}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Reads everything that an opened file offers.
fn touch(file: &WeightFile) {
    for tensor in file.tensors() {
        let n: usize = tensor.shape.iter().product();
        if let Some(codec) = tensor.dtype.codec() {
            (codec.decode)(&tensor.data, &mut vec![0.0; n]);
        }
        assert!(file.tensor(tensor.name).is_some());
    }
    for (key, value) in file.metadata().iter() {
        assert!(file.metadata().get(key).is_some());
        if let Some(array) = value.as_array() {
            let strings = array.byte_strs().map(|s| s.count());
            assert!(strings.is_err() || strings == Ok(array.len()));
            let _ =
                (array.u32s(), array.i32s(), array.f32s(), array.bools(), array.strs().map(|s| s.count()));
        }
    }
    let _ = file.fingerprint();
}

#[test]
fn f01_what_is_no_model_is_told_so() {
    let folder = std::env::temp_dir().join(format!("inglenook-foreign-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for temporary files");
    let cases: [(&[u8], &str); 7] = [
        (b"<!DOCTYPE html><html><head><title>Sign in</title>", "web page"),
        (b"\n <html lang=en>", "web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "Git LFS pointer"),
        (b"PK\x03\x04data.pkl", "PyTorch"),
        (b"{\"error\":\"Invalid username or password.\"}", "JSON"),
        (b"", "empty"),
        (b"GGUF", "ends after 4 bytes"),
    ];
    for (bytes, expected) in cases {
        let path = folder.join("model.gguf");
        std::fs::write(&path, bytes).expect("a temporary file");
        let error = WeightFile::open(&path).err().unwrap_or_else(|| panic!("{expected}: opened"));
        let text = error.to_string();
        assert!(text.starts_with("model.gguf: ") && text.contains(expected), "{text}");
        let offers_download = error.remedy().contains("Download the model again");
        assert_eq!(offers_download, expected == "web page", "{}", error.remedy());
    }
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
}

/// A generator that always gives the same numbers.
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

/// Numbers that like to break readers.
const NASTY: [u64; 8] = [0, 1, u64::MAX, u64::MAX - 7, 1 << 63, 1 << 62, 1 << 32, 1 << 31];

fn mutate(valid: &[u8], rng: &mut Lcg) -> Vec<u8> {
    let mut bytes = valid.to_vec();
    // Most of the damage goes where the tables are.
    let reach = if rng.below(4) == 0 { bytes.len() } else { bytes.len().min(2048) };
    match rng.below(5) {
        0 => bytes.truncate(rng.below(bytes.len())),
        1 => {
            let at = rng.below(reach.saturating_sub(8));
            bytes[at..at + 8].copy_from_slice(&NASTY[rng.below(NASTY.len())].to_le_bytes());
        }
        2 => {
            let at = rng.below(reach);
            bytes.drain(at..(at + 1 + rng.below(16)).min(valid.len()));
        }
        _ => {
            for _ in 0..1 + rng.below(4) {
                let at = rng.below(reach);
                bytes[at] ^= 1 << rng.below(8);
            }
        }
    }
    bytes
}

#[test]
fn no_damage_makes_the_reader_panic() {
    const ROUNDS: usize = 4000;
    let folder = reference_dir().join("malformed");
    let temporary =
        std::env::temp_dir().join(format!("inglenook-mutants-{}.safetensors", std::process::id()));
    for (name, gguf) in [("gguf-ok.gguf", true), ("safetensors-ok.safetensors", false)] {
        let Ok(valid) = std::fs::read(folder.join(name)) else {
            skip_part!(Missing::Reference, "no {name}");
            continue;
        };
        let mut rng = Lcg(0x1D_E5_B0_0C);
        let (mut opened, mut refused) = (0, 0);
        for round in 0..ROUNDS / if gguf { 1 } else { 4 } {
            let bytes = mutate(&valid, &mut rng);
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                let file = if gguf {
                    WeightFile::from_bytes("mutant.gguf", SharedBytes::from_vec(bytes.clone()))
                } else {
                    std::fs::write(&temporary, &bytes).expect("a temporary file");
                    WeightFile::open(&temporary)
                };
                file.map(|file| touch(&file))
            }));
            match outcome {
                Ok(Ok(())) => opened += 1,
                Ok(Err(_)) => refused += 1,
                Err(_) => panic!("{name}: round {round} panicked"),
            }
        }
        println!("{name}: {opened} opened, {refused} refused");
        assert!(opened > 0 && refused > opened / 10, "{name}: {opened} opened, {refused} refused");
    }
    let _ = std::fs::remove_file(&temporary);
}
