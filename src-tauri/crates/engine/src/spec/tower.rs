//! Structure of a vision tower as data: patches of an image in, embeddings for a language model out.

use kernels::{Activation, RowMerge};

use super::tensors::{AddTensor, norm};
use super::{LayerSpec, Norm, Role, TensorSpec};

/// A whole tower with its projector.
#[derive(Debug, Clone, PartialEq)]
pub struct TowerSpec {
    /// The family's name in the table of towers.
    pub family: &'static str,
    /// Width of the residual stream.
    pub d_model: usize,
    /// How a patch enters the residual stream.
    pub patches: PatchEmbedding,
    /// The layers, first to last. Their attention is bidirectional.
    pub layers: Vec<LayerSpec>,
    /// How the pairs of a head that rotate are stored.
    pub pairs: PairOrder,
    /// Whether the layers' products keep their inputs and outputs within bounds of the file.
    pub has_bounds: bool,
    /// Norm of every patch after the layers.
    pub output_norm: Norm,
    /// From patches to the language model's width.
    pub projector: Projector,
    /// Further rows from inner layers, for the first layers of the language model.
    pub deepstack: Deepstack,
    /// What the rows of an image see of it in the language model.
    pub seen: ImageAttention,
    /// Their positions there.
    pub positions: ImagePositions,
    /// Which of an image's rows follow one another in a text.
    pub runs: ImageRuns,
}

/// What a row of an image sees of the image's later rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageAttention {
    /// All of them, in every layer.
    Whole,
    /// All of them in layers with a window, none in others. Models with an embedding for each layer: none (Gemma 4 E).
    WholeInWindows,
    /// None.
    Causal,
}

/// Positions of the rows of an image in the language model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImagePositions {
    /// One after another, as of a text.
    Line,
    /// By row and column; what follows begins after the longer side.
    Grid,
}

/// Which rows of an image follow one another in a text, without markers between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageRuns {
    /// All.
    Whole,
    /// Those of a row of the image.
    Rows,
}

/// Which dimensions of a stored head rotate together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairOrder {
    /// As the rotation of the layers says.
    AsStored,
    /// i and i + a quarter within either half of a head. Loading exchanges the middle quarters, so that they are half a
    /// head apart.
    WithinHalves {
        /// Size of a head.
        head_dim: usize,
    },
}

/// How the samples of a patch become a row of the residual stream.
#[derive(Debug, Clone, PartialEq)]
pub struct PatchEmbedding {
    /// Samples per side of a patch.
    pub size: usize,
    /// Frames of a video that a patch spans, at most two. Of an image all are the same.
    pub n_frames: usize,
    /// Whether the projection has a bias.
    pub bias: bool,
    /// Samples, as a preprocessor gives them and as the projection takes them.
    pub samples: PatchSamples,
    /// Norm of the samples of a patch.
    pub sample_norm: Norm,
    /// Norm of a projected patch, before its place is added.
    pub embedding_norm: Norm,
    /// Sizes of images.
    pub grid: PatchGrid,
    /// In which order a preprocessor gives the patches of an image.
    pub sequence: PatchSequence,
    /// Norm of every patch with its place.
    pub norm: Norm,
}

/// Order and range of the samples of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchSamples {
    /// As a preprocessor gives them.
    pub given: SampleOrder,
    /// As the stored projection takes them.
    pub stored: SampleOrder,
    /// Whether they lie between 0 and 1, and the tower takes them between −1 and 1.
    pub is_unit: bool,
}

/// Order of the samples of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleOrder {
    /// (channel, y, x)
    ChannelsFirst,
    /// (y, x, channel)
    ChannelsLast,
}

impl PatchSamples {
    /// Samples as a convolution takes them.
    pub const CONVOLUTION: Self =
        Self { given: SampleOrder::ChannelsFirst, stored: SampleOrder::ChannelsFirst, is_unit: false };
}

/// Patches of an image, and where their positions come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchGrid {
    /// Always `side` × `side`, with a row of a learned table for each.
    Square {
        /// Patches per side.
        side: usize,
    },
    /// Any number of whole blocks, with a learned table that is resampled to it.
    Resampled {
        /// Positions per side of the table.
        side: usize,
        /// How it is resampled.
        rule: TableResampling,
    },
    /// Any number of whole blocks, with learned tables for columns and rows, which are added.
    Axes {
        /// Positions of each table.
        side: usize,
    },
    /// Any number of whole blocks, without learned positions.
    Plain,
}

/// How a table of positions is resampled, always bilinearly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableResampling {
    /// The corners stay in place.
    Corners,
    /// The edges stay in place; shrinking averages over all positions that a patch covers.
    Antialiased,
}

/// Order of the patches of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchSequence {
    /// Row by row.
    Raster,
    /// Block by block of those that become one embedding, row by row in each.
    Blocks,
}

/// From patches to embeddings: neighbors are merged, normed and projected.
#[derive(Debug, Clone, PartialEq)]
pub struct Projector {
    /// Patches per side of the block that becomes one embedding.
    pub block_side: usize,
    /// How the patches of a block are merged.
    pub merge: RowMerge,
    /// Factor on patches before they are merged.
    pub scale: f32,
    /// Whether numbers of the file are subtracted from patches and multiplied with them before they are merged.
    pub is_standardized: bool,
    /// Whether a matrix joins the patches of a block to the width of one. It is stored channel by channel.
    pub is_joined: bool,
    /// Norm of a merged row.
    pub norm: Norm,
    /// Hidden layer: its width, activation and whether both layers have a bias.
    pub hidden: Option<ProjectorHidden>,
    /// Width of the result: that of the language model.
    pub d_out: usize,
}

