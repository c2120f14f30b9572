//! Capabilities, the Windows manifest, the list of commands the page may call, and a check of the update address.

#[path = "src/update_source.rs"]
mod update_source;

use update_source::{ADDRESS_VARIABLE, KEY_VARIABLE, PAGE_VARIABLE, UpdateSource};

const COMMANDS: &[&str] = &[
    "call",
    "watch_turn",
    "watch_app",
    "pick_model_file",
    "pick_file",
    "pick_folder",
    "pick_save",
    "save_text",
    "clipboard_paths",
    "clipboard_picture",
    "open_dir",
    "open_link",
    "set_zoom",
    "notify",
    "watch_drops",
    "watch_asked",
    "set_tray",
    "watch_closing",
    "close_window",
    "restart_to_update",
    "set_quick_keys",
    "show_quick",
    "hide_quick",
    "open_in_main",
];

fn main() {
    let [key, addresses, page] = [KEY_VARIABLE, ADDRESS_VARIABLE, PAGE_VARIABLE].map(|name| {
        println!("cargo::rerun-if-env-changed={name}");
        std::env::var(name).ok()
    });
    if let Err(error) = UpdateSource::parse(key.as_deref(), addresses.as_deref(), page.as_deref()) {
        panic!("{error}");
    }
    let manifest = tauri_build::AppManifest::new().commands(COMMANDS);
    let attributes = tauri_build::Attributes::new().app_manifest(manifest);
    if let Err(error) = tauri_build::try_build(attributes) {
        panic!("tauri-build: {error:#}");
    }
}
