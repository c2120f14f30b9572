"""Scenarios with other programs: files that are dropped or chosen in the system's dialog, the icon in the panel."""

import os

from hands import Bus, answer_dialog, hold_over, let_go, press_close, windows
from scenario import ANSWER, COMPOSER, PROGRAM, ROW, answered, ask, use_slow_model, watch_growth
from webdriver import until, wait_gone

TITLE = "Inglenook"
FILE = '[data-testid="files"] [data-testid="file"]'
# Between the edge of the window and its middle, whatever the sidebar is.
OVER_PAGE = 700, 300


def note(room, name, text):
    path = os.path.join(room.dir, name)
    with open(path, "w") as file:
        file.write(text)
    return path


def has_file(window, name, n):
    until(lambda: window.count(FILE) == n and name in window.text(FILE), f"{name} goes with the message")
    until(lambda: window.run("return document.querySelectorAll(arguments[0])[arguments[1]].dataset.state",
                             FILE, n - 1) == "ready", f"{name} was read")


def files_are_dropped_and_chosen(room):
    window = room.open()
    until(lambda: window.exists(COMPOSER), "the composer is there")
    dropped = note(room, "dropped note.txt", "The lighthouse keeper's name is Maren.\n")
    done = hold_over(room.display, dropped, *OVER_PAGE)
    try:
        until(lambda: window.exists('[data-testid="drop-zone"]'), "the page says that it takes the file")
        room.look(window, "drop-over")
        let_go(room.display)
        has_file(window, "dropped note.txt", 1)
    finally:
        done()
    until(lambda: not window.exists('[data-testid="drop-zone"]'), "the page is itself again")
    chosen = note(room, "chosen.md", "# Plan\n\nFirst the lamp, then the horn.\n")
    window.click('[data-testid="attach"]')
    answer_dialog(room.display, "Attach a file", chosen)
    has_file(window, "chosen.md", 2)
    room.look(window, "files-attached")
    ask(window, "Who keeps the light?")
    answered(window, 1)
    sent = '[data-testid="sent-files"]'
    until(lambda: "dropped note.txt" in window.text(sent) and "chosen.md" in window.text(sent), "both were sent")
    window.close()


def the_tray_keeps_a_closed_window(room):
    bus = Bus()
    try:
        bus.show_panel()
        window = room.open(env=bus.env)
        until(lambda: window.exists(COMPOSER), "the composer is there")
        assert bus.icons() == [], "there is no icon unless it is wanted"
        window.call("settings_set", {"key": "tray", "value": True})
        (icon,) = until(bus.icons, "the icon is in the panel")
        assert icon["title"] == TITLE, icon
        with open(icon["icon"], "rb") as picture:
            assert picture.read(8) == b"\x89PNG\r\n\x1a\n", icon
        assert list(bus.menu()) == ["Show Inglenook", "New chat", "Quick window", "Quit"], bus.menu()

        press_close(room.display, TITLE)
        until(lambda: not windows(room.display, TITLE), "the window is hidden")
        bus.choose("Show Inglenook")
        until(lambda: windows(room.display, TITLE), "the window is back")
        window.call("settings_set", {"key": "language", "value": "de"})
        until(lambda: list(bus.menu()) == ["Inglenook anzeigen", "Neuer Chat", "Schnellfenster", "Beenden"], "the menu speaks German")
        assert len(bus.icons()) == 1, bus.icons()

        window.call("settings_set", {"key": "tray", "value": False})
        until(lambda: bus.icons() == [], "the icon is gone")
        window.call("settings_set", {"key": "tray", "value": True})
        until(bus.icons, "and back")
        press_close(room.display, TITLE)
        until(lambda: not windows(room.display, TITLE), "the window is hidden again")
        pids = window.tree()
        bus.choose("Beenden")
        assert wait_gone(pids, 30), "the program has ended"
        window.close()
    finally:
        bus.close()


def an_icon_that_nobody_heard_of_is_announced_again(room):
    """As where the library that draws it finds the panel before it is on the bus itself, and says nothing."""
    bus = Bus()
    try:
        bus.show_panel("deaf")
        window = room.open(env=bus.env)
        until(lambda: window.exists(COMPOSER), "the composer is there")
        window.call("settings_set", {"key": "tray", "value": True})
        (icon,) = until(bus.icons, "the icon is in the panel")
        assert icon["title"] == TITLE, icon
        window.close()
    finally:
        bus.close()


def without_a_panel_a_closed_window_ends_the_program(room):
    """Also where an icon is wanted: without a panel no one could get the window back."""
    bus = Bus()
    try:
        window = room.open(env=bus.env)
        until(lambda: window.exists(COMPOSER), "the composer is there")
        window.call("settings_set", {"key": "tray", "value": True})
        # Whatever is wrong with an icon would be told by now.
        until(lambda: window.call("settings_list", {}) and not window.exists('[data-testid="toast"]'), "no complaint")
        pids = window.tree()
        press_close(room.display, TITLE)
        assert wait_gone(pids, 30), "the program has ended"
        window.close()
        # The panel goes while the window is open: from then on it is as without.
        bus.show_panel()
        window = room.open(env=bus.env)
        until(bus.icons, "the icon is there from the start")
        bus.hide_panel()
        pids = window.tree()
        press_close(room.display, TITLE)
        assert wait_gone(pids, 30), "the program has ended"
        window.close()
    finally:
        bus.close()


def without_a_tray_a_closed_window_ends_the_program(room):
    window = room.open()
    until(lambda: window.exists(COMPOSER), "the composer is there")
    pids = window.tree()
    press_close(room.display, TITLE)
    assert wait_gone(pids, 30), "the program has ended"
    window.close()


def without_a_card_the_web_view_paints_itself(room):
    """The program has restarted with what tells the web view so; to everybody else it is as it was started."""
    window = room.open()
    until(lambda: window.exists(COMPOSER), "the composer is there")
    of = lambda name: open(f"/proc/{window.program_pid()}/{name}", "rb").read().rstrip(b"\0\n").split(b"\0")
    has_card = os.path.isdir("/dev/dri") and any(it.startswith("renderD") for it in os.listdir("/dev/dri"))
    is_told = b"WEBKIT_DISABLE_DMABUF_RENDERER=1" in of("environ")
    assert is_told != has_card, f"told: {is_told}, a card: {has_card}"
    name, called = os.path.basename(PROGRAM).encode(), of("cmdline")
    assert of("comm") == [name[:15]], of("comm")
    assert os.path.basename(called[0]) == name and called[1] == b"--data-dir", called
    window.close()


def closing_in_mid_answer_is_asked_about(room):
    """Closing the window during an answer asks once; closed again, it closes."""
    window = room.open()
    use_slow_model(room, window)
    ask(window, "Tell me a long story.")
    watch_growth(window, 2)
    press_close(room.display, TITLE)
    until(lambda: window.exists('[data-testid="closing-finish"]'), "the page asks")
    room.look(window, "closing")
    window.press("Escape")
    until(lambda: not window.exists('[data-testid="closing-finish"]'), "the question is gone")
    watch_growth(window, 1)
    press_close(room.display, TITLE)
    until(lambda: window.exists('[data-testid="closing-finish"]'), "it is asked anew")
    pids = window.tree()
    press_close(room.display, TITLE)
    assert wait_gone(pids, 30), "the program has ended"
    window.close()
    window = room.open()
    until(lambda: window.count(ROW) == 1, "the conversation is there")
    window.click(ROW + " button")
    until(lambda: window.count(ANSWER + '[data-state="interrupted"]') == 1, "what was written is kept")
    window.close()
