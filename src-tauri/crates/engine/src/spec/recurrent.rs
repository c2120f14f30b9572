//! Mixers with a recurrent state instead of a cache.

use kernels::HeadOrder;

use super::Norm;

/// Gated short convolution (LFM2): out(C · conv(B · x)) with B, C and x from one projection.
#[derive(Debug, Clone, PartialEq)]
pub struct ShortConv {
    /// Taps, including the current token's.
    pub kernel: usize,
    /// Biases of both projections and of the convolution.
    pub bias: bool,
}

/// Gated DeltaNet: a matrix state per head instead of a cache.
#[derive(Debug, Clone, PartialEq)]
pub struct DeltaNet {
    /// Query and key heads.
    pub n_k_heads: usize,
    /// Value heads.
    pub n_v_heads: usize,
    /// Size of a query or key head.
    pub k_dim: usize,
    /// Size of a value head.
    pub v_dim: usize,
    /// Taps of the convolution before it.
    pub kernel: usize,
    /// How value heads map to key heads.
    pub order: HeadOrder,
    /// How the decay is stored.
    pub decay: Decay,
    /// Norm of each output head.
    pub norm: Norm,
}

impl DeltaNet {
    /// Returns the width of queries, keys and values together.
    pub fn qkv_width(&self) -> usize {
        2 * self.n_k_heads * self.k_dim + self.value_width()
    }

    /// Returns the width of all value heads.
    pub fn value_width(&self) -> usize {
        self.n_v_heads * self.v_dim
    }
}

/// How a file stores the decay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decay {
    /// Its logarithm: the factor is −exp(x).
    Log,
    /// The factor itself.
    Factor,
}

/// State space of Mamba-2: a matrix state per head, behind a convolution and before a gate.
#[derive(Debug, Clone, PartialEq)]
pub struct Ssm {
    /// Number of heads.
    pub n_heads: usize,
    /// Size of a head.
    pub head_dim: usize,
    /// Groups of heads that share B and C.
    pub n_groups: usize,
    /// Size of B and of C.
    pub d_state: usize,
    /// Taps of the convolution.
    pub kernel: usize,
    /// Bias of the convolution.
    pub conv_bias: bool,
    /// Biases of the input projections.
    pub in_bias: bool,
    /// Bias of the output projection.
    pub out_bias: bool,
    /// How the decay is stored.
    pub decay: Decay,
    /// Least and largest time step.
    pub dt_limits: [f32; 2],
    /// Norm of each group of the output.
    pub norm: Option<Norm>,
    /// Order of gate and norm.
    pub order: GateOrder,
    /// Factors on the input and on what it is projected to.
    pub factors: SsmFactors,
}

impl Ssm {
    /// Returns the width of all heads.
    pub fn inner(&self) -> usize {
        self.n_heads * self.head_dim
    }

    /// Returns the width of x, B and C together.
    pub fn xbc_width(&self) -> usize {
        self.inner() + 2 * self.n_groups * self.d_state
    }
}

/// Order of a gate and a norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateOrder {
    /// norm(silu(z) · x)
    GateFirst,
    /// silu(z) · norm(x)
    NormFirst,
}

/// Factors on the input of a state space and on its projections (Falcon H1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SsmFactors {
    /// The input of the projections.
    pub input: f32,
    /// The gate.
    pub z: f32,
    /// x, before the convolution.
    pub x: f32,
    /// B, before the convolution.
    pub b: f32,
    /// C, before the convolution.
    pub c: f32,
    /// The time step, before its bias.
    pub dt: f32,
}

impl SsmFactors {
    /// No factor.
    pub const NONE: Self = Self { input: 1.0, z: 1.0, x: 1.0, b: 1.0, c: 1.0, dt: 1.0 };
}