/// Hidden layer of a projector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProjectorHidden {
    /// Width of the layer.
    pub width: usize,
    /// Its activation.
    pub activation: Activation,
    /// Whether both layers have a bias.
    pub bias: bool,
}

/// Rows from inner layers: each is merged, normed by mean and variance and projected as the output is.
#[derive(Debug, Clone, PartialEq)]
pub struct Deepstack {
    /// Where they come from, in the order of the language model's layers that they are added after.
    pub taps: Vec<DeepstackTap>,
    /// Added to the variance of their norms.
    pub eps: f32,
}

/// An inner layer of a tower whose output the language model takes, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeepstackTap {
    /// Index of the layer.
    pub layer: usize,
    /// Number in the names of its projector's tensors.
    pub number: usize,
}

impl Deepstack {
    /// No rows from inner layers.
    pub const NONE: Self = Self { taps: Vec::new(), eps: 0.0 };
}

impl TowerSpec {
    /// Returns the samples of a patch.
    pub fn patch_len(&self) -> usize {
        N_CHANNELS * self.patches.size * self.patches.size
    }

    /// Returns the patches that become one embedding.
    pub fn patches_per_embedding(&self) -> usize {
        self.projector.block_side * self.projector.block_side
    }

    /// Returns the numbers of an output row: the embedding, and what is added after the language model's first layers.
    pub fn row_width(&self) -> usize {
        self.projector.d_out * (1 + self.deepstack.taps.len())
    }

    /// Returns every tensor that the tower requires. Those of the deepstack have the index of their tap as layer.
    pub fn tensors(&self) -> Vec<TensorSpec> {
        let d = self.d_model;
        let mut all = Vec::new();
        let mut add = |role, shape| all.push((role, None, shape));
        let size = self.patches.size;
        let samples = match self.patches.samples.stored {
            SampleOrder::ChannelsFirst => vec![N_CHANNELS, size, size],
            SampleOrder::ChannelsLast => vec![N_CHANNELS * size * size],
        };
        add(Role::PatchEmbedding, [vec![d], samples.clone()].concat());
        if self.patches.n_frames > 1 {
            add(Role::PatchEmbeddingNext, [vec![d], samples].concat());
        }
        if self.patches.bias {
            add(Role::PatchEmbeddingBias, vec![d]);
        }
        let roles = [Role::PatchSampleNorm, Role::PatchSampleNormBias];
        norm(self.patches.sample_norm, self.patch_len(), roles, &mut add);
        let roles = [Role::PatchEmbeddingNorm, Role::PatchEmbeddingNormBias];
        norm(self.patches.embedding_norm, d, roles, &mut add);
        match self.patches.grid {
            PatchGrid::Square { side } | PatchGrid::Resampled { side, .. } => {
                add(Role::PositionEmbedding, vec![side * side, d]);
            }
            PatchGrid::Axes { side } => add(Role::PositionEmbedding, vec![2, side, d]),
            PatchGrid::Plain => {}
        }
        norm(self.patches.norm, d, [Role::PatchNorm, Role::PatchNormBias], &mut add);
        norm(self.output_norm, d, [Role::OutputNorm, Role::OutputNormBias], &mut add);
        self.projector.tensors(d, &mut add);
        for (index, layer) in self.layers.iter().enumerate() {
            layer.tensors(d, &mut |role, shape| all.push((role, Some(index), shape)));
        }
        for index in 0..self.deepstack.taps.len() {
            self.projector.deep_tensors(d, &mut |role, shape| all.push((role, Some(index), shape)));
        }
        all
    }
}

/// Channels of an image: red, green and blue.
const N_CHANNELS: usize = 3;

impl Projector {
    fn tensors(&self, d: usize, add: &mut AddTensor) {
        if self.is_standardized {
            add(Role::StandardBias, vec![1, d]);
            add(Role::StandardScale, vec![1, d]);
        }
        let d_merged = match self.merge {
            RowMerge::Mean => d,
            RowMerge::Concat => d * self.block_side * self.block_side,
        };
        if self.is_joined {
            add(Role::ProjectorMerge, vec![d, d_merged]);
        }
        let d_in = if self.is_joined { d } else { d_merged };
        norm(self.norm, d_in, [Role::ProjectorNorm, Role::ProjectorNormBias], add);
        let d_last = match &self.hidden {
            Some(hidden) => {
                add(Role::ProjectorHidden, vec![hidden.width, d_in]);
                hidden.width
            }
            None => d_in,
        };
        add(Role::ProjectorOut, vec![self.d_out, d_last]);
        if let Some(hidden) = self.hidden.filter(|hidden| hidden.bias) {
            add(Role::ProjectorHiddenBias, vec![hidden.width]);
            add(Role::ProjectorOutBias, vec![self.d_out]);
        }
    }

    /// The tensors of one inner layer's projector.
    fn deep_tensors(&self, d: usize, add: &mut AddTensor) {
        let width = d * self.block_side * self.block_side;
        add(Role::DeepNorm, vec![width]);
        add(Role::DeepNormBias, vec![width]);
        add(Role::DeepHidden, vec![width, width]);
        add(Role::DeepHiddenBias, vec![width]);
        add(Role::DeepOut, vec![self.d_out, width]);
        add(Role::DeepOutBias, vec![self.d_out]);
    }
}
