//! Products of rows with single matrices, without a graph: see `matmul/product.rs`. Matrices are uploaded on first use, in
//! their own formats, and stay. The first product of a format is compared with the specification.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::buffers::{BufferSpan, floats_of};
use super::context::GpuContext;
use super::device::{Device, max_lanes};
use super::matrices::MatrixStore;
use super::pipeline::{Pipeline, ShaderVariant};
use super::shader;
use crate::error::KernelError;
use crate::fault::{FaultPlan, GpuFault};
use crate::matmul::product::{Direction, LANES, MAX_STAGED_BYTES, RowProducts, SHARED_BYTES, TILE, element};
use crate::tensor::Tensor;

/// Bytes of rows, and of their results, that are in GPU memory at a time. Main memory has two copies of each: ours, and
/// the driver's.
const OPERAND_BYTES: u64 = MAX_STAGED_BYTES / 4;
/// Products between two submissions, each with parameters in a slot of the uniforms.
const MAX_PRODUCTS: u64 = 64;
/// Elements of a product that are compared.
const COMPARED_COLUMNS: usize = 5;
/// Largest difference, as a part of the sum of the sizes of all terms. Formats that are stored as f16 lose about 5e-4.
const TOLERANCE: f64 = 2e-3;

/// A GPU that multiplies.
pub struct GpuProducts {
    context: Arc<GpuContext>,
    faults: FaultPlan,
    matrices: MatrixStore,
    /// the tensors of the matrices: an address identifies a tensor as long as its bytes stay there
    tensors: HashMap<usize, Tensor>,
    buffers: OperandBuffers,
    /// (MAX_PRODUCTS) parameters
    uniforms: wgpu::Buffer,
    slot_bytes: u64,
    /// names of the formats that were compared
    compared: HashSet<(&'static str, Direction)>,
    bytes: Vec<u8>,
}

/// Rows and results, grown as needed.
#[derive(Default)]
struct OperandBuffers {
    x: Option<wgpu::Buffer>,
    out: Option<wgpu::Buffer>,
    /// mappable copy of the results
    staging: Option<wgpu::Buffer>,
}

/// A product of some rows with consecutive rows of a matrix.
struct ProductPart {
    pipeline: Arc<Pipeline>,
    matrix: BufferSpan,
    params: [u32; 11],
    groups: [u32; 2],
    cost: u64,
}

/// The kept buffer, or a larger one.
fn grown(
    kept: &mut Option<wgpu::Buffer>,
    n_bytes: u64,
    allocate: impl FnOnce() -> Result<wgpu::Buffer, KernelError>,
) -> Result<wgpu::Buffer, KernelError> {
    let buffer = match kept.take().filter(|buffer| buffer.size() >= n_bytes) {
        Some(buffer) => buffer,
        None => allocate()?,
    };
    *kept = Some(buffer.clone());
    Ok(buffer)
}

impl RowProducts for GpuProducts {
    fn multiply(
        &mut self,
        x: &[f32],
        weight: &Tensor,
        direction: Direction,
        out: &mut [f32],
    ) -> Result<(), KernelError> {
        let (n_terms, width) = direction.terms_and_width([weight.n_rows(), weight.n_cols()]);
        let at = self.matrices.put(&self.context.device, std::slice::from_ref(weight))?;
        self.tensors.entry(at).or_insert_with(|| weight.clone());
        let widest = 4 * n_terms.max(width) as u64;
        let limit = self.context.device.limits.max_storage_buffer_binding_size;
        let n_rows = (OPERAND_BYTES.min(limit) / widest).max(1) as usize;
        let chunks = x.chunks(n_rows * n_terms).zip(out.chunks_mut(n_rows * width));
        for (x, out) in chunks {
            let context = self.context.clone();
            let run = || self.multiply_rows(at, x, weight, direction, out);
            context.device.scoped(|| weight.name().to_owned(), run)??;
        }
        let key = (self.matrices.get(at).packing.name, direction);
        if !self.compared.contains(&key) {
            self.compare(x, weight, direction, out)?;
            self.compared.insert(key);
        }
        Ok(())
    }

