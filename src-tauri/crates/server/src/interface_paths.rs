//! Which interface a path belongs to, where several share a prefix.

/// The header that every client of Anthropic's sends.
pub const ANTHROPIC_VERSION: &str = "anthropic-version";

/// A group of Ollama's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OllamaCall {
    /// Answers, vectors, and lists of models.
    Answer,
    /// Changes of the library.
    Library,
}

/// Names after `/api/`, which the application's own calls share. None of those has one of these names.
const ANSWER: &[&str] = &["chat", "generate", "embed", "embeddings", "tags", "ps", "show", "version"];
const LIBRARY: &[&str] = &["pull", "push", "create", "copy", "delete", "blobs"];

/// The group of a path, if it is one of Ollama's.
pub fn ollama_call(path: &str) -> Option<OllamaCall> {
    let name = path.strip_prefix("/api/")?.split('/').next()?;
    match (ANSWER.contains(&name), LIBRARY.contains(&name)) {
        (true, _) => Some(OllamaCall::Answer),
        (false, true) => Some(OllamaCall::Library),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ollama_paths_differ_from_the_calls_of_the_application() {
        for (path, expected) in [
            ("/api/chat", Some(OllamaCall::Answer)),
            ("/api/blobs/sha256:00", Some(OllamaCall::Library)),
            ("/api/delete", Some(OllamaCall::Library)),
            ("/api/v1/chat", None),
            ("/api/send", None),
            ("/v1/chat", None),
            ("/api/", None),
        ] {
            assert_eq!(ollama_call(path), expected, "{path}");
        }
        let names = ANSWER.iter().chain(LIBRARY);
        let calls: Vec<&str> = app::calls::CALLS.iter().map(|call| call.name).collect();
        let shared: Vec<_> = names.filter(|name| calls.contains(name)).collect();
        assert!(shared.is_empty(), "both interfaces have {shared:?}");
    }
}
