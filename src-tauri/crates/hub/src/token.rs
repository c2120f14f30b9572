//! Access token of the hub: from the environment, or from the file that the hub's own tools write.

use std::path::PathBuf;

use io::Io;

/// Longer files do not hold a token.
const MAX_TOKEN_BYTES: usize = 4096;

/// Token in the environment, which `variable` reads.
pub fn token_variable(variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"].iter().find_map(|name| variable(name).and_then(clean))
}

/// Token in the file of the hub's own tools; `home` is the user's home folder. None if absent or unreadable.
pub fn token_file(
    variable: &dyn Fn(&str) -> Option<String>,
    home: Option<PathBuf>,
    io: &dyn Io,
) -> Option<String> {
    let cache = variable("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| Some(home?.join(".cache")));
    let hub = variable("HF_HOME").map(PathBuf::from).or_else(|| Some(cache?.join("huggingface")));
    let file = variable("HF_TOKEN_PATH").map(PathBuf::from).or_else(|| Some(hub?.join("token")))?;
    clean(String::from_utf8(io.read_start(&file, MAX_TOKEN_BYTES).ok()?).ok()?)
}

/// Trims a token; None if it cannot be an HTTP header value.
fn clean(text: String) -> Option<String> {
    let text = text.trim();
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic())).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use io::RealIo;

    #[test]
    fn tokens_are_found_in_the_environment_and_in_the_file() {
        let home = std::env::temp_dir().join(format!("inglenook-token-{}", std::process::id()));
        let folder = home.join(".cache/huggingface");
        RealIo.create_dir_all(&folder).unwrap();
        RealIo.write_atomic(&folder.join("token"), b"hf_file\n").unwrap();
        let find = |variables: &[(&str, &str)]| {
            let of = |name: &str| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            };
            (token_variable(&of), token_file(&of, Some(home.clone()), &RealIo))
        };
        let (env, file) = (|| Some("hf_env".to_owned()), || Some("hf_file".to_owned()));
        assert_eq!(find(&[]), (None, file()));
        assert_eq!(find(&[("HF_TOKEN", " hf_env ")]), (env(), file()));
        assert_eq!(find(&[("HUGGING_FACE_HUB_TOKEN", "hf_env")]), (env(), file()));
        for wrong in ["", "two words\n"] {
            assert_eq!(find(&[("HF_TOKEN", wrong)]), (None, file()), "{wrong:?}");
        }
        assert_eq!(find(&[("HF_HOME", "/nowhere")]), (None, None));
        let named = folder.join("token");
        let named = named.to_str().unwrap();
        assert_eq!(find(&[("HF_HOME", "/nowhere"), ("HF_TOKEN_PATH", named)]), (None, file()));
        std::fs::remove_dir_all(&home).unwrap();
    }
}
