//! What a card complains of, by what it came of: whoever makes something or submits work that was never done before
//! opens a scope around it, on its own thread, and an error says what it belongs to. What no scope catches is noted by
//! thread (`fault.rs`), so that nobody gets the complaint of another one who uses the same card.

use super::device::{Device, now};
use super::splits::n_chunks;
use crate::error::KernelError;
use crate::fault::GpuFault;
use crate::plan::Batch;

/// Of each kind of error one scope; what is full outweighs what it led to.
const KINDS: [wgpu::ErrorFilter; 3] =
    [wgpu::ErrorFilter::Internal, wgpu::ErrorFilter::Validation, wgpu::ErrorFilter::OutOfMemory];

/// What kind of fault an error is.
pub(super) fn fault_of(error: &wgpu::Error) -> GpuFault {
    match error {
        wgpu::Error::OutOfMemory { .. } => GpuFault::Memory,
        wgpu::Error::Validation { .. } | wgpu::Error::Internal { .. } => GpuFault::Invalid,
    }
}

impl Device {
    /// What `f` leaves, and what the card complained of meanwhile on this thread, if no scope within did.
    pub(super) fn caught<T>(&self, f: impl FnOnce() -> T) -> (T, Option<wgpu::Error>) {
        let scopes = KINDS.map(|kind| self.device.push_error_scope(kind));
        let left = f();
        // the last that was opened is closed first
        let complaints = scopes.into_iter().rev().map(|scope| now(scope.pop()));
        (left, complaints.fold(None, Option::or))
    }

    /// What `f` makes. Errors: what the card complained of meanwhile, as that of `what`; the card is lost.
    pub(super) fn scoped<T>(
        &self,
        what: impl FnOnce() -> String,
        f: impl FnOnce() -> T,
    ) -> Result<T, KernelError> {
        let (made, complaint) = self.caught(f);
        match complaint {
            None => self.check().map(|()| made),
            Some(complaint) => Err(self.complaint(&what(), &complaint)),
        }
    }

    /// As an error of this card. Where it is lost, that is why.
    pub(super) fn complaint(&self, what: &str, complaint: &wgpu::Error) -> KernelError {
        let own = || self.error(fault_of(complaint), format!("{what}: {}", complaint.to_string().trim()));
        self.check().err().unwrap_or_else(own)
    }
}

/// The kinds of batches that went through a program: of so many rows, so many outputs, so long contexts, each to the
/// next power of two. What a kernel can be refused for shows when the first of a kind is submitted; those after it need
/// no scope, so that decoding ten thousand tokens opens some thirty.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tried([u64; 3]);

impl Tried {
    /// Whether none of that kind went before.
    pub fn is_new(&mut self, batch: &Batch) -> bool {
        let seen = [batch.n_rows(), batch.outputs.len(), n_chunks(batch) as usize];
        let mut is_new = false;
        for (tried, n) in self.0.iter_mut().zip(seen) {
            let kind = 1 << (usize::BITS - n.leading_zeros()).min(u64::BITS - 1);
            is_new |= *tried & kind == 0;
            *tried |= kind;
        }
        is_new
    }
}

#[cfg(test)]
mod tests;
