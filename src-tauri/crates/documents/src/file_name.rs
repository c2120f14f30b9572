//! Display names of attached files.

use crate::prompt_injection;

/// Longest name; longer ones tell no more. Characters.
const MAX_NAME_CHARS: usize = 120;

/// The last component of a path, with hidden characters spelled out and control characters replaced. Never empty.
pub fn clean(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let shown = prompt_injection::reveal_hidden(last);
    let clean: String = shown.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let short: String = clean.trim().chars().take(MAX_NAME_CHARS).collect();
    if short.is_empty() { "file".into() } else { short }
}
