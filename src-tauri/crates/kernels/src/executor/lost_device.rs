//! Null object for a device whose memory was released: every call returns `GpuFault::Lost`.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use weights::TensorView;

use crate::backend::{Backend, BackendKind};
use crate::batch::Batch;
use crate::capacity::Capacity;
use crate::error::KernelError;
use crate::fault::GpuFault;
use crate::graph::{DeviceId, Graph, Retention, ValueId};
use crate::plan::layout::ValueLifetime;
use crate::profile::Observer;
use crate::tensor::Tensor;

/// Takes the place of a released device. Keeps its kind and description, and nothing else.
pub(crate) struct LostDevice {
    kind: BackendKind,
    description: String,
}

impl LostDevice {
    /// The replacement for `device`.
    pub fn replacing(device: &dyn Backend) -> Self {
        Self { kind: device.kind(), description: device.describe() }
    }

    fn error<T>(&self) -> Result<T, KernelError> {
        Err(KernelError::Gpu {
            fault: GpuFault::Lost,
            adapter: self.description.clone(),
            message: "its memory was released and has not been allocated again".to_owned(),
        })
    }
}

impl Backend for LostDevice {
    fn kind(&self) -> BackendKind {
        self.kind
    }

    fn describe(&self) -> String {
        self.description.clone()
    }

    fn upload(&self, _view: &TensorView) -> Result<Tensor, KernelError> {
        self.error()
    }

    fn prepare(
        &mut self,
        _graph: &Arc<Graph>,
        _device: DeviceId,
        _capacity: Capacity,
        _lifetime: ValueLifetime,
    ) -> Result<(), KernelError> {
        self.error()
    }

    fn begin(&mut self, _batch: &Batch) -> Result<(), KernelError> {
        self.error()
    }

    fn run(
        &mut self,
        _nodes: Range<usize>,
        _batch: &Batch,
        _observer: Option<Observer>,
    ) -> Result<(), KernelError> {
        self.error()
    }

    fn read(&self, _value: ValueId, _n_rows: usize) -> &[f32] {
        &[]
    }

    fn write(&mut self, _value: ValueId, _data: &[f32]) {}

    fn kv_page(&self, _layer: usize, _page: u32) -> Result<Cow<'_, [u8]>, KernelError> {
        self.error()
    }

    fn write_kv_page(&mut self, _layer: usize, _page: u32, _bytes: &[u8]) -> Result<(), KernelError> {
        self.error()
    }

    fn copy_kv_page(&mut self, _retention: Retention, _from: u32, _to: u32) -> Result<(), KernelError> {
        self.error()
    }

    fn state(&self, _layer: usize, _slot: u32) -> Result<Cow<'_, [u8]>, KernelError> {
        self.error()
    }

    fn write_state(&mut self, _layer: usize, _slot: u32, _bytes: &[u8]) -> Result<(), KernelError> {
        self.error()
    }

    fn copy_state(&mut self, _from: u32, _to: u32) -> Result<(), KernelError> {
        self.error()
    }
}
