//! Scanned PDFs through the real `nook`: a model that sees gets their pages as images, and any other says why it can't.

use std::path::PathBuf;

use inglenook_tests::workspace_root;
use serde_json::{Value, json};

use crate::cli::Home;

fn seeing_model() -> String {
    workspace_root().join("tests/reference/vision/gemma3").display().to_string()
}

fn file(name: &str) -> String {
    files().join(name).display().to_string()
}

fn files() -> PathBuf {
    workspace_root().join("src-tauri/crates/pdf-pages/tests/files")
}

/// Six tokens, the most likely ones.
fn run(home: &Home, args: &[&str]) -> Value {
    let model = seeing_model();
    let fixed =
        ["run", "--model", &model, "--temperature", "0", "--kv", "f32", "--ignore-eos", "--max-tokens", "6"];
    home.json(&[&fixed[..], args].concat())
}

fn said(answer: &Value) -> (&Value, &Value) {
    (&answer["ids"], &answer["usage"]["prompt_tokens"])
}

#[test]
fn a_pdf_as_an_image_is_its_page() {
    let home = Home::new();
    let ask = |name: &str| run(&home, &["--prompt", "What is it?", "--image", &file(name)]);
    let (pdf, picture) = (ask("jpeg.pdf"), ask("jpeg-page.jpg"));
    assert_eq!(said(&pdf), said(&picture));
    assert_ne!(pdf["ids"], ask("fax.pdf")["ids"], "the model sees which it is");
    // Six pages, one image each.
    let (one, six) = (said(&picture).1.as_u64().unwrap(), ask("mixed.pdf"));
    let none = run(&home, &["--prompt", "What is it?"]);
    let none = said(&none).1.as_u64().unwrap();
    assert_eq!(said(&six).1.as_u64().unwrap() - none, 6 * (one - none));
}

#[test]
fn an_attached_scan_is_seen_behind_its_name() {
    let home = Home::new();
    let attached = run(&home, &["--prompt", "What is it?", "--file", &file("jpeg.pdf")]);
    let page = "(This page is scanned. It is an image.)";
    let text = format!("\n\nFile: jpeg.pdf\n```\n[page 1]\n{page}\n```\n\nWhat is it?");
    let content = json!([
        { "type": "text", "text": "File: page 1 of jpeg.pdf" },
        { "type": "image", "path": file("jpeg-page.jpg") },
        { "type": "text", "text": text },
    ]);
    let messages = home.0.join("messages.json");
    std::fs::write(&messages, json!([{ "role": "user", "content": content }]).to_string()).unwrap();
    let written = run(&home, &["--messages", &messages.display().to_string()]);
    assert_eq!(said(&attached), said(&written));
}

#[test]
fn a_model_that_cannot_see_reads_only_text() {
    let home = Home::new();
    let ask = |name: &str| {
        let file = file(name);
        home.error(&["run", "--model", "starter", "--prompt", "x", "--max-tokens", "1", "--file", &file])
    };
    let (exit, error) = ask("jpeg.pdf");
    assert_eq!((exit, error["code"].as_str()), (3, Some("attachment.scanned")), "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("pages of jpeg.pdf are scanned") && message.contains("starter"), "{message}");
    assert!(error["remedy"].as_str().unwrap().contains("images"));
    let (_, error) = ask("locked.pdf");
    assert!(error["message"].as_str().unwrap().contains("password"), "{error}");
    let (_, error) = ask("huge-image.pdf");
    assert!(error["message"].as_str().unwrap().contains("its pages are images"), "{error}");
    let mixed = file("mixed.pdf");
    let args = ["run", "--model", "starter", "--prompt", "x", "--max-tokens", "1", "--file", &mixed];
    assert!(home.json(&args)["usage"]["prompt_tokens"].as_u64().unwrap() > 50);
}