    fn name(&self) -> &str {
        &self.context.info().name
    }
}

impl GpuProducts {
    /// Uploads nothing yet. Errors: the GPU runs too few lanes, or has no memory.
    pub fn new(context: Arc<GpuContext>) -> Result<Self, KernelError> {
        Self::with_faults(context, FaultPlan::default())
    }

    /// Products into which a test injects faults. Errors: as `new`.
    pub fn with_faults(context: Arc<GpuContext>, faults: FaultPlan) -> Result<Self, KernelError> {
        let gpu = &context.device;
        gpu.set_fault_plan(&faults);
        let limits = &gpu.limits;
        if max_lanes(limits) < LANES || limits.max_compute_workgroup_storage_size < SHARED_BYTES {
            let message = format!("{LANES} lanes with {SHARED_BYTES} bytes of shared memory");
            return Err(gpu.error(GpuFault::Invalid, message));
        }
        let slot_bytes = u64::from(limits.min_uniform_buffer_offset_alignment).max(64);
        let usage = wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST;
        let uniforms = gpu.buffer("parameters", MAX_PRODUCTS * slot_bytes, usage)?;
        Ok(Self {
            matrices: MatrixStore::default(),
            tensors: HashMap::new(),
            buffers: OperandBuffers::default(),
            compared: HashSet::new(),
            bytes: Vec::new(),
            faults,
            uniforms,
            slot_bytes,
            context,
        })
    }

    /// Bytes of the matrices uploaded so far, as in their files.
    pub fn n_bytes(&self) -> u64 {
        self.matrices.n_bytes()
    }

    /// The product of as many rows as the buffers may hold.
    fn multiply_rows(
        &mut self,
        at: usize,
        x: &[f32],
        weight: &Tensor,
        direction: Direction,
        out: &mut [f32],
    ) -> Result<(), KernelError> {
        let context = self.context.clone();
        let gpu = &context.device;
        let is_spoiled = gpu.fail_submission(&self.faults)?;
        let [x_bytes, out_bytes] = [x.len(), out.len()].map(|len| 4 * len as u64);
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let x_buffer = grown(&mut self.buffers.x, x_bytes, || gpu.storage("rows", x_bytes))?;
        let results = grown(&mut self.buffers.out, out_bytes, || gpu.storage("products", out_bytes))?;
        let allocate = || gpu.buffer("results", out_bytes, usage);
        let staging = grown(&mut self.buffers.staging, out_bytes, allocate)?;
        self.bytes.resize(x_bytes as usize, 0);
        for (bytes, x) in self.bytes.as_chunks_mut::<4>().0.iter_mut().zip(x) {
            *bytes = x.to_le_bytes();
        }
        gpu.queue.write_buffer(&x_buffer, 0, &self.bytes);
        let (n_terms, _) = direction.terms_and_width([weight.n_rows(), weight.n_cols()]);
        let parts = self.parts(at, weight, direction, x.len() / n_terms)?;
        self.submit(gpu, &parts, [&x_buffer, &results]);
        let mut encoder = super::submissions::encoder(gpu);
        encoder.copy_buffer_to_buffer(&results, 0, &staging, 0, out_bytes);
        gpu.queue.submit([encoder.finish()]);
        gpu.mapped(&staging, out_bytes, &mut |bytes| floats_of(bytes, out))?;
        if is_spoiled {
            out.fill(f32::NAN);
        }
        Ok(())
    }

