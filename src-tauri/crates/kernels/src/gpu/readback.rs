//! What comes back of a run: values that are read from outside, and of the output only its likeliest columns where no
//! more is asked for.

use std::ops::Range;

use super::State;
use super::buffers::floats_of;
use super::device::Device;
use super::likeliest::Likeliest;
use crate::backend::Retain;
use crate::error::KernelError;
use crate::graph::{Graph, Op, ValueId};
use crate::ops::likeliest::{Likely, of_rows};
use crate::plan::Batch;

/// What others read after a stretch of nodes: the output, what goes to another device, or all.
pub fn results(graph: &Graph, nodes: Range<usize>, retain: Retain) -> Vec<ValueId> {
    let copied = |value: ValueId| {
        let copies = |op: &Op| matches!(op, Op::Copy { x } if *x == value);
        graph.nodes().iter().any(|node| copies(&node.op))
    };
    let is_read = |value: &ValueId| match retain {
        Retain::All => true,
        Retain::Needed => *value == graph.output() || copied(*value),
    };
    nodes.filter_map(|i| graph.nodes()[i].output).filter(is_read).collect()
}

impl State {
    /// How many columns of the output a program selects itself; None: all come back, if it makes them.
    pub(super) fn selects(&self, at: usize, batch: &Batch) -> Option<usize> {
        let likeliest = self.programs[at].likeliest.as_ref();
        self.wanted.filter(|k| likeliest.is_some_and(|selects| selects.can(*k, batch.outputs.len())))
    }

    /// Of the last run, selected here or on the card.
    pub(super) fn likeliest(
        &self,
        output: ValueId,
        (n_rows, n_columns): (usize, usize),
        k: usize,
        out: &mut Vec<Likely>,
    ) {
        let mut selects = self.programs.iter().filter_map(|program| program.likeliest.as_ref());
        match selects.find(|likeliest| likeliest.can(k, n_rows)) {
            Some(likeliest) => likeliest.read(k, out),
            None => of_rows(&self.values.read_all(output)[..n_rows * n_columns], n_columns, k, out),
        }
    }

    /// Submits what is left of a program together with the way back of its results. Their bytes.
    pub(super) fn submit(
        &self,
        gpu: &Device,
        mut encoder: wgpu::CommandEncoder,
        at: usize,
        batch: &Batch,
    ) -> u64 {
        let (program, selects) = (&self.programs[at], self.selects(at, batch));
        let n_outputs = batch.outputs.len();
        if let (Some(k), Some(likeliest)) = (selects, &program.likeliest)
            && n_outputs > 0
        {
            likeliest.encode(&mut encoder, k, n_outputs);
        }
        let mut at = 0;
        for value in program.coming(selects) {
            let n_bytes = self.n_bytes(*value, batch);
            encoder.copy_buffer_to_buffer(self.values.buffer(*value), 0, &program.readable, at, n_bytes);
            at += n_bytes;
        }
        gpu.queue.submit([encoder.finish()]);
        at
    }

    /// Waits for what was submitted of a stretch of nodes, and takes what comes back.
    pub(super) fn fetch(
        &mut self,
        gpu: &Device,
        nodes: Range<usize>,
        batch: &Batch,
        n_bytes: u64,
    ) -> Result<(), KernelError> {
        let at = self.programs.iter().position(|program| program.nodes == nodes);
        let at = at.expect("what was submitted has a program");
        let selects = self.selects(at, batch);
        let Self { programs, values, graph, .. } = self;
        let program = &mut programs[at];
        if let (Some(k), Some(likeliest)) = (selects, &mut program.likeliest) {
            values.mirror(graph.output(), 0);
            likeliest.fetch(gpu, k, batch.outputs.len())?;
        }
        if n_bytes == 0 {
            return gpu.check();
        }
        let (readable, coming) = (&program.readable, program.coming(selects));
        gpu.mapped(readable, n_bytes, &mut |mapped| {
            let mut rest = mapped;
            for id in coming {
                let value = graph.value(*id);
                let len = batch.rows(value.rows) * value.width;
                let (bytes, others) = rest.split_at(len * size_of::<f32>());
                floats_of(bytes, values.mirror(*id, len));
                rest = others;
            }
        })
    }

    /// Results that are no numbers, as a broken kernel may leave them.
    pub(super) fn spoil(&mut self, nodes: Range<usize>) {
        for value in results(&self.graph, nodes, self.retain) {
            self.values.mirror_of(value).fill(f32::NAN);
        }
        self.programs.iter_mut().filter_map(|program| program.likeliest.as_mut()).for_each(Likeliest::spoil);
    }

    /// Logits that are no numbers are the card's fault, or the weights': the processor will tell which.
    pub(super) fn check_output(&self, gpu: &Device, nodes: Range<usize>) -> Result<(), KernelError> {
        let output = self.graph.output();
        let is_here = nodes.into_iter().any(|i| self.graph.nodes()[i].output == Some(output));
        let mut selected = self.programs.iter().filter_map(|program| program.likeliest.as_ref());
        let is_wrong =
            self.values.read_all(output).iter().any(|x| x.is_nan()) || selected.any(Likeliest::has_nan);
        match is_here && is_wrong {
            true => Err(gpu.error(gpu.used().suspect(), "its results are not numbers")),
            false => Ok(()),
        }
    }

    pub(super) fn n_bytes(&self, value: ValueId, batch: &Batch) -> u64 {
        let value = self.graph.value(value);
        (batch.rows(value.rows) * value.width * size_of::<f32>()) as u64
    }
}
