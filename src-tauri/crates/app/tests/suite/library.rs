//! The library over real folders: scanning, importing, removing, undoing.
#![allow(clippy::unwrap_used)] // a test

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use app::App;
use app::AppConfig;
use app::models::model_dirs::ModelRoot;
use contract::types::{
    AppEvent, FitArgs, FitFacts, FitVerdict, ImportArgs, ImportHow, ModelSkills, ModelSource, ModelState,
    SendArgs, Thinking,
};
use engine::shape::{self, Shape};
use io::{RealClock, RealIo};
use serde_json::json;
use session::{ModelRow, Session};

/// A temporary folder, removed at the end.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("inglenook-library-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// With the folder `hub` as the cache of other programs.
    fn open(&self) -> App {
        let others = vec![ModelRoot { path: self.at("hub"), source: ModelSource::HubCache }];
        let app =
            App::open(AppConfig { data_dir: Some(self.at("data")), others, ..AppConfig::default() }).unwrap();
        app.settings_set("threads", &json!(1)).unwrap();
        app.settings_set("guide_answers", &json!(false)).unwrap();
        app
    }

    /// A whole model of a few layers; another `seed` is another one.
    fn model(&self, path: &str, seed: u64) -> PathBuf {
        let published = shape::find("llama-3.2-1b").unwrap();
        let (n_layers, d_model, n_heads, n_kv_heads, d_ff, n_vocab) = (1, 64, 4, 2, 64, 600);
        let small = Shape {
            n_layers,
            d_model,
            n_heads,
            n_kv_heads,
            head_dim: 16,
            d_ff,
            n_vocab,
            context_length: 512,
            rope_divisors: engine::shape::RopeDivisors::None,
            ..published
        };
        let mut bytes = Vec::new();
        shape::write(&small, shape::mix("q8_0").unwrap(), seed, &mut bytes).unwrap();
        self.put(path, &bytes)
    }

    fn put(&self, path: &str, bytes: &[u8]) -> PathBuf {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn ids(app: &App) -> Vec<String> {
    app.models_list().unwrap().into_iter().map(|entry| entry.id).filter(|id| id != "starter").collect()
}

fn import(app: &App, path: &Path, how: ImportHow) -> contract::Result<contract::types::ModelEntry> {
    app.model_import(&ImportArgs { path: text(path), how })
}

/// Rows of before have a blank where a model's skills are kept: a file that has not changed is asked once more.
#[test]
fn what_an_earlier_version_did_not_ask_of_a_file_is_asked_at_the_next_look() {
    let home = Home::new("skills");
    home.model("mine/found.gguf", 1);
    let app = home.open();
    app.model_folder_add(&text(&home.at("mine"))).unwrap();
    app.model_add(&text(&home.model("elsewhere/named.gguf", 2))).unwrap();
    let skills = |app: &App| {
        let models = app.models_list().unwrap().into_iter().filter(|entry| entry.id != "starter");
        models.map(|entry| (entry.id, entry.skills)).collect::<Vec<_>>()
    };
    let none =
        Some(ModelSkills { tools: false, thinking: Thinking::Never, images: false, image_detail: false });
    let known = [("found".to_owned(), none), ("named".to_owned(), none)];
    assert_eq!(skills(&app), known);
    drop(app);
    let (mut before, _) = Session::open(&home.at("data"), &RealIo, Arc::new(RealClock::default())).unwrap();
    for row in before.models().unwrap() {
        assert!(row.skills.is_some(), "{row:?}");
        before.put_model(&ModelRow { skills: None, ..row }).unwrap();
    }
    drop(before);
    let app = home.open();
    assert!(skills(&app).iter().all(|(_, skills)| skills.is_none()));
    app.models_scan().unwrap();
    assert_eq!(skills(&app), known);
}

#[test]
fn models_of_other_folders_are_listed_once_and_read_in_place() {
    let home = Home::new("scan");
    let blob = home.model("hub/models--org--name/blobs/abc", 1);
    let snapshot = home.at("hub/models--org--name/snapshots/c0ffee");
    fs::create_dir_all(&snapshot).unwrap();
    fs::hard_link(&blob, snapshot.join("first.gguf")).unwrap();
    home.model("mine/second.gguf", 2);
    // the same bytes under another name
    fs::copy(&blob, home.at("mine/copy-of-first.gguf")).unwrap();
    let whole = fs::read(home.at("mine/second.gguf")).unwrap();
    home.put("mine/cut.gguf", &whole[..whole.len() / 2]);
    home.put("mine/page.gguf", b"<!doctype html><p>Log in");
    home.put("mine/x-00001-of-00002.gguf", &whole);
    let app = home.open();
    let scan = app.model_folder_add(&text(&home.at("mine"))).unwrap();
    let of = |id: &str| scan.models.iter().find(|entry| entry.id == id).unwrap_or_else(|| panic!("{id}"));
    // what the user added comes before what other programs have: the copy stands for both
    assert_eq!(ids(&app), ["copy-of-first", "cut", "page", "second"], "{:?}", scan.folders);
    assert_eq!(of("second").source, ModelSource::Folder);
    assert!(of("second").fit.as_ref().unwrap().needs.total > 0);
    for (id, word) in [("cut", "ends"), ("page", "web page")] {
        let ModelState::Unusable { error } = &of(id).state else { panic!("{id}") };
        assert!(error.message.contains(word) && !error.remedy.is_empty(), "{error:?}");
    }
    // nothing was written there, and a second look changes nothing
    let again = app.models_scan().unwrap();
    assert_eq!(again.models.len(), scan.models.len());
    // mended, it can be used
    home.put("mine/cut.gguf", &fs::read(home.model("elsewhere/third.gguf", 3)).unwrap());
    let mended = app.models_scan().unwrap();
    assert!(mended.models.iter().any(|entry| entry.id == "cut" && entry.state == ModelState::Unloaded));

    // a folder that is away keeps its models on the list, and says so
    fs::rename(home.at("mine"), home.at("away")).unwrap();
    let away = app.models_scan().unwrap();
    let gone = away.models.iter().find(|entry| entry.id == "second").unwrap();
    let ModelState::Unusable { error } = &gone.state else { panic!("{gone:?}") };
    assert!(error.message.contains("The folder"), "{error:?}");
    assert!(away.folders.iter().any(|folder| folder.error.is_some()));
    fs::rename(home.at("away"), home.at("mine")).unwrap();
    // deleted by another program, it leaves; taken off the list, all of the folder do
    fs::remove_file(home.at("mine/second.gguf")).unwrap();
    app.models_scan().unwrap();
    assert!(!ids(&app).contains(&"second".to_owned()));
    app.model_folder_remove(&text(&home.at("mine"))).unwrap();
    app.models_scan().unwrap();
    assert_eq!(ids(&app), ["first"], "the hub's own is shown now");
    app.settings_set("other_programs", &json!(false)).unwrap();
    assert!(app.model_folders().unwrap().iter().all(|folder| folder.source != ModelSource::HubCache));
}

#[test]
fn a_copy_is_whole_or_not_there_and_a_move_leaves_one() {
    let home = Home::new("import");
    let app = home.open();
    let file = home.model("elsewhere/model.gguf", 1);
    let bytes = fs::read(&file).unwrap();
    let events = app.watch_app();
    let copied = import(&app, &file, ImportHow::Copy).unwrap();
    assert_eq!((copied.id.as_str(), copied.source), ("model", ModelSource::Owned));
    let path = PathBuf::from(copied.path.clone().unwrap());
    assert!(path.starts_with(home.at("data/models")) && fs::read(&path).unwrap() == bytes && file.exists());
    let moved = import(&app, &home.model("elsewhere/other.gguf", 2), ImportHow::Move).unwrap();
    assert!(!home.at("elsewhere/other.gguf").exists());
    assert_eq!(moved.source, ModelSource::Owned);
    // twice under the same name is no accident
    assert_eq!(import(&app, &file, ImportHow::Copy).unwrap().id, "model-2");
    let linked = import(&app, &home.model("elsewhere/linked.gguf", 3), ImportHow::Link).unwrap();
    assert_eq!(
        (linked.source, linked.path),
        (ModelSource::File, Some(text(&home.at("elsewhere/linked.gguf"))))
    );

    // what can't be used is refused before anything is copied, and nothing is left behind
    let cut = home.put("elsewhere/cut.gguf", &bytes[..bytes.len() - 100]);
    assert!(import(&app, &cut, ImportHow::Copy).is_err());
    let hub = home.model("hub/models--a--b/snapshots/1/theirs.gguf", 4);
    assert_eq!(import(&app, &hub, ImportHow::Move).unwrap_err().code(), "import.others");
    assert!(hub.exists() && import(&app, &home.at("nothing.gguf"), ImportHow::Copy).is_err());
    let left: Vec<_> =
        fs::read_dir(home.at("data/models")).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with('.')), "{left:?}");
    // a copy that was interrupted is swept at the next start
    home.put("data/models/.importing-x/half.gguf", b"half");
    drop(app);
    let told: Vec<AppEvent> = events.flatten().collect();
    let is_end = |event: &AppEvent| matches!(event, AppEvent::ModelImport { progress } if progress.error.is_none() && progress.done_bytes == progress.total_bytes);
    assert_eq!(told.iter().filter(|event| is_end(event)).count(), 3);
    let app = home.open();
    assert!(!home.at("data/models/.importing-x").exists());
    assert_eq!(ids(&app).len(), 4);
}

