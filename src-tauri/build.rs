//! Capabilities, the Windows manifest and the list of commands the page may call.

const COMMANDS: &[&str] = &[
    "call",
    "watch_turn",
    "watch_app",
    "pick_model_file",
    "pick_file",
    "pick_folder",
    "pick_save",
    "save_text",
    "open_dir",
    "open_link",
    "set_zoom",
    "notify",
    "watch_drops",
    "watch_asked",
    "set_tray",
    "watch_closing",
    "close_window",
    "set_quick_keys",
    "show_quick",
    "hide_quick",
    "open_in_main",
];

fn main() {
    let manifest = tauri_build::AppManifest::new().commands(COMMANDS);
    let attributes = tauri_build::Attributes::new().app_manifest(manifest);
    if let Err(error) = tauri_build::try_build(attributes) {
        panic!("tauri-build: {error:#}");
    }
}
