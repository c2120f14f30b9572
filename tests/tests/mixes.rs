//! Every mix that weights can be made in, through the whole engine: the fast products compute what the formats say,
//! and fewer bits cost as much as they should.

use std::path::Path;
use std::sync::Arc;

use engine::convert::{Formats, plan};
use engine::{Chunk, Devices, KvDType, LoadOptions, LogitsSelection, Model};
use kernels::cpu::isa::IsaLevel;
use weights::quant::presets::QuantPreset;
use weights::{SharedBytes, WeightFile};

/// Ids as they come in a conversation with the starter, and some that do not.
fn tokens(n_vocab: usize) -> Vec<u32> {
    (0..48u64).map(|i| ((i * i * 7919 + i * 17) % n_vocab as u64) as u32).collect()
}

/// Logits after every position, one after another; `isa` is that of the processor, None: the specification.
fn logits(file: &Arc<WeightFile>, isa: Option<IsaLevel>) -> Vec<f32> {
    let devices = if isa.is_some() { Devices::Cpu } else { Devices::Scalar };
    let options =
        LoadOptions { devices, isa, kv: KvDType::F32.both(), ctx: Some(64), ..LoadOptions::default() };
    let mut model = Model::load(Arc::clone(file), &options, &mut |_| {}).unwrap();
    let seq = model.new_sequence().unwrap();
    let tokens = tokens(model.info().n_vocab);
    let rows = model.forward(&[Chunk { seq, tokens: &tokens, logits: LogitsSelection::All }]).unwrap();
    (0..rows.n_rows()).flat_map(|row| rows.row(row).unwrap().to_vec()).collect()
}

fn mean_difference(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| f64::from((a - b).abs())).sum::<f64>() / a.len() as f64
}

/// Activations in eight bits cost every format about the same; blocks of 256 have one scale where those of 32 have
/// eight.
const NOISE: f64 = 3.0;

#[test]
fn every_mix_computes_what_its_formats_say() {
    let starter = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/starter/starter.gguf");
    let source = WeightFile::open(&starter).unwrap();
    let exact = logits(&Arc::new(WeightFile::open(&starter).unwrap()), None);
    let (mut usual, mut errors) = (None, Vec::new());
    // Most bits first, so that q8_0 comes before what is measured by it.
    for name in QuantPreset::names() {
        let mut bytes = Vec::new();
        plan(&source, &Formats::parse(name).unwrap(), Some(2)).unwrap().write(&mut bytes).unwrap();
        let n_bytes = bytes.len();
        let file = Arc::new(WeightFile::from_bytes(name, SharedBytes::from_vec(bytes)).unwrap());
        let specified = logits(&file, None);
        let error = mean_difference(&exact, &specified);
        errors.push((name, error));
        for level in IsaLevel::present().filter(|level| *level != IsaLevel::Portable) {
            let noise = mean_difference(&logits(&file, Some(level)), &specified);
            eprintln!("{name:9} {n_bytes:9} bytes, off by {error:.4}; {level}: {noise:.1e} more");
            if name == "q8_0" && level == IsaLevel::detect() {
                usual = Some(noise);
            }
            let most = usual.map_or(0.05, |usual| usual * NOISE);
            assert!(noise <= most, "{name} at {level}: {noise} for at most {most}");
        }
    }
    let error = |name| errors.iter().find(|(mix, _)| *mix == name).unwrap().1;
    for pair in ["q8_0", "q6_k", "q5_k_m", "q4_k_m", "q3_k_m", "q2_k"].windows(2) {
        assert!(error(pair[0]) < error(pair[1]), "{pair:?}");
    }
}
