//! A word to the user while the window isn't in front.

use tauri::{UserAttentionType, WebviewWindow};

/// By the desktop's notifications where there are any; besides, the window asks to be looked at. A desktop that shows
/// neither is no error.
pub fn tell(window: &WebviewWindow, title: &str, text: &str) {
    if window.is_focused().unwrap_or(false) {
        return;
    }
    // Some desktops know no such thing.
    let _ = window.request_user_attention(Some(UserAttentionType::Informational));
    show(title, text);
}

/// How long the desktop may take to answer, in milliseconds.
#[cfg(target_os = "linux")]
const PATIENCE_MS: i32 = 2000;

/// Asks whoever shows notifications on this desktop, by D-Bus.
#[cfg(target_os = "linux")]
fn show(title: &str, text: &str) {
    use std::collections::HashMap;

    use gtk::gio::{BusType, Cancellable, DBusCallFlags, bus_get_sync};
    use gtk::glib::Variant;
    use gtk::glib::prelude::ToVariant;

    let Ok(bus) = bus_get_sync(BusType::Session, Cancellable::NONE) else { return };
    let hints = HashMap::<String, Variant>::from([("desktop-entry".into(), "Inglenook".to_variant())]);
    // Name, the notification it replaces, picture, summary, text, buttons, hints, how long it stays.
    let arguments =
        ("Inglenook", 0_u32, "inglenook", title, plain(text), Vec::<String>::new(), hints, -1_i32)
            .to_variant();
    let name = "org.freedesktop.Notifications";
    let path = "/org/freedesktop/Notifications";
    let _ = bus.call_sync(
        Some(name),
        path,
        name,
        "Notify",
        Some(&arguments),
        None,
        DBusCallFlags::NONE,
        PATIENCE_MS,
        Cancellable::NONE,
    );
}

#[cfg(not(target_os = "linux"))]
fn show(_title: &str, _text: &str) {}

/// Some desktops read the text as markup.
#[cfg(target_os = "linux")]
fn plain(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::plain;

    #[test]
    fn text_is_no_markup() {
        assert_eq!(plain("<a href=\"x\">1 & 2</a>"), "&lt;a href=\"x\"&gt;1 &amp; 2&lt;/a&gt;");
    }
}
