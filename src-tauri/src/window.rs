//! The one window: how it is built, what it may show, how it ends.

use app::desktop::deep_links::DeepLink;
use tauri::webview::{NewWindowResponse, WebviewWindowBuilder};
use tauri::{DragDropEvent, Manager, RunEvent, Url, WebviewWindow, WindowEvent};

use crate::state::{DragDropUpdate, DropListener, LinkInbox, OpenApp};
use crate::{commands, focus, shutdown, tray, window_state};

/// Shows the window, and in it what was asked, until it is closed; then running turns end with what they have written
/// saved. `only` is held for as long.
pub fn run(
    app: app::App,
    mut only: app::desktop::single_instance::SingleInstance,
    asked: Vec<DeepLink>,
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
    shell.state::<LinkInbox>().send(asked);
    only.on_raise(move |asked| {
        handle.state::<LinkInbox>().send(asked);
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
    // There, it would take the page's own dragging away.
    config.drag_drop_enabled = !cfg!(windows);
    let kept = shell.state::<OpenApp>().app().ok().and_then(|app| app.window_place().ok().flatten());
    if let Some(kept) = kept {
        let screens: Vec<_> = shell.available_monitors()?.iter().map(window_state::screen).collect();
        window_state::put(&mut config, &kept, &screens);
    }
    let window = WebviewWindowBuilder::from_config(shell, &config)?
        .on_navigation(is_ours)
        .on_new_window(|_, _| NewWindowResponse::Deny)
        .on_download(|_, _| false)
        .build()?;
    window_state::keep_of(&window);
    take_files(&window);
    stay_open(&window);
    Ok(())
}

/// Files that are dropped on the window are named to the page.
fn take_files(window: &WebviewWindow) {
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
            // Where exactly is nothing to the page.
            _ => return,
        };
        kept.state::<DropListener>().send(drop);
    });
}

/// With an icon beside the clock the window is only hidden: answers and downloads go on. Without one, whoever closes it
/// in the middle of an answer is asked.
fn stay_open(window: &WebviewWindow) {
    let kept = window.clone();
    window.on_window_event(move |event| {
        let WindowEvent::CloseRequested { api, .. } = event else { return };
        let is_hidden = tray::keeps_running(kept.app_handle()) && kept.hide().is_ok();
        if is_hidden || shutdown::waits(kept.app_handle()) {
            api.prevent_close();
        }
    });
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
