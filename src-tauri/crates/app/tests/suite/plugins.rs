//! Plugins: shown before they are enabled, adopted as shown, and removed without a trace.
#![allow(clippy::unwrap_used)] // a test

use app::App;
use app::AppConfig;
use app::Environment;
use contract::types::PluginSwitchArgs;

use crate::common::Home;

const MANIFEST: &str = r#"
name = "Weather"
version = "1.2"
description = "Looks at the sky."

[mcp_servers.sky]
command = "python3"
args = ["SCRIPT"]

[[presets]]
name = "Forecaster"
options = { system_prompt = "Be brief.", temperature = 0.1 }

[[templates]]
model = "starter"
file = "plain.jinja"

[[model]]
id = "cloud-1b"
name = "Cloud 1B"
family = "Cloud"
architecture = "llama"
repository = "weather/cloud"
files = "*.gguf"
licence = "MIT"
good_at = "Clouds."
capabilities = []
"#;

fn put(home: &Home, name: &str, manifest: &str) {
    let folder = home.0.join("plugins").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/mcp/server.py");
    std::fs::write(folder.join("plugin.toml"), manifest.replace("SCRIPT", script)).unwrap();
    std::fs::write(folder.join("plain.jinja"), "{{ messages[-1].content }}").unwrap();
}

fn open(home: &Home) -> App {
    let environment = Environment(|name| std::env::var(name).ok());
    App::open(AppConfig { data_dir: Some(home.0.clone()), environment, ..AppConfig::default() }).unwrap()
}

#[test]
fn a_plugin_is_shown_taken_over_and_taken_back() {
    let home = Home::new("plugins");
    put(&home, "weather", MANIFEST);
    put(&home, "broken", "name = \"x\"\nversion = 3\n");
    let app = open(&home);
    let switch = |enabled| app.plugin_switch(&PluginSwitchArgs { name: "weather".into(), enabled });
    let counts = || {
        let offers = app.catalogue().unwrap().into_iter().filter(|offer| offer.id == "cloud-1b").count();
        let presets = app.presets_list().unwrap().into_iter().filter(|it| it.name == "Forecaster").count();
        (app.tool_servers_list().unwrap().len(), presets, offers)
    };
    let list = app.plugins_list().unwrap();
    let (broken, weather) = (&list[0], &list[1]);
    let error = broken.error.as_ref().unwrap();
    assert!(error.message.contains("plugin.toml, line 2"), "{}", error.message);
    assert!((weather.name.as_str(), weather.version.as_str(), weather.enabled) == ("Weather", "1.2", false));
    assert!(weather.servers[0].starts_with("sky: python3 ") && weather.servers[0].ends_with("server.py"));
    assert_eq!(
        (weather.presets.as_slice(), weather.models.as_slice()),
        (&["Forecaster".to_owned()][..], &["Cloud 1B: weather/cloud".to_owned()][..])
    );
    assert_eq!(counts(), (0, 0, 0), "nothing is on by itself");

    assert!(switch(true).unwrap()[1].enabled);
    assert_eq!(counts(), (1, 1, 1));
    let server = app.tool_servers_list().unwrap().remove(0);
    assert_eq!((server.name.as_str(), server.plugin.as_deref()), ("sky", Some("Weather")));
    assert_eq!(app.tool_server_test(&server.id).unwrap().tools.len(), 11);

    // Later changes are reported and have no effect.
    put(&home, "weather", &MANIFEST.replace("python3", "another"));
    assert!(app.plugins_list().unwrap()[1].changed);
    assert_eq!(app.tool_servers_list().unwrap()[0].spec.command.as_deref(), Some("python3"));

    let off = switch(false).unwrap();
    assert!(!off[1].enabled && !off[1].changed);
    assert_eq!(counts(), (0, 0, 0));
    let refused = app.plugin_switch(&PluginSwitchArgs { name: "broken".into(), enabled: true }).unwrap_err();
    assert_eq!(refused.code(), "plugin.manifest");
    put(&home, "weather", &MANIFEST.replace("plain.jinja", "none.jinja"));
    assert!(switch(true).unwrap_err().message().contains("none.jinja"));
    assert_eq!(counts(), (0, 0, 0), "nothing of it stays");
}
