//! Placeholders in articles: names of settings, keys and commands by their id, so that texts can't go stale.

use std::fmt;

/// A placeholder, such as `{setting:theme}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placeholder {
    /// `{setting:KEY}`: the path to a setting, such as Settings › Appearance › Theme.
    Setting(String),
    /// `{section:NAME}`: the path to a section of the settings.
    Section(String),
    /// `{value:KEY=VALUE}`: the label of a choice.
    Value(String, String),
    /// `{command:ID}`: the name of a command.
    Command(String),
    /// `{keys:ID}`: the keys of a command.
    Keys(String),
    /// `{text:PATH}`: a text of the interface, such as a button.
    Text(String),
    /// `{nook:WORDS}`: a command of the terminal.
    Terminal(String),
}

/// Text in braces that is no placeholder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{{{0}}}` is no placeholder: setting, section, value, command, keys, text or nook, then a colon and a name"
)]
pub struct PlaceholderError(pub String);

impl Placeholder {
    fn parse(text: &str) -> Result<Self, PlaceholderError> {
        let unknown = || PlaceholderError(text.to_owned());
        let (kind, name) = text.split_once(':').ok_or_else(unknown)?;
        let name = name.to_owned();
        Ok(match kind {
            "setting" => Self::Setting(name),
            "section" => Self::Section(name),
            "command" => Self::Command(name),
            "keys" => Self::Keys(name),
            "text" => Self::Text(name),
            "nook" => Self::Terminal(name),
            "value" => {
                let (key, value) = name.split_once('=').ok_or_else(unknown)?;
                Self::Value(key.to_owned(), value.to_owned())
            }
            _ => return Err(unknown()),
        })
    }
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting(name) => write!(f, "setting:{name}"),
            Self::Section(name) => write!(f, "section:{name}"),
            Self::Value(key, value) => write!(f, "value:{key}={value}"),
            Self::Command(name) => write!(f, "command:{name}"),
            Self::Keys(name) => write!(f, "keys:{name}"),
            Self::Text(name) => write!(f, "text:{name}"),
            Self::Terminal(name) => write!(f, "nook:{name}"),
        }
    }
}

/// A piece of an article.
enum Piece<'a> {
    Text(&'a str),
    Braced(&'a str),
}

/// Text outside of braces, and what is inside. Braces in code (`` `…` ``) are text.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    for (n, part) in text.split('`').enumerate() {
        if n > 0 {
            pieces.push(Piece::Text("`"));
        }
        let is_code = n % 2 == 1;
        let mut rest = part;
        while let Some((before, (inside, after))) = (!is_code)
            .then(|| rest.split_once('{'))
            .flatten()
            .and_then(|(b, r)| Some((b, r.split_once('}')?)))
        {
            pieces.push(Piece::Text(before));
            pieces.push(Piece::Braced(inside));
            rest = after;
        }
        pieces.push(Piece::Text(rest));
    }
    pieces
}

/// Keys of the settings that a text names.
pub fn settings_in(text: &str) -> Vec<String> {
    let setting = |piece| match piece {
        Piece::Braced(inside) => match Placeholder::parse(inside) {
            Ok(Placeholder::Setting(key)) => Some(key),
            Ok(_) | Err(_) => None,
        },
        Piece::Text(_) => None,
    };
    pieces(text).into_iter().filter_map(setting).collect()
}

/// All placeholders of a text.
///
/// # Errors
/// Names the first text in braces that is none.
#[cfg(test)]
pub fn all_in(text: &str) -> Result<Vec<Placeholder>, PlaceholderError> {
    let braced = pieces(text).into_iter().filter_map(|piece| match piece {
        Piece::Braced(inside) => Some(Placeholder::parse(inside)),
        Piece::Text(_) => None,
    });
    braced.collect()
}

/// The text with each placeholder replaced. An unknown one stays as it is written; a test finds it.
pub fn fill(text: &str, label: impl Fn(&Placeholder) -> Option<String>) -> String {
    let mut filled = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Braced(inside) => match Placeholder::parse(inside).ok().and_then(|it| label(&it)) {
                Some(label) => filled.push_str(&label),
                None => filled.extend(["{", inside, "}"]),
            },
        }
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced_except_in_code() {
        let upper = |it: &Placeholder| Some(it.to_string().to_uppercase());
        assert_eq!(
            fill("Press {keys:print}, not `{keys:print}`.", upper),
            "Press KEYS:PRINT, not `{keys:print}`."
        );
        assert_eq!(settings_in("{setting:theme} and `{setting:x}` or {keys:print}"), ["theme"]);
        assert_eq!(fill("An open { brace", upper), "An open { brace");
    }

    #[test]
    fn what_is_no_placeholder_is_named() {
        assert_eq!(all_in("{value:theme=dark}"), Ok(vec![Placeholder::Value("theme".into(), "dark".into())]));
        assert_eq!(all_in("{value:theme}"), Err(PlaceholderError("value:theme".into())));
        assert_eq!(all_in("{colour}"), Err(PlaceholderError("colour".into())));
    }
}
