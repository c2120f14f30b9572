//! Seconds of a vision tower by operation, in integers and in single precision, and how far the results differ:
//! `cargo run --release -p engine --example tower_bench -- [NAME] [WxH]`. Weights are random; the size is that of the picture
//! in pixels.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use engine::shape::{find_tower, write_tower};
use engine::vision::{ImagePatches, VisionTower};
use kernels::backends::BackendOptions;
use kernels::{BackendKind, CpuOptions, CpuPrecision, StepProfile};
use weights::{SharedBytes, WeightFile};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_else(|| "qwen3.5-4b".to_owned());
    let size = args.next().unwrap_or_else(|| "1024x768".to_owned());
    let (width, height) = size.split_once('x').ok_or("the size is not WxH")?;
    let mut bytes = Vec::new();
    write_tower(find_tower(&name)?, 1, &mut bytes)?;
    let file = Arc::new(WeightFile::from_bytes("a tower", SharedBytes::from_vec(bytes))?);
    let fast = embed(&file, CpuPrecision::I16, (width.parse()?, height.parse()?))?;
    let exact = embed(&file, CpuPrecision::F32, (width.parse()?, height.parse()?))?;
    let norm = |x: &mut dyn Iterator<Item = f32>| x.map(|x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    let error = norm(&mut fast.iter().zip(&exact).map(|(a, b)| a - b)) / norm(&mut exact.iter().copied());
    println!("relative error {error:.2e}");
    Ok(())
}

/// Runs a tower twice, shows the seconds of the second run, and returns the embeddings.
fn embed(
    file: &Arc<WeightFile>,
    precision: CpuPrecision,
    (width, height): (usize, usize),
) -> Result<Vec<f32>, Box<dyn std::error::Error>> {
    let cpu = CpuOptions { precision, ..CpuOptions::default() };
    let options = BackendOptions { cpu, ..BackendOptions::default() };
    let mut tower = VisionTower::load(file, BackendKind::Cpu, options)?.ok_or("no tower")?;
    let side = tower.spec().patches.size;
    let (rows, cols) = (height / side, width / side);
    let values: Vec<f32> =
        (0..rows * cols * tower.spec().patch_len()).map(|i| ((i * 29 % 113) as f32 - 56.0) / 56.0).collect();
    let patches = ImagePatches { rows, cols, values: &values };
    tower.embed(&patches)?;
    let mut seconds: BTreeMap<String, f64> = BTreeMap::new();
    let start = Instant::now();
    let mut last = start;
    let embeddings = tower.embed_observed(
        &patches,
        Some(&mut |step: &StepProfile<'_>| {
            let now = Instant::now();
            let label = format!("{} {}", step.operation(), step.label());
            *seconds.entry(label).or_default() += (now - last).as_secs_f64();
            last = now;
        }),
    )?;
    println!("{:8.3} s in all, {precision:?}", start.elapsed().as_secs_f64());
    let mut all: Vec<_> = seconds.into_iter().collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    for (label, seconds) in all {
        println!("{seconds:8.3} s {label}");
    }
    Ok(embeddings)
}
