//! The API key of servers: from the command line, a file, standard input, or the environment.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use contract::{Error, Result};

/// Holds the key where no option names one.
const KEY_VARIABLE: &str = "INGLENOOK_API_KEY";

/// Longest file with a key; a key has some dozens of bytes.
const MAX_KEY_FILE_BYTES: u64 = 4096;

/// The API key of a server.
#[derive(Debug, Args)]
pub struct ServerKeyFlags {
    /// API key that clients must send [default: INGLENOOK_API_KEY, then the key stored in the data folder].
    /// Other users of this computer can see it in the list of processes: prefer --api-key-file
    #[arg(long, value_name = "K")]
    pub api_key: Option<String>,
    /// Read the API key from this file; - reads standard input
    #[arg(long, value_name = "FILE", conflicts_with = "api_key")]
    pub api_key_file: Option<PathBuf>,
}

/// The key of the command line, of a file, of standard input or of the environment. None: that of the data folder.
pub fn api_key(
    args: &ServerKeyFlags,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<String>> {
    match (&args.api_key, &args.api_key_file) {
        (Some(key), _) => Ok(Some(key.clone())),
        (None, Some(path)) if path == Path::new("-") => {
            read_key(std::io::stdin(), "Standard input").map(Some)
        }
        (None, Some(path)) => {
            let place = path.display().to_string();
            let file = std::fs::File::open(path).map_err(|error| unreadable(&place, &error.to_string()))?;
            read_key(file, &place).map(Some)
        }
        (None, None) => Ok(environment(KEY_VARIABLE).filter(|key| !key.is_empty())),
    }
}

/// Reads a key, without the end of its line. A pipe is read to its end.
fn read_key(reader: impl Read, place: &str) -> Result<String> {
    let mut text = String::new();
    let read = reader.take(MAX_KEY_FILE_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| unreadable(place, &error.to_string()))?;
    if text.len() as u64 > MAX_KEY_FILE_BYTES {
        return Err(unreadable(place, &format!("it is larger than {MAX_KEY_FILE_BYTES} bytes")));
    }
    Ok(text.trim().to_owned())
}

fn unreadable(place: &str, cause: &str) -> Error {
    Error::input(
        "server.key_file",
        format!("The API key can't be read from {place}: {cause}."),
        "Name a file that holds the key alone, or pass the key in INGLENOOK_API_KEY.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_from_the_first_place_that_has_one() {
        let folder = std::env::temp_dir().join(format!("inglenook-key-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("key");
        std::fs::write(&file, "from-a-file\r\n").unwrap();
        let args = |key: Option<&str>, path: Option<&Path>| ServerKeyFlags {
            api_key: key.map(str::to_owned),
            api_key_file: path.map(Path::to_path_buf),
        };
        let set = |name: &str| (name == "INGLENOOK_API_KEY").then(|| "from-a-variable".to_owned());
        let unset = |_: &str| None;
        let empty = |_: &str| Some(String::new());
        let of = |args: &ServerKeyFlags, environment: &dyn Fn(&str) -> Option<String>| {
            api_key(args, environment).unwrap()
        };
        assert_eq!(of(&args(Some("k"), None), &set).as_deref(), Some("k"));
        assert_eq!(of(&args(None, Some(&file)), &set).as_deref(), Some("from-a-file"));
        assert_eq!(of(&args(None, None), &set).as_deref(), Some("from-a-variable"));
        assert_eq!(of(&args(None, None), &unset), None);
        assert_eq!(of(&args(None, None), &empty), None);
        std::fs::write(&file, "x".repeat(5000)).unwrap();
        for wrong in [file.as_path(), &folder, &folder.join("none")] {
            let error = api_key(&args(None, Some(wrong)), &unset).unwrap_err();
            assert_eq!(error.code(), "server.key_file");
            assert!(error.message().contains(&wrong.display().to_string()), "{error}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(read_key(&b" abc \n"[..], "-").unwrap(), "abc");
    }
}
