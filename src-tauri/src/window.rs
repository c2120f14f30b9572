//! The application window: creation, allowed navigation and closing.

use app::desktop::deep_links::DeepLink;
use tauri::webview::{NewWindowResponse, WebviewWindowBuilder};
use tauri::{DragDropEvent, Manager, RunEvent, Url, WebviewWindow, WindowEvent};

use crate::state::{DragDropUpdate, DropListener, LinkInbox, OpenApp};
use crate::{commands, focus, shutdown, tray, window_state};

/// Shows the window and opens `links` in it; returns when it closes, after saving partial answers. Holds `only`
/// meanwhile.
pub fn run(
    app: app::App,
    mut only: app::desktop::single_instance::SingleInstance,
    links: Vec<DeepLink>,
) -> tauri::Result<()> {
    let shell = tauri::Builder::default()
        .manage(OpenApp::new(app))
        .manage(DropListener::default())
        .manage(LinkInbox::default())
        .manage(tray::TrayEnabled::default())
        .manage(shutdown::CloseQuestion::default())
        .invoke_handler(tauri::generate_handler![
            commands::call,
            commands::watch_turn,
            commands::watch_app,
            commands::pick_model_file,
            commands::pick_file,
            commands::pick_folder,
            commands::pick_save,
            commands::open_dir,
            commands::set_zoom,
            commands::notify,
            commands::watch_drops,
            commands::watch_asked,
            commands::set_tray,
            shutdown::watch_closing,
            shutdown::close_window,
        ])
        .setup(|shell| open(shell).map_err(Into::into))
        .build(tauri::generate_context!())?;
    let handle = shell.handle().clone();
    shell.state::<LinkInbox>().send(links);
    only.on_raise(move |links| {
        handle.state::<LinkInbox>().send(links);
        focus::raise(&handle);
    });
    shell.run(|shell, event| {
        if let RunEvent::Exit = event {
            shell.state::<OpenApp>().close();
        }
    });
    Ok(())
}

fn open(shell: &tauri::App) -> tauri::Result<()> {
    still_caret();
    let mut config = shell.config().app.windows[0].clone();
    // On Windows this would disable drag and drop inside the page.
    config.drag_drop_enabled = !cfg!(windows);
    let kept = shell.state::<OpenApp>().app().ok().and_then(|app| app.window_place().ok().flatten());
    if let Some(kept) = kept {
        let screens: Vec<_> = shell.available_monitors()?.iter().map(window_state::screen).collect();
        window_state::restore(&mut config, &kept, &screens);
    }
    let window = WebviewWindowBuilder::from_config(shell, &config)?
        .on_navigation(is_ours)
        .on_new_window(|_, _| NewWindowResponse::Deny)
        .on_download(|_, _| false)
        .build()?;
    window_state::save_on_change(&window);
    forward_drops(&window);
    handle_close(&window);
    Ok(())
}

/// Sends the paths of dropped files to the page.
fn forward_drops(window: &WebviewWindow) {
    let named = |paths: &[std::path::PathBuf]| -> Vec<String> {
        paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
    };
    let kept = window.clone();
    window.on_window_event(move |event| {
        let WindowEvent::DragDrop(event) = event else { return };
        let drop = match event {
            DragDropEvent::Enter { paths, .. } => DragDropUpdate::Over { paths: named(paths) },
            DragDropEvent::Drop { paths, .. } => DragDropUpdate::Dropped { paths: named(paths) },
            DragDropEvent::Leave => DragDropUpdate::Left,
            // The page doesn't need the position.
            _ => return,
        };
        kept.state::<DropListener>().send(drop);
    });
}

/// With a tray icon, closing only hides the window. Without one, closing during an answer asks the user first.
fn handle_close(window: &WebviewWindow) {
    let kept = window.clone();
    window.on_window_event(move |event| {
        let WindowEvent::CloseRequested { api, .. } = event else { return };
        let is_hidden = tray::keeps_running(kept.app_handle()) && kept.hide().is_ok();
        if is_hidden || shutdown::is_waiting_for_user(kept.app_handle()) {
            api.prevent_close();
        }
    });
}

/// Stops the caret from blinking. The repaints would cost 2 s of CPU time per minute without a GPU. Uses a blink time
/// of weeks, since WebKitGTK treats `gtk-cursor-blink = false` as a blink time of zero.
#[cfg(target_os = "linux")]
fn still_caret() {
    use gtk::prelude::GtkSettingsExt;
    if let Some(settings) = gtk::Settings::default() {
        settings.set_gtk_cursor_blink_time(i32::MAX);
    }
}

#[cfg(not(target_os = "linux"))]
fn still_caret() {}

/// Whether the URL belongs to the page; it may not navigate elsewhere.
fn is_ours(url: &Url) -> bool {
    match url.scheme() {
        "tauri" => url.host_str() == Some("localhost"),
        // On Windows the page uses this origin.
        "http" | "https" => cfg!(windows) && url.host_str() == Some("tauri.localhost"),
        _ => false,
    }
}

/// Shows an error dialog when the window can't open.
pub fn show_error(message: &str, remedy: &str) {
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
