//! Groups a repository's files into downloadable models: parts of split models together, with their quantization.

use std::collections::BTreeMap;

use crate::tree::RemoteFile;

/// Size tier of a quantization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuantGroup {
    /// Up to three bits per weight.
    Small,
    /// Four or five bits.
    Balanced,
    /// Six bits or more, and floats.
    Large,
}

/// A downloadable model: the files that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFiles {
    /// The file by which the model is opened: the first part, or the weights or index of a safetensors folder.
    pub path: String,
    /// All files that the model needs, in order; that of its vision tower is the last.
    pub files: Vec<RemoteFile>,
    /// Quantization in its name, such as `Q4_K_M`.
    pub quantisation: Option<String>,
    /// Size tier.
    pub group: QuantGroup,
}

impl ModelFiles {
    /// Total bytes of its files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).fold(0, u64::saturating_add)
    }
}

/// Files that accompany safetensors: configuration, tokenizer, and how images are prepared.
const SIDE_FILES: [&str; 10] = [
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "chat_template.json",
    "added_tokens.json",
    "preprocessor_config.json",
    "processor_config.json",
];
const INDEX: &str = "model.safetensors.index.json";
const SINGLE: &str = "model.safetensors";

/// Downloadable models among the files, smallest first. Leaves out split GGUFs with missing parts, and files that are not
/// models themselves (image projectors, importance matrices).
pub fn downloadable_models(files: &[RemoteFile]) -> Vec<ModelFiles> {
    let mut splits: BTreeMap<(&str, usize), Vec<&RemoteFile>> = BTreeMap::new();
    let mut found = Vec::new();
    for file in files.iter().filter(|file| is_gguf_model(&file.path)) {
        match split(&file.path) {
            Some((stem, _, count)) => splits.entry((stem, count)).or_default().push(file),
            None => found.push(gguf(&file.path, vec![file.clone()])),
        }
    }
    for ((_, count), mut parts) in splits {
        parts.sort_by_key(|file| split(&file.path).map(|(_, index, _)| index));
        let indices: Vec<_> =
            parts.iter().filter_map(|file| split(&file.path)).map(|(_, index, _)| index).collect();
        if indices.into_iter().eq(1..=count) {
            found.push(gguf(&parts[0].path, parts.iter().map(|file| (*file).clone()).collect()));
        }
    }
    for model in &mut found {
        model.files.extend(vision_tower(files, &model.path).cloned());
    }
    found.extend(folder(files));
    found.sort_by(|a, b| a.bytes().cmp(&b.bytes()).then_with(|| a.path.cmp(&b.path)));
    found
}

/// Precisions of vision towers that are fetched, the preferred first: smaller ones lose detail, larger ones gain none.
const TOWER_PRECISIONS: [&str; 3] = ["F16", "BF16", "Q8_0"];

/// The vision tower that belongs to a GGUF: in its folder, where only one model's files are.
fn vision_tower<'a>(files: &'a [RemoteFile], model: &str) -> Option<&'a RemoteFile> {
    let folder = |path: &str| path.len() - file_name(path).len();
    let is_beside = |file: &&RemoteFile| {
        is_vision_tower(&file.path) && file.path[..folder(&file.path)] == model[..folder(model)]
    };
    let towers: Vec<&RemoteFile> = files.iter().filter(is_beside).collect();
    let of = |precision: &&str| {
        towers.iter().find(|file| quantisation(&file.path).as_deref() == Some(*precision)).copied()
    };
    TOWER_PRECISIONS.iter().find_map(of).or_else(|| towers.first().copied())
}

/// Whether a file is called like one of a vision tower.
pub fn is_vision_tower(path: &str) -> bool {
    let name = file_name(path).to_ascii_lowercase();
    name.ends_with(".gguf") && (name.starts_with("mmproj") || name.contains("-mmproj"))
}

