"""A panel without a picture: gathers the icons of programs by D-Bus, as desktops do, and says what it was told.

    tray_host.py        reads `look` and `choose ID` line by line, answers each with a line of JSON
    tray_host.py deaf   the same, but does not take in what is announced first

`look`: of every icon its title, status, picture and menu. `choose`: the entry of the last icon with that number is
chosen. Says `ready` once programs find it. Needs Debian's python3-gi.
"""

import json
import sys

from gi.repository import Gio, GLib

NAME, PATH = "org.kde.StatusNotifierWatcher", "/StatusNotifierWatcher"
ITEM, MENU = "org.kde.StatusNotifierItem", "com.canonical.dbusmenu"
WATCHER = f"""
<node><interface name="{NAME}">
  <method name="RegisterStatusNotifierItem"><arg type="s" direction="in"/></method>
  <method name="RegisterStatusNotifierHost"><arg type="s" direction="in"/></method>
  <property name="RegisteredStatusNotifierItems" type="as" access="read"/>
  <property name="IsStatusNotifierHostRegistered" type="b" access="read"/>
  <property name="ProtocolVersion" type="i" access="read"/>
  <signal name="StatusNotifierItemRegistered"><arg type="s"/></signal>
  <signal name="StatusNotifierHostRegistered"/>
</interface></node>
"""
LIMIT_MS = 10_000


class Host:
    def __init__(self, bus, n_unheard):
        self.bus, self.items, self.n_unheard = bus, [], n_unheard
        watcher = Gio.DBusNodeInfo.new_for_xml(WATCHER).interfaces[0]
        bus.register_object(PATH, watcher, self.called, self.asked, None)

    def called(self, _bus, sender, _path, _interface, method, args, answer):
        (service,) = args.unpack()
        if method == "RegisterStatusNotifierItem":
            # A program names its path on the bus, or its name there.
            item = (sender, service) if service.startswith("/") else (service, "/StatusNotifierItem")
            if self.n_unheard > 0:
                self.n_unheard -= 1
            elif item not in self.items:
                self.items.append(item)
        answer.return_value(None)

    def asked(self, _bus, _sender, _path, _interface, name):
        return {
            "RegisteredStatusNotifierItems": GLib.Variant("as", ["".join(item) for item in self.items]),
            "IsStatusNotifierHostRegistered": GLib.Variant("b", True),
            "ProtocolVersion": GLib.Variant("i", 0),
        }[name]

    def call(self, item, interface, method, args, path=None):
        owner, own_path = item
        flags = Gio.DBusCallFlags.NONE
        answer = self.bus.call_sync(owner, path or own_path, interface, method, args, None, flags, LIMIT_MS, None)
        return answer.unpack()

    def look(self):
        return [self.shown(item) for item in self.items if self.is_there(item)]

    def is_there(self, item):
        args = GLib.Variant("(s)", (item[0],))
        bus = ("org.freedesktop.DBus", "/org/freedesktop/DBus")
        return self.call(bus, "org.freedesktop.DBus", "NameHasOwner", args)[0]

    def shown(self, item):
        (told,) = self.call(item, "org.freedesktop.DBus.Properties", "GetAll", GLib.Variant("(s)", (ITEM,)))
        layout = GLib.Variant("(iias)", (0, -1, []))
        _, (_, _, entries) = self.call(item, MENU, "GetLayout", layout, told["Menu"])
        menu = [{"id": number, **about} for number, about, _ in entries]
        return {"title": told["Title"], "status": told["Status"], "icon": told["IconName"], "menu": menu}

    def choose(self, number):
        item = [item for item in self.items if self.is_there(item)][-1]
        (told,) = self.call(item, "org.freedesktop.DBus.Properties", "GetAll", GLib.Variant("(s)", (ITEM,)))
        event = GLib.Variant("(isvu)", (number, "clicked", GLib.Variant("i", 0), 0))
        self.call(item, MENU, "Event", event, told["Menu"])


def main():
    bus, loop = Gio.bus_get_sync(Gio.BusType.SESSION, None), GLib.MainLoop()
    host = Host(bus, 1 if sys.argv[1:] == ["deaf"] else 0)

    def line(stream, _condition):
        asked = stream.readline().split()
        if not asked:
            loop.quit()
            return False
        try:
            answer = host.look() if asked[0] == "look" else host.choose(int(asked[1]))
        except GLib.Error as error:
            answer = {"error": error.message}
        print(json.dumps(answer), flush=True)
        return True

    GLib.io_add_watch(sys.stdin, GLib.PRIORITY_DEFAULT, GLib.IOCondition.IN | GLib.IOCondition.HUP, line)
    Gio.bus_own_name_on_connection(
        bus, NAME, Gio.BusNameOwnerFlags.NONE, lambda *_: print("ready", flush=True), lambda *_: loop.quit(),
    )
    loop.run()


if __name__ == "__main__":
    main()
