"""What the scenarios share: how a person asks, where things stand on the page, a data folder for each."""

import os
import shutil
import tempfile
import time

import slow_model
from webdriver import Window, until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("INGLENOOK_WINDOW", os.path.join(ROOT, "target/debug/inglenook"))
STARTER = os.path.join(ROOT, "models/starter/starter.gguf")

COMPOSER = '[data-testid="composer"]'
ANSWER = '[data-testid="message-assistant"]'
ANSWERED = ANSWER + '[data-state="complete"]'
QUESTION = '[data-testid="message-user"]'
ROW = '[data-testid="conversation-row"]'
# Deep enough that an answer takes many seconds on any machine.
SLOW_TIMES = 40


def ask(window, text):
    before = window.count(ANSWER)
    window.type(COMPOSER, text)
    window.press("Enter")
    until(lambda: window.count(ANSWER) > before, "the answer has begun")


def answered(window, n):
    until(lambda: window.count(ANSWERED) >= n, f"answer {n} is complete", 120)
    return window.text(ANSWERED)


def words(text):
    """Where lines break is the page's business."""
    return " ".join(text.split())


def letters(text):
    """Marks of Markdown come and go as a text grows: a lone backtick, a list's number. Letters stay."""
    return "".join(letter for letter in text if letter.isalpha())


def click(window, selector):
    """By script: what shows itself when it is pointed at needs no pointing."""
    until(lambda: window.exists(selector), f"{selector} is there")
    window.run("document.querySelector(arguments[0]).click()", selector)


def section(window, name):
    find = ("const it = [...document.querySelectorAll('[data-testid=\"settings-section\"]')]"
            ".find((it) => it.innerText.trim() === arguments[0]); it?.click(); return it !== undefined")
    until(lambda: window.run(find, name), f"the section {name} is there")


def zoom(window):
    return next(row["value"] for row in window.call("settings_list", {}) if row["key"] == "zoom")


def menu(window, item):
    # The button shows itself when the row is pointed at; a click by script needs no pointing.
    window.run(f"document.querySelector('{ROW} [data-testid=\"conversation-menu\"]').click()")
    window.click(f'[data-testid="{item}"]')


def use_slow_model(room, window):
    path = os.path.join(room.dir, "slow.gguf")
    if not os.path.exists(path):
        slow_model.deepen(STARTER, path, SLOW_TIMES)
    until(lambda: window.exists(COMPOSER), "the composer is there")
    entry = window.call("model_add", {"path": path})
    window.call("settings_set", {"key": "model", "value": entry["id"]})
    window.call("settings_set", {"key": "threads", "value": 1})


def watch_growth(window, times):
    """Waits until the answer has grown that often; the sizes seen."""
    sizes = [0]

    def grown():
        size = len(window.text(ANSWER + " .markdown") or window.text(ANSWER))
        if size > sizes[-1]:
            sizes.append(size)
        return len(sizes) > times

    until(grown, f"the answer has grown {times} times", 120)
    return sizes


class Room:
    """The data folder of one scenario, and the windows opened on it."""

    def __init__(self, display, name, keep):
        self.display, self.name, self.keep = display, name, keep
        self.dir = tempfile.mkdtemp(prefix="inglenook-desktop-")
        self.windows = []

    def open(self, welcome=False, env=None):
        """`welcome`: the first steps, which lie over the first window of a data folder, are the scenario's to take."""
        window = Window(self.display, PROGRAM, os.path.join(self.dir, "data"), env)
        self.windows.append(window)
        if len(self.windows) == 1 and not welcome:
            window.skip_welcome()
            # Most scenarios look at what a model writes, not at the guide.
            window.call("settings_set", {"key": "guide_answers", "value": False})
        return window

    def look(self, window, what):
        if self.keep:
            time.sleep(0.5)  # until it is painted
            window.screenshot(os.path.join(self.keep, f"{what}.png"))

    def close(self):
        for window in self.windows:
            window.close()
        shutil.rmtree(self.dir, ignore_errors=True)
