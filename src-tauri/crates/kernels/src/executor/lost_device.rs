//! In place of a device that let go of all it had, so that another has the room: whatever it is asked for, it says so.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use weights::TensorView;

use crate::backend::{Backend, BackendKind, Retain};
use crate::error::KernelError;
use crate::fault::GpuFault;
use crate::graph::{DeviceId, Graph, Retention, ValueId};
use crate::plan::{Batch, Capacity};
use crate::profile::Observer;
use crate::tensor::Tensor;

/// See the module.
pub(crate) struct Gone {
    kind: BackendKind,
    described: String,
}

impl Gone {
    pub fn of(device: &dyn Backend) -> Self {
        Self { kind: device.kind(), described: device.describe() }
    }

    fn error<T>(&self) -> Result<T, KernelError> {
        Err(KernelError::Gpu {
            fault: GpuFault::Lost,
            adapter: self.described.clone(),
            message: "its memory was let go, and nothing has taken its place".to_owned(),
        })
    }
}

impl Backend for Gone {
    fn kind(&self) -> BackendKind {
        self.kind
    }

    fn describe(&self) -> String {
        self.described.clone()
    }

    fn upload(&self, _view: &TensorView) -> Result<Tensor, KernelError> {
        self.error()
    }

    fn prepare(
        &mut self,
        _graph: &Arc<Graph>,
        _device: DeviceId,
        _capacity: Capacity,
        _retain: Retain,
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

    fn kv_write_page(&mut self, _layer: usize, _page: u32, _bytes: &[u8]) -> Result<(), KernelError> {
        self.error()
    }

    fn kv_copy_page(&mut self, _retention: Retention, _from: u32, _to: u32) -> Result<(), KernelError> {
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
