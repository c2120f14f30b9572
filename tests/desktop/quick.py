"""Scenarios of the quick window. The driver sees only the main one, so hands and eyes do the rest."""

import subprocess
import time

from hands import Bus, press_close, windows, xdotool
from scenario import ANSWERED, COMPOSER, PROGRAM, QUESTION, ROW
from webdriver import until

TITLE, QUICK = "Inglenook", "Inglenook Quick"
KEYS = {"quick-window": ["Mod+Shift+Space"]}


def press_keys(room):
    xdotool(room.display, "key", "--clearmodifiers", "ctrl+shift+space")


def type_into(room, title, text):
    """There is no window manager that gives the focus: it is given here."""
    (window,) = windows(room.display, title)
    xdotool(room.display, "windowfocus", "--sync", window)
    xdotool(room.display, "type", "--delay", "20", text)
    return window


def open_quick(room):
    def shown():
        # Until the keys are taken, a press does nothing. A second one would hide the window.
        press_keys(room)
        ends_at = time.monotonic() + 10
        while time.monotonic() < ends_at and not windows(room.display, QUICK):
            time.sleep(0.1)
        return windows(room.display, QUICK)

    until(shown, "the quick window is there", 120)


def the_quick_window_answers_and_hands_over(room):
    bus = Bus()
    try:
        bus.show_panel()
        window = room.open(env=bus.env)
        until(lambda: window.exists(COMPOSER), "the composer is there")
        press_keys(room)
        assert not windows(room.display, QUICK), "there is no quick window until keys are set"
        window.call("settings_set", {"key": "tray", "value": True})
        window.call("settings_set", {"key": "shortcuts", "value": KEYS})
        until(bus.icons, "the icon is in the panel")
        press_close(room.display, TITLE)
        until(lambda: not windows(room.display, TITLE), "the main window is hidden in the tray")

        open_quick(room)
        room.look(window, "quick-empty")

        def asked():
            # What is typed before the page listens is lost.
            type_into(room, QUICK, "")
            xdotool(room.display, "key", "ctrl+a")
            type_into(room, QUICK, "How do I add a model?")
            xdotool(room.display, "key", "Return")
            time.sleep(3)
            return window.call("conversations_list", {})

        until(asked, "the question makes a chat")

        def answer():
            (chat,) = window.call("conversations_list", {})
            last = window.call("conversation_get", {"id": chat["id"]})["messages"][-1]
            return last["role"] == "assistant" and last["state"] == "complete" and len(last["text"]) > 20

        until(answer, "it is answered", 120)
        assert not windows(room.display, TITLE), "the main window stays hidden"
        time.sleep(2)  # until the page has heard of it
        room.look(window, "quick-answered")

        xdotool(room.display, "key", "Escape")
        until(lambda: not windows(room.display, QUICK), "Escape hides it")
        open_quick(room)
        room.look(window, "quick-again")
        # The button at the end of the head.
        (quick,) = windows(room.display, QUICK)
        xdotool(room.display, "mousemove", "--window", quick, "490", "26", "click", "1")
        until(lambda: windows(room.display, TITLE), "the main window is there")
        until(lambda: not windows(room.display, QUICK), "the quick window is hidden")
        until(lambda: window.count(ROW) == 1 and window.count(QUESTION) == 1, "the chat is open there")
        until(lambda: window.count(ANSWERED) == 1, "with its answer")
        room.look(window, "quick-in-main")

        # Desktops that give no keys away start a link.
        data = ["--data-dir", f"{room.dir}/data", "inglenook://quick"]
        subprocess.run([PROGRAM, *data], env=dict(bus.env, DISPLAY=room.display.name, PATH="/usr/bin:/bin"),
                       timeout=60, check=True)
        until(lambda: windows(room.display, QUICK), "the link opens it")
        window.call("settings_set", {"key": "shortcuts", "value": {}})
        window.close()
    finally:
        bus.close()
