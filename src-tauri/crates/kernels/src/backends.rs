//! The devices there may be, by name: how each is opened, and which comes first where nobody chose.

use crate::backend::{Backend, BackendKind};
use crate::cpu::{Cpu, CpuOptions};
use crate::error::KernelError;
use crate::fault::{FaultPlan, GpuFault};
use crate::known::Notebook;
use crate::precision::Precision;
use crate::scalar::Scalar;
use crate::sharing::Sharing;

/// Which graphics card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Card {
    /// the best of what is no software
    Hardware,
    /// the best there is, software too
    #[default]
    Any,
    /// the first whose name contains this, whatever the case
    Named(String),
    /// of all that there are, in their order, counted from 0
    Nth(usize),
}

impl Card {
    /// As a list of devices names it: its number, or a part of its name.
    pub fn parse(text: &str) -> Self {
        match text.trim() {
            "" => Self::Any,
            text => text.parse().map_or_else(|_| Self::Named(text.to_owned()), Self::Nth),
        }
    }
}

/// Whether the kernels of a card are checked before it is trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    /// those of a card; software that plays one is what kernels are tested on
    #[default]
    Cards,
    /// those of software too: of tests
    All,
}

/// What backends are opened with; each takes its own part.
#[derive(Clone, Debug, Default)]
pub struct BackendOptions {
    pub cpu: CpuOptions,
    pub card: Card,
    /// of a card's products
    pub precision: Precision,
    /// of a card's lanes
    pub sharing: Sharing,
    /// of tests
    pub faults: FaultPlan,
    /// what is known of cards, and where what is found out goes
    pub known: Notebook,
    pub check: Check,
}

/// One kind of device.
pub struct BackendRow {
    pub name: &'static str,
    pub kind: BackendKind,
    /// where nobody chose, the highest that is there and fit for the model is taken; 0: only by name
    pub priority: u32,
    /// whether there is such a device. Errors: why not
    pub probe: fn(&BackendOptions) -> Result<(), KernelError>,
    pub open: fn(&BackendOptions) -> Result<Box<dyn Backend>, KernelError>,
}

/// Every kind, once.
pub static BACKENDS: &[BackendRow] = &[
    BackendRow { name: "gpu", kind: BackendKind::Gpu, priority: 2, probe: probe_gpu, open: open_gpu },
    BackendRow {
        name: "cpu",
        kind: BackendKind::Cpu,
        priority: 1,
        probe: |_| Ok(()),
        open: |options| Ok(Box::new(Cpu::new(options.cpu.clone())?)),
    },
    BackendRow {
        name: "scalar",
        kind: BackendKind::Scalar,
        priority: 0,
        probe: |_| Ok(()),
        open: |_| Ok(Box::new(Scalar::new())),
    },
];

/// A device of that kind. Errors: it isn't there, or can't be started.
pub fn open(kind: BackendKind, options: &BackendOptions) -> Result<Box<dyn Backend>, KernelError> {
    let row = BACKENDS.iter().find(|row| row.kind == kind);
    (row.expect("every kind has its row").open)(options)
}

#[cfg(feature = "gpu")]
fn probe_gpu(options: &BackendOptions) -> Result<(), KernelError> {
    let adapters = crate::gpu::adapters();
    match crate::gpu::pick(&adapters, &options.card) {
        Some(_) => Ok(()),
        None => Err(absent("no graphics card has a driver for Vulkan, Metal or DirectX 12")),
    }
}

#[cfg(feature = "gpu")]
fn open_gpu(options: &BackendOptions) -> Result<Box<dyn Backend>, KernelError> {
    let BackendOptions { card, precision, sharing, known, check, .. } = options;
    let uses = crate::gpu::Uses { precision: *precision, sharing: *sharing, ..Default::default() };
    let device = crate::gpu::Device::open_with(card, uses, known, *check)?;
    Ok(Box::new(crate::gpu::Gpu::with_faults(device, options.faults.clone())))
}

#[cfg(not(feature = "gpu"))]
fn probe_gpu(_: &BackendOptions) -> Result<(), KernelError> {
    Err(absent("this program was built without support for graphics cards"))
}

#[cfg(not(feature = "gpu"))]
fn open_gpu(options: &BackendOptions) -> Result<Box<dyn Backend>, KernelError> {
    probe_gpu(options)?;
    unreachable!("without support there is no card")
}

pub(crate) fn absent(message: &str) -> KernelError {
    let adapter = "the graphics card".to_owned();
    KernelError::Gpu { fault: GpuFault::Absent, adapter, message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_named_by_its_number_or_a_part_of_its_name() {
        let parsed = ["", " 1 ", "GeForce", "2x"].map(Card::parse);
        let expected = [Card::Any, Card::Nth(1), Card::Named("GeForce".into()), Card::Named("2x".into())];
        assert_eq!(parsed, expected);
    }

    #[test]
    fn every_kind_has_a_row_and_the_processor_is_always_there() {
        for kind in [BackendKind::Gpu, BackendKind::Cpu, BackendKind::Scalar] {
            assert_eq!(BACKENDS.iter().filter(|row| row.kind == kind).count(), 1, "{kind:?}");
        }
        let options = BackendOptions { card: Card::Named("no such card".into()), ..Default::default() };
        assert_eq!(open(BackendKind::Cpu, &options).unwrap().kind(), BackendKind::Cpu);
        assert_eq!(open(BackendKind::Scalar, &options).unwrap().kind(), BackendKind::Scalar);
        let error = open(BackendKind::Gpu, &options).err().unwrap();
        assert_eq!(error.code(), "kernels.gpu_absent");
        assert!(!error.remedy().is_empty() && !error.to_string().is_empty());
    }
}
