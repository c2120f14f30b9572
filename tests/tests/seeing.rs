//! Models that see, through the real `nook`: prompts and answers equal those of transformers.

use std::path::{Path, PathBuf};

use inglenook_tests::{reference_dir, reference_is_small, workspace_root};
use serde_json::{Value, json};
use test_support::{Missing, skip};

use crate::cli::Home;

/// Answers are compared while the best token is ahead by this much. 8-bit pixels and 16-bit keys move logits by less.
const SURE: f64 = 0.05;
/// A family's prompts are held against references by at least this many tokens together.
const MIN_COMPARED: usize = 10;

/// Two families that are in the repository.
fn small_set() -> PathBuf {
    workspace_root().join("tests/reference/vision")
}

fn folder(family: &str) -> PathBuf {
    small_set().join(family)
}

fn read(root: &Path, family: &str, name: &str) -> Value {
    let text = std::fs::read_to_string(root.join(family).join(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Parts of a message: the texts between placeholders, and files in their place.
fn parts(root: &Path, text: &str, placeholder: &str, images: &Value) -> Value {
    let mut images = images.as_array().unwrap().iter();
    let mut parts = Vec::new();
    for (index, text) in text.split(placeholder).enumerate() {
        if index > 0 {
            let image = images.next().unwrap().as_str().unwrap();
            parts.push(json!({ "type": "image", "path": root.join("images").join(image) }));
        }
        parts.push(json!({ "type": "text", "text": text }));
    }
    json!(parts)
}

fn image_path(name: &str) -> String {
    folder("images").join(name).display().to_string()
}

fn run(home: &Home, model: &Path, messages: &Value, extra: &[&str]) -> Value {
    let file = home.0.join("messages.json");
    std::fs::write(&file, messages.to_string()).unwrap();
    let (model, file) = (model.display().to_string(), file.display().to_string());
    let args =
        ["run", "--model", &model, "--messages", &file, "--temperature", "0", "--kv", "f32", "--ignore-eos"];
    home.json(&[&args[..], extra].concat())
}

/// What a family's template writes where a message has an image.
fn placeholder(root: &Path, family: &str) -> String {
    let chat = read(root, family, "chat.json");
    let (_, after) = chat[0]["text"].as_str().unwrap().split_once("user\n").unwrap();
    after.split_once("What is this?").unwrap().0.to_owned()
}

/// Checks the answers to a family's prompts. Decoders of JPEG differ by a level, which `photos` leaves in.
fn check_answers(root: &Path, family: &str, photos: bool) {
    let (home, placeholder) = (Home::new(), placeholder(root, family));
    let mut n_compared = 0;
    for prompt in read(root, family, "ref.hf.json")["prompts"].as_array().unwrap() {
        let (name, text) = (prompt["name"].as_str().unwrap(), prompt["text"].as_str().unwrap());
        let question = text.strip_prefix("<|im_start|>user\n").and_then(|text| text.split_once("<|im_end|>"));
        let Some((question, _)) = question else { continue };
        if !photos && prompt["images"].to_string().contains(".jpg") {
            continue;
        }
        let content = parts(root, question, &placeholder, &prompt["images"]);
        let greedy: Vec<u64> = serde_json::from_value(prompt["greedy"].clone()).unwrap();
        let n = greedy.len().to_string();
        let messages = json!([{ "role": "user", "content": content }]);
        let answer = run(&home, &root.join(family), &messages, &["--max-tokens", &n]);
        let n_prompt = prompt["tokens"].as_array().unwrap().len();
        assert_eq!(answer["usage"]["prompt_tokens"], n_prompt, "{family} {name}");
        let margins = prompt["greedy_margin"].as_array().unwrap();
        let n_sure = margins.iter().take_while(|margin| margin.as_f64().unwrap() > SURE).count();
        let ids: Vec<u64> = serde_json::from_value(answer["ids"].clone()).unwrap();
        assert_eq!(ids[..n_sure], greedy[..n_sure], "{family} {name}");
        n_compared += n_sure;
    }
    assert!(n_compared >= MIN_COMPARED, "{family}: only {n_compared} tokens were sure enough to compare");
}

#[test]
fn answers_to_images_equal_transformers() {
    for family in ["gemma3", "qwen3_5"] {
        check_answers(&small_set(), family, true);
    }
}

/// With tiles, rows and every kind of placeholder.
#[test]
fn answers_of_every_family_that_sees_equal_transformers() {
    if reference_is_small() {
        skip!(Missing::Reference, "the small set has two families that see");
    }
    let root = reference_dir().join("vision");
    for family in ["qwen3_vl", "gemma4", "gemma4_e", "mistral3", "lfm2_vl", "smolvlm", "idefics3"] {
        check_answers(&root, family, false);
    }
}

#[test]
fn conversations_with_images_have_the_published_tokens() {
    for family in ["gemma3", "qwen3_5"] {
        let home = Home::new();
        for chat in read(&small_set(), family, "chat.json").as_array().unwrap() {
            let images: Vec<String> = chat["images"]
                .as_array()
                .unwrap()
                .iter()
                .map(|it| image_path(it.as_str().unwrap()))
                .collect();
            let mut extra = vec!["--max-tokens", "1"];
            images.iter().for_each(|image| extra.extend(["--image", image]));
            let answer = run(&home, &folder(family), &chat["messages"], &extra);
            assert_eq!(
                answer["usage"]["prompt_tokens"],
                chat["tokens"].as_array().unwrap().len(),
                "{family}"
            );
        }
    }
}

#[test]
fn a_tower_in_a_file_of_its_own_gives_the_same_answer() {
    let home = Home::new();
    let (model, tower) = (folder("gemma3"), folder("gemma3").join("mmproj-gemma3.f16.gguf"));
    let (model, tower) = (model.display().to_string(), tower.display().to_string());
    let image = image_path("gradient.png");
    let args = ["run", "--model", &model, "--prompt", "What is it?", "--image", &image, "--temperature", "0"];
    let own = home.json(&[&args[..], &["--max-tokens", "4"]].concat());
    let other = home.json(&[&args[..], &["--max-tokens", "4", "--mmproj", &tower]].concat());
    assert_eq!(own["ids"], other["ids"]);
    let blind = [&args[..5], &args[7..]].concat();
    assert_ne!(own["ids"], home.json(&[&blind[..], &["--max-tokens", "4"]].concat())["ids"]);
}

#[test]
fn images_that_cannot_be_seen_are_refused_with_a_remedy() {
    let home = Home::new();
    let gemma = folder("gemma3").display().to_string();
    let (image, text) = (image_path("gradient.png"), folder("README.md").display().to_string());
    let blind = workspace_root().join("tests/reference/families/gemma3").display().to_string();
    for (model, image, extra, code, exit) in [
        ("starter", &image, None, "model.no_images", 3),
        (&*gemma, &text, None, "image.format", 3),
        (&*gemma, &image_path("missing.png"), None, "input.unreadable", 3),
        (&*gemma, &image, Some(&*blind), "vision.no_tower", 3),
    ] {
        let mut args = vec!["run", "--model", model, "--prompt", "x", "--image", image];
        args.extend(extra.into_iter().flat_map(|path| ["--mmproj", path]));
        let (status, error) = home.error(&args);
        assert_eq!((status, error["code"].as_str().unwrap()), (exit, code), "{error}");
    }
}

/// The program's own conversion: what it writes answers as the repository does.
#[test]
fn a_converted_model_sees_as_its_repository_does() {
    let root = if reference_is_small() { small_set() } else { reference_dir().join("vision") };
    let families: &[&str] = if reference_is_small() { &["gemma3"] } else { CONVERTED };
    for family in families {
        let home = Home::new();
        let source = root.join(family).display().to_string();
        let out = home.0.join("converted").join(format!("{family}.gguf"));
        std::fs::create_dir_all(out.parent().unwrap()).unwrap();
        let out = out.display().to_string();
        home.json(&["convert", &source, "--out", &out, "--dtype", "f32"]);
        let image = root.join("images/gradient.png").display().to_string();
        let answer = |model: &str, size: &str| {
            let size = home.json(&["vision", "--model", model, "--size", size]);
            let args = ["--prompt", "What is it?", "--image", &image, "--temperature", "0", "--kv", "f32"];
            let run = [&["run", "--model", model][..], &args, &["--max-tokens", "6"]].concat();
            (size, home.json(&run)["ids"].clone())
        };
        // Small pictures, and such as become several tiles.
        for size in ["40x30", "400x300", "1000x150"] {
            assert_eq!(answer(&out, size), answer(&source, size), "{family}, {size}");
        }
    }
}

/// Repositories whose tower and language model `nook convert` writes.
pub const CONVERTED: &[&str] = &["gemma3", "gemma4", "gemma4_e", "lfm2_vl", "mistral3"];

#[test]
fn an_image_is_timed_beside_as_many_tokens_of_text() {
    let home = Home::new();
    let model = folder("gemma3").display().to_string();
    let args = ["bench", "--model", &model, "--test", "image", "--image-size", "300x200", "--repeat", "2"];
    let timed = home.json(&args);
    let counted = home.json(&["vision", "--model", &model, "--size", "300x200"]);
    assert_eq!(timed["tokens"], counted["tokens"]);
    let seconds = |key: &str| timed[key].as_f64().unwrap();
    let both = seconds("tower_s") + seconds("image_prefill_s");
    assert!((seconds("ratio") - both / seconds("text_prefill_s")).abs() < 1e-9, "{timed}");
}
