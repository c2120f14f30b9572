//! Storage of recurrent states on a CPU, as floats: slot after slot, in each slot layer after layer.
//! A slot holds the state of one sequence.

use std::ops::Range;

use super::arena::{AlignedVec, bytes_of, bytes_of_mut};
use super::disjoint_slices::DisjointSlices;
use crate::error::KernelError;
use crate::graph::{DeviceId, Graph};

/// Floats per cache line: every state starts on one.
const LINE_FLOATS: usize = 16;

/// States of the recurrent layers of one device.
pub struct StateStore {
    floats: AlignedVec<f32>,
    slot_len: usize,
    /// For each state its range in a slot; `None`: on another device.
    layers: Vec<Option<Range<usize>>>,
}

impl StateStore {
    /// Allocates `n_states` slots for the states on `device`.
    pub fn new(graph: &Graph, device: DeviceId, n_states: usize) -> Result<Self, KernelError> {
        let mut slot_len = 0;
        let mut layers = Vec::with_capacity(graph.kv().states.len());
        for (len, at) in graph.kv().states.iter().zip(graph.state_devices()) {
            if *at != device {
                layers.push(None);
                continue;
            }
            layers.push(Some(slot_len..slot_len + len));
            slot_len = (slot_len + len).next_multiple_of(LINE_FLOATS);
        }
        let floats = AlignedVec::zeroed(slot_len.saturating_mul(n_states), "recurrent states")?;
        Ok(Self { floats, slot_len, layers })
    }

    /// Borrows one layer's state in one slot.
    pub fn state_mut(&mut self, layer: usize, slot: u32) -> &mut [f32] {
        let range = self.range(layer, slot);
        &mut self.floats[range]
    }

    /// Shares one layer's states among workers that each use separate parts.
    pub fn layer(&mut self, layer: usize) -> SharedLayerStates<'_> {
        SharedLayerStates {
            in_slot: self.in_slot(layer),
            slot_len: self.slot_len,
            floats: DisjointSlices::new(&mut self.floats),
        }
    }

    /// Borrows one layer's state in one slot as bytes.
    pub fn bytes(&self, layer: usize, slot: u32) -> &[u8] {
        bytes_of(&self.floats[self.range(layer, slot)])
    }

    /// Borrows one layer's state in one slot as mutable bytes.
    pub fn bytes_mut(&mut self, layer: usize, slot: u32) -> &mut [u8] {
        bytes_of_mut(self.state_mut(layer, slot))
    }

    /// Copies all layers of one slot into another.
    pub fn copy(&mut self, from: u32, to: u32) {
        let start = from as usize * self.slot_len;
        self.floats.copy_within(start..start + self.slot_len, to as usize * self.slot_len);
    }

    fn in_slot(&self, layer: usize) -> Range<usize> {
        self.layers[layer].clone().expect("the graph uses a state only on its own device")
    }

    fn range(&self, layer: usize, slot: u32) -> Range<usize> {
        let in_slot = self.in_slot(layer);
        let start = slot as usize * self.slot_len;
        start + in_slot.start..start + in_slot.end
    }
}

/// The states of one layer in all slots.
pub struct SharedLayerStates<'a> {
    floats: DisjointSlices<'a, f32>,
    slot_len: usize,
    in_slot: Range<usize>,
}

impl SharedLayerStates<'_> {
    /// Borrows `range` of the state in `slot` mutably. Panics if it is out of bounds.
    ///
    /// # Safety
    /// While the returned slice lives, no other range in use may overlap it.
    #[allow(clippy::mut_from_ref)] // as `DisjointSlices::slice_mut`
    pub unsafe fn slice_mut(&self, slot: u32, range: Range<usize>) -> &mut [f32] {
        assert!(range.end <= self.in_slot.len(), "{range:?} of {:?}", self.in_slot);
        let start = slot as usize * self.slot_len + self.in_slot.start;
        // SAFETY: inside this layer's state by the assertion; unaliased by the caller's promise.
        unsafe { self.floats.slice_mut(start + range.start..start + range.end) }
    }
}