    /// The products that make up one: of each slice of the matrix, with as many rows as one submission may have.
    fn parts(
        &self,
        at: usize,
        weight: &Tensor,
        direction: Direction,
        n_rows: usize,
    ) -> Result<Vec<ProductPart>, KernelError> {
        let (matrix, k) = (self.matrices.get(at), weight.n_cols());
        let gpu = &self.context.device;
        let variant = ShaderVariant {
            defines: match direction {
                Direction::Forward => &[],
                Direction::Backward => &["BACKWARD"],
            },
            weight: Some(matrix.packing),
            ..ShaderVariant::default()
        };
        let pipeline = self.context.pipelines.get(gpu, &shader::PRODUCT, variant)?;
        let (x_width, out_width) = direction.terms_and_width([weight.n_rows(), k]);
        let mut parts = Vec::new();
        for slice in &matrix.slices {
            let own = slice.first..slice.first + slice.n_rows;
            let (terms, columns): (Range<usize>, Range<usize>) = match direction {
                Direction::Forward => (0..k, own),
                Direction::Backward => (own, 0..k),
            };
            let of_tile = (TILE * slice.n_rows * k) as u64;
            let tiles = (gpu.max_submission_cost / of_tile.max(1)).clamp(1, 1 << 10) as usize;
            for first_row in (0..n_rows).step_by(tiles * TILE) {
                let n = (tiles * TILE).min(n_rows - first_row);
                let params = [
                    [k, matrix.row_quads, first_row, n],
                    [x_width, terms.start, terms.len(), out_width],
                    [columns.start, columns.len(), usize::from(terms.start > 0), 0],
                ];
                let params: Vec<u32> = params.as_flattened().iter().map(|word| *word as u32).collect();
                let groups = [columns.len(), n].map(|len| len.div_ceil(TILE) as u32);
                let cost = (n * slice.n_rows * k) as u64;
                let matrix = BufferSpan::whole(&slice.buffer);
                let params = std::array::from_fn(|i| params[i]);
                parts.push(ProductPart { pipeline: pipeline.clone(), matrix, params, groups, cost });
            }
        }
        Ok(parts)
    }

    /// Submits products one after another, in submissions of bounded cost.
    fn submit(&self, gpu: &Device, parts: &[ProductPart], [x, out]: [&wgpu::Buffer; 2]) {
        let mut rest = parts;
        while !rest.is_empty() {
            let costs = rest.iter().map(|part| part.cost).take(MAX_PRODUCTS as usize);
            let (now, later) = rest.split_at(super::program::n_fitting(costs, gpu.max_submission_cost));
            let mut encoder = super::submissions::encoder(gpu);
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            for (slot, part) in (0..).zip(now) {
                let words = super::buffers::bytes_of(&part.params);
                let n_bytes = words.len().next_multiple_of(16) as u64;
                let params =
                    BufferSpan { buffer: self.uniforms.clone(), offset: slot * self.slot_bytes, n_bytes };
                gpu.queue.write_buffer(&self.uniforms, params.offset, &words);
                let spans = [params, BufferSpan::whole(x), part.matrix.clone(), BufferSpan::whole(out)];
                let entries: Vec<wgpu::BindGroupEntry> = (0..)
                    .zip(&spans)
                    .map(|(binding, span)| wgpu::BindGroupEntry { binding, resource: span.binding() })
                    .collect();
                let bind_group = gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
                    label: Some("product"),
                    layout: &part.pipeline.layout,
                    entries: &entries,
                });
                pass.set_pipeline(&part.pipeline.compute);
                pass.set_bind_group(0, &bind_group, &[]);
                pass.dispatch_workgroups(part.groups[0], part.groups[1], 1);
            }
            drop(pass);
            gpu.queue.submit([encoder.finish()]);
            rest = later;
        }
    }

    /// Compares some elements of the first and the last row with the specification.
    fn compare(
        &self,
        x: &[f32],
        weight: &Tensor,
        direction: Direction,
        out: &[f32],
    ) -> Result<(), KernelError> {
        let (n_terms, width) = direction.terms_and_width([weight.n_rows(), weight.n_cols()]);
        let last = x.len() / n_terms - 1;
        let columns = (0..COMPARED_COLUMNS).map(|i| i * (width - 1) / (COMPARED_COLUMNS - 1));
        for (row, column) in columns.flat_map(|column| [(0, column), (last, column)]) {
            let (expected, size) = element(&x[row * n_terms..][..n_terms], weight, direction, column);
            let found = f64::from(out[row * width + column]);
            let is_close = (found - expected).abs() <= TOLERANCE * size + f64::from(f32::MIN_POSITIVE);
            if !is_close {
                let name = weight.name();
                let message = format!("{name}, {direction:?}: {found} at ({row}, {column}), not {expected}");
                return Err(self.context.device.error(GpuFault::Wrong, message));
            }
        }
        Ok(())
    }
}
