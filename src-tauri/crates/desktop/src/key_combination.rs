//! Keys in the notation of the page's key map: `Mod+Shift+Space`. `Mod` is Command on macOS and Ctrl elsewhere.

use contract::{Error, Result};

/// Keys that are pressed together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyCombination {
    /// Ctrl; Command on macOS.
    pub primary: bool,
    pub alt: bool,
    pub shift: bool,
    /// A character, or a name of the page's key map.
    key: String,
    /// What X11 calls the key (`keysymdef.h`).
    pub keysym: u32,
}

/// Keys that have a name, with their X11 keysyms.
const NAMED: &[(&str, u32)] = &[
    ("Space", 0x20),
    ("Plus", 0x2b),
    ("Backspace", 0xff08),
    ("Tab", 0xff09),
    ("Enter", 0xff0d),
    ("Escape", 0xff1b),
    ("Home", 0xff50),
    ("ArrowLeft", 0xff51),
    ("ArrowUp", 0xff52),
    ("ArrowRight", 0xff53),
    ("ArrowDown", 0xff54),
    ("PageUp", 0xff55),
    ("PageDown", 0xff56),
    ("End", 0xff57),
    ("Insert", 0xff63),
    ("Delete", 0xffff),
];

/// Keysym of F1. The others follow it.
const F1_KEYSYM: u32 = 0xffbe;
const MAX_FUNCTION_KEY: u32 = 24;

/// Keysyms of characters beyond Latin-1 are their code points above this.
const UNICODE_KEYSYM: u32 = 0x0100_0000;

impl KeyCombination {
    /// Reads keys that may be taken from all programs. Error `window.shortcut`: unknown keys, or keys that people need
    /// for typing.
    pub fn parse(notation: &str) -> Result<Self> {
        let refused = |cause: &str| {
            Error::input(
                "window.shortcut",
                format!("{notation} can't open the quick window: {cause}."),
                "Choose Ctrl or Alt with another key, or a function key, in Settings › Shortcuts.",
            )
        };
        let mut keys = Self { primary: false, alt: false, shift: false, key: String::new(), keysym: 0 };
        let mut parts = notation.split('+').peekable();
        while let Some(part) = parts.next() {
            match part {
                _ if parts.peek().is_none() => keys.key = part.into(),
                "Mod" => keys.primary = true,
                "Alt" => keys.alt = true,
                "Shift" => keys.shift = true,
                _ => return Err(refused("a part of it is no modifier key")),
            }
        }
        keys.keysym = keysym(&keys.key).ok_or_else(|| refused("the key is unknown"))?;
        if !keys.primary && !keys.alt && function_key(&keys.key).is_none() {
            return Err(refused("other programs need this key for typing"));
        }
        Ok(keys)
    }

    /// The keys as Tauri's plugin for global shortcuts reads them.
    pub fn accelerator(&self) -> String {
        // It knows plus only as what it is on a US keyboard.
        let (shift, key) = if self.key == "Plus" { (true, "=") } else { (self.shift, self.key.as_str()) };
        let mut parts = Vec::new();
        parts.extend(self.primary.then_some("CmdOrCtrl"));
        parts.extend(self.alt.then_some("Alt"));
        parts.extend(shift.then_some("Shift"));
        parts.push(key);
        parts.join("+")
    }
}

fn keysym(key: &str) -> Option<u32> {
    if let Some((_, keysym)) = NAMED.iter().find(|(name, _)| *name == key) {
        return Some(*keysym);
    }
    if let Some(n) = function_key(key) {
        return Some(F1_KEYSYM + n - 1);
    }
    let mut characters = key.chars();
    let (character, None) = (characters.next()?, characters.next()) else { return None };
    if character.is_control() || character.is_whitespace() {
        return None;
    }
    let code = u32::from(character.to_lowercase().next()?);
    Some(if code < 0x100 { code } else { UNICODE_KEYSYM + code })
}

/// The number of a function key.
fn function_key(key: &str) -> Option<u32> {
    let n: u32 = key.strip_prefix('F')?.parse().ok()?;
    (1..=MAX_FUNCTION_KEY).contains(&n).then_some(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_the_page_writes_them() {
        let check = |notation: &str, modifiers: [bool; 3], keysym: u32, accelerator: &str| {
            let keys = KeyCombination::parse(notation).unwrap();
            assert_eq!([keys.primary, keys.alt, keys.shift], modifiers, "{notation}");
            assert_eq!(keys.keysym, keysym, "{notation}");
            assert_eq!(keys.accelerator(), accelerator, "{notation}");
        };
        check("Mod+Shift+Space", [true, false, true], 0x20, "CmdOrCtrl+Shift+Space");
        check("Mod+Alt+K", [true, true, false], 0x6b, "CmdOrCtrl+Alt+K");
        check("Alt+ArrowUp", [false, true, false], 0xff52, "Alt+ArrowUp");
        check("Mod+Plus", [true, false, false], 0x2b, "CmdOrCtrl+Shift+=");
        check("Mod+,", [true, false, false], 0x2c, "CmdOrCtrl+,");
        check("F9", [false, false, false], 0xffc6, "F9");
        check("Shift+F24", [false, false, true], 0xffd5, "Shift+F24");
        // Latin-1 as its code, everything else from the Unicode range.
        check("Mod+Ö", [true, false, false], 0xf6, "CmdOrCtrl+Ö");
        check("Mod+Ж", [true, false, false], 0x0100_0436, "CmdOrCtrl+Ж");
    }

    #[test]
    fn keys_that_typing_needs_are_refused() {
        for notation in [
            "", "+", "A", "Shift+A", "Enter", "Escape", "Space", "ArrowUp", "Mod", "Mod+", "Mod++", "F0",
            "F25",
        ] {
            let error = KeyCombination::parse(notation).unwrap_err();
            assert_eq!(error.code(), "window.shortcut", "{notation}");
        }
        for notation in ["Hyper+A", "Mod+Nothing", "Mod+AB", "Mod+ ", "Mod+\n"] {
            assert!(KeyCombination::parse(notation).is_err(), "{notation:?}");
        }
    }
}
