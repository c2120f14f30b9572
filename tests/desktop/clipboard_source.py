"""Another program that has copied something: `clipboard_source.py picture|file FILE`, as a screenshot tool or a file manager.

Says `ready` once the clipboard has it, and keeps it there until it is ended. Needs Debian's python3-gi and gir1.2-gtk-3.0.
"""

import pathlib
import sys

import gi

gi.require_version("Gdk", "3.0")
gi.require_version("Gtk", "3.0")
from gi.repository import Gdk, GdkPixbuf, Gtk  # noqa: E402

# A file manager offers the path as a text as well.
FILE_TARGETS = ["text/uri-list", "text/plain;charset=utf-8", "UTF8_STRING"]


def copy_picture(path):
    Gtk.Clipboard.get(Gdk.SELECTION_CLIPBOARD).set_image(GdkPixbuf.Pixbuf.new_from_file(path))


def copy_file(path):
    owner = Gtk.Invisible()
    for number, target in enumerate(FILE_TARGETS):
        Gtk.selection_add_target(owner, Gdk.SELECTION_CLIPBOARD, Gdk.Atom.intern(target, False), number)

    def give(_owner, data, number, _time):
        if FILE_TARGETS[number] == "text/uri-list":
            data.set_uris([pathlib.Path(path).absolute().as_uri()])
        else:
            data.set_text(path, -1)

    owner.connect("selection-get", give)
    Gtk.selection_owner_set(owner, Gdk.SELECTION_CLIPBOARD, Gdk.CURRENT_TIME)


def main():
    kind, path = sys.argv[1:]
    {"picture": copy_picture, "file": copy_file}[kind](path)
    print("ready", flush=True)
    Gtk.main()


if __name__ == "__main__":
    main()
