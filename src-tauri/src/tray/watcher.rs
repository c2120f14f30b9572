//! D-Bus client of the Linux tray host (StatusNotifierWatcher, freedesktop.org).

use std::time::Duration;

use gtk::gio::{BusType, Cancellable, DBusCallFlags, DBusConnection, bus_get_sync};
use gtk::glib::prelude::ToVariant;
use gtk::glib::{self, Variant};

use super::ID;

/// Bus name and interface name of the watcher.
const NAME: &str = "org.kde.StatusNotifierWatcher";
const PATH: &str = "/StatusNotifierWatcher";
/// D-Bus timeout.
const DBUS_TIMEOUT_MS: i32 = 2000;
/// Time within which libayatana-appindicator registers an icon, if it does at all.
const ANNOUNCED_WITHIN: Duration = Duration::from_millis(500);

/// Whether a panel shows tray icons. Panels with only the older XEmbed protocol don't count; closing quits there.
pub fn is_shown() -> bool {
    bus()
        .and_then(|bus| property(&bus, "IsStatusNotifierHostRegistered"))
        .and_then(|shown| shown.get())
        .unwrap_or(false)
}

/// Registers the new icon if the library did not. The library connects to the bus and looks up the watcher
/// concurrently; if it finds the watcher first, it never registers the icon.
pub fn announce_soon() {
    glib::timeout_add_local_once(ANNOUNCED_WITHIN, || {
        let Some(bus) = bus() else { return };
        if is_known(&bus) == Some(false) {
            // Asynchronous: before it replies, the panel may query the icon on this thread.
            glib::spawn_future_local(bus.call_future(
                Some(NAME),
                PATH,
                NAME,
                "RegisterStatusNotifierItem",
                Some(&(item_path(),).to_variant()),
                None,
                DBusCallFlags::NO_AUTO_START,
                DBUS_TIMEOUT_MS,
            ));
        }
    });
}

/// Whether an icon of this program is registered; `None` without a watcher.
fn is_known(bus: &DBusConnection) -> Option<bool> {
    let own = bus.unique_name()?;
    let items: Vec<String> = property(bus, "RegisteredStatusNotifierItems")?.get()?;
    Some(items.iter().any(|item| item.strip_prefix(own.as_str()).is_some_and(|path| path.starts_with('/'))))
}

/// Object path of the icon: named after its indicator, which the tray-icon crate names after the icon.
fn item_path() -> String {
    format!("/org/ayatana/NotificationItem/tray_icon_tray_app_{ID}")
}

fn bus() -> Option<DBusConnection> {
    bus_get_sync(BusType::Session, Cancellable::NONE).ok()
}

/// Reads a property of the watcher.
fn property(bus: &DBusConnection, name: &str) -> Option<Variant> {
    let answer = bus.call_sync(
        Some(NAME),
        PATH,
        "org.freedesktop.DBus.Properties",
        "Get",
        Some(&(NAME, name).to_variant()),
        None,
        DBusCallFlags::NO_AUTO_START,
        DBUS_TIMEOUT_MS,
        Cancellable::NONE,
    );
    answer.ok()?.get::<(Variant,)>().map(|(value,)| value)
}
