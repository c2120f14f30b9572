//! What the desktop asks of the window: a model file that was double-clicked, a link that was
//! followed. Each only shows something; nothing is sent, fetched or changed before the user says
//! so.
//!
//! - `…/file.gguf`, `…/file.safetensors`, also as `file://…`: offered as a model;
//! - `inglenook://chat/ID`: that conversation;
//! - `inglenook://new?text=…`: a new chat with that text in the message box;
//! - `inglenook://models/OWNER/NAME`, `inglenook://models?find=…`: that search among the models to fetch;
//! - `inglenook://quick`: the quick window.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use url::Url;

use contract::{Error, Result};

/// Of a link, without the colon.
pub const SCHEME: &str = "inglenook";

/// Longer texts of links are cut: what a link brings is to be read before it is sent.
const MAX_TEXT_CHARS: usize = 10_000;

/// A search is a few words or the name of a model.
const MAX_QUERY_CHARS: usize = 200;

/// Ids are 26 characters long; a longer one names nothing.
const MAX_ID_BYTES: usize = 64;

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
    /// For desktops that give no keys to programs: they start this link themselves.
    QuickWindow,
}

impl DeepLink {
    /// Those of several addresses that can be opened. macOS hands files and links over together; others go to the log.
    pub fn parse_all<'a>(addresses: impl IntoIterator<Item = &'a str>) -> Vec<Self> {
        let parse = |address: &str| match Self::parse(OsStr::new(address)) {
            Ok(link) => Some(link),
            Err(error) => {
                tracing::warn!(code = error.code(), "{error}");
                None
            }
        };
        addresses.into_iter().filter_map(parse).collect()
    }

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
            Some(url) => local_file(url),
            None => Some(PathBuf::from(argument)),
        };
        let is_model = |path: &PathBuf| {
            let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
            ["gguf", "safetensors"].iter().any(|known| ending.eq_ignore_ascii_case(known))
        };
        let is_plain = |path: &PathBuf| !path.to_string_lossy().contains(char::is_control);
        let absolute = path.filter(is_model).filter(is_plain).and_then(|path| std::path::absolute(path).ok());
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

/// The file that a `file:` address names on this machine. None: it names another host, or hides steps upwards.
fn local_file(address: &str) -> Option<PathBuf> {
    let url = Url::parse(address).ok().filter(|url| url.scheme() == "file" && url.host().is_none())?;
    let path = url.to_file_path().ok()?;
    let steps_up = path.components().any(|step| step == Component::ParentDir);
    (!steps_up).then_some(path)
}

