//! Cards: which there are, by honest names, and one of them opened with everything it offers. Nothing here panics on
//! what a driver does: errors are noted and come back as `KernelError::Gpu`.

use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::cost::SUBMITTED;
use super::features::{Used, Uses};
use super::pipeline::Pipelines;
use super::scope::fault_of;
use super::trust::Trust;
use crate::backends::{Card, Check, absent};
use crate::error::KernelError;
use crate::fault::{FaultPlan, Faults, GpuFault, Moment};
use crate::known::Notebook;
use crate::sharing::Sharing;

/// What kind of thing computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AdapterKind {
    /// a card with memory of its own
    Discrete,
    /// shares the processor's memory
    Integrated,
    /// of a virtual machine
    Virtual,
    /// what calls itself neither
    Other,
    /// the processor itself, by a driver that plays a card: for tests
    Software,
}

impl AdapterKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Discrete => "discrete",
            Self::Integrated => "integrated",
            Self::Virtual => "virtual",
            Self::Other => "other",
            Self::Software => "software",
        }
    }

    /// Whether it may be chosen without being asked for.
    pub fn is_hardware(self) -> bool {
        match self {
            Self::Discrete | Self::Integrated | Self::Virtual => true,
            Self::Other | Self::Software => false,
        }
    }
}

/// A card as its driver describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterInfo {
    pub name: String,
    pub kind: AdapterKind,
    /// "vulkan", "metal", "dx12"
    pub api: String,
    /// name and version, as the driver gives them
    pub driver: String,
    /// of its own, or what it may use of the machine's; None: the driver doesn't say
    pub memory_bytes: Option<u64>,
    /// of those that kernels care for
    pub features: Vec<&'static str>,
    /// largest piece of memory that a kernel can be given
    pub max_binding_bytes: u64,
    pub max_buffer_bytes: u64,
    /// lanes that run together: least and most
    pub subgroup: [u32; 2],
}

/// Features that kernels use where they are, by the names that people know them by.
const FEATURES: [(wgpu::Features, &str); 4] = [
    (wgpu::Features::SHADER_F16, "f16"),
    (wgpu::Features::SUBGROUP, "subgroups"),
    (wgpu::Features::TIMESTAMP_QUERY, "timestamps"),
    (wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX, "cooperative matrices"),
];

/// Answers of the native backends are there at once: nothing to wait for.
pub(super) fn now<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        std::thread::yield_now();
    }
}

/// All cards, the most capable kind first. Empty where there is no driver.
pub fn adapters() -> Vec<AdapterInfo> {
    found().into_iter().map(|(info, _)| info).collect()
}

fn found() -> Vec<(AdapterInfo, wgpu::Adapter)> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
    descriptor.flags = wgpu::InstanceFlags::empty();
    let instance = wgpu::Instance::new(descriptor);
    let adapters = now(instance.enumerate_adapters(wgpu::Backends::all()));
    let mut found: Vec<_> = adapters.into_iter().map(|adapter| (describe(&adapter), adapter)).collect();
    found.sort_by_key(|(info, _)| info.kind);
    found
}

fn describe(adapter: &wgpu::Adapter) -> AdapterInfo {
    let (info, limits, features) = (adapter.get_info(), adapter.limits(), adapter.features());
    let kind = match info.device_type {
        wgpu::DeviceType::DiscreteGpu => AdapterKind::Discrete,
        wgpu::DeviceType::IntegratedGpu => AdapterKind::Integrated,
        wgpu::DeviceType::VirtualGpu => AdapterKind::Virtual,
        wgpu::DeviceType::Cpu => AdapterKind::Software,
        wgpu::DeviceType::Other => AdapterKind::Other,
    };
    AdapterInfo {
        name: info.name,
        kind,
        api: info.backend.to_string(),
        driver: [info.driver, info.driver_info].join(" ").trim().to_owned(),
        memory_bytes: memory_bytes(adapter),
        features: FEATURES.iter().filter(|(f, _)| features.contains(*f)).map(|(_, name)| *name).collect(),
        max_binding_bytes: limits.max_storage_buffer_binding_size,
        max_buffer_bytes: limits.max_buffer_size,
        subgroup: [info.subgroup_min_size, info.subgroup_max_size],
    }
}

