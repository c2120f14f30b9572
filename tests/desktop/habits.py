"""Scenarios of the window itself: its first steps, its keys, its place, presets."""

import base64
import json
import os
import shutil
import subprocess

from scenario import PROGRAM, STARTER, ANSWER, COMPOSER, ROW, answered, ask, click, menu, zoom
from webdriver import until


def first_steps_then_a_chat(room):
    window = room.open(welcome=True)
    for step in range(1, 5):
        until(lambda: window.exists(f'[data-testid="welcome"][data-step="{step}"]'), f"step {step} is shown")
        room.look(window, f"welcome-{step}")
        window.click('[data-testid="welcome-next"]')
    until(lambda: not window.exists('[data-testid="welcome"]'), "the steps are over")
    ask(window, "Hello!")
    answered(window, 1)
    menu(window, "conversation-delete")
    until(lambda: window.count(ROW) == 0, "nothing is left")
    window.close()
    window = room.open()
    until(lambda: window.exists(COMPOSER), "the composer is there")
    until(lambda: window.exists('[data-testid="model-picker"]'), "the page is ready")
    assert not window.exists('[data-testid="welcome"]'), "the first steps are shown once"
    window.close()


def keys_the_palette_and_the_window_are_kept(room):
    window = room.open()
    until(lambda: window.exists(COMPOSER), "the composer is there")
    window.press("Control", "k")
    window.type('[data-testid="palette-input"]', "shortc")
    until(lambda: "shortcuts" in window.text('[data-testid="palette-row"][aria-selected="true"]'), "it is found")
    room.look(window, "palette")
    window.press("Enter")
    until(lambda: window.exists('[data-testid="shortcut-list"]'), "the list of shortcuts is open")
    click(window, '[data-testid="shortcuts-change"]')
    row = '[data-testid="shortcut-row"][data-id="models"]'
    click(window, row + ' [data-testid="shortcut-change"]')
    until(lambda: window.exists('[data-testid="shortcut-record"]'), "keys are listened for")
    # Taken from the sidebar, which is asked about first.
    window.press("Control", "b")
    click(window, '[data-testid="shortcut-take"]')
    until(lambda: window.exists(row + ' [data-testid="shortcut-reset"]'), "the keys are changed")
    room.look(window, "shortcuts")
    window.press("Control", "b")
    until(lambda: window.exists('[data-testid="models"]'), "the new keys open the models")
    window.press("Control", "=")
    until(lambda: zoom(window) == 110, "everything is larger")
    window.step("POST", "/window/rect", {"width": 980, "height": 700})
    until(lambda: window.step("GET", "/window/rect")["width"] == 980, "the window is narrower")
    window.close()
    window = room.open()
    until(lambda: window.exists(COMPOSER), "the composer is there")
    rect = window.step("GET", "/window/rect")
    assert (rect["width"], rect["height"]) == (980, 700), f"the window came back as {rect}"
    assert zoom(window) == 110
    window.press("Control", "0")
    until(lambda: zoom(window) == 100, "the usual size is back")
    window.press("Control", "b")
    until(lambda: window.exists('[data-testid="models"]'), "the keys were kept")
    window.close()


def presets_and_a_first_message(room):
    window = room.open()
    until(lambda: window.exists(COMPOSER), "the composer is there")
    window.press("Control", "Shift", "b")
    window.type('[data-testid="system-prompt"]', "Answer in one word.")
    window.type('[data-testid="option-max_tokens"]', "5")
    click(window, '[data-testid="preset-save-as"]')
    window.type('[data-testid="preset-name"]', "Terse")
    window.press("Enter")
    until(lambda: "Terse" in window.text('[data-testid="preset"]'), "the preset is kept")
    room.look(window, "preset")
    ask(window, "Hello!")
    answered(window, 1)
    conversation = window.call("conversation_get", {"id": window.call("conversations_list", {})[0]["id"]})
    assert conversation["options"]["system_prompt"] == "Answer in one word.", conversation["options"]
    assert conversation["messages"][1]["stats"]["generated_tokens"] <= 5, conversation["messages"][1]["stats"]
    click(window, '[data-testid="new-chat"]')
    until(lambda: "No preset" in window.text('[data-testid="preset"]'), "a new chat has none")
    window.press("Control", "j")
    until(lambda: "Terse" in window.text('[data-testid="preset"]'), "the keys go to the next one")
    window.close()


