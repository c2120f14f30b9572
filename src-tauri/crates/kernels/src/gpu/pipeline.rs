//! Compiled shaders: each variant is compiled once per device, on first use.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::device::Device;
use super::shader::{Access, Define, Shader, expand};
use crate::error::KernelError;
use crate::fault::GpuFault;
use crate::matmul::gpu_packing::Packing;
use crate::matmul::partial_sums::ShaderConstants;

/// Selects one of a shader's variants.
#[derive(Clone, Default)]
pub struct ShaderVariant {
    /// names that are defined
    pub defines: &'static [&'static str],
    /// layout of its weights
    pub weight: Option<&'static Packing>,
    /// named numbers: the shapes of workgroups and tiles
    pub sizes: ShaderConstants,
}

impl ShaderVariant {
    /// The definitions that its source is expanded with.
    pub fn defines(&self) -> impl Iterator<Item = Define<'static>> {
        let names = self.defines.iter().map(|name| (*name, None));
        names.chain(self.sizes.iter().map(|(name, size)| (*name, Some(*size))))
    }

    /// A name unique among all variants of all shaders.
    pub fn name(&self, shader: &Shader) -> String {
        let weight = self.weight.map_or("", |packing| packing.name);
        let mut name = [&[shader.name, weight], self.defines].concat().join(" ");
        for (size, n) in &self.sizes {
            name += &format!(" {size}={n}");
        }
        name
    }
}

/// A compiled kernel.
pub struct Pipeline {
    pub compute: wgpu::ComputePipeline,
    pub layout: wgpu::BindGroupLayout,
}

/// None until the pipeline is compiled.
type PipelineSlot = Arc<Mutex<Option<Arc<Pipeline>>>>;

/// The pipelines of a device by name.
pub struct Pipelines {
    slots: Mutex<HashMap<String, PipelineSlot>>,
    /// the driver's cache of compiled code; None: the driver has none
    cache: Option<wgpu::PipelineCache>,
}

impl Pipelines {
    /// Starts with what the same driver compiled earlier. The driver compiles again what it no longer accepts.
    pub fn new(gpu: &Device, compiled: Option<&[u8]>) -> Self {
        let is_supported = gpu.device.features().contains(wgpu::Features::PIPELINE_CACHE);
        let cache = is_supported.then(|| {
            let descriptor = wgpu::PipelineCacheDescriptor { label: None, data: compiled, fallback: true };
            // SAFETY: the bytes are what `get_data` returned for this GPU and driver: they are stored under both, with a
            // checksum. wgpu compares the GPU and driver named in them, and starts empty where they differ.
            unsafe { gpu.device.create_pipeline_cache(&descriptor) }
        });
        Self { slots: Mutex::default(), cache }
    }

    fn slot(&self, name: &str) -> PipelineSlot {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.entry(name.to_owned()).or_default().clone()
    }

    /// What the driver compiled, for the next start. None: the driver can't save it.
    pub fn compiled(&self) -> Option<Vec<u8>> {
        self.cache.as_ref()?.get_data()
    }

    /// The pipeline of a shader variant, compiled on first use. Errors: the device rejects it.
    pub fn get(
        &self,
        gpu: &Device,
        shader: &'static Shader,
        variant: ShaderVariant,
    ) -> Result<Arc<Pipeline>, KernelError> {
        let name = variant.name(shader);
        // one lock per pipeline: only threads that need this one wait for its compilation
        let slot = self.slot(&name);
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipeline) = &*slot {
            return Ok(pipeline.clone());
        }
        let pipeline = Arc::new(self.compile(gpu, &name, shader, variant)?);
        Ok(slot.insert(pipeline).clone())
    }

    fn compile(
        &self,
        gpu: &Device,
        name: &str,
        shader: &Shader,
        variant: ShaderVariant,
    ) -> Result<Pipeline, KernelError> {
        let defines: Vec<Define> = gpu.features().defines().into_iter().chain(variant.defines()).collect();
        let source = expand(shader.source, &defines, variant.weight.map(|packing| packing.source))
            .map_err(|message| gpu.error(GpuFault::Invalid, format!("{name}: {message}")))?;
        let compiled =
            gpu.scoped(|| format!("kernel {name}"), || self.compile_source(gpu, name, shader, source));
        let is_optional = variant.defines.contains(&"COOPERATIVE");
        compiled.map_err(|error| match error {
            // the kernels of another precision may compile
            KernelError::Gpu { fault: GpuFault::Invalid, message, .. } if is_optional => {
                gpu.error(GpuFault::Precision, message)
            }
            error => error,
        })
    }

    fn compile_source(&self, gpu: &Device, name: &str, shader: &Shader, source: String) -> Pipeline {
        let entries: Vec<wgpu::BindGroupLayoutEntry> =
            (0..).zip(shader.bindings).map(|(binding, access)| layout_entry(binding, *access)).collect();
        let layout = gpu.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: Some(name),
            entries: &entries,
        });
        let pipeline_layout = gpu.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some(name),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let descriptor = wgpu::ShaderModuleDescriptor {
            label: Some(name),
            source: wgpu::ShaderSource::Wgsl(source.into()),
        };
        // SAFETY: every loop of our shaders counts up to a constant or to a size that the host sets, so all of them end.
        // Bounds of memory accesses are still checked.
        let module = unsafe { gpu.device.create_shader_module_trusted(descriptor, RUNTIME_CHECKS) };
        let compute = gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(name),
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions {
                // our kernels write workgroup memory before they read it
                zero_initialize_workgroup_memory: false,
                ..wgpu::PipelineCompilationOptions::default()
            },
            cache: self.cache.as_ref(),
        });
        Pipeline { compute, layout }
    }
}

/// Without forced loop bounds, whose counters keep drivers from unrolling loops.
const RUNTIME_CHECKS: wgpu::ShaderRuntimeChecks =
    wgpu::ShaderRuntimeChecks { force_loop_bounding: false, ..wgpu::ShaderRuntimeChecks::checked() };

fn layout_entry(binding: u32, access: Access) -> wgpu::BindGroupLayoutEntry {
    let ty = match access {
        Access::Uniform => wgpu::BufferBindingType::Uniform,
        Access::Read => wgpu::BufferBindingType::Storage { read_only: true },
        Access::Write => wgpu::BufferBindingType::Storage { read_only: false },
    };
    wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
        count: None,
    }
}
