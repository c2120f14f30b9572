//! Brings the main window to the front.

use tauri::Manager;

/// Label of the main window, in `tauri.conf.json` too.
pub const MAIN: &str = "main";

/// Shows, restores and focuses the window. Does nothing while the window closes.
pub fn raise(shell: &tauri::AppHandle) {
    let Some(window) = shell.get_webview_window(MAIN) else { return };
    let raised = window.unminimize().and_then(|()| window.show()).and_then(|()| window.set_focus());
    if let Err(error) = raised {
        eprintln!("the window could not be brought to the front: {error}");
    }
}
