#!/usr/bin/env python3
"""What stands on a screen, as a picture: `grab.py DISPLAY FILE`.

The driver's own screenshots wait for a frame that never comes where the web view paints without a GPU and
nothing on the page changes.
"""

import sys

import gi

gi.require_version("Gdk", "3.0")
from gi.repository import Gdk  # noqa: E402


def main():
    name, path = sys.argv[1:]
    display = Gdk.Display.open(name)
    root = display.get_default_screen().get_root_window()
    picture = Gdk.pixbuf_get_from_window(root, 0, 0, root.get_width(), root.get_height())
    picture.savev(path, "png", [], [])


main()
