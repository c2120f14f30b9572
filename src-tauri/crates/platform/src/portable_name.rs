//! File names that every system takes: Windows refuses some names and characters, and most file systems long names.

/// Characters that Windows takes in no name. `/` is one that no system takes.
const REFUSED: &str = "/\\:*?\"<>|";

/// Names that Windows gives to devices, whatever ending follows.
const DEVICES: &[&str] = &["con", "prn", "aux", "nul"];
/// Devices that have a number behind their name. Windows takes superscript digits for digits.
const NUMBERED_DEVICES: &[&str] = &["com", "lpt"];
const DEVICE_DIGITS: &str = "0123456789¹²³";

/// Most file systems take 255 bytes. The rest is for an ending and what a download folder adds.
const MAX_BYTES: usize = 200;

/// The title as the name of a file without its ending; `otherwise` where nothing of it is left.
pub fn portable_name(title: &str, otherwise: &str) -> String {
    let clean: String =
        title.chars().map(|c| if c.is_control() || REFUSED.contains(c) { '-' } else { c }).collect();
    let clean = trim(cut(trim(&clean)));
    match clean {
        "" => otherwise.into(),
        device if is_device(device) => {
            let (stem, rest) = device.split_at(device.find('.').unwrap_or(device.len()));
            format!("{}-{rest}", stem.trim_end())
        }
        name => name.into(),
    }
}

fn trim(name: &str) -> &str {
    name.trim_matches([' ', '.', '-'])
}

fn cut(name: &str) -> &str {
    let mut end = name.len().min(MAX_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// Whether Windows takes the name for a device. What stands behind a dot does not count, nor do spaces before it.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_lowercase();
    let is_numbered = |device: &&str| {
        let mut rest = stem.strip_prefix(*device).unwrap_or_default().chars();
        rest.next().is_some_and(|digit| DEVICE_DIGITS.contains(digit)) && rest.next().is_none()
    };
    DEVICES.contains(&stem.as_str()) || NUMBERED_DEVICES.iter().any(is_numbered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_takes_a_portable_name() {
        let check =
            |title: &str, expected: &str| assert_eq!(portable_name(title, "chat"), expected, "{title:?}");
        check("Rye bread", "Rye bread");
        check("a/b\\c:d*e?f\"g<h>i|j", "a-b-c-d-e-f-g-h-i-j");
        check("two\nlines\u{7f}", "two-lines");
        check("  .hidden. ", "hidden");
        check("../../etc", "etc");
        check("", "chat");
        check("...", "chat");
        check("con", "con-");
        check("NUL", "NUL-");
        check("Aux.notes", "Aux-.notes");
        check("com1", "com1-");
        check("LPT²", "LPT²-");
        check("prn .x", "prn-.x");
        check("console", "console");
        check("com", "com");
        check("com10", "com10");
        check("Letter to my con", "Letter to my con");
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        assert_eq!(portable_name(&"x".repeat(300), "chat"), "x".repeat(200));
        assert_eq!(portable_name(&"語".repeat(100), "chat"), "語".repeat(66));
    }
}
