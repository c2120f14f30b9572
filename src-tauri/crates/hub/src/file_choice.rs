//! Which file of a repository a person means: by its path, its name, or the tag that the hub writes behind a
//! repository for other programs, such as `Q4_K_M`.

use crate::files::{file_name, quantisation};

/// Endings of model files. A name with one of them is a file's, not a tag.
const ENDINGS: [&str; 3] = [".gguf", ".safetensors", ".json"];

/// The tag of whatever file is recommended.
const LATEST: &str = "latest";

/// Of several files that a short tag such as `Q4` fits, those whose names hold this come first.
const USUAL: [&str; 2] = ["_K_M", "_0"];

/// Whether a text behind a repository names no file in particular.
pub fn is_latest(tag: &str) -> bool {
    tag.eq_ignore_ascii_case(LATEST)
}

/// Finds the model file that `wanted` means among the paths of a repository. Case does not matter.
pub fn find_file(paths: &[&str], wanted: &str) -> Option<usize> {
    let wanted = wanted.trim().trim_matches('/');
    let position = |is_it: &dyn Fn(&str) -> bool| paths.iter().position(|path| is_it(path));
    let exact = position(&|path| path == wanted)
        .or_else(|| position(&|path| path.eq_ignore_ascii_case(wanted)))
        .or_else(|| position(&|path| file_name(path).eq_ignore_ascii_case(wanted)))
        .or_else(|| position(&|path| stem(file_name(path)).eq_ignore_ascii_case(wanted)));
    exact.or_else(|| if is_file(wanted) { None } else { find_tagged(paths, &wanted.to_ascii_uppercase()) })
}

fn find_tagged(paths: &[&str], tag: &str) -> Option<usize> {
    let tag = if tag == "FP16" { "F16" } else { tag };
    let tag = if tag == "FP32" { "F32" } else { tag };
    // The shortest name has nothing but the tag: `x-Q4_K_M`, not `x-UD-Q4_K_M` or `x-abliterated-Q4_K_M`.
    let shortest = |is_it: &dyn Fn(&str) -> bool| {
        let fitting = paths.iter().enumerate().filter(|(_, path)| is_it(path));
        fitting.min_by_key(|(_, path)| file_name(path).len()).map(|(at, _)| at)
    };
    let is_kind = |path: &str| {
        quantisation(path).is_some_and(|kind| {
            kind == tag || kind.strip_prefix("FP") == tag.strip_prefix('F') && tag.starts_with('F')
        })
    };
    let ends_so = |path: &str| {
        let path = path.to_ascii_uppercase();
        let folder = path.split('/').rev().skip(1).any(|part| part == tag);
        let name = part_free(stem(file_name(&path)));
        let before = name.strip_suffix(tag).map(|rest| rest.chars().next_back());
        folder || before.is_some_and(|c| c.is_none_or(|c| "-._".contains(c)))
    };
    let begins_so = |path: &str, usual: &str| {
        quantisation(path).is_some_and(|kind| {
            let rest = kind.strip_prefix(tag).unwrap_or_default();
            rest.starts_with('_') && (usual.is_empty() || rest == usual)
        })
    };
    shortest(&is_kind)
        .or_else(|| shortest(&ends_so))
        .or_else(|| USUAL.iter().find_map(|usual| shortest(&|path| begins_so(path, usual))))
        .or_else(|| shortest(&|path| begins_so(path, "")))
}

fn is_file(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains('/') || ENDINGS.iter().any(|ending| text.ends_with(ending))
}

/// A name without its ending.
fn stem(name: &str) -> &str {
    let lower = name.to_ascii_lowercase();
    let ending = ENDINGS.iter().find(|ending| lower.ends_with(*ending));
    ending.map_or(name, |ending| &name[..name.len() - ending.len()])
}

/// A name without `-00001-of-00003`.
fn part_free(name: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let parts: Vec<&str> = name.rsplitn(4, '-').collect();
    match parts.as_slice() {
        [count, of, index, rest] if of.eq_ignore_ascii_case("of") && is_number(count) && is_number(index) => {
            rest
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATHS: [&str; 9] = [
        "m-UD-Q4_K_XL.gguf",
        "m-Q4_0.gguf",
        "m-UD-Q4_K_M.gguf",
        "m-Q4_K_M.gguf",
        "m.Q8_0.gguf",
        "m-F16.gguf",
        "BF16/m-BF16-00001-of-00002.gguf",
        "m-IQ4_NL.gguf",
        "m-Q5_K_S.gguf",
    ];

    #[test]
    fn tags_and_names_find_their_file() {
        let check = |wanted: &str, expected: Option<&str>| {
            assert_eq!(find_file(&PATHS, wanted).map(|at| PATHS[at]), expected, "{wanted}");
        };
        check("Q4_K_M", Some("m-Q4_K_M.gguf"));
        check("q4_k_m", Some("m-Q4_K_M.gguf"));
        check("Q4_0", Some("m-Q4_0.gguf"));
        check("UD-Q4_K_M", Some("m-UD-Q4_K_M.gguf"));
        check("UD-Q4_K_XL", Some("m-UD-Q4_K_XL.gguf"));
        check("Q4_K_XL", Some("m-UD-Q4_K_XL.gguf"));
        check("Q4", Some("m-Q4_K_M.gguf"));
        check("Q8", Some("m.Q8_0.gguf"));
        check("Q5", Some("m-Q5_K_S.gguf"));
        check("FP16", Some("m-F16.gguf"));
        check("BF16", Some("BF16/m-BF16-00001-of-00002.gguf"));
        check("IQ4_NL", Some("m-IQ4_NL.gguf"));
        check("m-Q4_0.gguf", Some("m-Q4_0.gguf"));
        check("M-Q4_0", Some("m-Q4_0.gguf"));
        check("m-BF16-00001-of-00002.gguf", Some("BF16/m-BF16-00001-of-00002.gguf"));
        check("Q3_K_M", None);
        check("Q6", None);
        check("other.gguf", None);
        check("", None);
        check("é", None);
        assert_eq!(find_file(&["m.gguf"], "Q4_0"), None);
        assert!(is_latest("Latest") && !is_latest("Q4_0"));
    }
}