fn gguf(path: &str, files: Vec<RemoteFile>) -> ModelFiles {
    let quantisation = quantisation(path);
    let group = quantisation.as_deref().map_or(QuantGroup::Large, group);
    ModelFiles { path: path.into(), files, quantisation, group }
}

/// The files of a safetensors model at the repository's root.
fn folder(files: &[RemoteFile]) -> Option<ModelFiles> {
    let of = |path: &str| files.iter().find(|file| file.path == path);
    of("config.json")?;
    of("tokenizer.json")?;
    let mut needed: Vec<RemoteFile> = SIDE_FILES.iter().filter_map(|path| of(path)).cloned().collect();
    let path = match of(INDEX) {
        Some(index) => {
            needed.push(index.clone());
            let is_part = |path: &str| path.starts_with("model-") && path.ends_with(".safetensors");
            needed.extend(files.iter().filter(|file| is_part(&file.path)).cloned());
            INDEX
        }
        None => {
            needed.push(of(SINGLE)?.clone());
            SINGLE
        }
    };
    Some(ModelFiles { path: path.into(), files: needed, quantisation: None, group: QuantGroup::Large })
}

/// Last component of a path.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_gguf_model(path: &str) -> bool {
    let name = file_name(path).to_ascii_lowercase();
    let is_beside = |mark: &str| name.starts_with(mark) || name.contains(&format!("-{mark}"));
    name.ends_with(".gguf")
        && !name.starts_with('.')
        && !["mmproj", "imatrix", "mtp"].iter().any(|m| is_beside(m))
}

/// Parses `NAME-00002-of-00003.gguf` into (`NAME`, 2, 3).
fn split(path: &str) -> Option<(&str, usize, usize)> {
    let stem = path.get(..path.len().checked_sub(5)?)?;
    let (rest, count) = stem.rsplit_once("-of-")?;
    let (name, index) = rest.rsplit_once('-')?;
    let number = |text: &str| {
        (text.len() == 5 && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse::<usize>().ok())?
    };
    let (index, count) = (number(index)?, number(count)?);
    (count > 0 && index > 0).then_some((name, index, count))
}

/// Quantization in a file name: `Q4_K_M` of `model-Q4_K_M.gguf`. The last matching piece counts.
pub(crate) fn quantisation(path: &str) -> Option<String> {
    let unsplit = || path.len().checked_sub(5).and_then(|n| path.get(..n)).unwrap_or(path);
    let stem = split(path).map_or_else(unsplit, |(stem, ..)| stem);
    let pieces = file_name(stem).rsplit(['-', '.']).map(str::to_ascii_uppercase);
    pieces.into_iter().find(|piece| bits(piece).is_some())
}

/// Bits per weight of a quantization.
fn bits(name: &str) -> Option<u32> {
    match name {
        "F32" | "FP32" => return Some(32),
        "F16" | "FP16" | "BF16" => return Some(16),
        "MXFP4" | "NVFP4" | "MXFP4_MOE" => return Some(4),
        _ => {}
    }
    let rest = ["IQ", "TQ", "Q"].iter().find_map(|prefix| name.strip_prefix(prefix))?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let next = rest.as_bytes().get(digits);
    let bits: u32 = rest.get(..digits)?.parse().ok()?;
    (matches!(next, None | Some(b'_')) && (1..=8).contains(&bits)).then_some(bits)
}

