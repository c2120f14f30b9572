//! GPU buffers: allocation with reported failure, upload in bounded chunks, read-back, and small constants packed into
//! few buffers.

use std::sync::Arc;

use super::device::Device;
use crate::error::KernelError;
use crate::fault::GpuFault;

/// Bytes of staging memory that may be queued at once.
const MAX_STAGED_BYTES: u64 = 64 << 20;

impl Device {
    /// Allocates zeroed memory that kernels read and write. Errors: memory is full, or the size exceeds a limit.
    pub(super) fn storage(&self, what: &'static str, n_bytes: u64) -> Result<wgpu::Buffer, KernelError> {
        let limit = self.limits.max_storage_buffer_binding_size.min(self.limits.max_buffer_size);
        if n_bytes > limit {
            let message = format!("{what}: {n_bytes} bytes in one buffer, the limit is {limit}");
            return Err(self.error(GpuFault::Memory, message));
        }
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        self.buffer(what, n_bytes, usage)
    }

    /// Allocates a buffer. Errors: memory is full.
    pub(super) fn buffer(
        &self,
        what: &'static str,
        n_bytes: u64,
        usage: wgpu::BufferUsages,
    ) -> Result<wgpu::Buffer, KernelError> {
        // bindings must not be empty
        let size = n_bytes.next_multiple_of(4).max(16);
        self.fail_as_planned(size)?;
        let descriptor = wgpu::BufferDescriptor { label: Some(what), size, usage, mapped_at_creation: false };
        self.scoped(|| format!("{what}, {size} bytes"), || self.device.create_buffer(&descriptor))
    }

    /// Reads `n_bytes` of a buffer from `offset` on, and waits for them.
    pub(super) fn read_back(
        &self,
        from: &wgpu::Buffer,
        offset: u64,
        n_bytes: u64,
    ) -> Result<Vec<u8>, KernelError> {
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let to = self.buffer("results", n_bytes, usage)?;
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(from, offset, &to, 0, n_bytes);
        self.queue.submit([encoder.finish()]);
        let mut bytes = Vec::with_capacity(n_bytes as usize);
        self.mapped(&to, n_bytes, &mut |mapped| bytes.extend_from_slice(mapped))?;
        Ok(bytes)
    }

    /// Waits for everything submitted, and calls `f` with the first bytes of a mappable buffer.
    pub(super) fn mapped(
        &self,
        buffer: &wgpu::Buffer,
        n_bytes: u64,
        f: &mut dyn FnMut(&[u8]),
    ) -> Result<(), KernelError> {
        let slice = buffer.slice(..n_bytes);
        // `get_mapped_range` below reports failure
        slice.map_async(wgpu::MapMode::Read, |_| ());
        self.wait()?;
        match slice.get_mapped_range() {
            Ok(mapped) => f(&mapped),
            Err(error) => return Err(self.error(GpuFault::Lost, error.to_string())),
        }
        buffer.unmap();
        Ok(())
    }
}

/// An upload in chunks, with bounded staging memory.
pub struct Upload<'a> {
    device: &'a Device,
    n_staged: u64,
}

impl<'a> Upload<'a> {
    /// Begins an upload.
    pub fn new(device: &'a Device) -> Self {
        Self { device, n_staged: 0 }
    }

    /// Writes `words` to a buffer. Waits whenever enough staging memory is queued.
    pub fn put(&mut self, to: &wgpu::Buffer, offset: u64, words: &[u32]) -> Result<(), KernelError> {
        self.device.queue.write_buffer(to, offset, &bytes_of(words));
        self.n_staged += 4 * words.len() as u64;
        if self.n_staged >= MAX_STAGED_BYTES {
            self.finish()?;
        }
        Ok(())
    }

    /// Waits until everything is uploaded.
    pub fn finish(&mut self) -> Result<(), KernelError> {
        self.n_staged = 0;
        self.device.queue.submit([]);
        self.device.wait()
    }
}

/// Little-endian bytes, as GPUs store words.
pub fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Decodes floats from GPU memory.
pub fn floats_of(bytes: &[u8], out: &mut [f32]) {
    for (out, word) in out.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *out = f32::from_le_bytes(*word);
    }
}

/// A range of a buffer.
#[derive(Clone)]
pub struct BufferSpan {
    pub buffer: wgpu::Buffer,
    pub offset: u64,
    pub n_bytes: u64,
}

impl BufferSpan {
    /// The whole buffer.
    pub fn whole(buffer: &wgpu::Buffer) -> Self {
        Self { buffer: buffer.clone(), offset: 0, n_bytes: buffer.size() }
    }

    /// The binding resource of the range.
    pub fn binding(&self) -> wgpu::BindingResource<'_> {
        wgpu::BindingResource::Buffer(wgpu::BufferBinding {
            buffer: &self.buffer,
            offset: self.offset,
            size: std::num::NonZeroU64::new(self.n_bytes),
        })
    }
}

/// Small constants of one usage, packed into buffers of `CONSTANTS_BYTES`.
pub struct Constants {
    device: Arc<Device>,
    usage: wgpu::BufferUsages,
    align: u64,
    last: Option<(wgpu::Buffer, u64)>,
}

const CONSTANTS_BYTES: u64 = 256 << 10;

impl Constants {
    /// Allocates nothing until the first constant.
    pub fn new(device: &Arc<Device>, usage: wgpu::BufferUsages) -> Self {
        let limits = &device.limits;
        let align =
            limits.min_uniform_buffer_offset_alignment.max(limits.min_storage_buffer_offset_alignment);
        Self { device: device.clone(), usage, align: u64::from(align), last: None }
    }

    /// Stores `words` and returns where they are.
    pub fn put(&mut self, words: &[u32]) -> Result<BufferSpan, KernelError> {
        let n_bytes = (4 * words.len() as u64).next_multiple_of(16).max(16);
        let (buffer, offset) = match self.last.take() {
            Some((buffer, offset)) if offset + n_bytes <= buffer.size() => (buffer, offset),
            _ => {
                let usage = self.usage | wgpu::BufferUsages::COPY_DST;
                (self.device.buffer("constants", n_bytes.max(CONSTANTS_BYTES), usage)?, 0)
            }
        };
        self.device.queue.write_buffer(&buffer, offset, &bytes_of(words));
        self.last = Some((buffer.clone(), (offset + n_bytes).next_multiple_of(self.align)));
        Ok(BufferSpan { buffer, offset, n_bytes })
    }
}
