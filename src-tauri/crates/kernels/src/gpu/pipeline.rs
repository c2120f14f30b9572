//! Shaders made into what a card runs, each variant once for each device.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::device::Device;
use super::shader::{Access, Define, Shader, expand};
use crate::error::KernelError;
use crate::fault::GpuFault;
use crate::matmul::gpu_packing::Packing;
use crate::matmul::partial_sums::ShaderConstants;

/// What there is of one shader.
#[derive(Clone, Default)]
pub struct Variant {
    /// names that are set
    pub defines: &'static [&'static str],
    /// how its weights lie
    pub weight: Option<&'static Packing>,
    /// numbers by name: the shapes of workgroups and tiles
    pub sizes: ShaderConstants,
}

impl Variant {
    /// What its text is made with.
    pub fn defines(&self) -> impl Iterator<Item = Define<'static>> {
        let names = self.defines.iter().map(|name| (*name, None));
        names.chain(self.sizes.iter().map(|(name, size)| (*name, Some(*size))))
    }

    /// Tells it from the others of its shader.
    pub fn name(&self, shader: &Shader) -> String {
        let weight = self.weight.map_or("", |packing| packing.name);
        let mut name = [&[shader.name, weight], self.defines].concat().join(" ");
        for (size, n) in &self.sizes {
            name += &format!(" {size}={n}");
        }
        name
    }
}

/// A kernel, ready to run.
pub struct Pipeline {
    pub compute: wgpu::ComputePipeline,
    pub layout: wgpu::BindGroupLayout,
}

/// None: it is not made yet.
type Place = Arc<Mutex<Option<Arc<Pipeline>>>>;

/// Those that a device has made so far, by name.
pub struct Pipelines {
    made: Mutex<HashMap<String, Place>>,
    /// what the driver compiled, now and before. None: it keeps nothing
    compiled: Option<wgpu::PipelineCache>,
}

impl Pipelines {
    /// `compiled`: what the same driver said before. What it doesn't take any more it compiles anew.
    pub fn new(device: &wgpu::Device, compiled: Option<&[u8]>) -> Self {
        let is_there = device.features().contains(wgpu::Features::PIPELINE_CACHE);
        let compiled = is_there.then(|| {
            let descriptor = wgpu::PipelineCacheDescriptor { label: None, data: compiled, fallback: true };
            // SAFETY: the bytes are those that `get_data` gave for this card and driver: whoever keeps them keeps them
            // by both, and with a checksum; wgpu compares what they say of card and driver, and starts with nothing
            // where that differs.
            unsafe { device.create_pipeline_cache(&descriptor) }
        });
        Self { made: Mutex::default(), compiled }
    }

    /// Where the kernel of that name is, or will be.
    fn place(&self, name: &str) -> Place {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.entry(name.to_owned()).or_default().clone()
    }

    /// What the driver compiled, for the next start. None: it keeps nothing.
    pub fn compiled(&self) -> Option<Vec<u8>> {
        self.compiled.as_ref()?.get_data()
    }
}

impl Device {
    /// A kernel; made when it is first asked for. Errors: the device refuses it.
    pub(super) fn pipeline(
        &self,
        shader: &'static Shader,
        variant: Variant,
    ) -> Result<Arc<Pipeline>, KernelError> {
        let name = variant.name(shader);
        // who wants another one need not wait while this is compiled, who wants the same does
        let place = self.pipelines.place(&name);
        let mut made = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipeline) = &*made {
            return Ok(pipeline.clone());
        }
        let pipeline = Arc::new(self.compile(&name, shader, variant)?);
        Ok(made.insert(pipeline).clone())
    }

    fn compile(&self, name: &str, shader: &Shader, variant: Variant) -> Result<Pipeline, KernelError> {
        let defines: Vec<Define> = self.used.defines().into_iter().chain(variant.defines()).collect();
        let source = expand(shader.source, &defines, variant.weight.map(|packing| packing.source))
            .map_err(|message| self.error(GpuFault::Invalid, format!("{name}: {message}")))?;
        self.scoped(|| format!("kernel {name}"), || self.compiled_from(name, shader, source))
    }

    fn compiled_from(&self, name: &str, shader: &Shader, source: String) -> Pipeline {
        let entries: Vec<wgpu::BindGroupLayoutEntry> =
            (0..).zip(shader.bindings).map(|(binding, access)| layout_entry(binding, *access)).collect();
        let layout = self.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: Some(name),
            entries: &entries,
        });
        let whole = self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some(name),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let descriptor = wgpu::ShaderModuleDescriptor {
            label: Some(name),
            source: wgpu::ShaderSource::Wgsl(source.into()),
        };
        // SAFETY: every loop of ours counts up to a constant or to a size that the host gives, so all of them end; what
        // they reach into is still checked.
        let module = unsafe { self.device.create_shader_module_trusted(descriptor, CHECKS) };
        let compute = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(name),
            layout: Some(&whole),
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions {
                // each is written before it is read
                zero_initialize_workgroup_memory: false,
                ..wgpu::PipelineCompilationOptions::default()
            },
            cache: self.pipelines.compiled.as_ref(),
        });
        Pipeline { compute, layout }
    }
}

/// Counters that end loops by force keep drivers from unrolling them.
const CHECKS: wgpu::ShaderRuntimeChecks =
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
