//! Places in the application that an article can open.

/// What a button under an article opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenTarget {
    /// A section of the settings, by its English name in lower case, such as `appearance`.
    Section(String),
    /// One setting, by its key.
    Setting(String),
    /// What a command shows, by its id.
    Command(String),
}

impl OpenTarget {
    /// Reads `section:NAME`, `setting:KEY` or `command:ID`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (kind, name) = text.split_once(':')?;
        match kind {
            "section" => Some(Self::Section(name.to_owned())),
            "setting" => Some(Self::Setting(name.to_owned())),
            "command" => Some(Self::Command(name.to_owned())),
            _ => None,
        }
    }
}
