//! What a model is called: the name in its file, unless that names a training run, a folder or nothing; else the name of
//! the file or of its repository.

use std::path::Path;

use weights::Metadata;

/// Names that say nothing of a model, as converters and folders leave them.
const EMPTY_NAMES: &[&str] = &[
    "model",
    "models",
    "ggml",
    "gguf",
    "hf",
    "llama",
    "llama v2",
    "llama2",
    "checkpoint",
    "checkpoints",
    "output",
    "outputs",
    "out",
    "merged",
    "merged model",
    "merge",
    "final",
    "final model",
    "best",
    "best model",
    "test",
    "tmp",
    "temp",
    "root",
    "snapshot",
    "snapshots",
    "blobs",
    "refs",
    "main",
    "untitled",
    "unknown",
    "none",
    "null",
    "workspace",
    "content",
    "data",
    "default",
    "weights",
    "pytorch model",
    "consolidated",
    "adapter model",
    "base",
    "base model",
    "my model",
    "export",
    "converted",
    "new",
];

/// Beginnings of words of a training run that a number follows: epoch, mixture, learning rate, step and so on.
const RUN_WORDS: &[&str] = &[
    "ep",
    "epoch",
    "epochs",
    "mix",
    "lc",
    "lr",
    "step",
    "steps",
    "ckpt",
    "checkpoint",
    "iter",
    "iters",
    "seed",
    "bs",
    "gbs",
    "mbs",
    "run",
    "exp",
    "stage",
    "phase",
    "gs",
    "rank",
    "wd",
    "warmup",
    "tok",
    "fold",
    "trial",
];

/// Shortest word of hexadecimal digits that is a hash.
const MIN_HASH_CHARS: usize = 7;

/// The name to show. `own` is `general.name`, `path` that of a file, or of a folder with a model.
pub fn model_name(own: Option<&str>, metadata: Option<&Metadata>, path: &Path) -> String {
    let stem = stem(path);
    let own = own.map(str::trim).filter(|name| !name.is_empty());
    if let Some(name) = own.filter(|name| is_name(name)) {
        return name.to_owned();
    }
    let part = |key: &str| {
        let text = metadata.and_then(|metadata| metadata.str(key).ok()).map(str::trim).unwrap_or_default();
        Some(text.to_owned()).filter(|text| is_name(text))
    };
    let (base, size) = (part("general.basename"), part("general.size_label"));
    let composed = base.map(|base| {
        let parts = [Some(base), size, part("general.finetune"), part("general.version")];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (part("general.finetune").is_some(), parts.join(" "))
    });
    match composed {
        Some((true, name)) => name,
        _ if is_name(&stem) => stem,
        composed => repository(path)
            .or(composed.map(|(_, name)| name))
            .unwrap_or_else(|| own.map_or(stem, str::to_owned)),
    }
}

/// The name of a file without its ending and its number among several; of a folder, all of it.
fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let ends = [".safetensors.index.json", ".safetensors", ".gguf", ".bin", ".json"];
    let stem = ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    without_part_number(stem).to_owned()
}

/// `name-00001-of-00003` is a part of `name`.
fn without_part_number(stem: &str) -> &str {
    let is_number = |text: &str| text.len() == 5 && text.chars().all(|c| c.is_ascii_digit());
    let Some((rest, total)) = stem.rsplit_once("-of-") else { return stem };
    match rest.rsplit_once('-') {
        Some((name, number)) if is_number(number) && is_number(total) => name,
        _ => stem,
    }
}

/// The repository that a file lies in: its folder where that has a size or version, or the hub's cache above it.
fn repository(path: &Path) -> Option<String> {
    let folders = path.ancestors().skip(1).filter_map(|folder| folder.file_name()?.to_str());
    let cached = folders.clone().find_map(|folder| folder.strip_prefix("models--")?.rsplit("--").next());
    let beside = folders.take(1).find(|folder| is_name(folder) && folder.chars().any(|c| c.is_ascii_digit()));
    cached.or(beside).map(str::to_owned)
}

/// Whether a text can be the name of a model.
fn is_name(text: &str) -> bool {
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| c.is_whitespace() || "-_/\\".contains(c))
        .filter(|word| !word.is_empty())
        .collect();
    let is_path = text.contains('\\') || text.starts_with(['/', '.', '~']) || text.matches('/').count() > 1;
    !is_path
        && text.chars().any(char::is_alphabetic)
        && !EMPTY_NAMES.contains(&words.join(" ").as_str())
        && !words.iter().any(|word| is_run_word(word) || is_hash(word))
        && !words.windows(2).any(is_run_pair)
}

