//! What fetching heeds beside faults: the switch `offline` and the record, tokens, formats, and whose a file then is.

use app::App;
use app::AppConfig;
use contract::types::{
    ConnectionPurpose, DownloadStartArgs, DownloadState, HubFilesArgs, HubFormat, HubSearchArgs,
    HubTokenArgs, ModelSource, TokenPlace,
};
use inglenook_tests::workspace_root;
use serde_json::json;

use super::downloads::{FILE, Hub, REPOSITORY, file_of, is_done, one, same_bytes, starter, until};

/// How often each purpose is on the record, and the bytes that came for it.
fn record(app: &App, hub: &Hub, purpose: ConnectionPurpose) -> (usize, u64) {
    let all = app.connections_list(None).unwrap();
    let host = hub.url.trim_start_matches("http://");
    let of: Vec<_> = all.iter().filter(|it| it.purpose == Some(purpose)).collect();
    let is_local = |it: &&contract::types::ConnectionInfo| it.host.starts_with("127.0.0.1:");
    assert!(of.iter().all(is_local), "{of:?}");
    let asks_hub = of.iter().any(|it| it.host == host);
    assert!(of.is_empty() || asks_hub, "the hub itself is asked: {of:?}");
    (of.len(), of.iter().map(|it| it.received).sum())
}

#[test]
fn every_request_is_on_the_record_with_its_bytes() {
    let hub = Hub::new("record");
    let app = hub.app();
    let search = HubSearchArgs { query: "acme one".into(), ..HubSearchArgs::default() };
    let page = app.hub_search(&search).unwrap();
    assert_eq!(page.models[0].repository, REPOSITORY);
    let (n, bytes) = record(&app, &hub, ConnectionPurpose::Search);
    assert!(n >= 1 && bytes > 100, "{n} requests, {bytes} bytes");
    assert_eq!(record(&app, &hub, ConnectionPurpose::Download), (0, 0));
    let mut events = app.watch_app();
    let begun = app.download_start(&one()).unwrap();
    until(&mut events, &begun.id, is_done);
    // The file comes from the store, and each answer's bytes are added when it ends.
    let (n, bytes) = record(&app, &hub, ConnectionPurpose::Download);
    assert!(n >= 2, "its head and its ranges: {n}");
    assert_eq!(bytes, hub.served(), "as many as were served");
}

#[test]
fn offline_nothing_goes_out_and_what_runs_rests() {
    let hub = Hub::new("offline");
    hub.control(json!({"delay_ms": 20}));
    let app = hub.app();
    let mut events = app.watch_app();
    let begun = app.download_start(&one()).unwrap();
    until(&mut events, &begun.id, |download| download.bytes > 0);
    app.settings_set("offline", &json!(true)).unwrap();
    let rests = until(&mut events, &begun.id, |d| matches!(d.state, DownloadState::Paused { .. }));
    let DownloadState::Paused { reason: Some(reason) } = rests.state else { panic!("without a reason") };
    assert_eq!(reason.code, "network.offline");
    assert!(reason.remedy.contains("Offline mode") && reason.remedy.contains("offline false"));

    let (n_before, requests) = (app.connections_list(None).unwrap().len(), hub.requests());
    let args = HubSearchArgs { query: "smollm3".into(), ..HubSearchArgs::default() };
    let page = app.hub_search(&args).unwrap();
    assert_eq!(page.offline.unwrap().code, "network.offline");
    assert_eq!(page.models[0].offer.as_ref().unwrap().id, "smollm3-3b", "the catalogue stays");
    let files = app.hub_files(&HubFilesArgs { repository: REPOSITORY.into(), revision: None });
    assert_eq!(files.unwrap_err().code(), "network.offline");
    let other = DownloadStartArgs { path: None, ..one() };
    assert_eq!(app.download_start(&other).unwrap_err().code(), "network.offline");
    assert_eq!((app.connections_list(None).unwrap().len(), hub.requests()), (n_before, requests));

    hub.control(json!({"delay_ms": 0}));
    app.settings_set("offline", &json!(false)).unwrap();
    let done = until(&mut events, &begun.id, is_done);
    assert!(same_bytes(&file_of(&app, &done), &starter()));
}

#[test]
fn a_token_that_was_given_is_kept_sealed_and_opens_the_gate() {
    let hub = Hub::new("token");
    hub.control(json!({"gate": REPOSITORY}));
    let give = |app: &App, token: &str| app.hub_token_set(&HubTokenArgs { token: token.into() });
    let app = hub.app();
    assert_eq!(app.hub_token().unwrap().place, None);
    assert_eq!(give(&app, "two words").unwrap_err().code(), "keys.key");
    assert_eq!(give(&app, "hf_accepted").unwrap().place, Some(TokenPlace::File));
    drop(app);
    for entry in
        std::fs::read_dir(hub.folder.join("data")).unwrap().flatten().filter(|it| it.path().is_file())
    {
        let bytes = std::fs::read(entry.path()).unwrap();
        assert!(!bytes.windows(11).any(|part| part == b"hf_accepted"), "{}", entry.path().display());
    }
    let app = hub.app();
    assert_eq!(app.hub_token().unwrap().place, Some(TokenPlace::File), "it is there the next time");
    let mut events = app.watch_app();
    let begun = app.download_start(&one()).unwrap();
    until(&mut events, &begun.id, is_done);
    hub.served();
    drop((app, events));

    let app = App::open(hub.config(Some("hf_other"))).unwrap();
    assert_eq!(app.hub_token().unwrap().place, Some(TokenPlace::Environment), "it counts before");
    assert_eq!(give(&app, "").unwrap().place, Some(TokenPlace::Environment));
    drop(app);
    let mut config = hub.config(None);
    config.hub.token_file = Some("hf_tools".into());
    assert_eq!(App::open(config).unwrap().hub_token().unwrap().place, Some(TokenPlace::HubFile));
    assert_eq!(hub.app().hub_token().unwrap().place, None, "what was given is forgotten");
}

