#!/usr/bin/env python3
"""A hub for tests: speaks the Hugging Face hub's protocol over files of a folder, and has faults on demand.

    python3 tests/hub/server.py --root DIR        DIR/OWNER/NAME/… are its repositories

The first line on stdout is `{"listening": "http://127.0.0.1:PORT"}`. Large files come from a store on another port, as
the real hub's do. `POST /_control` takes a JSON object:

- {"faults": [{"kind": "cut", "at": 1000}, …]}: one for each of the next requests to the store, in order.
  A 429 says after how many seconds, or with "date" at what time.
- {"random": {"count": 200, "seed": 1}}: as many of random kinds, at random places.
- {"change": "OWNER/NAME/FILE"}: from now on it has another content.
- {"gate": "OWNER/NAME"}, {"accept": "TOKEN"}: a licence to accept; a token whose owner has.
- {"drop": true}: closes every answer that is being sent.
- {"down": true}: closes every connection at once, until {"down": false}.
- {"delay_ms": 20}: before each block of 64 KiB.

`GET /_stats` says what was served and which faults have happened.
"""

import argparse
import collections
import email.utils
import hashlib
import http.server
import json
import os
import random
import socket
import sys
import threading
import time
import urllib.parse

BLOCK = 64 << 10
PER_PAGE = 20
LFS_FROM = 10 << 20
KINDS = ["cut", "stall", "429", "500", "wrong_range", "no_range", "flip", "drip", "expired", "tag", "gzip", "416"]


