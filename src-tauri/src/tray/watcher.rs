//! Whoever gathers the icons on a Linux desktop, asked by D-Bus (the StatusNotifierWatcher of freedesktop.org).

use std::time::Duration;

use gtk::gio::{BusType, Cancellable, DBusCallFlags, DBusConnection, bus_get_sync};
use gtk::glib::prelude::ToVariant;
use gtk::glib::{self, Variant};

use super::ID;

/// Its name on the bus, and that of its interface.
const NAME: &str = "org.kde.StatusNotifierWatcher";
const PATH: &str = "/StatusNotifierWatcher";
/// How long the desktop may take to answer, in milliseconds.
const PATIENCE_MS: i32 = 2000;
/// Within this time an icon is announced by the library that draws it, if it is at all.
const ANNOUNCED_WITHIN: Duration = Duration::from_millis(500);

/// Whether icons are shown. Panels that know only the protocol before that one count as none: closing the window ends
/// the program there.
pub fn is_shown() -> bool {
    bus()
        .and_then(|bus| property(&bus, "IsStatusNotifierHostRegistered"))
        .and_then(|shown| shown.get())
        .unwrap_or(false)
}

/// Sees to it that the new icon is known. The library that draws it connects to the bus and looks for the watcher at
/// the same time; where it finds the watcher first, it says nothing of the icon, and nobody would show it.
pub fn announce_soon() {
    glib::timeout_add_local_once(ANNOUNCED_WITHIN, || {
        let Some(bus) = bus() else { return };
        if is_known(&bus) == Some(false) {
            // Not waited for: before it answers the panel may ask after the icon, which this thread tells.
            glib::spawn_future_local(bus.call_future(
                Some(NAME),
                PATH,
                NAME,
                "RegisterStatusNotifierItem",
                Some(&(item_path(),).to_variant()),
                None,
                DBusCallFlags::NO_AUTO_START,
                PATIENCE_MS,
            ));
        }
    });
}

/// Whether an icon of this program is among those that were gathered; None: nobody gathers any.
fn is_known(bus: &DBusConnection) -> Option<bool> {
    let own = bus.unique_name()?;
    let items: Vec<String> = property(bus, "RegisteredStatusNotifierItems")?.get()?;
    Some(items.iter().any(|item| item.strip_prefix(own.as_str()).is_some_and(|path| path.starts_with('/'))))
}

/// Where the icon lies on the bus: named for its indicator, which tray-icon names for the icon.
fn item_path() -> String {
    format!("/org/ayatana/NotificationItem/tray_icon_tray_app_{ID}")
}

fn bus() -> Option<DBusConnection> {
    bus_get_sync(BusType::Session, Cancellable::NONE).ok()
}

/// A property of the watcher, if it is there and tells.
fn property(bus: &DBusConnection, name: &str) -> Option<Variant> {
    let answer = bus.call_sync(
        Some(NAME),
        PATH,
        "org.freedesktop.DBus.Properties",
        "Get",
        Some(&(NAME, name).to_variant()),
        None,
        DBusCallFlags::NO_AUTO_START,
        PATIENCE_MS,
        Cancellable::NONE,
    );
    answer.ok()?.get::<(Variant,)>().map(|(value,)| value)
}