#[test]
fn what_is_ours_can_be_had_back_and_what_is_others_stays() {
    let home = Home::new("remove");
    let app = home.open();
    let ours = import(&app, &home.model("elsewhere/ours.gguf", 1), ImportHow::Move).unwrap();
    let theirs = home.model("elsewhere/theirs.gguf", 2);
    app.model_add(&text(&theirs)).unwrap();
    home.model("hub/models--a--b/snapshots/1/found.gguf", 3);
    app.models_scan().unwrap();
    let path = PathBuf::from(ours.path.clone().unwrap());
    assert!(app.library_use().unwrap().owned_bytes > 0);

    let removed = app.model_remove("ours").unwrap();
    assert!(removed.disk_bytes > 0 && !path.exists());
    assert_eq!(app.model_remove("theirs").unwrap().disk_bytes, 0);
    app.model_remove("found").unwrap();
    assert!(theirs.exists() && ids(&app).is_empty());
    app.models_scan().unwrap();
    assert!(ids(&app).is_empty(), "what was taken off the list stays off it");
    assert_eq!(app.models_removed().unwrap().len(), 3);
    assert_eq!(app.model_remove("ours").unwrap_err().code(), "model.unknown");

    let back = app.model_restore("ours").unwrap();
    assert_eq!((back.path, path.exists()), (ours.path, true));
    app.model_restore("found").unwrap();
    assert_eq!(app.model_add(&text(&theirs)).unwrap().id, "theirs");
    assert_eq!(ids(&app).len(), 3);
    assert_eq!(app.model_restore("ours").unwrap_err().code(), "model.not_removed");

    app.model_remove("ours").unwrap();
    app.model_remove("theirs").unwrap();
    assert_eq!(app.models_purge().unwrap().count, 2);
    assert!(theirs.exists() && !path.exists() && app.models_removed().unwrap().is_empty());
    assert_eq!(app.library_use().unwrap().owned_bytes, 0);
}

