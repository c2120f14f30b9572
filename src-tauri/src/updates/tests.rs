//! The whole way of an update, from the page's calls to the replaced file, against a server on this computer.

mod stand_in_server;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use app::{App, AppConfig, Caller, Interface, UpdateInstaller};
use contract::types::{
    AppEvent, ConnectionInfo, ConnectionPurpose, PackageKind, UpdateInfo, UpdateMethod, UpdatePhase,
};
use minisign::KeyPair;
use serde_json::{Value, json};
use tauri::test::{MockRuntime, mock_builder, mock_context, noop_assets};
use test_support::TempDir;

use super::PluginInstaller;
use crate::update_source::UpdateSource;
use stand_in_server::{StandInReply, StandInServer, list, public_key, signature, target};

/// AppImages are ELF files; nothing else is put in the place of one.
const NEW_PROGRAM: &[u8] =
    b"\x7fELF\x02\x01\x01 the new version, with a head as long as that of an ELF file is";
const OLD_PROGRAM: &[u8] = b"the old version";

/// A window without a screen, its application, and the file that stands for its AppImage.
struct Bench {
    app: App,
    server: StandInServer,
    keys: KeyPair,
    program: PathBuf,
    _shell: tauri::App<MockRuntime>,
    _folder: TempDir,
}

impl Bench {
    fn new(package: PackageKind) -> Self {
        Self::with(package, |server| vec![server.url("/latest.json")])
    }

    fn with(package: PackageKind, addresses: impl FnOnce(&StandInServer) -> Vec<String>) -> Self {
        let (folder, server) = (TempDir::new(), StandInServer::start());
        let keys = KeyPair::generate_unencrypted_keypair().unwrap();
        let program = folder.path().join("Inglenook.AppImage");
        std::fs::write(&program, OLD_PROGRAM).unwrap();
        let config = AppConfig {
            data_dir: Some(folder.path().join("data")),
            interface: Interface::Window,
            ..AppConfig::default()
        };
        let app = App::open(config).unwrap();
        // Only the first watcher gets what came before it.
        drop(app.watch_app());
        let mut context = mock_context(noop_assets());
        let plugin =
            json!({ "pubkey": "", "requireSignedVersion": true, "dangerousInsecureTransportProtocol": true });
        context.config_mut().plugins.0.insert("updater".into(), plugin);
        let shell =
            mock_builder().plugin(tauri_plugin_updater::Builder::new().build()).build(context).unwrap();
        let addresses = addresses(&server);
        let source = (!addresses.is_empty()).then(|| UpdateSource {
            public_key: public_key(&keys),
            addresses,
            page: None,
        });
        let mut installer = PluginInstaller::new(shell.handle().clone(), source, package);
        installer.program = Some(program.clone());
        app.update_by(Arc::new(installer));
        Self { app, server, keys, program, _shell: shell, _folder: folder }
    }

    fn call(&self, name: &str) -> Result<UpdateInfo, String> {
        let result = self.app.call(name, Value::Null);
        result.map(|value| serde_json::from_value(value).unwrap()).map_err(|error| error.code().to_owned())
    }

    fn set(&self, key: &str, value: Value) {
        self.app.call("settings_set", json!({ "key": key, "value": value })).unwrap();
    }

    /// Downloads what is on offer and returns how that ended.
    fn download(&self) -> UpdateInfo {
        let events = self.app.watch_app();
        self.call("update_download").unwrap();
        wait_for(events, |update| !matches!(update.phase, UpdatePhase::Downloading { .. }))
    }

    fn connections(&self) -> Vec<ConnectionInfo> {
        serde_json::from_value(self.app.call("connections_list", json!({})).unwrap()).unwrap()
    }
}

/// The first state of the update that fits.
fn wait_for(events: impl Iterator<Item = Vec<AppEvent>>, fits: impl Fn(&UpdateInfo) -> bool) -> UpdateInfo {
    let updates = events.flatten().filter_map(|event| match event {
        AppEvent::UpdateChanged { update } => Some(update),
        _ => None,
    });
    updates.into_iter().find(|update| fits(update)).unwrap()
}

