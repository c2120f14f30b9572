//! Error scopes: attribute a GPU error to what caused it. Compiling, allocating and the first submission of a kind run
//! inside a scope on their own thread. Errors outside of any scope are recorded by thread (`fault.rs`), so that no user
//! of a shared GPU receives another's error.

use super::device::{Device, fault_of};
use super::split_kv::n_chunks;
use crate::batch::Batch;
use crate::error::KernelError;

/// One scope for each kind of error, the least important first: full memory outweighs the errors it causes.
const KINDS: [wgpu::ErrorFilter; 3] =
    [wgpu::ErrorFilter::Internal, wgpu::ErrorFilter::Validation, wgpu::ErrorFilter::OutOfMemory];

impl Device {
    /// Runs `f` in an error scope. Returns its result and the most important error that no inner scope caught.
    pub(super) fn caught<T>(&self, f: impl FnOnce() -> T) -> (T, Option<wgpu::Error>) {
        let scopes = KINDS.map(|kind| self.device.push_error_scope(kind));
        let result = f();
        // scopes nest: the last one opened is closed first
        let errors = scopes.into_iter().rev().map(|scope| super::block_on(scope.pop()));
        (result, errors.fold(None, Option::or))
    }

    /// Runs `f` in an error scope. Errors: what the GPU reported meanwhile, attributed to `what`; a lost GPU.
    pub(super) fn scoped<T>(
        &self,
        what: impl FnOnce() -> String,
        f: impl FnOnce() -> T,
    ) -> Result<T, KernelError> {
        let (result, error) = self.caught(f);
        match error {
            None => self.check().map(|()| result),
            Some(error) => Err(self.attributed(&what(), &error)),
        }
    }

    /// Attributes an error to `what`. If the GPU was lost, that is the cause.
    pub(super) fn attributed(&self, what: &str, error: &wgpu::Error) -> KernelError {
        let own = || self.error(fault_of(error), format!("{what}: {}", error.to_string().trim()));
        self.check().err().unwrap_or_else(own)
    }
}

/// The kinds of batches that were submitted: numbers of rows, outputs and context chunks, each rounded up to a power of
/// two. Errors show when the first batch of a kind is submitted, so later ones need no scope: decoding ten thousand
/// tokens opens about thirty.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SeenBatchKinds([u64; 3]);

impl SeenBatchKinds {
    /// Adds the kind of `batch`. Returns whether it is new.
    pub fn is_new(&mut self, batch: &Batch) -> bool {
        let seen = [batch.n_rows(), batch.outputs.len(), n_chunks(batch) as usize];
        let mut is_new = false;
        for (known, n) in self.0.iter_mut().zip(seen) {
            let kind = 1 << (usize::BITS - n.leading_zeros()).min(u64::BITS - 1);
            is_new |= *known & kind == 0;
            *known |= kind;
        }
        is_new
    }
}

#[cfg(test)]
mod tests;
