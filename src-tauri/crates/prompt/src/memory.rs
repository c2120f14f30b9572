//! The user's notes as a block of the system prompt.

/// Precedes the notes.
const HEADING: &str = "The user asked you to remember:";

/// The block that has these notes. None: there are none.
pub fn memory_block<'a>(notes: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let lines = notes.into_iter().map(str::trim).filter(|note| !note.is_empty());
    let lines: Vec<String> = lines.map(|note| format!("- {}", note.replace('\n', "\n  "))).collect();
    (!lines.is_empty()).then(|| format!("{HEADING}\n{}", lines.join("\n")))
}

/// A system prompt with the block behind it, so that other notes leave the beginning of the prompt as it was.
pub fn with_memory(system: Option<String>, block: Option<String>) -> Option<String> {
    let system = system.filter(|text| !text.trim().is_empty());
    match (system, block) {
        (Some(system), Some(block)) => Some(format!("{system}\n\n{block}")),
        (system, block) => system.or(block),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_become_one_block() {
        let cases: &[(&[&str], Option<&str>)] = &[
            (&[], None),
            (&[" ", ""], None),
            (&["Uses SI units."], Some("The user asked you to remember:\n- Uses SI units.")),
            (&[" a\nb ", "c"], Some("The user asked you to remember:\n- a\n  b\n- c")),
        ];
        for (notes, expected) in cases {
            assert_eq!(memory_block(notes.iter().copied()).as_deref(), *expected, "{notes:?}");
        }
    }

    #[test]
    fn the_block_stands_behind_the_system_prompt() {
        let text = |text: &str| Some(text.to_owned());
        let cases = [
            (None, None, None),
            (text("Be brief."), None, text("Be brief.")),
            (None, text("notes"), text("notes")),
            (text(" "), text("notes"), text("notes")),
            (text("Be brief."), text("notes"), text("Be brief.\n\nnotes")),
        ];
        for (system, block, expected) in cases {
            assert_eq!(with_memory(system.clone(), block), expected, "{system:?}");
        }
    }
}
