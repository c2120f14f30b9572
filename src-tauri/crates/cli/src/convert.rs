//! `nook convert`: converts a model to a GGUF file in another format and reports the error of each tensor.

use std::path::PathBuf;

use clap::Args;
use contract::Result;
use inference::convert::{self, ConvertReport};
use io::{RealClock, RealIo};

use crate::args::global::Global;
use crate::{interrupt, open_model, out, progress, text};

#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// Library id, GGUF file, or folder with safetensors
    pub source: String,
    /// Output file
    #[arg(long, value_name = "F.gguf")]
    pub out: PathBuf,
    /// Target format: q4_k_m, q8_0, f16 …; auto chooses one per tensor by measured error
    #[arg(long, value_name = "DTYPE|auto")]
    pub dtype: String,
    /// With auto: maximum file size in bytes [default: what the free memory allows]
    #[arg(long, value_name = "N")]
    pub max_bytes: Option<u64>,
    /// With auto: make the smallest file whose mean KL divergence from the source is at most X nats
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub max_kl: Option<f64>,
    /// Leave out the vision tower of a model that sees; otherwise it becomes mmproj-*.gguf beside the output
    #[arg(long)]
    pub no_mmproj: bool,
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
}

pub fn convert(global: &Global, args: ConvertArgs) -> Result<()> {
    let source = open_model::locate(&args.source, global)?;
    let ConvertArgs { out, dtype, max_bytes, max_kl, no_mmproj, force, source: _ } = args;
    let with_tower = !no_mmproj;
    let threads = global.threads.map(|n| n as usize);
    let args = convert::ConvertArgs { source, out, dtype, max_bytes, max_kl, with_tower, force, threads };
    let stop = interrupt::flag();
    let report =
        convert::convert(&RealIo, &RealClock::new(), &args, &mut progress::percent("writing", &stop))?;
    if report.kept_coarser > 0 {
        out::log(&format!(
            "{} tensors already had a lower precision than {} and were copied unchanged: lost precision can't be \
             restored.",
            report.kept_coarser, args.dtype
        ));
    }
    match global.json {
        true => out::json(&report),
        false => out::text(&table(&report)),
    }
    Ok(())
}

fn table(report: &ConvertReport) -> String {
    let mut rows = vec![["tensor", "from", "to", "size", "rmse", "relative"].map(str::to_owned).to_vec()];
    rows.extend(report.tensors.iter().map(|tensor| {
        vec![
            tensor.name.clone(),
            tensor.from.clone(),
            tensor.to.clone(),
            text::bytes(tensor.bytes),
            format!("{:.3e}", tensor.rmse),
            format!("{:.3e}", tensor.relative),
        ]
    }));
    let mut all = text::table(&rows);
    all.push_str(&format!(
        "{}: {} from {} in {:.1} s\n",
        report.out.display(),
        text::bytes(report.bytes),
        text::bytes(report.source_bytes),
        report.seconds
    ));
    if let Some(tower) = &report.mmproj {
        all.push_str(&format!("{}: {} (vision tower)\n", tower.out.display(), text::bytes(tower.bytes)));
    }
    for (name, bytes) in &report.dtypes {
        all.push_str(&format!("  {name} {}\n", text::bytes(*bytes)));
    }
    if let Some(kl) = report.mean_kl {
        all.push_str(&format!("mean divergence from the source {kl:.6} nats\n"));
    }
    all
}
