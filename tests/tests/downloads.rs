//! Getting models: the application against a hub of our own that has faults on demand (`tests/hub/server.py`).

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use app::App;
use app::AppConfig;
use app::HubAccess;
use contract::types::{
    AppEvent, Download, DownloadStartArgs, DownloadState, HubFilesArgs, HubSearchArgs, QuantGroup, Trust,
};
use inglenook_tests::workspace_root;
use io::{FaultDuration, FaultIo, RealClock, RealIo};
use platform::Watch;
use serde_json::{Value, json};

pub const REPOSITORY: &str = "acme/one-GGUF";
pub const FILE: &str = "one-Q8_0.gguf";

/// A hub, and a folder for everything; both go with it.
pub struct Hub {
    server: Child,
    pub url: String,
    pub folder: PathBuf,
}

impl Hub {
    pub fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("inglenook-hub-{}-{name}", std::process::id()));
        let root = folder.join("hub");
        std::fs::create_dir_all(root.join(REPOSITORY)).unwrap();
        std::fs::copy(starter(), root.join(REPOSITORY).join(FILE)).unwrap();
        let mut server = Command::new("python3")
            .arg(workspace_root().join("tests/hub/server.py"))
            .args(["--root", root.to_str().unwrap()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 runs the hub");
        let mut line = String::new();
        BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        Self { server, url: said["listening"].as_str().unwrap().to_owned(), folder }
    }

    pub fn root(&self) -> PathBuf {
        self.folder.join("hub")
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let mut stream = TcpStream::connect(self.url.trim_start_matches("http://")).unwrap();
        let body = body.to_string();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    pub fn control(&self, order: Value) {
        self.ask("POST", "/_control", &order);
    }

    pub fn served(&self) -> u64 {
        let stats = self.ask("GET", "/_stats", &Value::Null);
        assert_eq!(stats["leaked_tokens"], 0, "a token went to the store");
        stats["served"].as_object().unwrap().values().filter_map(Value::as_u64).sum()
    }

    /// How many there were.
    pub fn requests(&self) -> u64 {
        let stats = self.ask("GET", "/_stats", &Value::Null);
        stats["requests"].as_object().unwrap().values().filter_map(Value::as_u64).sum()
    }

    pub fn config(&self, token: Option<&str>) -> AppConfig {
        let hub = HubAccess {
            endpoint: Some(self.url.clone()),
            token: token.map(Into::into),
            token_file: None,
            cache: Some(self.folder.join("cache")),
            ..HubAccess::default()
        };
        AppConfig { data_dir: Some(self.folder.join("data")), hub, ..AppConfig::default() }
    }

    pub fn app(&self) -> App {
        App::open(self.config(None)).unwrap()
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub fn starter() -> PathBuf {
    workspace_root().join("models/starter/starter.gguf")
}

pub fn one() -> DownloadStartArgs {
    DownloadStartArgs { repository: REPOSITORY.into(), path: Some(FILE.into()), revision: None }
}

/// Follows a download until it is as wanted.
pub fn until(events: &mut Watch<AppEvent>, id: &str, wanted: impl Fn(&Download) -> bool) -> Download {
    loop {
        for event in events.next().expect("the application lives") {
            if let AppEvent::DownloadChanged { download } = event
                && download.id == id
            {
                let failed = matches!(download.state, DownloadState::Failed { .. });
                if wanted(&download) {
                    return download;
                }
                assert!(!failed, "{:?}", download.state);
            }
        }
    }
}

pub fn is_done(download: &Download) -> bool {
    matches!(download.state, DownloadState::Done { .. })
}

pub fn same_bytes(path: &Path, other: &Path) -> bool {
    std::fs::read(path).unwrap() == std::fs::read(other).unwrap()
}

/// The file that a download's model is.
pub fn file_of(app: &App, download: &Download) -> PathBuf {
    let DownloadState::Done { model } = &download.state else { panic!("{:?}", download.state) };
    app.model_get(model).unwrap().path.unwrap().into()
}

#[test]
fn models_are_found_page_by_page_and_without_a_hub_in_the_catalogue() {
    let hub = Hub::new("search");
    for n in 0..45 {
        let repository = hub.root().join(format!("many/model-{n:02}-GGUF"));
        std::fs::create_dir_all(&repository).unwrap();
        std::fs::write(repository.join("x-Q4_K_M.gguf"), b"GGUF").unwrap();
        let architecture = if n == 7 { "no-such" } else { "llama" };
        let facts = json!({"gguf": {"architecture": architecture, "total": 5, "context_length": 64}});
        std::fs::write(repository.join(".facts.json"), facts.to_string()).unwrap();
    }
    let app = hub.app();
    let mut args = HubSearchArgs { query: "many model".into(), ..HubSearchArgs::default() };
    let mut names = Vec::new();
    loop {
        let page = app.hub_search(&args).unwrap();
        assert!(page.offline.is_none() && page.models.iter().all(|model| model.runs));
        names.extend(page.models.into_iter().map(|model| model.repository));
        args.after = page.next;
        if args.after.is_none() {
            break;
        }
    }
    assert_eq!(names.len(), 44, "all but the one that can't run");
    let exact = HubSearchArgs { query: "many/model-07-GGUF".into(), ..HubSearchArgs::default() };
    let page = app.hub_search(&exact).unwrap();
    assert!(page.models.len() == 1 && !page.models[0].runs, "named, it is shown: {page:?}");
    let files =
        |repository: &str| app.hub_files(&HubFilesArgs { repository: repository.into(), revision: None });
    let found = files("many/model-01-GGUF").unwrap().files;
    assert_eq!((found[0].quantisation.as_deref(), found[0].group), (Some("Q4_K_M"), QuantGroup::Balanced));
    assert!(found[0].recommended && found[0].trust == Trust::Published);
    assert_eq!(files("no/such").unwrap_err().code(), "hub.not_found");
    hub.control(json!({"down": true}));
    let page =
        app.hub_search(&HubSearchArgs { query: "smollm3".into(), ..HubSearchArgs::default() }).unwrap();
    assert_eq!(page.models[0].offer.as_ref().unwrap().id, "smollm3-3b");
    assert_eq!(page.offline.unwrap().code, "hub.unreachable");
}

#[test]
fn every_fault_is_survived_and_the_model_answers_to_its_name() {
    let hub = Hub::new("faults");
    let kinds = ["429", "500", "wrong_range", "no_range", "expired", "tag", "gzip", "416", "stall", "drip"];
    // Between two of them something arrives: waits grow only while nothing does.
    let mut faults: Vec<Value> = kinds
        .iter()
        .flat_map(|kind| [*kind, "cut"])
        .map(|kind| json!({"kind": kind, "at": 300_000}))
        .collect();
    faults.push(json!({"kind": "429", "date": true, "after": 2}));
    hub.control(json!({ "faults": faults }));
    let app = hub.app();
    app.settings_set("download_patience", &json!(1)).unwrap();
    let mut events = app.watch_app();
    let begun = app.download_start(&one()).unwrap();
    let done = until(&mut events, &begun.id, is_done);
    assert!(same_bytes(&file_of(&app, &done), &starter()));
    assert_eq!((done.bytes, done.total), (done.total, std::fs::metadata(starter()).unwrap().len()));
    let verified = app.model_verify("one-q8_0").unwrap();
    assert!(verified.intact && verified.trust == Trust::Published && verified.files[0].recorded.is_some());
    assert_eq!(app.download_list().unwrap().len(), 1);
}

#[test]
fn what_arrives_damaged_is_found_without_a_signed_list_too() {
    let hub = Hub::new("flip");
    hub.control(json!({"faults": [{"kind": "flip", "at": 1_500_000}]}));
    let app = hub.app();
    let mut events = app.watch_app();
    let begun = app.download_start(&one()).unwrap();
    let done = until(&mut events, &begun.id, is_done);
    assert!(same_bytes(&file_of(&app, &done), &starter()));
}

#[test]
fn f17_a_server_without_ranges_gives_the_whole_file() {
    let hub = Hub::new("whole");
    let mut faults = vec![json!({"kind": "cut", "at": 1_500_000})];
    faults.extend((0..40).map(|_| json!({"kind": "no_range"})));
    hub.control(json!({ "faults": faults }));
    let app = hub.app();
    let mut events = app.watch_app();
    let begun = app.download_start(&one()).unwrap();
    let done = until(&mut events, &begun.id, is_done);
    assert!(same_bytes(&file_of(&app, &done), &starter()));
}

#[test]
fn f26_two_windows_that_ask_for_one_file_share_one_download() {
    let hub = Hub::new("shared");
    hub.control(json!({"delay_ms": 10}));
    let (one_app, other_app) = (hub.app(), hub.app());
    let (mut events, mut other_events) = (one_app.watch_app(), other_app.watch_app());
    let begun = one_app.download_start(&one()).unwrap();
    let joined = other_app.download_start(&one()).unwrap();
    assert_eq!(joined.id, begun.id, "it is the same download");
    let done = until(&mut events, &begun.id, is_done);
    let other_done = until(&mut other_events, &begun.id, is_done);
    assert_eq!(done.state, other_done.state);
    assert!(same_bytes(&file_of(&one_app, &done), &starter()));
    let size = std::fs::metadata(starter()).unwrap().len();
    assert_eq!(hub.served(), size, "each byte was fetched once");
}

#[test]
fn f25_a_full_disk_pauses_and_goes_on_when_there_is_room() {
    let hub = Hub::new("full");
    hub.control(json!({"delay_ms": 5}));
    let disk = Arc::new(FaultIo::new(RealIo));
    let app = App::open_with(hub.config(None), disk.clone(), Arc::new(RealClock::new())).unwrap();
    let mut events = app.watch_app();
    let begun = app.download_start(&one()).unwrap();
    until(&mut events, &begun.id, |download| download.bytes > 0);
    disk.fail_at(0, FaultDuration::Sticky, ErrorKind::StorageFull);
    let paused = until(&mut events, &begun.id, |d| matches!(d.state, DownloadState::Paused { .. }));
    let DownloadState::Paused { reason: Some(reason) } = paused.state else { panic!("without a reason") };
    assert_eq!(reason.code, "io.no_space");
    disk.heal();
    let done = until(&mut events, &begun.id, is_done);
    assert!(same_bytes(&file_of(&app, &done), &starter()));
    let size = std::fs::metadata(starter()).unwrap().len();
    assert!(hub.served() < size + size / 4, "what had arrived stayed: {}", hub.served());
}

#[test]
fn f22_a_licence_has_three_messages() {
    let hub = Hub::new("gate");
    hub.control(json!({"gate": REPOSITORY}));
    let failed = |token: Option<&str>| {
        let app = App::open(hub.config(token)).unwrap();
        let mut events = app.watch_app();
        let begun = app.download_start(&one()).unwrap();
        let ended = until(&mut events, &begun.id, |d| matches!(d.state, DownloadState::Failed { .. }));
        let DownloadState::Failed { error } = ended.state else { unreachable!("it was looked for") };
        assert!(!error.remedy.is_empty());
        error
    };
    let (none, pending, denied) = (failed(None), failed(Some("hf_new")), failed(Some("withdrawn")));
    let codes = [none.code.as_str(), &pending.code, &denied.code];
    assert_eq!(codes, ["hub.no_token", "hub.licence", "hub.denied"]);
    assert!(pending.remedy.contains(&format!("{}/{REPOSITORY}", hub.url)), "{}", pending.remedy);
    let app = App::open(hub.config(Some("hf_accepted"))).unwrap();
    let mut events = app.watch_app();
    let begun = app.download_start(&one()).unwrap();
    until(&mut events, &begun.id, is_done);
    hub.served();
}

#[test]
fn the_queue_outlives_the_program_and_cancelling_keeps_or_removes_the_part() {
    let hub = Hub::new("queue");
    hub.control(json!({"delay_ms": 20}));
    let parts = || {
        let folder = hub.folder.join("data/models").join(REPOSITORY);
        let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
        names.filter(|entry| entry.file_name().to_string_lossy().ends_with(".part")).count()
    };
    let app = hub.app();
    let mut events = app.watch_app();
    let begun = app.download_start(&one()).unwrap();
    until(&mut events, &begun.id, |download| download.bytes > 0);
    let paused = app.download_pause(&begun.id).unwrap();
    assert_eq!((paused.state, parts()), (DownloadState::Paused { reason: None }, 1));
    app.download_resume(&begun.id).unwrap();
    until(&mut events, &begun.id, |download| download.state == DownloadState::Downloading);
    drop((app, events));
    let app = hub.app();
    let mut events = app.watch_app();
    assert_eq!(app.download_list().unwrap()[0].state, DownloadState::Queued);
    app.download_cancel(&begun.id, true).unwrap();
    assert_eq!((app.download_list().unwrap().len(), parts()), (0, 1), "the part stays");
    let again = app.download_start(&one()).unwrap();
    app.download_cancel(&again.id, false).unwrap();
    assert_eq!(parts(), 0, "it goes with the part");
    let last = app.download_start(&one()).unwrap();
    until(&mut events, &last.id, |download| download.bytes > 0);
    drop((app, events));
    hub.control(json!({"delay_ms": 0}));
    let app = hub.app();
    let mut events = app.watch_app();
    app.downloads_go_on().unwrap();
    let done = until(&mut events, &last.id, is_done);
    assert!(same_bytes(&file_of(&app, &done), &starter()));
}

#[test]
fn f19_a_file_that_is_changed_meanwhile_begins_anew_and_says_so() {
    let hub = Hub::new("changed");
    // So slow that what is changed after the first news is changed in its middle.
    hub.control(json!({"delay_ms": 200}));
    let app = hub.app();
    let mut events = app.watch_app();
    let begun = app.download_start(&one()).unwrap();
    until(&mut events, &begun.id, |download| download.bytes > 0);
    // What is being sent would be sent to its end.
    hub.control(json!({"change": format!("{REPOSITORY}/{FILE}"), "delay_ms": 0, "drop": true}));
    let done = until(&mut events, &begun.id, is_done);
    assert_eq!(done.notice.as_ref().unwrap().code, "download.changed");
    let (arrived, old) = (std::fs::read(file_of(&app, &done)).unwrap(), std::fs::read(starter()).unwrap());
    let n_different = arrived.iter().zip(&old).filter(|(new, old)| new != old).count();
    assert_eq!((arrived.len(), n_different), (old.len(), old.len() >> 20), "it is the new one, wholly");
}

#[test]
fn the_hubs_own_cache_is_filled_as_its_tools_do_it() {
    let hub = Hub::new("cache");
    let app = hub.app();
    app.settings_set("download_place", &json!("hub_cache")).unwrap();
    let mut events = app.watch_app();
    let begun = app.download_start(&one()).unwrap();
    let done = until(&mut events, &begun.id, is_done);
    let folder = hub.folder.join("cache/models--acme--one-GGUF");
    let commit = std::fs::read_to_string(folder.join("refs/main")).unwrap();
    let snapshot = folder.join("snapshots").join(commit).join(FILE);
    assert!(std::fs::symlink_metadata(&snapshot).unwrap().is_symlink() && same_bytes(&snapshot, &starter()));
    assert!(same_bytes(&file_of(&app, &done), &starter()));
    let DownloadState::Done { model } = done.state else { unreachable!("it is done") };
    assert_eq!(model, "one-q8_0", "its name is the file's, not the hash's");
    assert!(app.model_verify(&model).unwrap().intact);
}

/// The signer's public key, or a signature beside what is named.
pub fn sign(args: &[&str]) -> String {
    let script = workspace_root().join("tests/hub/sign.py");
    let output = Command::new("python3").arg(script).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_catalogue_of_ones_own_is_shown_as_signed_or_not_and_held_to_its_hashes() {
    let hub = Hub::new("catalogue");
    let app = hub.app();
    let list = hub.folder.join("data/catalog.toml");
    let row = |hash: &str| {
        format!(
            "[[model]]\nid = \"one\"\nname = \"One\"\nfamily = \"One\"\narchitecture = \"llama\"\n\
             repository = \"{REPOSITORY}\"\nfiles = \"*Q8_0.gguf\"\nlicence = \"MIT\"\ngood_at = \"Tests.\"\n\
             capabilities = []\nsha256 = [\"{hash}\"]\n"
        )
    };
    let listed = |id: &str| app.hub_files(&HubFilesArgs { repository: id.into(), revision: None });
    let (hash, _) = hub::hash_file(&RealIo, &starter(), &mut |_, _| true).unwrap().unwrap();
    std::fs::write(&list, row(&hash.to_string())).unwrap();
    let own = |app: &App| app.catalogue().unwrap().into_iter().find(|offer| offer.id == "one").unwrap();
    assert_eq!(own(&app).signed_by, None);
    assert_eq!(listed("one").unwrap().files[0].trust, Trust::Published);
    app.settings_set("trusted_keys", &json!(sign(&["editor"]))).unwrap();
    sign(&["editor", list.to_str().unwrap()]);
    assert!(own(&app).signed_by.is_some());
    assert!(matches!(listed("one").unwrap().files[0].trust, Trust::Signed { .. }));
    std::fs::write(&list, row(&"ab".repeat(32))).unwrap();
    assert_eq!(listed("one").unwrap_err().code(), "hub.signature", "it was changed after it was signed");
    sign(&["editor", list.to_str().unwrap()]);
    assert_eq!(listed("one").unwrap_err().code(), "hub.signed_mismatch");
    let start = DownloadStartArgs { repository: "one".into(), path: None, revision: None };
    assert_eq!(app.download_start(&start).unwrap_err().code(), "hub.signed_mismatch");
}

#[test]
fn what_is_signed_is_held_to_its_list() {
    let hub = Hub::new("signed");
    let folder = hub.root().join(REPOSITORY);
    sign(&["publisher", "--manifest", folder.to_str().unwrap(), REPOSITORY]);
    let app = hub.app();
    let listed = || {
        app.hub_files(&HubFilesArgs { repository: REPOSITORY.into(), revision: None })
            .map(|found| found.files)
    };
    assert_eq!(listed().unwrap()[0].trust, Trust::Published, "nobody trusts the key yet");
    app.settings_set("trusted_keys", &json!(sign(&["somebody else"]))).unwrap();
    assert_eq!(listed().unwrap()[0].trust, Trust::Published);
    app.settings_set("trusted_keys", &json!(sign(&["publisher"]))).unwrap();
    assert!(matches!(listed().unwrap()[0].trust, Trust::Signed { .. }));
    let size = std::fs::metadata(starter()).unwrap().len();
    // near the end, as what is on its way when the connection is given up was served for nothing
    hub.control(json!({"faults": [{"kind": "flip", "at": size * 9 / 10}]}));
    let mut events = app.watch_app();
    let begun = app.download_start(&one()).unwrap();
    let done = until(&mut events, &begun.id, is_done);
    assert!(same_bytes(&file_of(&app, &done), &starter()));
    assert!(hub.served() < size + size / 4, "a damaged chunk alone came again");
    hub.control(json!({"change": format!("{REPOSITORY}/{FILE}")}));
    assert_eq!(listed().unwrap_err().code(), "hub.signed_mismatch");
    let list = folder.join("inglenook.manifest.json");
    let forged = std::fs::read_to_string(&list).unwrap().replace("one-Q8_0", "two-Q8_0");
    std::fs::write(&list, forged).unwrap();
    assert_eq!(listed().unwrap_err().code(), "hub.signature");
}
