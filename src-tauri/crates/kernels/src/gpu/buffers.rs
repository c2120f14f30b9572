//! Memory of a card: allocation that reports failure, upload in bounded pieces, results back into main memory, and
//! many small constants in few buffers.

use std::sync::Arc;

use super::device::Device;
use crate::error::KernelError;
use crate::fault::GpuFault;

/// Bytes of staging that may wait in the queue at once.
const STAGED: u64 = 64 << 20;

impl Device {
    /// Zeroed memory that kernels read and write. Errors: more than the card has, or than a kernel can be given.
    pub(super) fn storage(&self, what: &'static str, n_bytes: u64) -> Result<wgpu::Buffer, KernelError> {
        let limit = self.limits.max_storage_buffer_binding_size.min(self.limits.max_buffer_size);
        if n_bytes > limit {
            let message = format!("{what}: {n_bytes} bytes in one piece, of which it takes {limit}");
            return Err(self.error(GpuFault::Memory, message));
        }
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        self.buffer(what, n_bytes, usage)
    }

    pub(super) fn buffer(
        &self,
        what: &'static str,
        n_bytes: u64,
        usage: wgpu::BufferUsages,
    ) -> Result<wgpu::Buffer, KernelError> {
        // a binding can't be empty
        let size = n_bytes.next_multiple_of(4).max(16);
        self.fail_as_planned(size)?;
        let descriptor = wgpu::BufferDescriptor { label: Some(what), size, usage, mapped_at_creation: false };
        self.scoped(|| format!("{what}, {size} bytes"), || self.device.create_buffer(&descriptor))
    }

    /// Copies `from` to a place that `read` finds again, and waits for it. (bytes)
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

    /// Waits for all that was submitted, and shows `f` the first bytes of a buffer that can be mapped.
    pub(super) fn mapped(
        &self,
        buffer: &wgpu::Buffer,
        n_bytes: u64,
        f: &mut dyn FnMut(&[u8]),
    ) -> Result<(), KernelError> {
        let slice = buffer.slice(..n_bytes);
        // whether it worked shows below
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

/// Words on their way into a buffer, piece by piece.
pub struct Upload<'a> {
    device: &'a Device,
    n_staged: u64,
}

impl<'a> Upload<'a> {
    pub fn new(device: &'a Device) -> Self {
        Self { device, n_staged: 0 }
    }

    /// Pieces that are waited for in between, so that staging stays small.
    pub fn put(&mut self, to: &wgpu::Buffer, offset: u64, words: &[u32]) -> Result<(), KernelError> {
        self.device.queue.write_buffer(to, offset, &bytes_of(words));
        self.n_staged += 4 * words.len() as u64;
        if self.n_staged >= STAGED {
            self.finish()?;
        }
        Ok(())
    }

    pub fn finish(&mut self) -> Result<(), KernelError> {
        self.n_staged = 0;
        self.device.queue.submit([]);
        self.device.wait()
    }
}

/// As a card has them: the lowest byte first.
pub fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Floats out of what a card has.
pub fn floats_of(bytes: &[u8], out: &mut [f32]) {
    for (out, word) in out.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *out = f32::from_le_bytes(*word);
    }
}

/// A stretch of a buffer.
#[derive(Clone)]
pub struct Span {
    pub buffer: wgpu::Buffer,
    pub offset: u64,
    pub n_bytes: u64,
}

impl Span {
    pub fn whole(buffer: &wgpu::Buffer) -> Self {
        Self { buffer: buffer.clone(), offset: 0, n_bytes: buffer.size() }
    }

    pub fn binding(&self) -> wgpu::BindingResource<'_> {
        wgpu::BindingResource::Buffer(wgpu::BufferBinding {
            buffer: &self.buffer,
            offset: self.offset,
            size: std::num::NonZeroU64::new(self.n_bytes),
        })
    }
}

/// Small constants of one usage, one after another in buffers of `PIECE` bytes.
pub struct Constants {
    device: Arc<Device>,
    usage: wgpu::BufferUsages,
    align: u64,
    last: Option<(wgpu::Buffer, u64)>,
}

const PIECE: u64 = 256 << 10;

impl Constants {
    pub fn new(device: &Arc<Device>, usage: wgpu::BufferUsages) -> Self {
        let limits = &device.limits;
        let align =
            limits.min_uniform_buffer_offset_alignment.max(limits.min_storage_buffer_offset_alignment);
        Self { device: device.clone(), usage, align: u64::from(align), last: None }
    }

    /// Where `words` are from now on.
    pub fn put(&mut self, words: &[u32]) -> Result<Span, KernelError> {
        let n_bytes = (4 * words.len() as u64).next_multiple_of(16).max(16);
        let (buffer, offset) = match self.last.take() {
            Some((buffer, offset)) if offset + n_bytes <= buffer.size() => (buffer, offset),
            _ => {
                let usage = self.usage | wgpu::BufferUsages::COPY_DST;
                (self.device.buffer("constants", n_bytes.max(PIECE), usage)?, 0)
            }
        };
        self.device.queue.write_buffer(&buffer, offset, &bytes_of(words));
        self.last = Some((buffer.clone(), (offset + n_bytes).next_multiple_of(self.align)));
        Ok(Span { buffer, offset, n_bytes })
    }
}
