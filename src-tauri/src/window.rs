//! The one window: how it is built, what it may show, how it ends.

use tauri::webview::{NewWindowResponse, WebviewWindowBuilder};
use tauri::{Manager, RunEvent, Url};

use crate::commands::{self, Held};

/// Shows the window until it is closed; then running turns end with what they have written saved.
pub fn run(app: api::App) -> tauri::Result<()> {
    let shell = tauri::Builder::default()
        .manage(Held::new(app))
        .invoke_handler(tauri::generate_handler![
            commands::call,
            commands::watch_turn,
            commands::watch_app,
            commands::pick_model_file,
            commands::pick_file,
            commands::pick_save,
            commands::open_data_dir,
        ])
        .setup(|shell| open(shell).map_err(Into::into))
        .build(tauri::generate_context!())?;
    shell.run(|shell, event| {
        if let RunEvent::Exit = event {
            shell.state::<Held>().let_go();
        }
    });
    Ok(())
}

fn open(shell: &tauri::App) -> tauri::Result<()> {
    still_caret();
    let config = &shell.config().app.windows[0];
    WebviewWindowBuilder::from_config(shell, config)?
        .on_navigation(is_ours)
        .on_new_window(|_, _| NewWindowResponse::Deny)
        .on_download(|_, _| false)
        .build()?;
    Ok(())
}

/// A blinking caret would have the web view paint for as long as the window is open: 2 s of processor time
/// a minute without a GPU. Here it stands still, by a blink that lasts for weeks, since WebKitGTK takes
/// `gtk-cursor-blink = false` for a blink of no time at all.
#[cfg(target_os = "linux")]
fn still_caret() {
    use gtk::prelude::GtkSettingsExt;
    if let Some(settings) = gtk::Settings::default() {
        settings.set_gtk_cursor_blink_time(i32::MAX);
    }
}

#[cfg(not(target_os = "linux"))]
fn still_caret() {}

/// The page may go nowhere but to itself.
fn is_ours(url: &Url) -> bool {
    match url.scheme() {
        "tauri" => url.host_str() == Some("localhost"),
        // Windows serves the page so.
        "http" | "https" => cfg!(windows) && url.host_str() == Some("tauri.localhost"),
        _ => false,
    }
}

/// Tells a person why there will be no window.
pub fn say(message: &str, remedy: &str) {
    rfd::MessageDialog::new()
        .set_level(rfd::MessageLevel::Error)
        .set_title("Inglenook")
        .set_description(format!("{message}\n\n{remedy}"))
        .show();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_page_itself_is_ours() {
        let check = |url: &str, expected| assert_eq!(is_ours(&url.parse().unwrap()), expected, "{url}");
        check("tauri://localhost/", true);
        check("tauri://localhost/index.html#x", true);
        check("tauri://localhost.evil.com/", false);
        check("https://example.org/", false);
        check("http://tauri.localhost/", cfg!(windows));
        check("file:///etc/passwd", false);
        check("data:text/html,x", false);
        check("javascript:alert(1)", false);
    }
}
