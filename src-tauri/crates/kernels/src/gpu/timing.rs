//! What each step of a run takes on a card, by the card's own clock: it is asked before and after each step, and the
//! answers come back once, when all is done. Nothing is waited for between steps.

use std::time::Duration;

use super::device::Device;
use crate::error::KernelError;
use crate::profile::Span;

/// Steps whose times come back together.
pub const STEPS: usize = wgpu::QUERY_SET_MAX_QUERIES as usize / 2;

/// Bytes of one reading of the clock.
const READING: u64 = size_of::<u64>() as u64;

/// A card's clock.
pub struct Timer {
    readings: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    readable: wgpu::Buffer,
    /// nanoseconds of a tick
    tick: f64,
    /// ticks at the first step of the run
    began: Option<u64>,
}

impl Timer {
    /// None: the card has none. Errors: no memory.
    pub fn new(gpu: &Device) -> Result<Option<Self>, KernelError> {
        if !gpu.device.features().contains(wgpu::Features::TIMESTAMP_QUERY) {
            return Ok(None);
        }
        let descriptor = wgpu::QuerySetDescriptor {
            label: Some("times"),
            ty: wgpu::QueryType::Timestamp,
            count: 2 * STEPS as u32,
        };
        let readings =
            gpu.scoped(|| "readings of its clock".into(), || gpu.device.create_query_set(&descriptor))?;
        let n_bytes = 2 * STEPS as u64 * READING;
        let resolved = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC;
        let readable = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        Ok(Some(Self {
            readings,
            resolved: gpu.buffer("times", n_bytes, resolved)?,
            readable: gpu.buffer("times", n_bytes, readable)?,
            tick: f64::from(gpu.queue.get_timestamp_period()),
            began: None,
        }))
    }

    /// A run begins.
    pub fn begin(&mut self) {
        self.began = None;
    }

    /// Around the `at`-th step since the times last came back, of which a pass may have the beginning, the end, or
    /// both.
    pub fn around(&self, at: usize, begins: bool, ends: bool) -> wgpu::ComputePassDescriptor<'_> {
        let first = 2 * at as u32;
        let writes = wgpu::ComputePassTimestampWrites {
            query_set: &self.readings,
            beginning_of_pass_write_index: begins.then_some(first),
            end_of_pass_write_index: ends.then_some(first + 1),
        };
        wgpu::ComputePassDescriptor { label: None, timestamp_writes: (begins || ends).then_some(writes) }
    }

    /// When the last `n` steps ran, since the run began. Waits for them.
    pub fn take(
        &mut self,
        gpu: &Device,
        mut encoder: wgpu::CommandEncoder,
        n: usize,
    ) -> Result<Vec<Span>, KernelError> {
        let n_bytes = 2 * n as u64 * READING;
        encoder.resolve_query_set(&self.readings, 0..2 * n as u32, &self.resolved, 0);
        encoder.copy_buffer_to_buffer(&self.resolved, 0, &self.readable, 0, n_bytes);
        gpu.queue.submit([encoder.finish()]);
        let mut ticks = Vec::with_capacity(2 * n);
        gpu.mapped(&self.readable, n_bytes, &mut |mapped| {
            ticks.extend(mapped.as_chunks::<8>().0.iter().map(|reading| u64::from_le_bytes(*reading)));
        })?;
        let began = *self.began.get_or_insert(ticks.first().copied().unwrap_or(0));
        let since = |tick: u64| Duration::from_nanos((tick.saturating_sub(began) as f64 * self.tick) as u64);
        let spans = ticks.as_chunks::<2>().0.iter();
        Ok(spans.map(|[start, end]| Span { start: since(*start), end: since(*end.max(start)) }).collect())
    }
}
