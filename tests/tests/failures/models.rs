//! Model files that are short, damaged, unknown, replaced, or not what was verified.

use std::fs;
use std::path::{Path, PathBuf};

use app::App;
use app::AppConfig;
use contract::types::{AppEvent, DownloadState, ModelState, SendArgs, Trust, TurnEventKind, TurnStats};
use inglenook_tests::workspace_root;
use serde_json::json;

use crate::cli::Home;
use crate::downloads::{Hub, file_of, is_done, one, same_bytes, starter, until};

/// A file in a test's folder; its path as an argument.
fn put(home: &Home, name: &str, bytes: &[u8]) -> String {
    let path = home.0.join(name);
    fs::write(&path, bytes).expect("the folder is there");
    path.to_str().expect("a Unicode path").to_owned()
}

fn starter_bytes() -> Vec<u8> {
    fs::read(workspace_root().join("models/starter/starter.gguf")).expect("the starter is in the project")
}

/// Offset behind a text that the file has once.
fn after(bytes: &[u8], text: &str) -> usize {
    let at = bytes.windows(text.len()).position(|window| window == text.as_bytes());
    at.expect("the starter has it") + text.len()
}

fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn put_u64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

#[test]
fn f02_a_file_that_is_too_short_is_refused_with_both_sizes_and_mended_by_a_download() {
    let hub = Hub::new("short");
    let app = hub.app();
    let mut events = app.watch_app();
    let begun = app.download_start(&one()).unwrap();
    let done = until(&mut events, &begun.id, is_done);
    let (path, size) = (file_of(&app, &done), fs::metadata(starter()).unwrap().len());
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(size - 100_000).unwrap();
    let home = Home::new();
    let (code, error) = home.error(&["logits", "--model", path.to_str().unwrap(), "--ids", "1"]);
    assert_eq!((code, &error["code"]), (3, &json!("weights.truncated")), "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains(&(size - 100_000).to_string()) && message.contains(&size.to_string()),
        "{message}"
    );
    assert!(error["remedy"].as_str().unwrap().contains("download"), "{error}");
    // Only what is missing or wrong comes again, of a file that is cut as of one with wrong bytes in its middle.
    let mut served = hub.served();
    for is_cut in [true, false] {
        if !is_cut {
            flip_middle(&path);
        }
        let again = app.download_start(&one()).unwrap();
        let done = until(&mut events, &again.id, is_done);
        assert!(same_bytes(&file_of(&app, &done), &starter()));
        let fetched = hub.served() - served;
        assert!((1..=2 * CHUNK_BYTES).contains(&fetched), "{fetched} bytes of {size}");
        served += fetched;
    }
}

/// Length of the chunks that a download consists of.
const CHUNK_BYTES: u64 = 256 << 10;

/// Flips a bit in the middle of a file.
fn flip_middle(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 4;
    fs::write(path, bytes).unwrap();
}

#[test]
fn f03_tensors_that_do_not_fit_are_named() {
    let home = Home::new();
    let name = "blk.0.attn_q.weight";
    let whole = starter_bytes();
    // Behind the name: the number of dimensions, the dimensions, the type, the offset.
    let at = after(&whole, name);
    let (first_dim, kind, offset) = (at + 4, at + 4 + 16, at + 4 + 16 + 4);
    type TensorDamage = Box<dyn Fn(&mut Vec<u8>)>;
    let cases: [(&str, TensorDamage); 5] = [
        ("dimension-overflows", Box::new(move |b| put_u64(b, first_dim, 1 << 62))),
        ("offset-wraps", Box::new(move |b| put_u64(b, offset, u64::MAX - 31))),
        ("offset-misaligned", Box::new(move |b| put_u64(b, offset, 7))),
        ("overlap", Box::new(move |b| put_u64(b, offset, 0))),
        ("type", Box::new(move |b| put_u32(b, kind, 250))),
    ];
    for (what, damage) in cases {
        let mut bytes = whole.clone();
        damage(&mut bytes);
        let path = put(&home, &format!("{what}.gguf"), &bytes);
        let (code, error) = home.error(&["logits", "--model", &path, "--ids", "1"]);
        let message = error["message"].as_str().unwrap();
        assert_eq!(code, 3, "{what}: {error}");
        assert!(message.contains("tensor \""), "{what}: {message}");
        assert!(what == "overlap" || message.contains(name), "{what}: {message}");
    }
    // Two tensors of one name.
    let mut bytes = whole;
    let other = after(&bytes, "blk.0.attn_k.weight") - 19;
    bytes[other..other + 19].copy_from_slice(name.as_bytes());
    let (_, error) = home.error(&["logits", "--model", &put(&home, "twice.gguf", &bytes), "--ids", "1"]);
    assert!(error["message"].as_str().unwrap().contains(name), "{error}");
}

#[test]
fn f05_an_unknown_family_or_format_is_named_with_what_runs() {
    let home = Home::new();
    let mut family = starter_bytes();
    let at = after(&family, "general.architecture") + 4 + 8;
    family[at..at + 5].copy_from_slice(b"lxama");
    let (code, error) =
        home.error(&["run", "--model", &put(&home, "family.gguf", &family), "--prompt", "Hi"]);
    assert_eq!((code, &error["code"]), (3, &json!("model.architecture_unknown")), "{error}");
    assert!(error["message"].as_str().unwrap().contains("lxama"), "{error}");
    assert!(error["remedy"].as_str().unwrap().contains("llama, "), "{error}");
    let mut format = starter_bytes();
    let at = after(&format, "blk.0.attn_q.weight") + 4 + 16;
    put_u32(&mut format, at, 4);
    let (code, error) =
        home.error(&["run", "--model", &put(&home, "format.gguf", &format), "--prompt", "Hi"]);
    assert_eq!((code, &error["code"]), (3, &json!("weights.dtype")), "{error}");
    assert!(error["message"].as_str().unwrap().contains('4'), "{error}");
    assert!(error["remedy"].as_str().unwrap().contains("Q4_K"), "{error}");
}