def what_the_desktop_asks_is_shown_in_the_one_window(room):
    """A model that is double-clicked and links that are followed start the program once more: it hands them over."""
    window = room.open()
    until(lambda: window.exists(COMPOSER), "the composer is there")

    def ask_window(*asked):
        again = [PROGRAM, "--data-dir", os.path.join(room.dir, "data"), *asked]
        done = subprocess.run(again, env=dict(os.environ, DISPLAY=room.display.name), timeout=60)
        assert done.returncode == 0, f"{asked} ended with {done.returncode}"

    draft = "return document.querySelector(arguments[0]).value"
    ask_window("inglenook://new?text=Hello%20there")
    until(lambda: window.run(draft, COMPOSER) == "Hello there", "the text is in the message box")
    assert window.count(ROW) == 0, "nothing was sent"
    model = os.path.join(room.dir, "Another one.gguf")
    shutil.copy(STARTER, model)
    ask_window(model)
    until(lambda: "Another one.gguf" in window.text('dialog[open]'), "the model is offered")
    room.look(window, "asked-model")
    window.press("Escape")
    until(lambda: not window.exists('[data-testid="import-dialog"]'), "and was not taken")
    ask_window("inglenook://models/owner/name")
    until(lambda: window.run("return document.querySelector('[data-testid=hub-search]')?.value") == "owner/name",
          "the model is looked for")
    refused = subprocess.run([PROGRAM, "inglenook://nowhere"], env=dict(os.environ, DISPLAY=room.display.name),
                             capture_output=True, text=True, timeout=60)
    assert refused.returncode == 2 and "can't open the link" in refused.stderr, refused
    window.close()


def a_link_opens_in_the_browser_when_the_user_says_so(room):
    """BROWSER names a program that writes down what it is given."""
    browser, opened = os.path.join(room.dir, "browser.sh"), os.path.join(room.dir, "opened")
    with open(browser, "w") as file:
        file.write(f'#!/bin/sh\necho "$@" >> {opened}\n')
    os.chmod(browser, 0o755)
    window = room.open(env={"BROWSER": browser})
    until(lambda: window.exists(COMPOSER), "the composer is there")
    address = "https://example.org/a?b=c&d=%20#e"
    messages = [
        {"id": "q", "parent": None, "role": "user", "text": "Where?", "state": "complete", "created_ms": 1},
        {"id": "a", "parent": "q", "role": "assistant", "text": f"[Here]({address})", "state": "complete", "created_ms": 2},
    ]
    one = {"id": "links", "title": "Links", "model": "starter", "messages": messages, "leaf": "a"}
    file = json.dumps({"format": "inglenook.conversations", "version": 1, "conversations": [one]})
    window.call("import_bytes", {"base64": base64.b64encode(file.encode()).decode()})
    click(window, ROW + " button")
    click(window, ANSWER + " [data-url]")
    until(lambda: window.text('[data-testid="link-url"]') == address, "the address is shown first")
    room.look(window, "link")
    assert not os.path.exists(opened), "nothing is opened unasked"
    click(window, '[data-testid="link-open"]')
    until(lambda: os.path.exists(opened) and open(opened).read() == address + "\n", "the browser has the address")
    os.remove(browser)
    click(window, ANSWER + " [data-url]")
    click(window, '[data-testid="link-open"]')
    until(lambda: "No program could be opened" in window.text("body"), "a browser that does not start is told")
    window.close()


def a_model_that_nook_adds_appears(room):
    """Without a restart: the window asks again whenever it gets the focus."""
    window = room.open()
    until(lambda: window.exists(COMPOSER), "the composer is there")
    window.press("Control", "2")
    rows = '[data-testid="model-row"]'
    until(lambda: window.count(rows) == 1, "only the built-in model is listed")
    model = os.path.join(room.dir, "added.gguf")
    shutil.copy(STARTER, model)
    nook = [os.path.join(os.path.dirname(PROGRAM), "nook"), "--data-dir", os.path.join(room.dir, "data")]
    subprocess.run([*nook, "models", "add", model], check=True, stdout=subprocess.DEVNULL, timeout=60)
    window.run("dispatchEvent(new Event('focus'))")
    until(lambda: window.count(rows) == 2, "the model is listed")
    window.close()
