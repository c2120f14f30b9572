//! The optional tray icon. With it, closing the window only hides it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use tauri::menu::{Menu, MenuBuilder, MenuEvent};
use tauri::tray::TrayIconBuilder;
use tauri::{AppHandle, Manager, Wry};

use contract::types::ErrorInfo;
use desktop::DeepLink;

use crate::state::LinkInbox;
use crate::{focus, quick, shutdown};

#[cfg(target_os = "linux")]
mod watcher;
#[cfg(target_os = "linux")]
use watcher::{announce_soon, is_shown};

const ID: &str = "tray";
const SHOW: &str = "show";
const NEW_CHAT: &str = "new-chat";
const QUICK: &str = "quick";
const QUIT: &str = "quit";

/// Menu labels in the language of the page.
#[derive(Debug, serde::Deserialize)]
pub struct Labels {
    show: String,
    new_chat: String,
    quick: String,
    quit: String,
}

/// Whether the tray icon is enabled.
#[derive(Default)]
pub struct TrayEnabled(AtomicBool);

/// Shows or removes the icon. Error `window.tray`: the desktop has no tray; closing the window then quits.
pub fn set(app: &AppHandle, labels: Option<Labels>) -> Result<(), ErrorInfo> {
    // One outcome, so that the main thread never waits.
    let (send, done) = mpsc::sync_channel(1);
    let on_main = app.clone();
    let set = move || {
        let is_enabled = labels.is_some();
        // The crate loads libayatana-appindicator only now, and panics if it is missing.
        let outcome = catch_unwind(AssertUnwindSafe(|| match &labels {
            Some(labels) => show(&on_main, labels),
            None => on_main.tray_by_id(ID).map_or(Ok(()), |icon| icon.set_visible(false)),
        }));
        let outcome = match outcome {
            Ok(outcome) => outcome.map_err(|error| error.to_string()),
            Err(_) => Err("libayatana-appindicator3 is missing".into()),
        };
        on_main.state::<TrayEnabled>().0.store(is_enabled && outcome.is_ok(), Ordering::Relaxed);
        send.send(outcome)
    };
    // the receiver waits until the window closes, so a failed send is harmless
    app.run_on_main_thread(move || drop(set())).map_err(|error| contract::Error::bug(error).info)?;
    let done = done.recv().unwrap_or_else(|_| Err("the window is closing".into()));
    done.map_err(|cause| {
        let remedy = "Closing the window quits Inglenook. On Debian, install libayatana-appindicator3-1.";
        contract::Error::input("window.tray", format!("This desktop has no system tray: {cause}."), remedy)
            .info
    })
}

/// Whether closing the window only hides it. Needs an icon that the desktop shows, so that the window can return.
pub fn keeps_running(app: &AppHandle) -> bool {
    app.state::<TrayEnabled>().0.load(Ordering::Relaxed) && is_shown()
}

/// Creates the icon, or gives an existing one a new menu: a second icon would collide on the bus.
fn show(app: &AppHandle, labels: &Labels) -> tauri::Result<()> {
    let menu = menu(app, labels)?;
    if let Some(icon) = app.tray_by_id(ID) {
        icon.set_menu(Some(menu))?;
        return icon.set_visible(true);
    }
    name_program();
    let mut tray = TrayIconBuilder::with_id(ID).menu(&menu).tooltip("Inglenook").on_menu_event(chosen);
    if let Some(icon) = app.default_window_icon() {
        tray = tray.icon(icon.clone());
    }
    tray.build(app)?;
    announce_soon();
    Ok(())
}

fn menu(app: &AppHandle, labels: &Labels) -> tauri::Result<Menu<Wry>> {
    MenuBuilder::new(app)
        .text(SHOW, &labels.show)
        .text(NEW_CHAT, &labels.new_chat)
        .text(QUICK, &labels.quick)
        .separator()
        .text(QUIT, &labels.quit)
        .build()
}

/// Sets the name under which desktops list the icon.
#[cfg(target_os = "linux")]
fn name_program() {
    gtk::glib::set_application_name("Inglenook");
}

#[cfg(not(target_os = "linux"))]
fn name_program() {}

#[cfg(not(target_os = "linux"))]
fn is_shown() -> bool {
    true
}

#[cfg(not(target_os = "linux"))]
fn announce_soon() {}

fn chosen(app: &AppHandle, event: MenuEvent) {
    match event.id().as_ref() {
        SHOW => focus::raise(app),
        NEW_CHAT => {
            app.state::<LinkInbox>().send(vec![DeepLink::NewChat { text: String::new() }]);
            focus::raise(app);
        }
        QUICK => quick::show(app),
        QUIT if shutdown::is_waiting_for_user(app) => focus::raise(app),
        QUIT => app.exit(0),
        _ => {}
    }
}
