"""What happens to the window from outside the page: other programs' files, the keyboard in the system's own dialogs, the
desktop's button that closes it, the panel with its icons."""

import ctypes
import json
import os
import subprocess
import time

from webdriver import PYTHON, end, until

HERE = os.path.dirname(os.path.abspath(__file__))
DELETE, PROTOCOLS, CLIENT_MESSAGE = b"WM_DELETE_WINDOW", b"WM_PROTOCOLS", 33


def xdotool(display, *args):
    """What it says; nothing where it finds nothing."""
    env = dict(os.environ, DISPLAY=display.name)
    return subprocess.run(["xdotool", *args], env=env, capture_output=True, text=True, timeout=60).stdout.strip()


def windows(display, title):
    """Numbers of the windows of that title that are on the screen."""
    return xdotool(display, "search", "--onlyvisible", "--name", f"^{title}$").split()


class Message(ctypes.Structure):
    """XClientMessageEvent, with the room that XEvent has."""
    _fields_ = [
        ("type", ctypes.c_int), ("serial", ctypes.c_ulong), ("send_event", ctypes.c_int),
        ("display", ctypes.c_void_p), ("window", ctypes.c_ulong), ("message_type", ctypes.c_ulong),
        ("format", ctypes.c_int), ("data", ctypes.c_long * 5), ("room", ctypes.c_long * 24),
    ]


def press_close(display, title):
    """As the button of a title bar does: the window is asked to close."""
    (window,) = windows(display, title)
    x11 = ctypes.CDLL("libX11.so.6")
    x11.XOpenDisplay.restype = ctypes.c_void_p
    x11.XInternAtom.restype = ctypes.c_ulong
    x11.XInternAtom.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
    x11.XSendEvent.argtypes = [ctypes.c_void_p, ctypes.c_ulong, ctypes.c_int, ctypes.c_long, ctypes.c_void_p]
    x11.XCloseDisplay.argtypes = [ctypes.c_void_p]
    screen = x11.XOpenDisplay(display.name.encode())
    assert screen, f"the display {display.name} can't be opened"
    message = Message(type=CLIENT_MESSAGE, window=int(window), format=32)
    message.message_type = x11.XInternAtom(screen, PROTOCOLS, 0)
    message.data[0] = x11.XInternAtom(screen, DELETE, 0)
    x11.XSendEvent(screen, int(window), 0, 0, ctypes.byref(message))
    x11.XCloseDisplay(screen)


def hold_over(display, file, x, y):
    """Another program's file is taken and held over the screen there; what ends that program."""
    env = dict(os.environ, DISPLAY=display.name, GDK_BACKEND="x11", NO_AT_BRIDGE="1")
    source = subprocess.Popen([PYTHON, os.path.join(HERE, "drag_source.py"), file], env=env,
                              stdout=subprocess.PIPE, text=True)
    assert source.stdout.readline() == "ready\n", "the other window is there"
    xdotool(display, "mousemove", "20", "20", "mousedown", "1")
    # A drag begins only after some way.
    for step in range(1, 6):
        xdotool(display, "mousemove", str(20 + step * 8), str(20 + step * 4))
    xdotool(display, "mousemove", str(x), str(y))
    return lambda: end(source)


def copy(display, kind, file):
    """Another program copies a picture or a file; what ends that program."""
    env = dict(os.environ, DISPLAY=display.name, GDK_BACKEND="x11", NO_AT_BRIDGE="1")
    source = subprocess.Popen([PYTHON, os.path.join(HERE, "clipboard_source.py"), kind, file], env=env,
                              stdout=subprocess.PIPE, text=True)
    assert source.stdout.readline() == "ready\n", f"the {kind} is copied"
    return lambda: end(source)


def let_go(display):
    xdotool(display, "mouseup", "1")


def answer_dialog(display, title, path):
    """Writes the path into the system's file dialog of that title."""
    until(lambda: windows(display, title), f"the dialog {title} is there")

    def gone_after(key):
        xdotool(display, "key", key)
        ends_at = time.monotonic() + 3
        while windows(display, title):
            if time.monotonic() > ends_at:
                return False
            time.sleep(0.1)
        return True

    def taken():
        # What is typed before the dialog listens is lost: then it is typed again, over what came of it.
        for dialog in windows(display, title):
            xdotool(display, "windowfocus", "--sync", dialog)
            xdotool(display, "key", "ctrl+a")
            # A slash opens the line for a path.
            xdotool(display, "type", "--delay", "20", path)
        # The first may only end the list of what the path could go on with.
        return gone_after("Return") or gone_after("Return")

    until(taken, f"the dialog {title} has taken {path}", limit_s=120)


class Bus:
    """A session of a desktop that has a bus; with a panel where one is wanted."""

    def __init__(self):
        self.process = subprocess.Popen(
            ["dbus-daemon", "--session", "--nofork", "--print-address=1"], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
        )
        self.env = {"DBUS_SESSION_BUS_ADDRESS": self.process.stdout.readline().strip()}
        self.panel = None

    def show_panel(self, *options):
        self.panel = subprocess.Popen(
            [PYTHON, os.path.join(HERE, "tray_host.py"), *options], env=dict(os.environ, **self.env),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        assert self.panel.stdout.readline() == "ready\n", "the panel is there"

    def hide_panel(self):
        end(self.panel)
        self.panel = None

    def icons(self):
        """Those that the panel shows."""
        icons = self.ask_panel("look")
        return [icon for icon in icons if icon["status"] == "Active"] if isinstance(icons, list) else []

    def menu(self):
        """Entries of the one icon's menu by their label, separators left out."""
        icons = self.icons()
        return {entry["label"]: entry["id"] for entry in icons[0]["menu"] if "label" in entry} if icons else {}

    def choose(self, label):
        self.ask_panel(f"choose {self.menu()[label]}")

    def ask_panel(self, line):
        print(line, file=self.panel.stdin, flush=True)
        return json.loads(self.panel.stdout.readline())

    def close(self):
        if self.panel:
            end(self.panel)
        end(self.process)