class Hub:
    def __init__(self, root, seed):
        self.root = root
        self.lock = threading.Lock()
        self.faults = collections.deque()
        self.done = collections.Counter()
        self.random = random.Random(seed)
        self.hashes = {}
        self.versions = collections.Counter()
        self.gated, self.tokens = set(), {"hf_accepted"}
        self.served = collections.Counter()
        self.requests = collections.Counter()
        self.leaked = 0
        self.down = False
        self.n_drops = 0
        self.delay_s = 0
        self.store = None

    def repositories(self):
        for owner in sorted(os.listdir(self.root)):
            folder = os.path.join(self.root, owner)
            if os.path.isdir(folder):
                for name in sorted(os.listdir(folder)):
                    yield f"{owner}/{name}"

    def files(self, repository):
        folder = os.path.join(self.root, repository)
        for here, folders, names in os.walk(folder):
            folders.sort()
            for name in sorted(name for name in names if not name.startswith(".")):
                path = os.path.join(here, name)
                yield os.path.relpath(path, folder), os.path.getsize(path)

    def sha256(self, repository, path):
        """Of what is served now."""
        version = self.versions[f"{repository}/{path}"]
        full = os.path.join(self.root, repository, path)
        key = (full, version, os.path.getmtime(full))
        with self.lock:
            if key in self.hashes:
                return self.hashes[key]
        digest = hashlib.sha256()
        at = 0
        with open(full, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(self.altered(block, version, at))
                at += len(block)
        with self.lock:
            self.hashes[key] = digest.hexdigest()
            return self.hashes[key]

    @staticmethod
    def altered(block, version, at):
        """A later version differs in the last byte of every MiB, beyond the headers of a model."""
        if version == 0:
            return block
        block = bytearray(block)
        first = (-(at + 1)) % (1 << 20)
        for i in range(first, len(block), 1 << 20):
            block[i] ^= version & 0xFF
        return bytes(block)

    def commit(self, repository):
        told = [f"{path} {size} {self.versions[f'{repository}/{path}']}" for path, size in self.files(repository)]
        return hashlib.sha1("\n".join([repository, *told]).encode()).hexdigest()

    def is_large(self, path, size):
        return size >= LFS_FROM or path.endswith((".gguf", ".safetensors"))

    def next_fault(self):
        with self.lock:
            fault = self.faults.popleft() if self.faults else None
            if fault:
                self.done[fault["kind"]] += 1
            return fault

    def control(self, order):
        with self.lock:
            self.faults.extend(order.get("faults", []))
            if "random" in order:
                dice = random.Random(order["random"].get("seed", 1))
                kinds = order["random"].get("kinds", KINDS)
                span = order["random"].get("span", 8 << 20)
                for i in range(order["random"]["count"]):
                    kind = kinds[i % len(kinds)] if i < len(kinds) else dice.choice(kinds)
                    self.faults.append({"kind": kind, "at": dice.randrange(span)})
            if "change" in order:
                self.versions[order["change"]] += 1
            if "gate" in order:
                self.gated.add(order["gate"])
            if "accept" in order:
                self.tokens.add(order["accept"])
            self.n_drops += bool(order.get("drop"))
            self.down = order.get("down", self.down)
            self.delay_s = order.get("delay_ms", self.delay_s * 1000) / 1000
            if order.get("clear"):
                self.faults.clear()

    def stats(self):
        with self.lock:
            return {
                "served": dict(self.served), "requests": dict(self.requests), "faults": dict(self.done),
                "faults_left": len(self.faults), "leaked_tokens": self.leaked,
            }


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "TestHub/1"
    hub = None
    is_store = False
    timeout = 300

    def setup(self):
        # What lies in buffers when a connection breaks was served for nothing.
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 128 << 10)
        super().setup()

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        self.answer()

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path != "/_control":
            return self.refuse(404)
        self.hub.control(json.loads(body))
        self.json({})

    def answer(self):
        try:
            url = urllib.parse.urlsplit(self.path)
            segments = [urllib.parse.unquote(part) for part in url.path.split("/") if part]
            if url.path == "/_stats":
                return self.json(self.hub.stats())
            if self.hub.down:
                return self.drop()
            query = urllib.parse.parse_qs(url.query)
            with self.hub.lock:
                self.hub.requests["store" if self.is_store else "hub"] += 1
            if self.is_store:
                return self.from_store(segments)
            if segments[:2] == ["api", "models"]:
                return self.api(segments[2:], query)
            if len(segments) >= 5 and segments[2] == "resolve":
                return self.resolve("/".join(segments[:2]), segments[3], "/".join(segments[4:]))
            self.refuse(404)
        except (BrokenPipeError, ConnectionResetError, socket.timeout):
            self.close_connection = True

    def drop(self):
        self.close_connection = True
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    def json(self, value, headers=()):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, text in headers:
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, status, code="", headers=()):
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        for name, text in headers:
            self.send_header(name, text)
        self.send_header("Content-Length", "0")
        self.end_headers()

    # ---- the hub ----

    def api(self, segments, query):
        hub = self.hub
        if not segments:
            words = query.get("search", [""])[0].lower().split()
            found = [r for r in hub.repositories() if all(word in r.lower() for word in words)]
            for tag in query.get("filter", []):
                found = [r for r in found if tag in self.model(r)["tags"]]
            start = int(query.get("cursor", ["0"])[0])
            limit = min(int(query.get("limit", [PER_PAGE])[0]), PER_PAGE)
            page = [self.model(r) for r in found[start:start + limit]]
            return self.json(page, self.next_page(start + limit, len(found)))
        repository = "/".join(segments[:2])
        if not os.path.isdir(os.path.join(hub.root, repository)):
            return self.refuse(401 if not self.token() else 404, "RepoNotFound")
        rest = segments[2:]
        if not rest or rest[0] == "revision":
            if rest and rest[1] not in ("main", hub.commit(repository)):
                return self.refuse(404, "RevisionNotFound")
            return self.json(self.model(repository))
        if rest[0] == "tree":
            files = list(hub.files(repository))
            start = int(query.get("cursor", ["0"])[0])
            rows = [self.row(repository, path, size) for path, size in files[start:start + PER_PAGE]]
            return self.json(rows, self.next_page(start + PER_PAGE, len(files)))
        self.refuse(404)

    def next_page(self, start, count):
        if start >= count:
            return []
        url = urllib.parse.urlsplit(self.path)
        query = [(k, v) for k, v in urllib.parse.parse_qsl(url.query) if k != "cursor"] + [("cursor", start)]
        host = self.headers.get("Host")
        return [("Link", f'<http://{host}{url.path}?{urllib.parse.urlencode(query)}>; rel="next"')]

    def model(self, repository):
        card = os.path.join(self.hub.root, repository, ".facts.json")
        facts = json.load(open(card)) if os.path.exists(card) else {}
        is_gguf = any(path.endswith(".gguf") for path, _ in self.hub.files(repository))
        tags = (["gguf"] if is_gguf else ["safetensors"]) + ["license:apache-2.0"]
        return {
            "id": repository, "sha": self.hub.commit(repository), "downloads": 1000, "likes": 10,
            "lastModified": "2026-11-01T12:00:00.000Z", "pipeline_tag": "text-generation", "tags": tags,
            "gated": "auto" if repository in self.hub.gated else False, **facts,
        }

    def row(self, repository, path, size):
        row = {"type": "file", "path": path, "size": size, "oid": hashlib.sha1(path.encode()).hexdigest()}
        if self.hub.is_large(path, size):
            sha = self.hub.sha256(repository, path)
            row["lfs"] = {"oid": sha, "size": size, "pointerSize": 135}
        return row

    def token(self):
        return self.headers.get("Authorization", "").removeprefix("Bearer ")

    def resolve(self, repository, revision, path):
        hub = self.hub
        full = os.path.join(hub.root, repository, path)
        if ".." in path or not os.path.isfile(full):
            return self.refuse(404, "EntryNotFound")
        if repository in hub.gated:
            if not self.token():
                return self.refuse(401, "GatedRepo")
            if not self.token().startswith("hf_"):
                return self.refuse(401)
            if self.token() not in hub.tokens:
                return self.refuse(403, "GatedRepo")
        size = os.path.getsize(full)
        commit = ("X-Repo-Commit", hub.commit(repository))
        if not hub.is_large(path, size):
            body = open(full, "rb").read()
            self.send_response(200)
            self.send_header(*commit)
            self.send_header("ETag", f'"{hashlib.sha1(body).hexdigest()}"')
            self.send_header("Content-Length", str(size))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)
            return
        sha = hub.sha256(repository, path)
        location = f"{hub.store}/{repository}/{urllib.parse.quote(path)}?signed={int(time.time())}"
        self.refuse(302, headers=[
            commit, ("X-Linked-Etag", f'"{sha}"'), ("X-Linked-Size", str(size)), ("Location", location),
        ])

    # ---- the store ----

    def from_store(self, segments):
        hub = self.hub
        repository, path = "/".join(segments[:2]), "/".join(segments[2:])
        full = os.path.join(hub.root, repository, path)
        if self.headers.get("Authorization"):
            hub.leaked += 1
        if ".." in path or not os.path.isfile(full):
            return self.refuse(404)
        fault = hub.next_fault() or {"kind": None}
        kind, at = fault["kind"], fault.get("at", 0)
        if kind == "429":
            after = fault.get("after", 1)
            date = email.utils.formatdate(time.time() + after, usegmt=True)
            return self.refuse(429, headers=[("Retry-After", date if fault.get("date") else str(after))])
        if kind == "500":
            return self.refuse(500 + at % 4)
        if kind == "expired":
            return self.refuse(403)
        if kind == "away":
            return self.refuse(302, headers=[("Location", "file:///etc/passwd")])
        name = f"{repository}/{path}"
        version, size = hub.versions[name], os.path.getsize(full)
        tag = f'"store-{hub.sha256(repository, path)[:32]}"'
        if kind == "tag":
            tag = '"another"'
        first, last = 0, size - 1
        wanted = self.headers.get("Range", "")
        has_range = wanted.startswith("bytes=") and kind != "no_range"
        if self.headers.get("If-Range") not in (None, tag):
            has_range = False
        if has_range:
            begin, _, end = wanted[6:].partition("-")
            first, last = int(begin), min(int(end or size - 1), size - 1)
        if kind == "416" or first > last:
            return self.refuse(416, headers=[("Content-Range", f"bytes */{size}")])
        if kind == "wrong_range" and has_range:
            first = first - 1 if first else first + 1
        self.send_response(206 if has_range else 200)
        if has_range:
            self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        if kind == "gzip":
            self.send_header("Content-Encoding", "gzip")
        self.send_header("ETag", tag)
        self.send_header("Content-Length", str(last - first + 1))
        self.end_headers()
        if kind == "mute":
            return self.linger(None, name, version, first, last, False)
        if self.command != "HEAD":
            self.send_bytes(full, name, version, first, last, kind, at)

    def send_bytes(self, full, name, version, first, last, kind, at):
        hub = self.hub
        n_drops = hub.n_drops
        limit = first + at % max(last - first + 1, 1)
        with open(full, "rb") as file:
            file.seek(first)
            place = first
            while place <= last:
                if hub.down or hub.n_drops != n_drops:
                    return self.drop()
                n = min(BLOCK, last - place + 1)
                if kind in ("cut", "stall", "drip") and place <= limit < place + n:
                    n = max(limit - place, 1)
                block = hub.altered(file.read(n), version, place)
                if kind == "flip" and place <= limit < place + n:
                    block = bytearray(block)
                    block[limit - place] ^= 0x10
                self.wfile.write(block)
                place += n
                with hub.lock:
                    hub.served[name] += n
                if kind in ("cut", "stall", "drip") and place >= limit:
                    if kind == "cut":
                        return self.drop()
                    return self.linger(file, name, version, place, last, kind == "drip")
                if hub.delay_s:
                    time.sleep(hub.delay_s)

    def linger(self, file, name, version, place, last, drips):
        """Until the other side has had enough, which is its part."""
        while place <= last:
            time.sleep(0.2)
            if drips:
                block = self.hub.altered(file.read(64), version, place)
                self.wfile.write(block)
                place += len(block)
                with self.hub.lock:
                    self.hub.served[name] += len(block)
            elif not self.is_listening():
                return
        self.close_connection = True

    def is_listening(self):
        self.close_connection = True
        self.request.setblocking(False)
        try:
            return self.request.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            self.request.setblocking(True)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        pass  # a client that has gone


def listen(hub, port, is_store):
    handler = type("Of", (Handler,), {"hub": hub, "is_store": is_store})
    server = Server(("127.0.0.1", port), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    hub = Hub(args.root, args.seed)
    hub.store = listen(hub, 0, True)
    print(json.dumps({"listening": listen(hub, args.port, False)}), flush=True)
    # Ends with the process that started it.
    while sys.stdin.read(1):
        pass


if __name__ == "__main__":
    main()
