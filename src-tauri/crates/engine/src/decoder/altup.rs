//! Several residual streams side by side in one row: (tokens, n_streams · d_model). A layer computes the active one.

use std::sync::Arc;

use kernels::{Columns, MixFactors, ValueId};

use super::per_layer::LayerInput;
use super::{Decoder, vector};
use crate::error::Result;
use crate::spec::{AltUp, LayerSpec, Role};

/// Least mean square of a projected stream that is scaled to the size of the first. The models were trained with it.
const MIN_MEAN_SQUARE: f32 = 1e-5;

impl Decoder<'_> {
    /// Builds all streams from the embedding: projections of it, scaled to its size. (tokens, n_streams · d_model)
    pub(super) fn begin_streams(&mut self, x: ValueId, altup: &AltUp) -> Result<ValueId> {
        if altup.n_streams == 1 {
            return Ok(x);
        }
        let mut projections = Vec::with_capacity(altup.n_streams - 1);
        for (i, weight) in
            self.weights.experts(Role::AltUpProjection, None, self.graph.device())?.iter().enumerate()
        {
            projections.push(self.graph.matmul(format!("embed.stream{}", i + 1), x, weight, None)?);
        }
        let matched = self.matched("embed", &projections, x)?;
        Ok(self.graph.join_columns("embed.streams", x, matched, 1)?)
    }

    /// Builds the mean of all streams, the further ones projected. (outputs, n_streams · d_model) → (outputs, d_model)
    pub(super) fn join_streams(&mut self, streams: ValueId, altup: &AltUp) -> Result<ValueId> {
        if altup.n_streams == 1 {
            return Ok(streams);
        }
        let first = self.stream("output.stream0", streams, altup, 0)?;
        let mut projections = Vec::with_capacity(altup.n_streams - 1);
        for (i, weight) in self.weights.experts(Role::AltUpOut, None, self.graph.device())?.iter().enumerate()
        {
            let stream = self.stream(&format!("output.stream{}", i + 1), streams, altup, i + 1)?;
            projections.push(self.graph.matmul(
                format!("output.projection{}", i + 1),
                stream,
                weight,
                None,
            )?);
        }
        let matched = self.matched("output", &projections, first)?;
        let ones = MixFactors::Same(vec![1.0; altup.n_streams - 1].into());
        let sum = self.graph.mix("output.sum", first, matched, ones, self.d_model)?;
        Ok(self.graph.scale("output.mean", sum, 1.0 / altup.n_streams as f32)?)
    }

    /// Builds a layer: predicts all streams, computes the active one, corrects all by the result. The layer's own input
    /// is added to all but the first. (tokens, n_streams · d_model) → same shape
    pub(super) fn streams_layer(
        &mut self,
        streams: ValueId,
        layer: &LayerSpec,
        altup: &AltUp,
        input: Option<LayerInput<'_>>,
    ) -> Result<ValueId> {
        let d = self.d_model;
        let active = self.stream("altup.active", streams, altup, altup.active)?;
        let modalities = self.modalities("altup.before", active, altup)?; // (tokens, n_streams)
        let factors = self.matmul("altup.prediction", modalities, Role::AltUpPrediction, None)?;
        let factors = MixFactors::OfRow(factors);
        let predicted = self.graph.mix(self.name("altup.predicted"), streams, streams, factors, d)?;
        let x = self.stream("altup.x", predicted, altup, altup.active)?; // (tokens, d_model)
        let computed = self.layer(x, layer)?;
        let modalities = self.modalities("altup.after", computed, altup)?;
        let ones = vector(&vec![1.0; altup.n_streams])?;
        let role = Role::AltUpCorrection;
        let factors = self.matmul_and_shift("altup.correction", modalities, role, Some(&ones))?; // (tokens, n_streams)
        let minus = MixFactors::Same([-1.0].into());
        let innovation = self.graph.mix(self.name("altup.innovation"), computed, x, minus, d)?;
        let factors = MixFactors::OfRow(factors);
        let corrected = self.graph.mix(self.name("altup.corrected"), predicted, innovation, factors, d)?;
        let Some(input) = input.filter(|_| altup.n_streams > 1) else { return Ok(corrected) };
        let mut x = self.stream("altup.gate_x", corrected, altup, altup.active)?;
        if altup.gate_scale {
            let factors = self.vector(Role::AltUpGateScale)?;
            x = self.graph.scale_columns(self.name("altup.gate_scale"), x, factors)?;
        }
        let more = self.per_layer_input(x, input)?;
        let all_but_first: Arc<[f32]> =
            (0..altup.n_streams).map(|i| if i == 0 { 0.0 } else { 1.0 }).collect();
        let factors = MixFactors::Same(all_but_first);
        Ok(self.graph.mix(self.name("input.add"), corrected, more, factors, d)?)
    }

    /// Adds the low-rank branch of the mixer's input to `x`, if the layer has one. Both (tokens, d_model)
    pub(super) fn laurel(&mut self, x: ValueId, normed: ValueId, layer: &LayerSpec) -> Result<ValueId> {
        let Some(laurel) = &layer.laurel else { return Ok(x) };
        let low = self.matmul("laurel.down", normed, Role::LaurelDown, None)?; // (tokens, rank)
        let high = self.matmul("laurel.up", low, Role::LaurelUp, None)?;
        let high = self.post_norm("laurel.norm", high, Some(laurel.norm), Role::LaurelNorm)?;
        let branch = self.graph.add(self.name("laurel.add"), normed, high)?;
        let sum = self.graph.add(self.name("laurel.sum"), x, branch)?;
        Ok(self.graph.scale(self.name("laurel.scale"), sum, std::f32::consts::FRAC_1_SQRT_2)?)
    }

    /// tanh of the router's output. x (tokens, d_model) → (tokens, n_streams)
    fn modalities(&mut self, part: &str, x: ValueId, altup: &AltUp) -> Result<ValueId> {
        let normed =
            self.post_norm(&format!("{part}.norm"), x, Some(altup.router_norm), Role::AltUpRouterNorm)?;
        let routed = self.matmul(&format!("{part}.router"), normed, Role::AltUpRouter, None)?;
        let routed = self.graph.scale(self.name(&format!("{part}.scale")), routed, altup.router_scale)?;
        // tanh: a soft cap of 1
        Ok(self.graph.softcap(self.name(&format!("{part}.tanh")), routed, 1.0)?)
    }

    /// Joins projected streams and scales each to the size of `of`. (rows, (n_streams - 1) · d_model)
    fn matched(&mut self, part: &str, projections: &[ValueId], of: ValueId) -> Result<ValueId> {
        let mut joined = projections[0];
        for (i, projection) in projections.iter().enumerate().skip(1) {
            joined = self.graph.join_columns(format!("{part}.join{i}"), joined, *projection, 1)?;
        }
        Ok(self.graph.match_rms(format!("{part}.matched"), joined, of, MIN_MEAN_SQUARE)?)
    }

    /// Selects a stream. (rows, d_model)
    fn stream(&mut self, part: &str, streams: ValueId, altup: &AltUp, index: usize) -> Result<ValueId> {
        let width = self.d_model;
        let columns = Columns { n_groups: 1, stride: altup.width(width), start: index * width, width };
        Ok(self.graph.columns(self.name(part), streams, columns)?)
    }
}
