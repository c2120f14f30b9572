//! Lists the GPUs that have a driver, by the names that their drivers give, and selects one of them.

use super::shader;
use crate::gpu_cache::GpuKey;
use crate::gpu_selector::GpuSelector;

/// What kind of device an adapter is, most capable first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AdapterKind {
    /// a GPU with dedicated memory
    Discrete,
    /// a GPU that shares the CPU's memory
    Integrated,
    /// the GPU of a virtual machine
    Virtual,
    /// a device that the driver does not classify
    Other,
    /// a software renderer on the CPU, for tests
    Software,
}

impl AdapterKind {
    /// Lower-case name for lists and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Discrete => "discrete",
            Self::Integrated => "integrated",
            Self::Virtual => "virtual",
            Self::Other => "other",
            Self::Software => "software",
        }
    }

    /// Whether it may be used without an explicit choice.
    pub fn is_hardware(self) -> bool {
        match self {
            Self::Discrete | Self::Integrated | Self::Virtual => true,
            Self::Other | Self::Software => false,
        }
    }
}

/// A GPU as its driver describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterInfo {
    /// product name
    pub name: String,
    /// kind of device
    pub kind: AdapterKind,
    /// graphics API: "vulkan", "metal", "dx12"
    pub api: String,
    /// name and version of the driver
    pub driver: String,
    /// dedicated memory, or its share of system memory; None: the driver doesn't report it
    pub memory_bytes: Option<u64>,
    /// available features that the kernels can use
    pub features: Vec<&'static str>,
    /// largest buffer range that can be bound to a kernel
    pub max_binding_bytes: u64,
    /// largest buffer
    pub max_buffer_bytes: u64,
    /// smallest and largest subgroup, in lanes
    pub subgroup: [u32; 2],
}

impl AdapterInfo {
    /// The key under which facts about this GPU are cached. It changes with the driver and with the kernels, so that
    /// everything is determined again after an update of either.
    pub fn key(&self) -> GpuKey {
        let features = self.features.join(", ");
        GpuKey {
            name: self.name.clone(),
            api: self.api.clone(),
            driver: self.driver.clone(),
            kernels: format!("{} {:016x} {features}", env!("CARGO_PKG_VERSION"), shader::fingerprint()),
        }
    }
}

/// Features that kernels use where present, with their usual names.
const FEATURES: [(wgpu::Features, &str); 4] = [
    (wgpu::Features::SHADER_F16, "f16"),
    (wgpu::Features::SUBGROUP, "subgroups"),
    (wgpu::Features::TIMESTAMP_QUERY, "timestamps"),
    (wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX, "cooperative matrices"),
];

/// Lists all GPUs, the most capable kind first. Empty without a driver.
pub fn adapters() -> Vec<AdapterInfo> {
    enumerate().into_iter().map(|(info, _)| info).collect()
}

/// As `adapters`, with the handles that open them.
pub(super) fn enumerate() -> Vec<(AdapterInfo, wgpu::Adapter)> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
    descriptor.flags = wgpu::InstanceFlags::empty();
    let instance = wgpu::Instance::new(descriptor);
    let adapters = super::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
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

/// The largest device-local heap, as Vulkan reports it.
#[cfg(not(target_vendor = "apple"))]
fn memory_bytes(adapter: &wgpu::Adapter) -> Option<u64> {
    // SAFETY: the raw handles are only queried for properties, and not used beyond the life of `adapter`, which owns
    // them.
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

/// The index of the adapter that `selector` means. None: no adapter matches.
pub fn pick(adapters: &[AdapterInfo], selector: &GpuSelector) -> Option<usize> {
    match selector {
        GpuSelector::Hardware => adapters.iter().position(|info| info.kind.is_hardware()),
        GpuSelector::Any => (!adapters.is_empty()).then_some(0),
        GpuSelector::Named(name) => {
            let name = name.to_lowercase();
            adapters.iter().position(|info| info.name.to_lowercase().contains(&name))
        }
        GpuSelector::Nth(at) => (*at < adapters.len()).then_some(*at),
    }
}
