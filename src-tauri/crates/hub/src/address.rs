//! Model addresses as people write them: `owner/name` with a file or revision, or the URL of a hub page.

use reqwest::Url;

/// Length limit of each part of a repository name on hubs.
const MAX_NAME_BYTES: usize = 96;

/// A repository: `owner/name`, in the characters that hubs allow.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Repository {
    /// User or organization.
    pub owner: String,
    /// Name within the owner.
    pub name: String,
}

impl Repository {
    /// Parses `owner/name`.
    pub fn parse(text: &str) -> Option<Self> {
        let (owner, name) = text.split_once('/')?;
        (is_name(owner) && is_name(name)).then(|| Self { owner: owner.into(), name: name.into() })
    }
}

impl std::fmt::Display for Repository {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

fn is_name(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    !text.is_empty()
        && text.len() <= MAX_NAME_BYTES
        && text.bytes().all(allowed)
        && text.bytes().any(|b| b != b'.')
        && !text.contains("..")
}

/// Whether a text is a full git commit hash, whose contents never change.
pub(crate) fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// A repository, optionally with a revision and a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelAddress {
    /// The repository.
    pub repository: Repository,
    /// Branch, tag or commit.
    pub revision: Option<String>,
    /// File in the repository, or a tag such as `Q4_K_M` that means one.
    pub path: Option<String>,
}

/// Hosts of the hub that people leave `https://` out before.
const HOSTS: [&str; 4] = ["hf.co", "huggingface.co", "www.huggingface.co", "hf-mirror.com"];

/// Programs whose command lines the hub offers to copy.
const PROGRAMS: [&str; 12] = [
    "ollama",
    "llama-server",
    "llama-cli",
    "llama",
    "docker",
    "vllm",
    "sglang",
    "lms",
    "lemonade",
    "lemonade-server",
    "hf",
    "huggingface-cli",
];

impl ModelAddress {
    /// Parses `owner/name`, `owner/name:file`, `owner/name:TAG`, `owner/name@revision:file`, the same behind `hf.co/`,
    /// the URL of a hub page, or a command line that the hub offers for another program. None for anything else, such
    /// as search words.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_matches(['"', '\'']);
        let mut words = text.split_whitespace();
        let program = words.next().unwrap_or_default();
        if PROGRAMS.contains(&program) {
            return words.filter(|word| word.contains('/')).find_map(Self::parse_one);
        }
        Self::parse_one(text)
    }

    /// Whether a text names the hub itself, so that it can mean nothing else.
    pub fn has_host(text: &str) -> bool {
        let text = text.trim();
        let bare = text.split_once("://").map_or(text, |(_, rest)| rest);
        let host = bare.split('/').next().unwrap_or_default();
        HOSTS.iter().any(|known| host.eq_ignore_ascii_case(known))
    }

    fn parse_one(text: &str) -> Option<Self> {
        let text = text.trim().trim_matches(['"', '\'']);
        if let Some(rest) = ["hf://", "hf:"].iter().find_map(|scheme| text.strip_prefix(scheme)) {
            return from_path(rest.trim_start_matches('/'));
        }
        if text.contains("://") {
            let url = Url::parse(text).ok()?;
            return if matches!(url.scheme(), "http" | "https") { from_path(url.path()) } else { None };
        }
        match text.split_once('/') {
            Some((host, rest)) if HOSTS.iter().any(|known| host.eq_ignore_ascii_case(known)) => {
                from_path(rest.split(['?', '#']).next().unwrap_or_default())
            }
            _ => from_name(text),
        }
    }
}

/// Parses `owner/name`, `owner/name:file`, `owner/name@revision:file`.
fn from_name(text: &str) -> Option<ModelAddress> {
    let (place, path) = match text.split_once(':') {
        Some((place, path)) => (place, Some(path.trim())),
        None => (text, None),
    };
    let (repository, revision) = match place.split_once('@') {
        Some((repository, revision)) => (repository, Some(revision)),
        None => (place, None),
    };
    if path.is_some_and(str::is_empty) || revision.is_some_and(str::is_empty) {
        return None;
    }
    Some(ModelAddress {
        repository: Repository::parse(repository)?,
        revision: revision.map(Into::into),
        path: path.map(Into::into),
    })
}

