"""Another program's window with a file in it, which can be dragged out: `drag_source.py FILE`.

Says `ready` once it is on the screen. Needs Debian's python3-gi and gir1.2-gtk-3.0.
"""

import pathlib
import sys

import gi

gi.require_version("Gdk", "3.0")
gi.require_version("Gtk", "3.0")
from gi.repository import Gdk, Gtk  # noqa: E402

TITLE = "A file"


def main():
    uri = pathlib.Path(sys.argv[1]).absolute().as_uri()
    window = Gtk.Window(title=TITLE)
    window.set_default_size(80, 60)
    box = Gtk.EventBox()
    window.add(box)
    box.drag_source_set(Gdk.ModifierType.BUTTON1_MASK, [], Gdk.DragAction.COPY)
    box.drag_source_add_uri_targets()
    box.connect("drag-data-get", lambda _box, _context, data, _info, _time: data.set_uris([uri]))
    window.connect("map-event", lambda *_: print("ready", flush=True))
    window.move(0, 0)
    window.show_all()
    Gtk.main()


if __name__ == "__main__":
    main()
