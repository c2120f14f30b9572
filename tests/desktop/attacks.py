"""Hostile texts in an opened chat, hostile links, runaway answers: the window shows them, and nothing happens."""

import base64
import json
import os
import subprocess

from scenario import ANSWER, COMPOSER, PROGRAM, QUESTION, ROOT, ROW, click
from webdriver import until

SCROLLER = '[role="region"][aria-label="Chat"]'
RUNAWAY_CHARS = 100_000
# Lines that take their height on the page: further ones are a long way to scroll.
RUNAWAY_BLOCKS = 5_000
# What a chat asks for when it is opened, and the page from time to time.
OPENING_CALLS = {"conversation_get", "conversation_prefetch", "machine_memory", "models_list", "server_state"}

# Writes down whatever a payload could do. Calls of the program travel by `fetch`, which only the policy's `ipc:` lets out.
WATCH = """
  window.__seen = { ran: [], calls: [], violations: [] };
  for (const name of ['alert', 'confirm', 'prompt', 'open', 'print']) window[name] = () => { __seen.ran.push(name) };
  document.addEventListener('securitypolicyviolation', (it) => __seen.violations.push(`${it.violatedDirective} ${it.blockedURI}`));
  const send = window.fetch;
  window.fetch = (url, options) => {
    const command = decodeURIComponent(new URL(url).pathname.slice(1));
    __seen.calls.push(command === 'call' ? JSON.parse(options.body).name : `${command} ${new URL(url).host}`);
    return send(url, options);
  };
"""

# One view further down: opens what is folded, draws diagrams, wakes handlers; what must not be there.
STEP = """
  const [scroller, done] = arguments;
  const area = document.querySelector(scroller);
  for (const it of area.querySelectorAll('details')) it.open = true;
  for (const it of area.querySelectorAll('[data-testid="diagram-draw"]:not([data-tried])')) { it.dataset.tried = '1'; it.click(); }
  const events = ['error', 'load', 'focus', 'mouseover', 'pointerenter', 'animationstart', 'toggle', 'begin'];
  for (const it of area.querySelectorAll('.md *, .bubble')) for (const name of events) it.dispatchEvent(new Event(name));
  const forbidden = 'script,iframe,object,embed,svg,link,style,meta,base,form,input,video,audio,[href],[style],[srcdoc],[id],[name],img:not([src^="blob:"])';
  const found = [...area.querySelectorAll('.md')].flatMap((it) => [...it.querySelectorAll(forbidden)]).map((it) => it.outerHTML.slice(0, 200));
  const atEnd = area.scrollTop + area.clientHeight >= area.scrollHeight - 2;
  area.scrollTop += area.clientHeight / 2;
  requestAnimationFrame(() => requestAnimationFrame(() => done({ found, atEnd })));
"""

# One view further up, and the questions that are shown there.
UP = """
  const [scroller, question, done] = arguments;
  const area = document.querySelector(scroller);
  const atTop = area.scrollTop <= 0;
  area.scrollTop -= area.clientHeight * 0.8;
  requestAnimationFrame(() => requestAnimationFrame(() => done({
    atTop,
    questions: [...document.querySelectorAll(question)].map((it) => /Question \\d+/.exec(it.innerText)?.[0]).filter(Boolean),
  })));
"""


