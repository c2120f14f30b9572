//! How much of a picture the model sees, where the family lets a user choose.

/// A cap on the image tokens of one picture. Families with a fixed count ignore it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Detail {
    /// At most about 256 tokens: photos at a glance.
    Low,
    /// At most about 1,024 tokens: photos and large text.
    Balanced,
    /// As the model's own settings say.
    #[default]
    Full,
}

impl Detail {
    /// Image tokens per picture at most; `None` leaves the model's own limit.
    pub fn max_tokens(self) -> Option<usize> {
        match self {
            Detail::Low => Some(256),
            Detail::Balanced => Some(1024),
            Detail::Full => None,
        }
    }
}
