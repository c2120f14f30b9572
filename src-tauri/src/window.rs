//! The application window: creation, allowed navigation and closing.

use desktop::DeepLink;
use tauri::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_DNS_PREFETCH_CONTROL};
use tauri::http::{HeaderValue, Response, StatusCode};
use tauri::ipc::Invoke;
use tauri::webview::{NewWindowResponse, WebviewWindowBuilder};
use tauri::{DragDropEvent, Manager, RunEvent, WebviewWindow, WindowEvent};

use crate::state::{DragDropUpdate, DropListener, LinkInbox, OpenApp};
use crate::webview::{PREVIEW_SCHEME, is_ours, reload_after_crash};
use crate::{clipboard, commands, focus, quick, shutdown, tray, updates, window_state};

/// What the page may call.
fn commands() -> impl Fn(Invoke) -> bool + Send + Sync + 'static {
    tauri::generate_handler![
        commands::call,
        commands::watch_turn,
        commands::watch_app,
        commands::pick_model_file,
        commands::pick_file,
        commands::pick_folder,
        commands::pick_save,
        commands::save_text,
        clipboard::clipboard_paths,
        clipboard::clipboard_picture,
        commands::open_dir,
        commands::open_link,
        commands::set_zoom,
        commands::notify,
        commands::watch_drops,
        commands::watch_asked,
        commands::set_tray,
        shutdown::watch_closing,
        shutdown::close_window,
        shutdown::restart_to_update,
        quick::set_quick_keys,
        quick::show_quick,
        quick::hide_quick,
        quick::open_in_main,
    ]
}

/// Shows the window and opens `links` in it; returns when it closes, after saving partial answers. Holds `only`
/// meanwhile.
pub fn run(app: app::App, mut only: desktop::SingleInstance, links: Vec<DeepLink>) -> tauri::Result<()> {
    let shell = tauri::Builder::default();
    #[cfg(target_os = "macos")]
    let shell = shell.on_web_content_process_terminate(|webview| {
        let _ = webview.reload();
    });
    let shell = shell
        .manage(OpenApp::new(app))
        .manage(DropListener::default())
        .manage(LinkInbox::default())
        .manage(tray::TrayEnabled::default())
        .manage(quick::QuickKeys::default())
        .manage(shutdown::CloseQuestion::default())
        .plugin(tauri_plugin_updater::Builder::new().build())
        .invoke_handler(commands())
        .register_uri_scheme_protocol(PREVIEW_SCHEME, |_, request| preview(request.uri().path()))
        .setup(|shell| open(shell).map_err(Into::into))
        .build(tauri::generate_context!())?;
    let handle = shell.handle().clone();
    shell.state::<LinkInbox>().send(quick::take_links(&handle, links));
    only.on_raise(move |links| {
        let is_for_quick = links.contains(&DeepLink::QuickWindow);
        let links = quick::take_links(&handle, links);
        if !is_for_quick || !links.is_empty() {
            handle.state::<LinkInbox>().send(links);
            focus::raise(&handle);
        }
    });
    let mut only = Some(only);
    shell.run(move |shell, event| match event {
        RunEvent::Exit => {
            shell.state::<OpenApp>().close();
            // Before a restart: the next process claims the data folder.
            drop(only.take());
            updates::finish_at_exit(shell);
        }
        #[cfg(target_os = "macos")]
        RunEvent::Opened { urls } => {
            let links = DeepLink::parse_all(urls.iter().map(tauri::Url::as_str));
            shell.state::<LinkInbox>().send(quick::take_links(shell, links));
            focus::raise(shell);
        }
        _ => {}
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
    reload_after_crash(&window)?;
    window_state::save_on_change(&window);
    forward_drops(&window);
    handle_close(&window);
    updates::start(shell.handle());
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
        if let WindowEvent::Destroyed = event {
            quick::close(kept.app_handle());
        }
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

/// A frame under its own policy, or 404.
fn preview(path: &str) -> Response<Vec<u8>> {
    let frame = server::preview::PreviewFrame::of_name(path.trim_start_matches('/'));
    let mut response = Response::new(frame.map(|frame| frame.html().into()).unwrap_or_default());
    let Some(frame) = frame else {
        *response.status_mut() = StatusCode::NOT_FOUND;
        return response;
    };
    for (name, value) in [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, &frame.policy()),
        (X_DNS_PREFETCH_CONTROL, "off"),
    ] {
        // ours, and plain ASCII
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_a_policy_of_their_own() {
        let policy = |path: &str| {
            let response = preview(path);
            let policy = response.headers().get(CONTENT_SECURITY_POLICY)?.to_str().unwrap().to_owned();
            assert!(!response.body().is_empty());
            Some(policy)
        };
        assert!(policy("/static").unwrap().contains("script-src 'sha256-"));
        assert!(policy("/scripts").unwrap().contains("sandbox allow-scripts"));
        assert_eq!(policy("/index.html"), None);
        assert_eq!(preview("/").status(), StatusCode::NOT_FOUND);
    }
}
