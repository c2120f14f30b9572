"""Scenarios of the updater, as far as a build without an update address has one."""

from scenario import COMPOSER, click, section
from webdriver import until

STATUS = '[data-testid="update-status"]'


def a_build_without_an_update_address_says_so_and_asks_nobody(room):
    window = room.open()
    until(lambda: window.exists(COMPOSER), "the composer is there")
    window.call("settings_set", {"key": "check_updates", "value": True})
    window.close()
    # Not even at a start with the setting on.
    window = room.open()
    until(lambda: window.exists(COMPOSER), "the composer is there")
    click(window, '[data-testid="settings-open"]')
    section(window, "About")
    until(lambda: "never checks" in window.text(STATUS), "the page says that this build never checks")
    room.look(window, "updates")
    assert not window.exists('[data-testid="update-check"]')
    info = window.call("update_info", {})
    assert (info["method"], info["package"], info["hosts"]) == ("no_address", "source", []), info
    assert window.call("connections_list", {}) == []