fn group(quantisation: &str) -> QuantGroup {
    match bits(quantisation) {
        Some(..=3) => QuantGroup::Small,
        Some(4 | 5) => QuantGroup::Balanced,
        Some(6..) | None => QuantGroup::Large,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(paths: &[&str]) -> Vec<RemoteFile> {
        let file = |(i, path): (usize, &&str)| RemoteFile {
            path: (*path).into(),
            bytes: 100 + i as u64,
            sha256: None,
        };
        paths.iter().enumerate().map(file).collect()
    }

    #[test]
    fn names_tell_the_quantization() {
        let cases = [
            ("SmolLM3-3B-Q4_K_M.gguf", Some("Q4_K_M"), QuantGroup::Balanced),
            ("model.IQ2_XXS.gguf", Some("IQ2_XXS"), QuantGroup::Small),
            ("gpt-oss-20b-mxfp4.gguf", Some("MXFP4"), QuantGroup::Balanced),
            ("qwen2.5-coder-7b-instruct-q5_k_m-00001-of-00002.gguf", Some("Q5_K_M"), QuantGroup::Balanced),
            ("UD/gemma-4-26B-UD-Q3_K_XL.gguf", Some("Q3_K_XL"), QuantGroup::Small),
            ("Qwen3-0.6B-Q8_0.gguf", Some("Q8_0"), QuantGroup::Large),
            ("Phi-4-BF16.gguf", Some("BF16"), QuantGroup::Large),
            ("Q3-magic.gguf", Some("Q3"), QuantGroup::Small),
            ("Qwen3-tool.gguf", None, QuantGroup::Large),
            ("x.gguf", None, QuantGroup::Large),
        ];
        for (path, expected, in_group) in cases {
            let item = &downloadable_models(&remote(&[path.replace("-00001-of-00002", "").as_str()]))[0];
            assert_eq!((item.quantisation.as_deref(), item.group), (expected, in_group), "{path}");
        }
    }

    #[test]
    fn parts_are_one_item_and_incomplete_ones_none() {
        let whole = ["a-Q4_0-00002-of-00002.gguf", "a-Q4_0-00001-of-00002.gguf", "b-Q8_0.gguf"];
        let found = downloadable_models(&remote(&whole));
        let paths: Vec<_> = found.iter().map(|item| (item.path.as_str(), item.files.len())).collect();
        assert_eq!(paths, [("b-Q8_0.gguf", 1), ("a-Q4_0-00001-of-00002.gguf", 2)]);
        assert_eq!(found[1].files[0].path, found[1].path);
        assert!(downloadable_models(&remote(&whole[..1])).is_empty(), "its first part is missing");
        let others = ["mmproj-f16.gguf", "x-imatrix.gguf", "README.md", "a-00000-of-00001.gguf"];
        assert_eq!(downloadable_models(&remote(&others)).len(), 1, "an odd name is a file like any other");
    }

    #[test]
    fn a_vision_tower_comes_with_each_model_of_its_folder() {
        let check = |others: &[&str], expected: &[&str]| {
            let paths = [&["m-Q4_0.gguf"][..], others].concat();
            let found = downloadable_models(&remote(&paths));
            let model = found.iter().find(|model| model.path == "m-Q4_0.gguf").unwrap();
            let files: Vec<&str> = model.files.iter().map(|file| file.path.as_str()).collect();
            assert_eq!(files, [&["m-Q4_0.gguf"][..], expected].concat(), "{others:?}");
        };
        check(&["mmproj-BF16.gguf", "mmproj-F16.gguf", "mmproj-F32.gguf"], &["mmproj-F16.gguf"]);
        check(&["mmproj-m-Q8_0.gguf", "mmproj-m-BF16.gguf"], &["mmproj-m-BF16.gguf"]);
        check(&["m-mmproj.gguf"], &["m-mmproj.gguf"]);
        check(&["other/mmproj-F16.gguf", "m-Q8_0.gguf"], &[]);
    }

    #[test]
    fn a_folder_of_safetensors_is_one_item() {
        let paths = ["config.json", "tokenizer.json", "model-00001-of-00002.safetensors", INDEX, "x.bin"];
        assert!(
            downloadable_models(&remote(&paths[1..])).is_empty(),
            "without config.json its architecture is unknown"
        );
        let found = downloadable_models(&remote(&paths));
        assert_eq!((found[0].path.as_str(), found[0].files.len()), (INDEX, 4));
    }
}