fn content(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

#[test]
fn a_version_is_shown_downloaded_verified_and_installed() {
    let bench = Bench::new(PackageKind::AppImage);
    bench.server.offer("9.8.7", NEW_PROGRAM, &bench.keys, "9.8.7");
    let before = bench.call("update_info").unwrap();
    assert_eq!((before.method, before.phase), (UpdateMethod::Replace, UpdatePhase::Unknown));
    assert_eq!(before.hosts, [bench.server.host()]);
    assert_eq!(bench.server.requests(), [""; 0], "nothing goes out unasked");

    let found = bench.call("update_check").unwrap();
    let offer = found.offer.unwrap();
    assert_eq!(found.phase, UpdatePhase::Available);
    assert_eq!((offer.version.as_str(), offer.notes.as_deref()), ("9.8.7", Some("Faster answers.")));
    // 2030-01-02T03:04:05Z
    assert_eq!(offer.published_ms, Some(1_893_553_445_000));
    assert_eq!(bench.server.requests().len(), 1, "the package waits for the user");

    let done = bench.download();
    assert_eq!((done.phase, done.error), (UpdatePhase::Ready, None));
    assert_eq!(content(&bench.program), OLD_PROGRAM, "installed only by a restart");
    assert!(bench.app.is_update_ready());
    bench.app.update_install().unwrap();
    assert_eq!(content(&bench.program), NEW_PROGRAM);

    for request in bench.server.requests() {
        let headers: Vec<_> = request.lines().skip(1).filter_map(|line| line.split_once(": ")).collect();
        for (name, value) in headers {
            let expected = match name {
                "host" => bench.server.host(),
                "user-agent" => "inglenook".into(),
                "accept" if value == "application/json" => value.into(),
                "accept" => "application/octet-stream".into(),
                // Empty: nothing but the above is sent.
                _ => String::new(),
            };
            assert_eq!(value, expected, "{name} of {request}");
        }
    }
    let connections = bench.connections();
    assert_eq!(connections.len(), 2);
    assert!(connections.iter().all(|it| it.purpose == Some(ConnectionPurpose::Update)));
    assert_eq!(connections.iter().map(|it| it.received).max(), Some(NEW_PROGRAM.len() as u64));
}

#[test]
fn an_unusable_list_of_versions_is_named() {
    let bench = Bench::new(PackageKind::AppImage);
    let signed = signature(NEW_PROGRAM, &bench.keys, "9.0.0");
    let whole = |text: String| StandInReply::Whole(text.into_bytes());
    for (reply, code) in [
        (whole("<html>log in</html>".into()), "update.format"),
        (whole(r#"{"version": "9.0.0"}"#.into()), "update.format"),
        (whole(r#"{"version": "newest", "platforms": {}}"#.into()), "update.format"),
        (whole(list("9.0.0", "beos-ppc", "http://a.example/x", &signed)), "update.platform"),
        (
            StandInReply::Cut(list("9.0.0", &target(), "http://a.example/x", &signed).into_bytes(), 40),
            "update.format",
        ),
        (StandInReply::Status(404), "update.no_list"),
        (StandInReply::Status(500), "update.no_list"),
        (StandInReply::Redirect("ftp://a.example/latest.json".into()), "update.redirect"),
        (StandInReply::Redirect(bench.server.url("/latest.json")), "update.redirects"),
    ] {
        bench.server.reply("/latest.json", reply);
        assert_eq!(bench.call("update_check").unwrap_err(), code);
        assert_eq!(bench.call("update_info").unwrap().phase, UpdatePhase::Unknown, "{code}");
    }
    // The same version, or an older one, even with a right signature, is none.
    for version in ["0.1.0", "0.0.9", "0.1.0-rc.1"] {
        bench.server.offer(version, NEW_PROGRAM, &bench.keys, version);
        let info = bench.call("update_check").unwrap();
        assert_eq!((info.phase, info.offer), (UpdatePhase::Current, None), "{version}");
        assert!(info.checked_ms.is_some());
    }
    assert_eq!(bench.call("update_download").unwrap_err(), "update.none");
}

#[test]
fn a_server_that_is_gone_is_named_and_the_next_one_is_asked() {
    let closed = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let gone = format!("http://{closed}/latest.json");
    let bench = Bench::with(PackageKind::AppImage, |_| vec![gone.clone()]);
    assert_eq!(bench.call("update_check").unwrap_err(), "update.unreachable");
    let bench = Bench::with(PackageKind::AppImage, |server| vec![gone, server.url("/latest.json")]);
    bench.server.offer("9.0.0", NEW_PROGRAM, &bench.keys, "9.0.0");
    assert_eq!(bench.call("update_check").unwrap().phase, UpdatePhase::Available);
}

#[test]
fn a_package_that_is_not_right_is_refused_and_nothing_changes() {
    let bench = Bench::new(PackageKind::AppImage);
    let other = KeyPair::generate_unencrypted_keypair().unwrap();
    let offered = |signed: &str| list("9.0.0", &target(), &bench.server.url("/package"), signed);
    let signed = signature(NEW_PROGRAM, &bench.keys, "9.0.0");
    let whole = || StandInReply::Whole(NEW_PROGRAM.to_vec());
    let mut changed = NEW_PROGRAM.to_vec();
    changed[9] ^= 1;
    for (signed, package, code) in [
        (signature(NEW_PROGRAM, &other, "9.0.0"), whole(), "update.signature"),
        // An old package with its right signature, announced as a new one.
        (signature(NEW_PROGRAM, &bench.keys, "0.0.9"), whole(), "update.signature"),
        ("bm90IGEgc2lnbmF0dXJl".into(), whole(), "update.signature"),
        ("?".into(), whole(), "update.signature"),
        (signed.clone(), StandInReply::Whole(changed), "update.signature"),
        (signed.clone(), StandInReply::Cut(NEW_PROGRAM.to_vec(), 10), "update.download"),
        (signed.clone(), StandInReply::Status(404), "update.download"),
    ] {
        bench.server.reply("/latest.json", StandInReply::Whole(offered(&signed).into_bytes()));
        bench.server.reply("/package", package);
        bench.call("update_check").unwrap();
        let done = bench.download();
        let error = done.error.unwrap();
        assert_eq!((done.phase, error.code.as_str()), (UpdatePhase::Available, code), "{}", error.message);
        assert!(
            error.message.contains(&bench.server.host()) && !error.remedy.is_empty(),
            "{}",
            error.message
        );
        assert_eq!(bench.app.update_install().unwrap_err().code(), "update.not_ready");
    }
    // Signed, and no program at all.
    bench.server.offer("9.0.0", b"a text", &bench.keys, "9.0.0");
    bench.call("update_check").unwrap();
    assert_eq!(bench.download().phase, UpdatePhase::Ready);
    assert_eq!(bench.app.update_install().unwrap_err().code(), "update.install");
    assert_eq!(bench.call("update_info").unwrap().phase, UpdatePhase::Ready);
    assert_eq!(content(&bench.program), OLD_PROGRAM);
}

#[test]
fn a_download_can_be_cancelled_and_started_again() {
    let bench = Bench::new(PackageKind::AppImage);
    bench.server.offer("9.0.0", NEW_PROGRAM, &bench.keys, "9.0.0");
    bench.call("update_check").unwrap();
    bench.server.reply("/package", StandInReply::Stalled(NEW_PROGRAM.to_vec(), 10));
    let (events, later) = (bench.app.watch_app(), bench.app.watch_app());
    bench.call("update_download").unwrap();
    assert_eq!(bench.call("update_download").unwrap_err(), "update.busy");
    let total = Some(NEW_PROGRAM.len() as u64);
    let stalled = UpdatePhase::Downloading { received_bytes: 10, total_bytes: total };
    wait_for(events, |update| update.phase == stalled);
    bench.call("update_cancel").unwrap();
    let cancelled = wait_for(later, |update| !matches!(update.phase, UpdatePhase::Downloading { .. }));
    assert_eq!((cancelled.phase, cancelled.error), (UpdatePhase::Available, None));
    bench.server.reply("/package", StandInReply::Whole(NEW_PROGRAM.to_vec()));
    assert_eq!(bench.download().phase, UpdatePhase::Ready);
}

#[test]
fn only_the_setting_makes_the_window_ask_by_itself() {
    let bench = Bench::new(PackageKind::AppImage);
    bench.server.offer("9.0.0", NEW_PROGRAM, &bench.keys, "9.0.0");
    bench.app.check_for_update_if_set().unwrap();
    assert_eq!(bench.call("update_info").unwrap().phase, UpdatePhase::Unknown);
    assert!(bench.connections().is_empty());
    bench.set("check_updates", json!(true));
    let events = bench.app.watch_app();
    bench.app.check_for_update_if_set().unwrap();
    let found = wait_for(events, |update| update.phase != UpdatePhase::Checking);
    assert_eq!(found.phase, UpdatePhase::Available);
    assert_eq!(bench.server.requests().len(), 1, "nothing was downloaded");
}

#[test]
fn offline_mode_sends_nothing() {
    let bench = Bench::new(PackageKind::AppImage);
    bench.set("offline", json!(true));
    assert_eq!(bench.call("update_check").unwrap_err(), "network.offline");
    assert!(bench.server.requests().is_empty());
}

#[test]
fn the_proxy_of_the_settings_is_asked_and_redirects_are_recorded() {
    let bench = Bench::with(PackageKind::AppImage, |_| vec!["http://updates.example/first".into()]);
    bench.set("proxy", json!(bench.server.url("")));
    bench.server.offer("9.0.0", NEW_PROGRAM, &bench.keys, "9.0.0");
    bench.server.reply("/first", StandInReply::Redirect("http://files.example/latest.json".into()));
    assert_eq!(bench.call("update_check").unwrap().phase, UpdatePhase::Available);
    let lines: Vec<_> =
        bench.server.requests().iter().map(|head| head.lines().next().unwrap().to_owned()).collect();
    assert_eq!(
        lines,
        ["GET http://updates.example/first HTTP/1.1", "GET http://files.example/latest.json HTTP/1.1"]
    );
    let mut hosts: Vec<_> = bench.connections().into_iter().map(|it| it.host).collect();
    hosts.sort();
    assert_eq!(hosts, ["files.example", "updates.example"]);
}

#[test]
fn packages_of_the_system_are_only_named() {
    for package in [PackageKind::Deb, PackageKind::Rpm, PackageKind::Flatpak, PackageKind::Source] {
        let bench = Bench::new(package);
        bench.server.offer("9.0.0", NEW_PROGRAM, &bench.keys, "9.0.0");
        let info = bench.call("update_check").unwrap();
        assert_eq!((info.method, info.phase), (UpdateMethod::Name, UpdatePhase::Available), "{package:?}");
        assert_eq!(bench.call("update_download").unwrap_err(), "update.by_hand");
        assert_eq!(bench.server.requests().len(), 1);
    }
}

#[test]
fn a_build_without_an_address_has_no_updater() {
    let bench = Bench::with(PackageKind::AppImage, |_| Vec::new());
    bench.set("check_updates", json!(true));
    bench.app.check_for_update_if_set().unwrap();
    assert_eq!(bench.call("update_info").unwrap().method, UpdateMethod::NoAddress);
    assert_eq!(bench.call("update_check").unwrap_err(), "update.no_address");
    assert_eq!(bench.call("update_download").unwrap_err(), "update.no_address");
    assert!(bench.connections().is_empty());
}

#[test]
fn only_the_window_updates() {
    let bench = Bench::new(PackageKind::AppImage);
    let browser = bench.app.as_caller(Caller { interface: Interface::Http, ..Caller::default() });
    assert_eq!(browser.update_info().method, UpdateMethod::NotHere);
    assert_eq!(browser.update_check().unwrap_err().code(), "update.not_here");
    assert_eq!(browser.update_download().unwrap_err().code(), "update.not_here");
    assert_eq!(browser.update_install().unwrap_err().code(), "update.not_here");
    assert!(bench.server.requests().is_empty());
}

#[test]
fn on_windows_the_installer_waits_for_the_end_of_the_application() {
    let bench = Bench::new(PackageKind::Nsis);
    bench.server.offer("9.0.0", NEW_PROGRAM, &bench.keys, "9.0.0");
    bench.call("update_check").unwrap();
    assert_eq!(bench.download().phase, UpdatePhase::Ready);
    bench.app.update_install().unwrap();
    assert_eq!(content(&bench.program), OLD_PROGRAM, "an answer may still be saved");
}

#[test]
fn what_is_called_out_of_order_says_so() {
    let bench = Bench::new(PackageKind::AppImage);
    assert_eq!(bench.call("update_download").unwrap_err(), "update.none");
    assert_eq!(bench.call("update_cancel").unwrap().phase, UpdatePhase::Unknown);
    assert_eq!(bench.app.update_install().unwrap_err().code(), "update.not_ready");
    let shell = bench._shell.handle().clone();
    let installer = PluginInstaller::new(shell, None, PackageKind::AppImage);
    assert_eq!(installer.install().unwrap_err().code(), "update.not_ready");
    installer.install_at_exit().unwrap();
}
