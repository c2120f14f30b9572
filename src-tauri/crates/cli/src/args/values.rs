//! Values of command-line options, and their conversion to application types.

use std::str::FromStr;

use clap::ValueEnum;
use contract::GpuSpread;
use contract::KvAging;
use contract::NumaPolicy;
use contract::limits::LimitPreset;
use contract::protocol::{GpuPrecision, Kv, Speculate};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PresetArg {
    Bounded,
}

impl From<PresetArg> for LimitPreset {
    fn from(preset: PresetArg) -> Self {
        match preset {
            PresetArg::Bounded => Self::Bounded,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BackendArg {
    Auto,
    Cpu,
    Gpu,
    Scalar,
}

/// Number of layers on GPUs; `None` means as many as fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuLayers(pub Option<usize>);

impl FromStr for GpuLayers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self(None)),
            "all" => Ok(Self(Some(usize::MAX))),
            number => number.parse().map(|n| Self(Some(n))).map_err(|_| "a number, all or auto".to_owned()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GpuPrecisionArg {
    Auto,
    F32,
    F16,
    Matrices,
}

impl From<GpuPrecisionArg> for GpuPrecision {
    fn from(precision: GpuPrecisionArg) -> Self {
        match precision {
            GpuPrecisionArg::Auto => Self::Auto,
            GpuPrecisionArg::F32 => Self::F32,
            GpuPrecisionArg::F16 => Self::F16,
            GpuPrecisionArg::Matrices => Self::Matrices,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SpeculateArg {
    Off,
    Lookup,
    Draft,
}

impl From<SpeculateArg> for Speculate {
    fn from(speculate: SpeculateArg) -> Self {
        match speculate {
            SpeculateArg::Off => Self::Off,
            SpeculateArg::Lookup => Self::Lookup,
            SpeculateArg::Draft => Self::Draft,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SpreadArg {
    /// The whole model on each GPU if it fits, else split layers
    Auto,
    Layers,
    Copies,
}

impl From<SpreadArg> for GpuSpread {
    fn from(spread: SpreadArg) -> Self {
        match spread {
            SpreadArg::Auto => Self::Auto,
            SpreadArg::Layers => Self::Layers,
            SpreadArg::Copies => Self::Copies,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NumaArg {
    Off,
    /// Threads and memory on one NUMA node
    Node,
    /// Threads and memory spread over all NUMA nodes
    Spread,
}

impl From<NumaArg> for NumaPolicy {
    fn from(numa: NumaArg) -> Self {
        match numa {
            NumaArg::Off => Self::Off,
            NumaArg::Node => Self::Node,
            NumaArg::Spread => Self::Spread,
        }
    }
}

/// Parses `--kv`.
pub fn kv(text: &str) -> Result<Kv, String> {
    text.parse()
}

/// Parses `--kv-aging`.
pub fn aging(text: &str) -> Result<KvAging, String> {
    inference::parse_kv_aging(text).map_err(|error| format!("{error}. {}", error.remedy()))
}
