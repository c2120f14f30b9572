//! Speed of fine-tuning steps on one model file: `cargo run --release -p engine --example tune_bench -- F.gguf [STEPS [FREE_MB]]`.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use engine::train::{AdamW, LoraShape, Trainer, TrainerOptions, TrainingExample};
use weights::WeightFile;

/// Shape of a step: as `tests/real/peft_speed.py` has it.
const EXAMPLES: u32 = 4;
const TOKENS: u32 = 256;
const MAX_ID: u32 = 10_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("a model file is missing")?;
    let n_steps: usize = args.next().map_or(Ok(5), |n| n.parse())?;
    let free_bytes = args.next().map(|n| n.parse::<u64>()).transpose()?.map(|mb| mb << 20);
    let file = Arc::new(WeightFile::open(Path::new(&path))?);
    let options = TrainerOptions { n_ctx: TOKENS as usize, ..TrainerOptions::for_memory(free_bytes) };
    let mut trainer = Trainer::start(file, LoraShape { rank: 16, alpha: 32.0 }, 1, options)?;
    let mut state = 1u32;
    let mut id = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % MAX_ID
    };
    let examples: Vec<TrainingExample> = (0..EXAMPLES)
        .map(|_| TrainingExample {
            ids: (0..TOKENS).map(|_| id()).collect(),
            is_learned: vec![true; TOKENS as usize],
        })
        .collect();
    for step in 0..=n_steps {
        let began = Instant::now();
        let loss = trainer.compute_gradients(&examples)?;
        trainer.step(&AdamW::default(), 1e-4);
        let seconds = began.elapsed().as_secs_f64();
        let rate = f64::from(EXAMPLES * TOKENS) / seconds;
        println!("step {step}: loss {loss:.6}, {rate:.0} tokens/s");
    }
    Ok(())
}
