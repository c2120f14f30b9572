//! Models as the hub writes them for other programs: `hf.co/OWNER/NAME:Q4_K_M` means a file of the library that came
//! from there.

use std::path::{Component, Path};

use hub::{ModelAddress, Repository};
use session::ModelRow;

/// The tag that is meant where none is given, if there is such a file.
const USUAL_TAG: &str = "Q4_K_M";

/// Finds the entry of an id or of an address of the hub.
pub fn find_row<'a>(rows: &'a [ModelRow], text: &str) -> Option<&'a ModelRow> {
    rows.iter().find(|row| row.id == text).or_else(|| {
        let address = ModelAddress::parse(text)?;
        let found: Vec<(&ModelRow, String)> = rows
            .iter()
            .filter_map(|row| Some((row, path_in_repository(Path::new(&row.path), &address.repository)?)))
            .collect();
        let paths: Vec<&str> = found.iter().map(|(_, path)| path.as_str()).collect();
        let at = match address.path.as_deref().filter(|tag| !hub::is_latest(tag)) {
            Some(wanted) => hub::find_file(&paths, wanted)?,
            None => hub::find_file(&paths, USUAL_TAG).unwrap_or(0),
        };
        found.get(at).map(|(row, _)| *row)
    })
}

/// The path of a file within its repository, where its folders name that repository. The layouts are `OWNER/NAME/…`
/// and that of the hub's cache, `models--OWNER--NAME/snapshots/COMMIT/…`.
fn path_in_repository(path: &Path, repository: &Repository) -> Option<String> {
    let parts: Vec<&str> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => name.to_str(),
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
        })
        .collect();
    let Repository { owner, name } = repository;
    let folder = format!("models--{owner}--{name}");
    let after_cache = parts.iter().rposition(|part| part.eq_ignore_ascii_case(&folder)).map(|at| at + 3);
    let is_pair = |pair: &[&str]| pair[0].eq_ignore_ascii_case(owner) && pair[1].eq_ignore_ascii_case(name);
    let from = after_cache.or_else(|| parts.windows(2).rposition(is_pair).map(|at| at + 2))?;
    let inner = parts.get(from..)?.join("/");
    // A folder of safetensors is the repository itself.
    Some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_hub_find_what_came_from_there() {
        let row = |id: &str, path: &str| ModelRow { id: id.into(), path: path.into(), ..ModelRow::default() };
        let rows = [
            row("a", "/home/u/.cache/huggingface/hub/models--o--n-GGUF/snapshots/0123/n-Q8_0.gguf"),
            row("b", "/home/u/.cache/huggingface/hub/models--o--n-GGUF/snapshots/0123/n-Q4_K_M.gguf"),
            row("c", "/data/models/o/n-GGUF/n-Q5_K_M.gguf"),
            row("d", "/data/models/p/q"),
            row("e", "/elsewhere/n-Q2_K.gguf"),
        ];
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(find_row(&rows, text).map(|row| row.id.as_str()), expected, "{text}");
        };
        check("e", Some("e"));
        check("o/n-GGUF:Q8_0", Some("a"));
        check("hf.co/o/n-GGUF:q8_0", Some("a"));
        check("huggingface.co/O/N-gguf:Q5_K_M", Some("c"));
        check("https://huggingface.co/o/n-GGUF", Some("b"));
        check("o/n-GGUF:latest", Some("b"));
        check("o/n-GGUF:n-Q5_K_M.gguf", Some("c"));
        check("o/n-GGUF:Q2_K", None);
        check("o/other:Q8_0", None);
        check("p/q", Some("d"));
        check("unknown", None);
    }
}