/// A repository of a model in safetensors.
fn put_folder(hub: &Hub, repository: &str, facts: &serde_json::Value) {
    let folder = hub.root().join(repository);
    std::fs::create_dir_all(&folder).unwrap();
    let family = workspace_root().join("tests/reference/families/gpt2");
    for name in ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"] {
        std::fs::copy(family.join(name), folder.join(name)).unwrap();
    }
    std::fs::write(folder.join(".facts.json"), facts.to_string()).unwrap();
}

#[test]
fn words_find_safetensors_of_families_that_run_and_they_are_fetched_as_folders() {
    let hub = Hub::new("folders");
    let of = |kind: &str, task: &str, by: Option<&str>| {
        let quantised = by.map(|by| json!({ "quant_method": by }));
        json!({"config": {"model_type": kind, "quantization_config": quantised}, "pipeline_tag": task})
    };
    put_folder(&hub, "acme/floats", &of("gpt2", "text-generation", None));
    put_folder(&hub, "acme/awq-floats", &of("gpt2", "text-generation", Some("awq")));
    put_folder(&hub, "acme/embedding-floats", &of("gpt2", "feature-extraction", None));
    put_folder(&hub, "acme/strange-floats", &of("no-such-family", "text-generation", None));
    let app = hub.app();
    let found = |query: &str| {
        let args = HubSearchArgs { query: query.into(), ..HubSearchArgs::default() };
        let models = app.hub_search(&args).unwrap().models;
        models.into_iter().map(|it| (it.repository, it.format)).collect::<Vec<_>>()
    };
    assert_eq!(found("floats"), [("acme/floats".to_owned(), HubFormat::Safetensors)]);
    let both = found("acme");
    assert_eq!(both.len(), 2, "{both:?}");
    assert!(both.contains(&(REPOSITORY.to_owned(), HubFormat::Gguf)), "{both:?}");
    let nameless = found("");
    assert!(nameless.iter().all(|(_, format)| *format == HubFormat::Gguf), "{nameless:?}");

    let mut events = app.watch_app();
    let args = DownloadStartArgs { repository: "acme/floats".into(), path: None, revision: None };
    let begun = app.download_start(&args).unwrap();
    assert_eq!(begun.parts, 4);
    let done = until(&mut events, &begun.id, is_done);
    let folder = file_of(&app, &done);
    assert!(folder.is_dir() && folder.join("tokenizer.json").exists(), "{}", folder.display());
    let DownloadState::Done { model } = done.state else { unreachable!("it is done") };
    let entry = app.model_get(&model).unwrap();
    assert_eq!((entry.architecture.as_str(), entry.source), ("gpt2", ModelSource::Owned));
}

#[test]
fn what_we_put_into_the_hubs_cache_is_ours_to_remove_and_have_back() {
    let hub = Hub::new("ours");
    let app = hub.app();
    app.settings_set("download_place", &json!("hub_cache")).unwrap();
    let mut events = app.watch_app();
    let begun = app.download_start(&one()).unwrap();
    let done = until(&mut events, &begun.id, is_done);
    let path = file_of(&app, &done);
    let DownloadState::Done { model } = done.state else { unreachable!("it is done") };
    assert_eq!(app.model_get(&model).unwrap().source, ModelSource::Owned);
    let size = std::fs::metadata(starter()).unwrap().len();
    assert!(app.library_use().unwrap().owned_bytes >= size, "it is among what is ours");

    let blobs = hub.folder.join("cache/models--acme--one-GGUF/blobs");
    let n_blobs = || std::fs::read_dir(&blobs).unwrap().count();
    assert_eq!((app.model_remove(&model).unwrap().disk_bytes, n_blobs()), (size, 0));
    assert!(!path.is_symlink(), "its name is gone with it");
    app.models_scan().unwrap();
    assert!(app.model_get(&model).is_err(), "a look through the folders doesn't bring it back");
    app.model_restore(&model).unwrap();
    assert!(path.is_symlink() && same_bytes(&path, &starter()));
    let verified = app.model_verify(&model).unwrap();
    assert!(verified.intact && verified.files[0].recorded.is_some(), "its hash is still recorded");
    app.model_remove(&model).unwrap();
    app.models_purge().unwrap();
    let left = std::fs::read_dir(blobs.parent().unwrap()).unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).filter(|name| name == ".removed").collect();
    assert!(left.is_empty() && n_blobs() == 0, "{left:?}");
}

#[test]
fn what_another_program_put_into_the_cache_stays_its_own() {
    let hub = Hub::new("theirs");
    let fetch = |data: &str| {
        let data_dir = Some(hub.folder.join(data));
        let app = App::open(AppConfig { data_dir, ..hub.config(None) }).unwrap();
        app.settings_set("download_place", &json!("hub_cache")).unwrap();
        let mut events = app.watch_app();
        let begun = app.download_start(&one()).unwrap();
        let done = until(&mut events, &begun.id, is_done);
        let DownloadState::Done { model } = &done.state else { unreachable!("it is done") };
        (app.model_get(model).unwrap().source, file_of(&app, &done), app, model.clone())
    };
    let (first, ..) = fetch("data");
    let (second, path, app, model) = fetch("other");
    assert_eq!((first, second), (ModelSource::Owned, ModelSource::File));
    app.model_remove(&model).unwrap();
    assert!(path.exists() && path.ends_with(FILE), "it is only off the list");
}
