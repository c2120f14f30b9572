//! Models that draft for others: what they are offered for, and that the memory estimate counts them.
#![allow(clippy::unwrap_used)] // a test

use std::fs;
use std::path::Path;

use crate::common::Home;
use app::App;
use contract::types::{FitArgs, FitNeeds, ModelEntry, ModelSettingArgs, SettingKind};
use serde_json::{Value, json};

/// The application with a Gemma 4, its assistant and another small model in its library.
fn open(home: &Home) -> App {
    let app = home.open_as(&[("context", json!(128))]);
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/reference");
    let folder = home.0.join("mine");
    for (name, of) in
        [("target", "families/gemma4"), ("assistant", "assistants/gemma4"), ("small", "families/llama")]
    {
        fs::create_dir_all(folder.join(name)).unwrap();
        for file in ["config.json", "model.safetensors"] {
            fs::copy(reference.join(of).join(file), folder.join(name).join(file)).unwrap();
        }
    }
    app.model_folder_add(folder.to_str().unwrap()).unwrap();
    app
}

fn entry(app: &App, id: &str) -> ModelEntry {
    app.models_list().unwrap().into_iter().find(|entry| entry.id == id).unwrap()
}

fn offered(app: &App, key: &str) -> Vec<String> {
    options(app.settings_get(key).unwrap().kind)
}

fn options(kind: SettingKind) -> Vec<String> {
    match kind {
        SettingKind::Choice { options } => options.into_iter().map(|it| it.value).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn assistants_are_offered_as_draft_models_alone() {
    let home = Home::new("assistants-offered");
    let app = open(&home);
    let assistant = entry(&app, "assistant");
    assert!(assistant.only_drafts && !assistant.embeds && assistant.fit.is_none(), "{assistant:?}");
    assert!(!entry(&app, "target").only_drafts && !entry(&app, "small").only_drafts);
    let sorted = |mut ids: Vec<String>| {
        ids.sort();
        ids
    };
    assert_eq!(sorted(offered(&app, "model")), ["small", "starter", "target"]);
    assert_eq!(sorted(offered(&app, "draft_model")), ["", "assistant", "small", "starter", "target"]);
    assert_eq!(offered(&app, "embedding_model"), [""]);
    let served = app.models_served().unwrap().into_iter().map(|model| model.id).collect();
    assert_eq!(sorted(served), ["small", "starter", "target"]);
    for (key, code) in [("model", "model.drafts_only"), ("embedding_model", "model.no_embeddings")] {
        let error = app.settings_set(key, &json!("assistant")).unwrap_err();
        assert_eq!(error.code(), code, "{error:?}");
        assert!(error.message().contains("assistant") && !error.remedy().is_empty(), "{error:?}");
    }
    app.settings_set("draft_model", &json!("assistant")).unwrap();
    let offered_to = |model: &str| {
        let row =
            app.model_settings(model).unwrap().into_iter().find(|row| row.key == "draft_model").unwrap();
        sorted(options(row.kind))
    };
    assert_eq!(
        offered_to("target"),
        ["", "assistant", "small", "starter"],
        "a model does not draft for itself"
    );
    let own = |value: Value| {
        let key = "draft_model".to_owned();
        app.model_setting_set(&ModelSettingArgs { id: "small".into(), key, value }).unwrap();
    };
    own(json!("starter"));
    assert_eq!(offered_to("small"), ["", "starter", "target"], "the assistant is another model's");
    own(json!("assistant"));
    assert_eq!(offered_to("small"), ["", "assistant", "starter", "target"], "what is selected stays");
}

/// What the list and the request of a model's fit say.
fn needs(app: &App, id: &str) -> FitNeeds {
    let listed = entry(app, id).fit.unwrap().needs;
    let asked = app.model_fit(&FitArgs { id: Some(id.into()), ..FitArgs::default() }).unwrap().needs;
    assert_eq!(listed, asked, "{id}");
    listed
}

#[test]
fn the_memory_estimate_counts_what_drafts() {
    let home = Home::new("drafts-fit");
    let app = open(&home);
    let set = |key: &str, value: &str| app.settings_set(key, &json!(value)).unwrap();
    let (target, small) = (needs(&app, "target"), needs(&app, "small"));
    set("draft_model", "assistant");
    assert_eq!(needs(&app, "target"), target, "it is not used yet");
    set("speculation", "draft");
    let of_assistant = entry(&app, "assistant").bytes;
    let expected =
        FitNeeds { weights: target.weights + of_assistant, total: target.total + of_assistant, ..target };
    assert!(of_assistant > 0);
    assert_eq!(needs(&app, "target"), expected);
    set("draft_model", "small");
    let beside = needs(&app, "target");
    assert_eq!(beside.total, target.total + small.total);
    assert_eq!(beside.context, target.context + small.context);
    assert_eq!(needs(&app, "small"), small, "a model does not draft for itself");

    // of one model alone
    let own = |key: &str, value: Value| {
        app.model_setting_set(&ModelSettingArgs { id: "target".into(), key: key.into(), value }).unwrap()
    };
    own("draft_model", json!("assistant"));
    assert_eq!(needs(&app, "target"), expected);
    assert_eq!(needs(&app, "small"), small);
    own("context", json!(64));
    assert!(needs(&app, "target").context < target.context);
    own("context", Value::Null);
    own("draft_model", Value::Null);
    assert_eq!(needs(&app, "target"), beside);
    set("speculation", "off");
    assert_eq!(needs(&app, "target"), target);
    // A catalog says nothing of draft models.
    let offers = app.catalog_fits().unwrap();
    set("speculation", "draft");
    let beside_draft = app.catalog_fits().unwrap();
    assert!(offers.iter().zip(&beside_draft).all(|(a, b)| a.fit.needs == b.fit.needs));
}
