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
    /// File in the repository.
    pub path: Option<String>,
}

impl ModelAddress {
    /// Parses `owner/name`, `owner/name:file`, `owner/name@revision:file`, `hf.co/owner/name`, or the URL of a hub page.
    /// None for anything else, such as search words.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.contains("://") {
            return from_url(&Url::parse(text).ok()?);
        }
        for host in ["hf.co/", "huggingface.co/", "www.huggingface.co/"] {
            if let Some(rest) = text.strip_prefix(host) {
                return from_url(&Url::parse(&format!("https://{host}{rest}")).ok()?);
            }
        }
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
        Some(Self {
            repository: Repository::parse(repository)?,
            revision: revision.map(Into::into),
            path: path.map(Into::into),
        })
    }
}

/// Parses the path `/owner/name`, `/owner/name/tree/REVISION` or `/owner/name/blob|resolve/REVISION/FILE`.
fn from_url(url: &Url) -> Option<ModelAddress> {
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    let segments: Vec<&str> = url.path_segments()?.filter(|segment| !segment.is_empty()).collect();
    let [owner, name, rest @ ..] = segments.as_slice() else { return None };
    let repository = Repository::parse(&format!("{owner}/{name}"))?;
    let (revision, path) = match rest {
        ["tree", revision, ..] => (Some((*revision).to_owned()), None),
        ["blob" | "resolve", revision, path @ ..] if !path.is_empty() => {
            (Some((*revision).to_owned()), Some(path.join("/")))
        }
        _ => (None, None),
    };
    Some(ModelAddress { repository, revision: revision.filter(|revision| revision != "main"), path })
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
        for other in
            ["qwen", "qwen 3 coder", "a/b/c", "../b", "a/..", "a/b:", "a /b", "file:///a/b", "", "a/"]
        {
            check(other, None);
        }
    }
}
