//! Precision of GPU matrix multiplications.

/// How a GPU rounds the operands of a matrix multiplication. Sums are always f32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// As `F32`. A row has the same bits in any batch, and results are as close to the reference as a GPU gets. No GPU
    /// has been measured on which half precision pays. Decoding waits for weights, which have the same size either way;
    /// only prompts could gain.
    #[default]
    Auto,
    /// single precision
    F32,
    /// Operands rounded to half precision (11 bits): tiles take half of the workgroup memory. A row still has the same
    /// bits in any batch.
    F16,
    /// As `F16`, with cooperative matrices for prompts. They add in an order that depends on the number of rows, so a
    /// row's bits depend on its batch. Experimental in wgpu.
    Matrices,
}

impl Precision {
    /// Resolves `Auto`.
    pub fn in_use(self) -> Self {
        match self {
            Self::Auto => Self::F32,
            Self::F32 | Self::F16 | Self::Matrices => self,
        }
    }

    /// The next safer precision to fall back to. None: this is single precision already.
    pub fn safer(self) -> Option<Self> {
        match self {
            Self::Auto | Self::F32 => None,
            Self::F16 => Some(Self::F32),
            Self::Matrices => Some(Self::F16),
        }
    }

    /// The name in settings and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Matrices => "matrices",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_precision_falls_back_to_f32() {
        for precision in [Precision::Auto, Precision::F32, Precision::F16, Precision::Matrices] {
            let mut last = precision.in_use();
            while let Some(safer) = last.safer() {
                assert_ne!(safer.name(), last.name());
                last = safer;
            }
            assert_eq!(last, Precision::F32, "{precision:?}");
        }
    }
}