/// Vulkan's largest heap of the device itself.
#[cfg(not(target_vendor = "apple"))]
fn memory_bytes(adapter: &wgpu::Adapter) -> Option<u64> {
    // SAFETY: the handles are asked for facts alone, and not used beyond the life of `adapter`, which owns them.
    unsafe {
        let vulkan = adapter.as_hal::<wgpu::hal::api::Vulkan>()?;
        let instance = vulkan.shared_instance().raw_instance();
        let memory = instance.get_physical_device_memory_properties(vulkan.raw_physical_device());
        const DEVICE_LOCAL: u32 = 1;
        let heaps = memory.memory_heaps.iter().take(memory.memory_heap_count as usize);
        heaps.filter(|heap| heap.flags.as_raw() & DEVICE_LOCAL != 0).map(|heap| heap.size).max()
    }
}

#[cfg(target_vendor = "apple")]
fn memory_bytes(_: &wgpu::Adapter) -> Option<u64> {
    None
}

/// Which of some cards is meant.
pub fn pick(adapters: &[AdapterInfo], card: &Card) -> Option<usize> {
    match card {
        Card::Hardware => adapters.iter().position(|info| info.kind.is_hardware()),
        Card::Any => (!adapters.is_empty()).then_some(0),
        Card::Named(name) => {
            let name = name.to_lowercase();
            adapters.iter().position(|info| info.name.to_lowercase().contains(&name))
        }
        Card::Nth(at) => (*at < adapters.len()).then_some(*at),
    }
}

/// A card in use.
pub struct Device {
    info: AdapterInfo,
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    pub(super) limits: wgpu::Limits,
    pub(super) used: Used,
    /// cost of one submission: see `cost::SUBMITTED`
    pub(super) most_submitted: u64,
    pub(super) pipelines: Pipelines,
    pub(super) trust: Trust,
    faults: Faults,
    /// what a test wants of it
    planned: OnceLock<FaultPlan>,
}

/// Leave to use what wgpu has not finished, where that was asked for.
fn experimental(features: wgpu::Features) -> wgpu::ExperimentalFeatures {
    match features.contains(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX) {
        // SAFETY: wgpu asks that we know that these features may have holes. They are off unless somebody asks for
        // them, and then our own shaders alone use them.
        true => unsafe { wgpu::ExperimentalFeatures::enabled() },
        false => wgpu::ExperimentalFeatures::disabled(),
    }
}

/// How long a card may take over one submission: far longer than any should, so that only what hangs is given up.
const PATIENCE: Duration = Duration::from_secs(120);

impl Device {
    /// As `open_with`, with nothing known.
    pub fn open(card: &Card) -> Result<Arc<Self>, KernelError> {
        Self::open_using(card, Uses::default())
    }

    /// With a say in what kernels use of it, and nothing known. Errors: as `open_with`.
    pub fn open_using(card: &Card, uses: Uses) -> Result<Arc<Self>, KernelError> {
        Self::open_with(card, uses, &Notebook::default(), Check::Cards)
    }

