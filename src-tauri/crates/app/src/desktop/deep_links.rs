//! What the desktop asks of the window: a model file that was double-clicked, a link that was
//! followed. Each only shows something; nothing is sent, fetched or changed before the user says
//! so.
//!
//! - `…/file.gguf`, `…/file.safetensors`, also as `file://…`: offered as a model;
//! - `inglenook://chat/ID`: that conversation;
//! - `inglenook://new?text=…`: a new chat with that text in the message box;
//! - `inglenook://models/OWNER/NAME`, `inglenook://models?find=…`: that search among the models to fetch.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use reqwest::Url;
use serde::{Deserialize, Serialize};

use contract::{Error, Result};

/// Of a link, without the colon.
pub const SCHEME: &str = "inglenook";

/// Longer texts of links are cut: what a link brings is to be read before it is sent.
const MAX_TEXT_CHARS: usize = 10_000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum DeepLink {
    /// `path` is absolute; what lies there was not looked at.
    Model {
        path: String,
    },
    Conversation {
        id: String,
    },
    NewChat {
        text: String,
    },
    FindModel {
        query: String,
    },
}

impl DeepLink {
    /// An argument of the command line. Error `app.asked`: it is neither a model file nor a link of ours.
    pub fn parse(argument: &OsStr) -> Result<Self> {
        let text = argument.to_str();
        if let Some(link) = text.filter(|text| is_link(text)) {
            return from_link(link).ok_or_else(|| {
                Error::input(
                    "app.asked",
                    format!("Inglenook can't open the link {link}."),
                    "Use inglenook://chat/ID, inglenook://new?text=… or inglenook://models/OWNER/NAME.",
                )
            });
        }
        if let Some(link) = text.filter(|text| hub::ModelAddress::has_host(text)).and_then(find_model) {
            return Ok(link);
        }
        let path = match text.filter(|text| text.contains("://")) {
            Some(url) => Url::parse(url).ok().and_then(|url| url.to_file_path().ok()),
            None => Some(PathBuf::from(argument)),
        };
        let is_model = |path: &PathBuf| {
            let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
            ["gguf", "safetensors"].iter().any(|known| ending.eq_ignore_ascii_case(known))
        };
        let absolute = path.filter(is_model).and_then(|path| std::path::absolute(path).ok());
        match absolute.as_deref().and_then(Path::to_str) {
            Some(path) => Ok(Self::Model { path: path.into() }),
            None => Err(Error::input(
                "app.asked",
                format!("{} can't be opened.", argument.display()),
                "Inglenook opens model files (.gguf, .safetensors) and links that begin with inglenook://.",
            )),
        }
    }
}

fn is_link(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case(SCHEME))
}

fn from_link(link: &str) -> Option<DeepLink> {
    let url = Url::parse(link).ok()?;
    let parts: Vec<_> = url.path().split('/').filter(|part| !part.is_empty()).collect();
    let value =
        |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    match (url.host_str()?, parts.as_slice()) {
        ("chat", [id]) => {
            let is_id = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
            id.bytes().all(is_id).then(|| DeepLink::Conversation { id: (*id).into() })
        }
        ("new", []) => {
            let text = value("text").unwrap_or_default().chars().take(MAX_TEXT_CHARS).collect();
            Some(DeepLink::NewChat { text })
        }
        ("models", []) => Some(DeepLink::FindModel { query: value("find").unwrap_or_default() }),
        ("models", [_, _, ..]) => find_model(&parts.join("/")),
        _ => None,
    }
}

/// The search for a model of the hub: `OWNER/NAME`, with its tag or file where the address has one.
fn find_model(address: &str) -> Option<DeepLink> {
    let hub::ModelAddress { repository, path, .. } = hub::ModelAddress::parse(address)?;
    let file = path.map_or_else(String::new, |path| format!(":{path}"));
    Some(DeepLink::FindModel { query: format!("{repository}{file}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(argument: &str) -> std::result::Result<DeepLink, String> {
        DeepLink::parse(OsStr::new(argument)).map_err(|error| error.code().into())
    }

    #[test]
    fn files_and_links_are_told_apart_and_nothing_else_is_taken() {
        let model = |path: &str| Ok(DeepLink::Model { path: path.into() });
        let find = |query: &str| Ok(DeepLink::FindModel { query: query.into() });
        let chat = |text: &str| Ok(DeepLink::NewChat { text: text.into() });
        if cfg!(unix) {
            assert_eq!(parsed("/models/a b.GGUF"), model("/models/a b.GGUF"));
            assert_eq!(parsed("file:///models/a%20b.gguf"), model("/models/a b.gguf"));
            assert_eq!(parsed("/x:y/inglenook:1.safetensors"), model("/x:y/inglenook:1.safetensors"));
        }
        assert_eq!(parsed("inglenook://chat/01J_x-9"), Ok(DeepLink::Conversation { id: "01J_x-9".into() }));
        assert_eq!(parsed("inglenook://new?text=a%26b%0Ac&x=1"), chat("a&b\nc"));
        assert_eq!(parsed("INGLENOOK://new"), chat(""));
        assert_eq!(parsed("inglenook://models/owner/name-GGUF"), find("owner/name-GGUF"));
        assert_eq!(parsed("inglenook://models?find=two%20words"), find("two words"));
        for tagged in [
            "inglenook://models/owner/name-GGUF:Q4_K_M",
            "inglenook://models/hf.co/owner/name-GGUF:Q4_K_M",
            "hf.co/owner/name-GGUF:Q4_K_M",
            "https://huggingface.co/owner/name-GGUF:Q4_K_M",
        ] {
            assert_eq!(parsed(tagged), find("owner/name-GGUF:Q4_K_M"), "{tagged}");
        }
        for refused in [
            "notes.txt",
            "",
            "gguf",
            "--flag",
            "https://example.org/x.gguf/",
            "file://elsewhere/x.gguf",
            "inglenook:",
            "inglenook://",
            "inglenook://chat/",
            "inglenook://chat/..%2f..",
            "inglenook://chat/a/b",
            "inglenook://models/../name",
            "inglenook://models/a b/c",
            "inglenook://settings/offline?set=false",
        ] {
            assert_eq!(parsed(refused), Err("app.asked".into()), "{refused}");
        }
    }

    #[test]
    fn a_relative_file_is_named_from_here_and_a_long_text_is_cut() {
        let here = std::env::current_dir().unwrap().join("m.gguf");
        assert_eq!(parsed("m.gguf"), Ok(DeepLink::Model { path: here.to_str().unwrap().into() }));
        let long = format!("inglenook://new?text={}", "ä".repeat(MAX_TEXT_CHARS + 5));
        let Ok(DeepLink::NewChat { text }) = parsed(&long) else { panic!("it is a new chat") };
        assert_eq!(text.chars().count(), MAX_TEXT_CHARS);
    }
}