def a_hostile_chat_does_nothing(room):
    window = room.open()
    until(lambda: window.exists(COMPOSER), "the composer is there")
    made = subprocess.run(["node", os.path.join(ROOT, "tests/browser/hostile.mjs")], capture_output=True, check=True)
    summary = window.call("import_bytes", {"base64": base64.b64encode(made.stdout).decode()})
    assert summary["failures"] == [], summary["failures"]
    hostile = next(it["id"] for it in summary["conversations"] if it["title"].startswith("Hostile"))
    until(lambda: window.count(ROW) > 10, "the conversations are listed")
    here, handles = window.run("return location.href"), window.step("GET", "/window/handles")
    window.run(WATCH)
    click(window, f'{ROW}[data-id="{hostile}"] button')
    until(lambda: window.exists(ANSWER), "the chat is open")
    window.run("document.querySelector(arguments[0]).scrollTop = 0", SCROLLER)
    for _ in range(2_000):
        step = window.step("POST", "/execute/async", {"script": STEP, "args": [SCROLLER]})
        assert step["found"] == [], step["found"][:3]
        if step["atEnd"]:
            break
    else:
        raise AssertionError("the chat has no end")
    room.look(window, "hostile")
    seen = window.run("return window.__seen")
    assert seen["ran"] == [] and seen["violations"] == [], seen
    assert "conversation_get" in seen["calls"], f"the watched calls lack the first one: {seen}"
    assert set(seen["calls"]) <= OPENING_CALLS, set(seen["calls"]) - OPENING_CALLS
    assert window.run("return location.href") == here, "the page went away"
    assert window.step("GET", "/window/handles") == handles, "another window was opened"
    window.close()


def a_runaway_answer_blanks_nothing(room):
    window = room.open()
    until(lambda: window.exists(COMPOSER), "the composer is there")
    units = [">", "> - ", "- ", "**a ", "[", "<sub>", "$a", "# a\n"]
    answers = [unit * (RUNAWAY_CHARS // len(unit)) for unit in units]
    answers += [unit * RUNAWAY_BLOCKS for unit in ("a\n=\n", "a\n\n")] + ["Calm **end**."]
    messages = []
    for n, text in enumerate(answers):
        common = {"state": "complete", "created_ms": n}
        parent = f"a{n - 1}" if n else None
        messages.append({**common, "id": f"q{n}", "parent": parent, "role": "user", "text": f"Question {n}"})
        messages.append({**common, "id": f"a{n}", "parent": f"q{n}", "role": "assistant", "text": text})
    one = {"id": "runaway", "title": "Runaway", "model": "starter", "messages": messages, "leaf": messages[-1]["id"]}
    file = json.dumps({"format": "inglenook.conversations", "version": 1, "conversations": [one]})
    window.call("import_bytes", {"base64": base64.b64encode(file.encode()).decode()})
    click(window, ROW + " button")
    until(lambda: window.exists(ANSWER + " strong") and window.text(ANSWER + " strong") == "end", "the last answer is shown")
    shown = set()
    for _ in range(5_000):
        step = window.step("POST", "/execute/async", {"script": UP, "args": [SCROLLER, QUESTION]})
        shown.update(step["questions"])
        if step["atTop"]:
            break
    assert shown == {f"Question {n}" for n in range(len(answers))}, shown
    room.look(window, "runaway")
    window.close()


def a_hostile_link_only_asks(room):
    window = room.open()
    until(lambda: window.exists(COMPOSER), "the composer is there")
    window.run(WATCH)

    def follow(link):
        again = [PROGRAM, "--data-dir", os.path.join(room.dir, "data"), link]
        done = subprocess.run(again, env=dict(os.environ, DISPLAY=room.display.name), capture_output=True, timeout=60)
        return done.returncode

    for link in ["inglenook://chat/..%2f..%2fetc", "inglenook://tools/add?command=calc", "inglenook://api/send?text=x",
                 "https://evil.example/x.gguf", "file://evil.example/x.gguf", "file:///m/..%2f..%2fx.gguf"]:
        assert follow(link) == 2, f"{link} was taken"
    draft = "return document.querySelector(arguments[0]).value"
    assert follow("inglenook://new?text=%3Cimg%20src=x%20onerror=alert(1)%3E&send=true") == 0
    until(lambda: "onerror" in window.run(draft, COMPOSER), "the text waits in the message box")
    assert follow("inglenook://chat/no-such-chat") == 0
    assert follow(os.path.join(room.dir, "nowhere", "no.gguf")) == 0
    until(lambda: "no.gguf" in window.text("dialog[open]"), "the model is asked about")
    assert window.count(ROW) == 0, "nothing was sent"
    seen = window.run("return window.__seen")
    acted = [it for it in seen["calls"] if it.startswith(("send", "model_add", "model_import", "download", "tool"))]
    assert seen["ran"] == [] and acted == [], seen
    window.close()
