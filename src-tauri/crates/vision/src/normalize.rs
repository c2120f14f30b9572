//! Rescaling and normalization of 8-bit samples, as a table per channel.

/// The float32 value of each sample.
#[derive(Clone, PartialEq)]
pub(crate) struct Normalization {
    tables: [[f32; 256]; 3],
}

impl Normalization {
    /// `(sample × rescale − mean) / std`: the product in float64, the rest in float32, as transformers computes it.
    pub fn new(rescale: f64, mean: [f32; 3], std: [f32; 3]) -> Self {
        let table = |channel: usize| {
            std::array::from_fn(|sample| ((sample as f64 * rescale) as f32 - mean[channel]) / std[channel])
        };
        Self { tables: std::array::from_fn(table) }
    }

    /// The table of a channel.
    pub fn channel(&self, channel: usize) -> &[f32; 256] {
        &self.tables[channel]
    }
}