/// Files below a folder that are called like a vision tower.
fn towers_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => towers_below(&path),
            false => Some(path).filter(|path| text(path).contains("mmproj")).into_iter().collect(),
        })
        .collect()
}

#[test]
fn a_vision_tower_leaves_and_returns_with_the_last_model_beside_it() {
    let home = Home::new("tower");
    let app = home.open();
    let place = |name: &str, seed| home.model(&format!("data/models/pair/{name}.gguf"), seed);
    let (first, _) = (place("first", 1), place("second", 2));
    let tower = first.with_file_name("mmproj-F16.gguf");
    fs::write(&tower, b"a tower").unwrap();
    app.models_scan().unwrap();

    app.model_remove("first").unwrap();
    assert!(tower.exists(), "the other model needs it");
    app.model_remove("second").unwrap();
    assert!(!tower.exists());
    app.model_restore("second").unwrap();
    assert_eq!(fs::read(&tower).unwrap(), b"a tower");
    // Fetched again while its twin lies with the removed model.
    app.model_remove("second").unwrap();
    fs::create_dir_all(tower.parent().unwrap()).unwrap();
    fs::write(&tower, b"another tower").unwrap();
    app.model_restore("second").unwrap();
    assert_eq!(fs::read(&tower).unwrap(), b"another tower");

    app.model_remove("second").unwrap();
    assert_eq!(app.models_purge().unwrap().count, 2);
    assert_eq!(towers_below(&home.at("data/models")), Vec::<PathBuf>::new());
}

