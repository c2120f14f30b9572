//! `nook convert`: a model as a GGUF file of another format, and what that cost each tensor.

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
    /// The file to write
    #[arg(long, value_name = "F.gguf")]
    pub out: PathBuf,
    /// q4_k_m, q8_0, f16 …; auto: each tensor's from measured error
    #[arg(long, value_name = "DTYPE|auto")]
    pub dtype: String,
    /// With auto: the most bytes the file may have; what this machine's free memory allows otherwise
    #[arg(long, value_name = "N")]
    pub max_bytes: Option<u64>,
    /// With auto: the smallest file that diverges from the source by at most so many nats on average
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub max_kl: Option<f64>,
    /// Replace a file that is there already
    #[arg(long)]
    pub force: bool,
}

pub fn convert(global: &Global, args: ConvertArgs) -> Result<()> {
    let source = open_model::locate(&args.source, global)?;
    let ConvertArgs { out, dtype, max_bytes, max_kl, force, source: _ } = args;
    let threads = global.threads.map(|n| n as usize);
    let args = convert::ConvertArgs { source, out, dtype, max_bytes, max_kl, force, threads };
    let stop = interrupt::flag();
    let report =
        convert::convert(&RealIo, &RealClock::new(), &args, &mut progress::percent("writing", &stop))?;
    if report.kept_coarser > 0 {
        out::log(&format!(
            "{} tensors were stored more coarsely than {} already and stayed as they were: values once lost do not \
             come back.",
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
    for (name, bytes) in &report.dtypes {
        all.push_str(&format!("  {name} {}\n", text::bytes(*bytes)));
    }
    if let Some(kl) = report.mean_kl {
        all.push_str(&format!("mean divergence from the source {kl:.6} nats\n"));
    }
    all
}
