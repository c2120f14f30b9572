//! Precision of GPU matrix multiplications.

/// Rows from which on a batch of one sequence is a prompt: more than a draft under verification has.
pub const MIN_PROMPT_ROWS: usize = 64;

/// How a GPU rounds the operands of a matrix multiplication. Sums are always f32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// As `Matrices` on GPUs that have cooperative matrices and compute correctly with them, else as `F32`.
    #[default]
    Auto,
    /// Single precision. A row has the same bits in any batch.
    F32,
    /// Operands rounded to half precision (11 bits): tiles take half of the workgroup memory. A row still has the same
    /// bits in any batch.
    F16,
    /// As `F32`, but prompts are multiplied by cooperative matrices, with operands rounded to half precision. They attend to
    /// keys and values in f16 in this way too. A batch is a prompt if it has `MIN_PROMPT_ROWS` rows or more, all of one
    /// sequence. Answers, drafts and batches of several sequences are multiplied as by `F32`. So a prompt's bits depend
    /// slightly on whether other sequences ran beside it.
    Matrices,
}

impl Precision {
    /// Resolves `Auto` to what any GPU has.
    pub fn in_use(self) -> Self {
        match self {
            Self::Auto => Self::F32,
            Self::F32 | Self::F16 | Self::Matrices => self,
        }
    }

    /// The next safer precision to fall back to. None: this is single precision.
    pub fn safer(self) -> Option<Self> {
        match self {
            Self::F32 => None,
            Self::Auto | Self::F16 | Self::Matrices => Some(Self::F32),
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
            let last = precision.safer().unwrap_or(precision);
            assert_eq!((last, last.safer()), (Precision::F32, None), "{precision:?}");
        }
    }
}