#[test]
fn fits_come_from_files_headers_and_facts_and_runs_are_kept_beside() {
    let home = Home::new("fit");
    let app = home.open();
    let path = home.model("elsewhere/model.gguf", 1);
    app.model_add(&text(&path)).unwrap();
    let args = |id: Option<&str>, path: Option<String>, facts| FitArgs {
        id: id.map(Into::into),
        path,
        facts,
        context: Some(256),
        kv: Some("q8_0".into()),
    };
    let header = app
        .fit_of_header(
            fs::read(&path).unwrap()[..60_000].to_vec(),
            fs::metadata(&path).unwrap().len(),
            &args(None, None, None),
        )
        .unwrap();
    let of_file = app.model_fit(&args(None, Some(text(&path)), None)).unwrap();
    let of_entry = app.model_fit(&args(Some("model"), None, None)).unwrap();
    assert_eq!((header.needs, header.exact), (of_file.needs, true));
    assert_eq!((of_file.needs, of_file.kv.as_str(), of_file.context), (of_entry.needs, "q8_0", 256));
    assert!(of_entry.tok_s.is_some_and(|speed| speed > 0.0), "the speed was measured");
    let huge = FitFacts { bytes: 1 << 50, ..FitFacts::default() };
    let fit = app.model_fit(&args(None, None, Some(huge))).unwrap();
    assert_eq!((fit.verdict, fit.exact), (FitVerdict::WontFit, false));
    assert_eq!(app.model_fit(&args(None, None, None)).unwrap_err().code(), "fit.subject");
    let wrong = FitArgs { id: Some("model".into()), kv: Some("q3".into()), ..FitArgs::default() };
    assert_eq!(app.model_fit(&wrong).unwrap_err().code(), "fit.kv");
    assert_eq!(app.model_fit(&args(Some("nothing"), None, None)).unwrap_err().code(), "model.unknown");
    assert_eq!(app.catalog_fits().unwrap().len(), app::models::catalog::offers().unwrap().len());

    // an answer of the starter leaves what it took
    app.settings_set("max_tokens", &json!(24)).unwrap();
    app.settings_set("temperature", &json!(0)).unwrap();
    app.settings_set("speculation", &json!("off")).unwrap();
    app.settings_set("titles", &json!(false)).unwrap();
    let started = app.send(SendArgs { text: "How do I add a model?".into(), ..SendArgs::default() }).unwrap();
    assert!(app.watch_turn(&started.turn, 0).unwrap().flatten().count() > 0);
    drop(app);
    let app = home.open();
    let run = app.model_get("starter").unwrap().fit.unwrap().measured.unwrap();
    assert!(run.tok_s > 0.0 && run.tokens > 0 && run.estimated_memory_bytes > 0, "{run:?}");
}