fn from_link(link: &str) -> Option<DeepLink> {
    let url = Url::parse(link).ok()?;
    if !url.username().is_empty() || url.password().is_some() || url.port().is_some() {
        return None;
    }
    let parts: Vec<_> = url.path().split('/').filter(|part| !part.is_empty()).collect();
    let value =
        |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    match (url.host_str()?, parts.as_slice()) {
        ("chat", [id]) => {
            let is_id = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
            (id.len() <= MAX_ID_BYTES && id.bytes().all(is_id))
                .then(|| DeepLink::Conversation { id: (*id).into() })
        }
        ("new", []) => {
            let is_kept = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
            let text = value("text").unwrap_or_default().replace("\r\n", "\n");
            Some(DeepLink::NewChat { text: text.chars().filter(is_kept).take(MAX_TEXT_CHARS).collect() })
        }
        ("quick", []) => Some(DeepLink::QuickWindow),
        ("models", []) => {
            let query = value("find").unwrap_or_default();
            let query = query.chars().filter(|c| !c.is_control()).take(MAX_QUERY_CHARS).collect();
            Some(DeepLink::FindModel { query })
        }
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
        assert_eq!(parsed("inglenook://quick"), Ok(DeepLink::QuickWindow));
        assert_eq!(parsed("inglenook://quick?text=x"), Ok(DeepLink::QuickWindow));
        assert_eq!(parsed("inglenook://quick/x"), Err("app.asked".into()));
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
    fn of_several_addresses_those_that_are_none_keep_no_other_back() {
        let addresses = ["inglenook://quick", "https://example.org/x", "inglenook://new?text=a"];
        assert_eq!(
            DeepLink::parse_all(addresses),
            [DeepLink::QuickWindow, DeepLink::NewChat { text: "a".into() }]
        );
    }

    #[test]
    fn a_hostile_link_is_refused() {
        let written = include_str!("deep_links/hostile.txt").lines().map(|line| line.replace("\\n", "\n"));
        let taken: Vec<_> = written.filter(|link| parsed(link) != Err("app.asked".into())).collect();
        assert_eq!(taken, Vec::<String>::new());
    }

    #[test]
    fn what_a_link_brings_is_only_a_text_to_be_read() {
        let find = |query: &str| Ok(DeepLink::FindModel { query: query.into() });
        let chat = |text: &str| Ok(DeepLink::NewChat { text: text.into() });
        let opened = |id: &str| Ok(DeepLink::Conversation { id: id.into() });
        for (link, expected) in [
            // nothing but the text counts
            ("inglenook://new?text=hi&send=true&auto=1&submit", chat("hi")),
            ("inglenook://new?send=true", chat("")),
            ("inglenook://new?text=hi&model=/etc/x.gguf&system=evil&tools=all", chat("hi")),
            ("inglenook://new?text=a&text=b", chat("a")),
            ("inglenook://new?TEXT=a", chat("")),
            ("inglenook://new#text=a", chat("")),
            ("inglenook://new/?text=a", chat("a")),
            ("inglenook://NEW?text=%3Cscript%3Ealert(1)%3C/script%3E", Err("app.asked".into())),
            ("inglenook://new?text=%3Cscript%3Ealert(1)%3C/script%3E", chat("<script>alert(1)</script>")),
            ("inglenook://new?text=javascript:alert(1)", chat("javascript:alert(1)")),
            ("inglenook://new?text=%2Fattach%20/etc/passwd", chat("/attach /etc/passwd")),
            ("inglenook://new?text=a%00b%1b%5B31mc%7f", chat("ab[31mc")),
            ("inglenook://new?text=a%0D%0Ab%0D", chat("a\nb")),
            ("inglenook://new?text=%ff%fe", chat("\u{fffd}\u{fffd}")),
            ("inglenook://new?text=a+b%2Bc", chat("a b+c")),
            ("inglenook://new?text=%25s%25n", chat("%s%n")),
            ("inglenook://new?text=$(calc)%60id%60;rm", chat("$(calc)`id`;rm")),
            // a search looks, and fetches nothing
            ("inglenook://models/owner/name?download=true&file=x.gguf", find("owner/name")),
            ("inglenook://models/owner/name/", find("owner/name")),
            ("inglenook://models//owner//name", find("owner/name")),
            ("inglenook://models/owner/..", find("")),
            ("inglenook://models?find=a&get=1", find("a")),
            ("inglenook://models?find=..%2F..%2Fetc", find("../../etc")),
            ("inglenook://models?find=a%0Ab%00", find("ab")),
            ("inglenook://models/?find=%3Cimg%20src=x%3E", find("<img src=x>")),
            ("inglenook://models?find=https://evil.example/x", find("https://evil.example/x")),
            // a conversation is shown
            ("inglenook://chat/1?delete=true", opened("1")),
            ("inglenook://chat//1/", opened("1")),
            ("inglenook://chat/./1", opened("1")),
            ("inglenook://chat/x/../1", opened("1")),
            ("inglenook://chat/1#2", opened("1")),
        ] {
            assert_eq!(parsed(link), expected, "{link}");
        }
        let long = format!("inglenook://models?find={}", "x".repeat(MAX_QUERY_CHARS + 9));
        assert_eq!(parsed(&long), find(&"x".repeat(MAX_QUERY_CHARS)));
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