/// "ep2", "lc100k", "lr5e-5", "checkpoint1200".
fn is_run_word(word: &str) -> bool {
    let letters = word.find(|c: char| c.is_ascii_digit()).unwrap_or(word.len());
    let (letters, number) = word.split_at(letters);
    let number = number.trim_end_matches(['k', 'm']);
    let is_number = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || ".e+".contains(c));
    is_number && RUN_WORDS.contains(&letters)
}

/// "checkpoint 1200", "epoch 3".
fn is_run_pair(pair: &[&str]) -> bool {
    let [word, number] = pair else { return false };
    word.len() > 2 && RUN_WORDS.contains(word) && number.chars().all(|c| c.is_ascii_digit())
}

fn is_hash(word: &str) -> bool {
    word.len() >= MIN_HASH_CHARS
        && word.chars().all(|c| c.is_ascii_hexdigit())
        && word.chars().any(|c| c.is_ascii_digit())
        && word.chars().any(|c| c.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_training_runs_are_no_names() {
        let cases = [
            ("Smollm2 135M 8k Lc100K Mix1 Ep2", false),
            ("Llama 3.2 1B Instruct", true),
            ("Qwen2.5 0.5B Instruct", true),
            ("gemma-3-4b-it", true),
            ("Phi 3.5 mini", true),
            ("Mixtral 8x7B Instruct v0.1", true),
            ("Mistral 7B v0.3", true),
            ("DeepSeek R1 Distill Qwen 1.5B", true),
            ("GPT-OSS 20B", true),
            ("Step 3.5 Flash", true),
            ("BGE Small En v1.5", true),
            ("OLMo 2 0425 1B", true),
            ("Mix1", false),
            ("checkpoint-1200", false),
            ("Checkpoint 1200", false),
            ("Epoch 3", false),
            ("llama-7b-lr5e-5", false),
            ("Assistant 20250101", true),
            ("Run4 Seed42 Bs32", false),
            ("8e2f0bd1c4a7", false),
            ("20240115", false),
            ("/root/out/hf", false),
            (".", false),
            ("model", false),
            ("LLaMA v2", false),
            ("Snapshots", false),
            ("日本語モデル", true),
            ("123", false),
        ];
        for (name, expected) in cases {
            assert_eq!(is_name(name), expected, "{name}");
        }
    }

    #[test]
    fn the_file_says_what_the_run_does_not() {
        let cases = [
            (Some("Llama 3.2 1B"), "x", "Llama 3.2 1B"),
            (
                Some("Smollm2 135M 8k Lc100K Mix1 Ep2"),
                "SmolLM2-135M-Instruct-Q4_K_M",
                "SmolLM2-135M-Instruct-Q4_K_M",
            ),
            (Some("model"), "tiny-q8_0", "tiny-q8_0"),
            (None, "tiny-q8_0", "tiny-q8_0"),
            (Some("  "), "model", "model"),
            (Some("Mix1 Ep2"), "8e2f0bd1c4a7", "Mix1 Ep2"),
        ];
        for (own, stem, expected) in cases {
            let path = format!("/home/a/Downloads/{stem}.gguf");
            assert_eq!(model_name(own, None, Path::new(&path)), expected, "{own:?} {stem}");
        }
    }

    #[test]
    fn a_path_tells_the_name_where_the_file_does_not() {
        let hub = "/home/a/.cache/huggingface/hub/models--Qwen--Qwen3-0.6B/snapshots/8e2f0bd1c4a7";
        let cases = [
            ("/m/Qwen2.5-0.5B-Instruct", "Qwen2.5-0.5B-Instruct"),
            ("/m/Llama-3.2-1B-Q4_K_M-00001-of-00002.gguf", "Llama-3.2-1B-Q4_K_M"),
            ("/m/Qwen2.5-0.5B-Instruct/model.safetensors", "Qwen2.5-0.5B-Instruct"),
            ("/m/SmolLM2-135M/model-00001-of-00003.safetensors", "SmolLM2-135M"),
            ("/home/a/Downloads/model.gguf", "model"),
            (hub, "Qwen3-0.6B"),
            (&format!("{hub}/model.safetensors"), "Qwen3-0.6B"),
        ];
        for (path, expected) in cases {
            assert_eq!(model_name(None, None, Path::new(path)), expected, "{path}");
        }
    }
}
