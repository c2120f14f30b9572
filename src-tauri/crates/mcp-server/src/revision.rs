//! Revisions of the protocol.

/// A revision that this server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    /// Without a handshake: each request says its revision and what its client can do.
    V2026_07_28,
}

impl Revision {
    /// Every revision, the newest first.
    pub const ALL: [Self; 5] =
        [Self::V2026_07_28, Self::V2025_11_25, Self::V2025_06_18, Self::V2025_03_26, Self::V2024_11_05];

    /// The newest revision that begins with a handshake.
    pub const NEWEST_WITH_HANDSHAKE: Self = Self::V2025_11_25;

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The revision of a name; `None` for one that this server does not speak.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.name() == name)
    }

    /// Whether every request stands by itself.
    pub fn is_stateless(self) -> bool {
        self >= Self::V2026_07_28
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_have_their_names_and_order() {
        assert!(Revision::ALL.is_sorted_by(|a, b| a > b));
        assert!(Revision::ALL.into_iter().all(|it| Revision::of_name(it.name()) == Some(it)));
        assert_eq!(Revision::of_name("1900-01-01"), None);
        assert!(Revision::V2026_07_28.is_stateless() && !Revision::V2025_11_25.is_stateless());
    }
}
