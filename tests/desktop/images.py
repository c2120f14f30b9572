"""Pictures with messages in the real window: pasted from another program's clipboard, dropped, opened, branched, exported,
and gone with their chats."""

import base64
import os

from hands import answer_dialog, copy, hold_over, let_go, windows, xdotool
from outside import FILE, OVER_PAGE, TITLE
from scenario import ANSWERED, COMPOSER, QUESTION, ROOT, ROW, answered, click, menu
from webdriver import until

FOLDER = os.path.join(ROOT, "tests/reference/vision")
COPIED = os.path.join(FOLDER, "images/gradient.png")
DROPPED = os.path.join(FOLDER, "images/text_palette.png")
THUMB = '[data-testid="image-thumb"]'
READY = FILE + '[data-state="ready"] img'
# Bytes from a file's end: its beginning is that of other pictures, too.
TAIL = 48


def paste(room, window, kind, name):
    done = copy(room.display, kind, COPIED)
    try:
        window.click(COMPOSER)
        xdotool(room.display, "windowfocus", "--sync", windows(room.display, TITLE)[0])
        xdotool(room.display, "key", "ctrl+v")
        until(lambda: window.exists(READY) and name in window.text(FILE), f"the pasted {kind} was read")
    finally:
        done()


def paste_and_send(room, window):
    """WebKitGTK gives a page neither copied files nor copied pictures."""
    paste(room, window, "file", "gradient.png")
    assert window.run(f"return document.querySelector('{COMPOSER}').value") == "", "its path is no text"
    click(window, FILE + ' [data-testid="file-remove"]')
    until(lambda: not window.exists(FILE), "the file is not wanted after all")
    paste(room, window, "picture", "Pasted image")
    # The built-in model can't see: another one is offered.
    click(window, '[data-testid="step-seeing"]')
    until(lambda: "tokens" in window.text('[data-testid="file-detail"]'), "its tokens are counted")
    room.look(window, "image-pasted")
    window.press("Enter")
    answered(window, 1)


def drop_and_send(room, window):
    done = hold_over(room.display, DROPPED, *OVER_PAGE)
    try:
        until(lambda: window.exists('[data-testid="drop-zone"]'), "the page says that it takes the picture")
        let_go(room.display)
        until(lambda: window.exists(READY), "the dropped picture was read")
    finally:
        done()
    window.type(COMPOSER, "And this?")
    window.press("Enter")
    answered(window, 2)


def show_original(room, window):
    click(window, THUMB)
    original = '[data-testid="image-original"]'
    until(lambda: window.run(f"return document.querySelector('{original}')?.naturalWidth > 0"), "the original is shown")
    room.look(window, "image-opened")
    window.press("Escape")
    until(lambda: not window.exists(original), "and closed")


def export(room, window):
    """The open chat as Markdown."""
    path = os.path.join(room.dir, "exported.md")
    menu(window, "conversation-export")
    window.click('[data-testid="export-md"]')
    answer_dialog(room.display, "Save", path)
    until(lambda: os.path.exists(path), "the chat is exported")
    with open(path, encoding="utf-8") as file:
        return file.read()


def files_with(folder, wanted):
    """Files below a folder that have these bytes."""
    found = []
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            # A socket is no file to read.
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    if wanted in file.read():
                        found.append(path)
    return found


def delete_all_for_good(window):
    for left in (1, 0):
        menu(window, "conversation-delete")
        until(lambda: window.count(ROW) == left, f"{left} chats are left")
    click(window, '[data-testid="trash-open"]')
    until(lambda: window.count('[data-testid="trash-row"]') == 2, "both are in the trash")
    click(window, '[data-testid="trash-empty"]')
    click(window, '[data-testid="forget-confirm"]')
    until(lambda: not window.exists('[data-testid="trash-row"]'), "the trash is empty")


def images_go_with_messages(room):
    data = os.path.join(room.dir, "data")
    window = room.open()
    until(lambda: window.exists(COMPOSER), "the composer is there")
    window.call("settings_set", {"key": "titles", "value": False})
    window.call("settings_set", {"key": "max_tokens", "value": 8})
    window.call("model_add", {"path": os.path.join(FOLDER, "gemma3")})
    paste_and_send(room, window)
    drop_and_send(room, window)
    window.close()

    window = room.open()
    click(window, ROW + " button")
    until(lambda: window.count(THUMB + " img") == 2, "both pictures are there again")
    show_original(room, window)
    with open(DROPPED, "rb") as file:
        dropped = file.read()
    thumbnails = window.run(f"return [...document.querySelectorAll('{THUMB} img')].map((it) => it.src)")
    kept = [dropped[-TAIL:], *(url[-TAIL:].encode() for url in thumbnails)]
    for at, wanted in enumerate(kept):
        assert files_with(data, wanted), f"{at} is kept"

    click(window, f'{ANSWERED} [data-testid="message-menu"]')
    click(window, '[data-testid="message-branch"]')
    until(lambda: window.count(ROW) == 2 and window.count(QUESTION) == 1, "the branch has the first message")
    markdown = export(room, window)
    # What another program copies has no name, and is compressed again on its way.
    assert markdown.count("]: data:image/png;base64,") == 1, markdown[:400]
    assert base64.b64encode(dropped).decode() not in markdown, "the branch ends before the second picture"
    delete_all_for_good(window)
    for at, wanted in enumerate(kept):
        assert not files_with(data, wanted), f"{at} is deleted for good, but still in {files_with(data, wanted)}"
    window.close()
