//! Desktop notifications while the window isn't focused.

use tauri::{UserAttentionType, WebviewWindow};

/// Shows a desktop notification and requests attention for the window. Does nothing if the desktop supports neither.
pub fn tell(window: &WebviewWindow, title: &str, text: &str) {
    if window.is_focused().unwrap_or(false) {
        return;
    }
    // Not all desktops support this.
    let _ = window.request_user_attention(Some(UserAttentionType::Informational));
    show(title, text);
}

/// D-Bus timeout.
#[cfg(target_os = "linux")]
const DBUS_TIMEOUT_MS: i32 = 2000;

/// Sends a notification over D-Bus (freedesktop.org Desktop Notifications).
#[cfg(target_os = "linux")]
fn show(title: &str, text: &str) {
    use std::collections::HashMap;

    use gtk::gio::{BusType, Cancellable, DBusCallFlags, bus_get_sync};
    use gtk::glib::Variant;
    use gtk::glib::prelude::ToVariant;

    let Ok(bus) = bus_get_sync(BusType::Session, Cancellable::NONE) else { return };
    let hints = HashMap::<String, Variant>::from([("desktop-entry".into(), "Inglenook".to_variant())]);
    // app_name, replaces_id, app_icon, summary, body, actions, hints, expire_timeout
    let arguments =
        ("Inglenook", 0_u32, "inglenook", title, escape_markup(text), Vec::<String>::new(), hints, -1_i32)
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
        DBUS_TIMEOUT_MS,
        Cancellable::NONE,
    );
}

#[cfg(not(target_os = "linux"))]
fn show(_title: &str, _text: &str) {}

/// Escapes markup, which some desktops interpret.
#[cfg(target_os = "linux")]
fn escape_markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::escape_markup;

    #[test]
    fn text_is_no_markup() {
        assert_eq!(escape_markup("<a href=\"x\">1 & 2</a>"), "&lt;a href=\"x\"&gt;1 &amp; 2&lt;/a&gt;");
    }
}