/// Parses the path of a page: `/owner/name`, `/owner/name/tree/REVISION`, `/owner/name/blob|resolve/REVISION/FILE`, or
/// `/owner/name:TAG`.
fn from_path(path: &str) -> Option<ModelAddress> {
    let path = percent_decoded(path.trim_start_matches('/'));
    let path = path.strip_prefix("models/").filter(|rest| rest.split('/').count() == 2).unwrap_or(&path);
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let [owner, name, rest @ ..] = segments.as_slice() else { return None };
    if rest.is_empty() || name.contains(':') {
        let file: String = rest.iter().map(|part| format!("/{part}")).collect();
        return from_name(&format!("{owner}/{name}{file}"));
    }
    let repository = Repository::parse(&format!("{owner}/{name}"))?;
    let (revision, path) = match rest {
        ["tree", revision, ..] => (Some((*revision).to_owned()), None),
        ["blob" | "resolve" | "raw", revision, path @ ..] if !path.is_empty() => {
            (Some((*revision).to_owned()), Some(path.join("/")))
        }
        _ => (None, None),
    };
    Some(ModelAddress { repository, revision: revision.filter(|revision| revision != "main"), path })
}

/// `%3A` as `:`, as browsers write addresses.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let check = |text: &str, expected: Option<(&str, Option<&str>, Option<&str>)>| {
            let got = ModelAddress::parse(text);
            let got = got.as_ref().map(|address| {
                let name = address.repository.to_string();
                (name, address.revision.as_deref(), address.path.as_deref())
            });
            assert_eq!(got, expected.map(|(name, revision, path)| (name.into(), revision, path)), "{text}");
        };
        check("a/b", Some(("a/b", None, None)));
        check(" ggml-org/SmolLM3-3B-GGUF ", Some(("ggml-org/SmolLM3-3B-GGUF", None, None)));
        check("a/b:c.gguf", Some(("a/b", None, Some("c.gguf"))));
        check("a/b@v1:sub/c.gguf", Some(("a/b", Some("v1"), Some("sub/c.gguf"))));
        check("hf.co/a/b", Some(("a/b", None, None)));
        check("https://huggingface.co/a/b", Some(("a/b", None, None)));
        check("https://huggingface.co/a/b/tree/main", Some(("a/b", None, None)));
        check("https://huggingface.co/a/b/blob/main/x/y.gguf?x=1", Some(("a/b", None, Some("x/y.gguf"))));
        check("https://mirror.example/a/b/resolve/abc/y.gguf", Some(("a/b", Some("abc"), Some("y.gguf"))));
        let tagged = Some(("bartowski/Llama-3.2-1B-GGUF", None, Some("Q4_K_M")));
        for text in [
            "bartowski/Llama-3.2-1B-GGUF:Q4_K_M",
            "hf.co/bartowski/Llama-3.2-1B-GGUF:Q4_K_M",
            "HF.co/bartowski/Llama-3.2-1B-GGUF:Q4_K_M",
            "huggingface.co/bartowski/Llama-3.2-1B-GGUF:Q4_K_M",
            "https://hf.co/bartowski/Llama-3.2-1B-GGUF:Q4_K_M",
            "https://huggingface.co/bartowski/Llama-3.2-1B-GGUF%3AQ4_K_M",
            "hf://bartowski/Llama-3.2-1B-GGUF:Q4_K_M",
            "hf:bartowski/Llama-3.2-1B-GGUF:Q4_K_M",
            "ollama run hf.co/bartowski/Llama-3.2-1B-GGUF:Q4_K_M",
            "llama-server -hf bartowski/Llama-3.2-1B-GGUF:Q4_K_M",
            "docker model run hf.co/bartowski/Llama-3.2-1B-GGUF:Q4_K_M",
            "\"bartowski/Llama-3.2-1B-GGUF:Q4_K_M\"",
        ] {
            check(text, tagged);
        }
        check("hf.co/a/b@v1:Q4_0", Some(("a/b", Some("v1"), Some("Q4_0"))));
        check("hf.co/a/b:sub/c.gguf", Some(("a/b", None, Some("sub/c.gguf"))));
        check("hf.co/a/b?x=1", Some(("a/b", None, None)));
        check("vllm serve \"a/b\"", Some(("a/b", None, None)));
        for text in ["hf.co/a", "https://huggingface.co/", "ollama run llama3", "hf.co/a/b:"] {
            check(text, None);
        }
        assert!(["hf.co/a/b", "https://huggingface.co/a/b"].into_iter().all(ModelAddress::has_host));
        assert!(!ModelAddress::has_host("a/b") && !ModelAddress::has_host("https://example.org/a/b"));
        for other in
            ["qwen", "qwen 3 coder", "a/b/c", "../b", "a/..", "a/b:", "a /b", "file:///a/b", "", "a/"]
        {
            check(other, None);
        }
    }
}
