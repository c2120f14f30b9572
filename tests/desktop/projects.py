"""Projects in the real window: a folder gives its new chats instructions and files."""

import base64

from scenario import ANSWERED, COMPOSER, ROW, answered, ask, click
from webdriver import until


def a_chat_begins_in_a_project(room):
    window = room.open()
    until(lambda: window.exists(COMPOSER), "the composer is there")
    folder = window.call("folder_add", {"name": "Harbour"})["id"]
    head = '[data-testid="folder-menu"]'
    click(window, head)
    click(window, '[data-testid="folder-project"]')
    until(lambda: window.exists('[data-testid="project-instructions"]'), "the project is open")
    window.type('[data-testid="project-instructions"]', "Answer as the harbour master.")
    room.look(window, "project")
    click(window, '[data-testid="project-save"]')
    until(lambda: not window.exists('[data-testid="project"]'), "it is saved")
    text = base64.b64encode(b"High water is at six.\n").decode()
    window.call("project_file_add", {"folder": folder, "name": "tides.txt", "base64": text})

    click(window, head)
    click(window, '[data-testid="folder-new-chat"]')
    until(lambda: window.exists('[data-testid="project-open"]'), "the new chat lies in the project")
    assert "Harbour" in window.text('[data-testid="project-note"]')
    ask(window, "When is high water?")
    answered(window, 1)
    until(lambda: window.count('[data-testid="folder"] ' + ROW) == 1, "the chat lies in the folder")
    assert "from the project" in window.text('[data-testid="sent-files"]')
    click(window, '[data-testid="context-ring"]')
    until(lambda: window.exists('[data-testid="context-project"]'), "the context names the project")
    room.look(window, "project-context")
    window.close()

    window = room.open()
    until(lambda: window.count(ROW) == 1, "the chat is in the list")
    kept = window.call("conversations_list", {})[0]
    options = window.call("conversation_get", {"id": kept["id"]})["options"]
    assert (kept["folder"], options["project"]) == (folder, folder), options
    assert options["system_prompt"] == "Answer as the harbour master."
    window.click(ROW + " button")
    until(lambda: window.count(ANSWERED) == 1, "and has its answer")
    window.close()
