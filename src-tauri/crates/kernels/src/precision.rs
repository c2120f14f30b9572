//! In what precision a graphics card multiplies.

/// What becomes of the operands of a card's products; sums are floats in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// As `F32`: a row has the same bits in any company, an answer is as near to its reference as a card can bring it,
    /// and no real card has been seen yet on which halves pay. Decoding waits for weights, which are no shorter then;
    /// only prompts could gain.
    #[default]
    Auto,
    F32,
    /// Rounded to eleven bits: tiles take half of a workgroup's memory. A row still has the same bits in any company.
    F16,
    /// As `F16`, and prompts by the card's cooperative matrices. They add up in an order of their own, so that a row's
    /// bits depend on how many rows there are; and they are an experiment of wgpu's.
    Matrices,
}

impl Precision {
    /// What is meant where nobody chose.
    pub fn in_use(self) -> Self {
        match self {
            Self::Auto => Self::F32,
            Self::F32 | Self::F16 | Self::Matrices => self,
        }
    }

    /// What less can go wrong with. None: that is floats.
    pub fn safer(self) -> Option<Self> {
        match self {
            Self::Auto | Self::F32 => None,
            Self::F16 => Some(Self::F32),
            Self::Matrices => Some(Self::F16),
        }
    }

    /// As settings and messages have it.
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
    fn all_end_at_floats() {
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