#[test]
fn f08_what_a_template_objects_to_is_told_in_its_own_words() {
    let home = Home::new();
    let template = "{% for m in messages %}{% if m.role == 'system' %}\
                    {{ raise_exception('Roles must alternate user/assistant') }}{% endif %}{{ m.content }}{% endfor %}";
    let template = put(&home, "strict.jinja", template.as_bytes());
    let messages = json!([{"role": "system", "content": "x"}, {"role": "user", "content": "y"}]);
    let messages = put(&home, "m.json", json!({ "messages": messages }).to_string().as_bytes());
    let args = ["run", "--model", "starter", "--messages", &messages, "--chat-template", &template];
    let (code, error) = home.error(&args);
    assert_eq!((code, &error["code"]), (3, &json!("template.raised")), "{error}");
    assert!(error["message"].as_str().unwrap().contains("Roles must alternate user/assistant"), "{error}");
}

/// A data folder with a copy of the starter in its library, as the model of new chats.
struct Library {
    home: Home,
    model: PathBuf,
}

impl Library {
    fn new() -> Self {
        let home = Home::new();
        let model = home.0.join("mine.gguf");
        fs::copy(starter(), &model).unwrap();
        Self { home, model }
    }

    fn open(&self) -> App {
        let app =
            App::open(AppConfig { data_dir: Some(self.home.0.clone()), ..AppConfig::default() }).unwrap();
        let values = [("max_tokens", json!(8)), ("temperature", json!(0)), ("threads", json!(1))];
        for (key, value) in values.iter().chain(&[("titles", json!(false)), ("guide_answers", json!(false))])
        {
            app.settings_set(key, value).unwrap();
        }
        if app.model_get("mine").is_err() {
            app.model_add(self.model.to_str().unwrap()).unwrap();
            app.settings_set("model", &json!("mine")).unwrap();
        }
        app
    }
}

/// Another version of a file's weights, at the same place and of the same size.
fn replace_weights(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let n = bytes.len();
    bytes[n - 64..].iter_mut().for_each(|byte| *byte ^= 1);
    let aside = path.with_extension("new");
    fs::write(&aside, bytes).unwrap();
    fs::rename(aside, path).unwrap();
}

fn ask(app: &App, conversation: Option<&str>, text: &str) -> (String, TurnStats) {
    let args =
        SendArgs { conversation: conversation.map(Into::into), text: text.into(), ..SendArgs::default() };
    let started = app.send(args).unwrap();
    for event in app.watch_turn(&started.turn, 0).unwrap().flatten() {
        match event.kind {
            TurnEventKind::Done { stats } => return (started.conversation, stats),
            TurnEventKind::Failed { error } => panic!("{error:?}"),
            _ => {}
        }
    }
    panic!("every turn ends")
}

/// Codes of the notices so far.
fn notices(watch: &mut platform::Watch<AppEvent>) -> Vec<String> {
    let events = watch.next_blocking().unwrap_or_default();
    let code = |event: AppEvent| match event {
        AppEvent::Notice { error } => Some(error.code),
        _ => None,
    };
    events.into_iter().filter_map(code).collect()
}

#[test]
fn f11_a_replaced_model_file_is_noticed_and_its_chats_are_read_again() {
    let library = Library::new();
    let app = library.open();
    let mut watch = app.watch_app();
    let (id, _) = ask(&app, None, "How do I add a model? Tell me about contexts and files, too.");
    let (_, before) = ask(&app, Some(&id), "And then?");
    assert!(before.reused_tokens > 0, "{before:?}");
    notices(&mut watch);
    replace_weights(&library.model);
    let (_, stats) = ask(&app, Some(&id), "And now?");
    assert_eq!(stats.reused_tokens, 0, "nothing of the other file is used: {stats:?}");
    assert!(notices(&mut watch).contains(&"model.replaced".to_owned()));
    let (_, stats) = ask(&app, Some(&id), "And again?");
    assert!(stats.reused_tokens > 0, "the new one is used like any other: {stats:?}");
    assert_eq!(app.conversation_get(&id).unwrap().messages.len(), 8);
}

#[test]
fn f14_a_file_with_another_hash_is_not_loaded_until_the_user_wants_it() {
    let hub = Hub::new("hash");
    let app = hub.app();
    let mut events = app.watch_app();
    let begun = app.download_start(&one()).unwrap();
    let done = until(&mut events, &begun.id, is_done);
    let path = file_of(&app, &done);
    let DownloadState::Done { model } = done.state else { unreachable!("it is done") };
    let send =
        || app.send(SendArgs { text: "Hello".into(), model: Some(model.clone()), ..SendArgs::default() });
    replace_weights(&path);
    assert!(!app.model_verify(&model).unwrap().intact);
    let error = send().unwrap_err();
    assert_eq!(error.code(), "model.hash_mismatch");
    assert!(error.message().contains("SHA-256") && error.remedy().contains("import"), "{error:?}");
    assert!(matches!(app.model_get(&model).unwrap().state, ModelState::Unusable { .. }));
    let refused = super::downloads::refusals(&app, &hub);
    assert_eq!(refused, [("model.hash_mismatch".to_owned(), model.clone())]);
    // The user takes it as it is: unverified from now on.
    app.model_add(path.to_str().unwrap()).unwrap();
    send().unwrap();
    let verified = app.model_verify(&model).unwrap();
    assert!(verified.intact && verified.trust == Trust::Unknown, "{verified:?}");
}