    /// Where its subgroups are known to err, kernels do without them. Errors: there is none that is wanted, it can't be
    /// opened, or hasn't that precision.
    pub fn open_with(
        card: &Card,
        mut uses: Uses,
        known: &Notebook,
        check: Check,
    ) -> Result<Arc<Self>, KernelError> {
        let (infos, mut adapters): (Vec<_>, Vec<_>) = found().into_iter().unzip();
        let Some(at) = pick(&infos, card) else {
            return Err(absent("no graphics card has a driver for Vulkan, Metal or DirectX 12"));
        };
        let (info, adapter) = (infos[at].clone(), adapters.swap_remove(at));
        let mut limits = adapter.limits();
        if let Some(piece_bytes) = uses.piece_bytes {
            limits.max_storage_buffer_binding_size = limits.max_storage_buffer_binding_size.min(piece_bytes);
        }
        let trust = Trust::new(&info, known, check);
        if trust.is_asked() && trust.known().subgroups.is_some() {
            uses.sharing = Sharing::Memory;
        }
        let features = uses.wanted(&adapter).map_err(|message| {
            let (fault, adapter) = (GpuFault::Precision, info.name.clone());
            KernelError::Gpu { fault, adapter, message: format!("{}: {message}", uses.precision.name()) }
        })?;
        let (device, queue) = now(adapter.request_device(&wgpu::DeviceDescriptor {
            label: Some("inglenook"),
            required_features: features,
            required_limits: limits.clone(),
            experimental_features: experimental(features),
            ..wgpu::DeviceDescriptor::default()
        }))
        .map_err(|error| absent(&format!("{} could not be opened: {error}", info.name)))?;
        let faults = Faults::default();
        let noted = faults.clone();
        device.on_uncaptured_error(Arc::new(move |error| noted.note(fault_of(&error), error.to_string())));
        let noted = faults.clone();
        device.set_device_lost_callback(move |reason, message| match reason {
            // by ourselves, when we have no use for it any more
            wgpu::DeviceLostReason::Destroyed => {}
            wgpu::DeviceLostReason::Unknown => noted.note(GpuFault::Lost, message),
        });
        let used = Used::new(features, info.subgroup[0]);
        let most_submitted = uses.submitted.unwrap_or(SUBMITTED);
        let pipelines = Pipelines::new(&device, trust.known().pipelines.as_deref());
        let planned = OnceLock::new();
        Ok(Arc::new(Self {
            info,
            device,
            queue,
            limits,
            used,
            most_submitted,
            pipelines,
            trust,
            faults,
            planned,
        }))
    }

    pub fn info(&self) -> &AdapterInfo {
        &self.info
    }

    /// What kernels use of its features.
    pub fn used(&self) -> Used {
        self.used
    }

    /// As an error of this card.
    pub(super) fn error(&self, fault: GpuFault, message: impl Into<String>) -> KernelError {
        KernelError::Gpu { fault, adapter: self.info.name.clone(), message: message.into() }
    }

    /// The first plan of a test holds for allocations too.
    pub(super) fn plan(self: &Arc<Self>, faults: &FaultPlan) {
        if *faults != FaultPlan::default() {
            self.planned.get_or_init(|| {
                let card = Arc::downgrade(self);
                faults.watch(Box::new(move || card.upgrade().map(|card| card.n_held())));
                faults.clone()
            });
        }
    }

    /// What its allocator says that it holds for us. (bytes)
    fn n_held(&self) -> u64 {
        self.device.generate_allocator_report().map_or(0, |report| report.total_allocated_bytes)
    }

    /// Before so many bytes of memory are asked for: the fault that a test wants here.
    pub(super) fn fail_as_planned(&self, n_bytes: u64) -> Result<(), KernelError> {
        let Some(plan) = self.planned.get() else { return Ok(()) };
        match plan.next(Moment::Allocation) {
            Some(fault) => Err(self.error(fault, "a test wanted it")),
            None if !plan.has_room(n_bytes) => {
                Err(self.error(GpuFault::Memory, format!("a test leaves no room for {n_bytes} bytes")))
            }
            None => Ok(()),
        }
    }

    /// As if the driver had given up.
    pub(super) fn lose(&self, message: &str) {
        self.faults.note(GpuFault::Lost, message.to_owned());
    }

    /// What the card has complained of on this thread, outside of any scope, since this was last asked.
    pub(super) fn check(&self) -> Result<(), KernelError> {
        match self.faults.take() {
            None => Ok(()),
            Some((fault, message)) => Err(self.error(fault, message)),
        }
    }

    /// Waits until all that was submitted is done.
    pub(super) fn wait(&self) -> Result<(), KernelError> {
        let wait = wgpu::PollType::Wait { submission_index: None, timeout: Some(PATIENCE) };
        let polled = self.device.poll(wait);
        self.check()?;
        match polled {
            Ok(_) => Ok(()),
            Err(error) => Err(self.error(GpuFault::TimeOut, error.to_string())),
        }
    }
}
