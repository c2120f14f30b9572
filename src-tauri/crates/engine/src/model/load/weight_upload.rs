//! Upload of weights to their devices, in the order in which the decoder requests them.

use kernels::{Backend, DeviceId, Tensor};
use weights::{Advice, WeightFile};

use super::{CHECKED, share};
use crate::adapter::AdapterUpdate;
use crate::arch::LocatedTensor;
use crate::decoder::{LowRankUpdate, WeightSource};
use crate::error::Result;
use crate::model::LoadOptions;
use crate::spec::Role;

/// Uploads tensors as the decoder requests them, and reports progress.
pub(super) struct WeightUpload<'a> {
    placed: &'a [LocatedTensor],
    pub(super) adapter_updates: &'a [AdapterUpdate],
    devices: &'a [Box<dyn Backend>],
    pub(super) reading: PageInPolicy,
    n_weight_bytes: u64,
    n_done: u64,
    /// Progress at the end of the upload.
    until: f32,
    progress: &'a mut dyn FnMut(f32),
}

/// When weights are read from disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageInPolicy {
    /// On first use: they do not all fit into memory, or are there already.
    WhenNeeded,
    /// During the upload. The system uses large pages and reads ahead by itself.
    Now,
    NowAndAhead,
}

impl PageInPolicy {
    pub(super) fn of(file: &WeightFile, options: &LoadOptions) -> Self {
        match options.resident {
            Some(_) => {
                // Large pages left by another process would be mapped whole, far beyond the requested bound.
                file.advise(Advice::Forget);
                Self::WhenNeeded
            }
            None if !options.small_pages && file.advise(Advice::Often) => Self::Now,
            None => Self::NowAndAhead,
        }
    }
}

impl<'a> WeightUpload<'a> {
    pub(super) fn new(
        placed: &'a [LocatedTensor],
        devices: &'a [Box<dyn Backend>],
        (n_weight_bytes, until): (u64, f32),
        progress: &'a mut dyn FnMut(f32),
    ) -> Self {
        let (adapter_updates, reading) = (&[][..], PageInPolicy::WhenNeeded);
        Self { placed, adapter_updates, devices, reading, n_weight_bytes, n_done: 0, until, progress }
    }
}

impl WeightSource for WeightUpload<'_> {
    fn get(&mut self, role: Role, layer: Option<usize>, device: DeviceId) -> Result<Tensor> {
        let [tensor] = <[Tensor; 1]>::try_from(self.experts(role, layer, device)?)
            .expect("only expert matrices have several parts");
        Ok(tensor)
    }

    fn experts(&mut self, role: Role, layer: Option<usize>, device: DeviceId) -> Result<Vec<Tensor>> {
        let found = self.placed.iter().find(|p| p.role == role && p.layer == layer);
        let LocatedTensor { parts, .. } =
            found.expect("the spec lists every tensor that the decoder requests");
        let mut tensors = Vec::with_capacity(parts.len());
        for part in parts {
            match self.reading {
                PageInPolicy::WhenNeeded => {}
                PageInPolicy::Now => fault_in(&part.data),
                PageInPolicy::NowAndAhead => {
                    part.data.advise(Advice::Soon);
                    fault_in(&part.data);
                }
            }
            self.n_done += part.data.len() as u64;
            tensors.push(self.devices[device.0].upload(&part.view())?);
        }
        let share = share(self.n_done, self.n_weight_bytes);
        (self.progress)(CHECKED + share * (self.until - CHECKED));
        Ok(tensors)
    }

    fn adapters(&mut self, role: Role, layer: Option<usize>, device: DeviceId) -> Result<Vec<LowRankUpdate>> {
        let device = &self.devices[device.0];
        let mine = self.adapter_updates.iter().filter(|added| added.role == role && added.layer == layer);
        let upload = |AdapterUpdate { a, b, scale, .. }: &AdapterUpdate| {
            Ok(LowRankUpdate { a: device.upload(&a.view())?, b: device.upload(&b.view())?, scale: *scale })
        };
        mine.map(upload).collect()
    }
}

/// Touches the pages, so that the disk is read here, in order and with progress. Cached data is mapped 64 KiB per
/// touch on the systems we know; other data is read ahead.
fn fault_in(bytes: &[u8]) {
    const AROUND: usize = 64 << 10;
    let sum = bytes.iter().step_by(AROUND).fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    std::hint::black_box(sum);
}
