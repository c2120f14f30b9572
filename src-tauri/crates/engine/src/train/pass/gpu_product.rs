//! Products with frozen matrices on a GPU, in float32. The CPU computes those that a GPU has no memory for, and all of them
//! once it has failed.

use std::collections::HashSet;

use kernels::backends::{BackendOptions, open_products};
use kernels::matmul::product::{Direction, MAX_STAGED_BYTES, RowProducts};
use kernels::ops::integer_panel::PanelOutput;
use kernels::{GpuFault, KernelError, Tensor};

/// A GPU that computes products, or none.
#[derive(Default)]
pub(super) struct GpuProducts {
    /// None: there is none, or it has failed.
    pub device: Option<Box<dyn RowProducts>>,
    /// Why it has failed.
    pub incident: Option<KernelError>,
    /// Where the bytes of matrices begin that its memory has no room for.
    too_large: HashSet<usize>,
    /// What is added to results.
    product: Vec<f32>,
}

impl GpuProducts {
    /// Opens a GPU. Errors: it is absent or can't be started.
    pub fn open(options: &BackendOptions) -> Result<Self, KernelError> {
        Ok(Self { device: Some(open_products(options)?), ..Self::default() })
    }

    /// Returns an upper bound of the main memory that products take whose result has at most `n_floats`.
    pub fn peak_bytes(&self, n_floats: usize) -> u64 {
        let is_open = u64::from(self.device.is_some());
        is_open * (MAX_STAGED_BYTES + 4 * n_floats as u64)
    }

    /// c (rows, n) = or += a (rows, k) · Wᵀ or W. Returns whether the GPU computed it. If not, `c` is to be computed.
    pub fn multiply(
        &mut self,
        a: &[f32],
        w: &Tensor,
        direction: Direction,
        output: PanelOutput,
        c: &mut [f32],
    ) -> bool {
        let Self { device: Some(device), product, .. } = self else { return false };
        let start = w.bytes().as_ptr().addr();
        if self.too_large.contains(&start) {
            return false;
        }
        let multiplied = match output {
            PanelOutput::Overwrite => device.multiply(a, w, direction, c),
            PanelOutput::Add => {
                product.resize(c.len(), 0.0);
                device.multiply(a, w, direction, product).map(|()| {
                    c.iter_mut().zip(product.iter()).for_each(|(c, x)| *c += x);
                })
            }
        };
        match multiplied {
            Ok(()) => true,
            Err(KernelError::Gpu { fault: GpuFault::Memory, .. }) => {
                self.too_large.insert(start);
                false
            }
            Err(error) => {
                (self.device, self.incident) = (None, Some(error));
                false
            }
        }
    }
}
