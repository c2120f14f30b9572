//! Whether a GPU computes the products of a pass: which it is, whether it is faster, and why it does no more.

use std::time::Duration;

use kernels::matmul::product::{Direction, RowProducts};
use kernels::ops::integer_panel::PanelOutput;
use kernels::{KernelError, Op, Tensor};

use super::TrainingPass;
use super::product::Products;

/// Rows of the product that a GPU and the CPU are measured by.
const MEASURED_ROWS: usize = 256;

impl TrainingPass {
    /// Returns the name of the GPU that computes products. None: the CPU does.
    pub fn gpu_name(&self) -> Option<&str> {
        self.state.products.gpu.device.as_deref().map(RowProducts::name)
    }

    /// Returns why the GPU has failed, once. The CPU has gone on.
    pub fn take_gpu_incident(&mut self) -> Option<KernelError> {
        self.state.products.gpu.incident.take()
    }

    /// Measures a product with the largest frozen matrix of a layer on the GPU and on the CPU, and lets the GPU go if it is
    /// slower. Errors: a panic of a kernel.
    pub fn keep_faster(&mut self, now: &dyn Fn() -> Duration) -> Result<(), KernelError> {
        let Some(weight) = self.measured_matrix() else { return Ok(()) };
        let x = vec![1.0; MEASURED_ROWS * weight.n_cols()];
        let mut y = vec![0.0; MEASURED_ROWS * weight.n_rows()];
        let products = &mut self.state.products;
        let mut measure = |products: &mut Products| {
            let began = now();
            let output = PanelOutput::Overwrite;
            products.multiply_frozen(&x, &weight, Direction::Forward, output, &mut y)?;
            Ok(now().saturating_sub(began))
        };
        // The first product uploads the matrix and compiles kernels.
        measure(products)?;
        let on_gpu = measure(products)?;
        let device = products.gpu.device.take();
        let on_cpu = measure(products)?;
        products.gpu.device = device.filter(|_| on_gpu < on_cpu);
        Ok(())
    }

    /// The largest frozen matrix before the head. None: there is none, or no GPU to measure.
    fn measured_matrix(&self) -> Option<Tensor> {
        let state = &self.state;
        state.products.gpu.device.as_ref()?;
        let nodes = state.graph.nodes()[..state.plan.head.start].iter().enumerate();
        let frozen = nodes.filter(|(i, _)| !state.trained.contains_key(i));
        let weights = frozen.filter_map(|(_, node)| match &node.op {
            Op::MatMul { weight, .. } => Some(weight),
            _ => None,
        });
        weights.max_by_key(|weight| weight.n_rows() * weight.n_cols()).cloned()
    }
}
