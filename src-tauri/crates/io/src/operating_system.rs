//! The operating systems that the program runs on.
//!
//! A rule that differs between them is a function that takes one as a parameter: so all rules are tested on any of them.

/// An operating system, as far as rules differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperatingSystem {
    /// Linux, and every other Unix but macOS.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

impl OperatingSystem {
    /// The one that this program was built for.
    pub const HERE: Self = if cfg!(windows) {
        Self::Windows
    } else if cfg!(target_os = "macos") {
        Self::MacOs
    } else {
        Self::Linux
    };

    /// What stands between the folders of `PATH`.
    pub fn path_separator(self) -> char {
        match self {
            Self::Linux | Self::MacOs => ':',
            Self::Windows => ';',
        }
    }

    /// The names of folders and file in a path, the first one first. Roots and separators are left out.
    pub fn path_parts(self, path: &str) -> impl Iterator<Item = &str> {
        let is_separator = move |c: char| c == '/' || (self == Self::Windows && c == '\\');
        path.split(is_separator).filter(|part| !part.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::OperatingSystem::{self, *};

    #[test]
    fn this_one_separates_paths_as_the_standard_library_does() {
        let joined = std::env::join_paths(["a", "b"]).unwrap();
        assert_eq!(joined.to_str(), Some(format!("a{}b", OperatingSystem::HERE.path_separator()).as_str()));
    }

    #[test]
    fn paths_are_taken_apart_by_the_rules_of_their_system() {
        let check = |system: OperatingSystem, path: &str, expected: &[&str]| {
            assert_eq!(system.path_parts(path).collect::<Vec<_>>(), expected, "{system:?} {path}");
        };
        check(Linux, "/home/a/b c/", &["home", "a", "b c"]);
        check(MacOs, r"/Users/a\b", &["Users", r"a\b"]);
        check(Windows, r"C:\Users\a/b", &["C:", "Users", "a", "b"]);
    }
}
