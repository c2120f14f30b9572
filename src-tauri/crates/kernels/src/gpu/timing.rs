//! Times the steps of a run by GPU timestamps before and after each. They are read back once at the end; nothing waits
//! between steps.

use std::time::Duration;

use super::device::Device;
use crate::error::KernelError;
use crate::profile::TimeSpan;

/// Steps per read-back of timestamps.
pub const MAX_TIMED_STEPS: usize = wgpu::QUERY_SET_MAX_QUERIES as usize / 2;

/// Bytes of one timestamp.
const TIMESTAMP_BYTES: u64 = size_of::<u64>() as u64;

/// Timestamp queries and their buffers.
pub struct StepTimer {
    timestamps: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    staging: wgpu::Buffer,
    /// nanoseconds per tick
    tick_ns: f64,
    /// tick of the first step of the run
    began: Option<u64>,
}

impl StepTimer {
    /// None: the GPU has no timestamps. Errors: no memory.
    pub fn new(gpu: &Device) -> Result<Option<Self>, KernelError> {
        if !gpu.device.features().contains(wgpu::Features::TIMESTAMP_QUERY) {
            return Ok(None);
        }
        let descriptor = wgpu::QuerySetDescriptor {
            label: Some("times"),
            ty: wgpu::QueryType::Timestamp,
            count: 2 * MAX_TIMED_STEPS as u32,
        };
        let timestamps =
            gpu.scoped(|| "timestamp queries".into(), || gpu.device.create_query_set(&descriptor))?;
        let n_bytes = 2 * MAX_TIMED_STEPS as u64 * TIMESTAMP_BYTES;
        let resolved = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC;
        let staging = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        Ok(Some(Self {
            timestamps,
            resolved: gpu.buffer("times", n_bytes, resolved)?,
            staging: gpu.buffer("times", n_bytes, staging)?,
            tick_ns: f64::from(gpu.queue.get_timestamp_period()),
            began: None,
        }))
    }

    /// Begins a run.
    pub fn begin(&mut self) {
        self.began = None;
    }

    /// The descriptor of a pass of the `at`-th step since the last `take`. The pass may begin the step, end it, or both.
    pub fn around(&self, at: usize, begins: bool, ends: bool) -> wgpu::ComputePassDescriptor<'_> {
        let first = 2 * at as u32;
        let writes = wgpu::ComputePassTimestampWrites {
            query_set: &self.timestamps,
            beginning_of_pass_write_index: begins.then_some(first),
            end_of_pass_write_index: ends.then_some(first + 1),
        };
        wgpu::ComputePassDescriptor { label: None, timestamp_writes: (begins || ends).then_some(writes) }
    }

    /// Waits for the last `n` steps and returns their times since the start of the run.
    pub fn take(
        &mut self,
        gpu: &Device,
        mut encoder: wgpu::CommandEncoder,
        n: usize,
    ) -> Result<Vec<TimeSpan>, KernelError> {
        let n_bytes = 2 * n as u64 * TIMESTAMP_BYTES;
        encoder.resolve_query_set(&self.timestamps, 0..2 * n as u32, &self.resolved, 0);
        encoder.copy_buffer_to_buffer(&self.resolved, 0, &self.staging, 0, n_bytes);
        gpu.queue.submit([encoder.finish()]);
        let mut ticks = Vec::with_capacity(2 * n);
        gpu.mapped(&self.staging, n_bytes, &mut |mapped| {
            ticks.extend(mapped.as_chunks::<8>().0.iter().map(|reading| u64::from_le_bytes(*reading)));
        })?;
        let began = *self.began.get_or_insert(ticks.first().copied().unwrap_or(0));
        let since =
            |tick: u64| Duration::from_nanos((tick.saturating_sub(began) as f64 * self.tick_ns) as u64);
        let spans = ticks.as_chunks::<2>().0.iter();
        Ok(spans.map(|[start, end]| TimeSpan { start: since(*start), end: since(*end.max(start)) }).collect())
    }
}
