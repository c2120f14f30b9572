//! Which GPU to open, and for which GPUs kernels are verified.

/// Selects one GPU out of those that have a driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GpuSelector {
    /// the most capable one, software renderers excluded
    Hardware,
    /// the most capable one, software renderers included
    #[default]
    Any,
    /// the first whose name contains this text, ignoring case
    Named(String),
    /// by index into the list of adapters, counted from 0
    Nth(usize),
}

impl GpuSelector {
    /// Parses what a user enters: an index, or part of a name. Empty text selects any GPU.
    pub fn parse(text: &str) -> Self {
        match text.trim() {
            "" => Self::Any,
            text => text.parse().map_or_else(|_| Self::Named(text.to_owned()), Self::Nth),
        }
    }
}

/// Which GPUs have their kernels verified before first use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VerificationScope {
    /// hardware only; software renderers are what kernels are tested on
    #[default]
    Hardware,
    /// software renderers too, for tests
    All,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_selected_by_its_index_or_a_part_of_its_name() {
        let parsed = ["", " 1 ", "GeForce", "2x"].map(GpuSelector::parse);
        let expected = [
            GpuSelector::Any,
            GpuSelector::Nth(1),
            GpuSelector::Named("GeForce".into()),
            GpuSelector::Named("2x".into()),
        ];
        assert_eq!(parsed, expected);
    }
}
