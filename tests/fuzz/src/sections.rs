//! Inputs of several files as one readable text: each begins with a line `=== name`.

/// The line that begins a section, up to its name.
const MARK: &[u8] = b"=== ";

/// More sections are left out.
const MAX_SECTIONS: usize = 64;

/// Named contents, in their order. What stands before the first mark has no name.
pub struct Sections<'a>(Vec<(&'a str, &'a [u8])>);

impl<'a> Sections<'a> {
    /// Cuts an input at its marks.
    pub fn of(input: &'a [u8]) -> Self {
        let mut found = Vec::new();
        let (mut name, mut start, mut line) = ("", 0, 0);
        while line < input.len() && found.len() < MAX_SECTIONS {
            let end = input[line..].iter().position(|byte| *byte == b'\n').map_or(input.len(), |n| line + n);
            if let Some(next) = input[line..end].strip_prefix(MARK) {
                found.push((name, without_line_end(&input[start..line])));
                name = std::str::from_utf8(next).unwrap_or_default();
                start = (end + 1).min(input.len());
            }
            line = end + 1;
        }
        found.push((name, without_line_end(&input[start..])));
        Self(found)
    }

    /// The first content of that name.
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.0.iter().find(|(found, _)| *found == name).map(|(_, content)| *content)
    }

    /// The first content of that name as text, with U+FFFD for what is no UTF-8.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(|content| String::from_utf8_lossy(content).into_owned())
    }

    /// All that have names.
    pub fn named(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        self.0.iter().copied().filter(|(name, _)| !name.is_empty())
    }
}

fn without_line_end(content: &[u8]) -> &[u8] {
    content.strip_suffix(b"\n").unwrap_or(content)
}
