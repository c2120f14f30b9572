#!/usr/bin/env python3
"""`nook serve` under clients that behave and clients that do not: `run.py --nook FILE --seconds 3600 --clients 32`.

Each client does one thing after another. It reads a whole answer, or leaves in the middle or before the first word. It
sends its body slowly, sends what is malformed or too large, or says nothing at all. Of the answers, 30 % are left.

Each request that is read to its end must have a whole answer, or a refusal that says when to come back. The time to the
first token is printed. Memory, file descriptors and threads must not grow. Resident memory is sampled in the second half
of the time. Its slope and the error of the slope are found by least squares. The last line is `N passed, M failed`.
"""

import argparse
import asyncio
import collections
import json
import math
import os
import pathlib
import random
import socket
import statistics
import struct
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "support"))
import serving

# What one client does, and how often of a hundred times.
ACTIONS = {
    "whole answer": 44, "answer in one piece": 8, "leave in the middle": 18, "leave before the first token": 8,
    "slow body": 4, "slow reader": 4, "tokens": 4, "malformed": 5, "oversized": 2, "silent": 3,
}
# A request that takes longer is lost.
REQUEST_LIMIT_S = 300
OVERSIZED_BYTES = 40 << 20
SAMPLE_S = 2
# Memory rises until the allocator has seen its largest load: for 25 minutes of an hour.
WARM_UP = 0.5
# Resident memory may grow by this much.
MAX_SLOPE_MB_PER_HOUR = 1.0
MALFORMED = [
    b"", b"{", b"null", b"[1,2", b'{"messages": 7}', b'{"messages": []}', b'{"messages": [{"role": "user"}]}',
    b'{"messages": [{"role": "nobody", "content": "x"}]}', b'{"messages": [{"role": "user", "content": "x"}], "n": -1}',
    b'{"messages": [{"role": "user", "content": "x"}], "temperature": "hot"}', b"\xff\xfe\x00", b"[" * 20000,
]
# Path, what its answer must have, and further fields.
INTERFACES = [
    ("/v1/chat/completions", "choices", {}), ("/v1/completions", "choices", {}), ("/v1/messages", "stop_reason", {}),
    ("/v1/responses", "output", {"store": False}), ("/api/chat", "message", {}), ("/api/generate", "done_reason", {}),
    ("/completion", "stop_type", {"n_predict": 24}),
]
QUESTIONS = [
    "How do I print a chat?", "Where are my chats stored?", "What does the context ring show?", "How do I use my GPU?",
    "Tell me about shortcuts.", "How do I delete a chat for good?", "What is a preset?", "How large is this model?",
]


class Lost(Exception):
    """A request that was neither answered nor refused in form."""


class Connection:
    """One HTTP/1.1 exchange: clients that misbehave need the bytes."""

    def __init__(self, port):
        self.port = port

    async def __aenter__(self):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
        return self

    async def __aexit__(self, *_):
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except OSError:
            pass

    def head(self, path, length):
        return (f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAuthorization: Bearer {serving.API_KEY}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n").encode()

    async def send(self, path, body, pause_s=0.0):
        """Sends a request; with a pause the body goes in sixteen pieces."""
        self.writer.write(self.head(path, len(body)))
        piece = len(body) if pause_s == 0 else max(1, math.ceil(len(body) / 16))
        for at in range(0, len(body), piece or 1):
            if pause_s:
                await asyncio.sleep(pause_s)
            self.writer.write(body[at:at + piece])
        await self.writer.drain()

    async def status(self):
        """The status and the headers of the answer."""
        line = await self.reader.readline()
        if not line.startswith(b"HTTP/1.1 "):
            raise Lost(f"no status line: {line[:40]!r}")
        headers = {}
        while (header := (await self.reader.readline()).strip()):
            name, _, value = header.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        return int(line.split()[1]), headers

    async def rest(self):
        return await self.reader.read(-1)

    def reset(self):
        """Ends the connection without a word, as a computer that loses its network does."""
        raw = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


class Load:
    def __init__(self, port, model, seed):
        self.port, self.model, self.dice = port, model, random.Random(seed)
        self.done, self.refused, self.lost = collections.Counter(), 0, []
        self.first_token_s = []

    def ask(self, stream, max_tokens=None):
        return json.dumps({
            "model": self.model, "stream": stream, "max_tokens": max_tokens or self.dice.randint(4, 48),
            "temperature": 0.8, "seed": self.dice.randrange(1 << 30),
            "messages": [{"role": "user", "content": self.dice.choice(QUESTIONS)}]}).encode()

    async def client(self, until):
        while time.monotonic() < until:
            name = self.dice.choices(list(ACTIONS), list(ACTIONS.values()))[0]
            try:
                await asyncio.wait_for(getattr(self, name.replace(" ", "_"))(), REQUEST_LIMIT_S)
            except (Lost, OSError, asyncio.TimeoutError, asyncio.IncompleteReadError, ValueError) as fault:
                self.lost.append(f"{name}: {type(fault).__name__} {fault}")
            self.done[name] += 1
            await asyncio.sleep(self.dice.uniform(0, 0.2))

    async def accepted(self, connection):
        """Whether the request is being answered; false if it is refused for now. Anything else is a loss."""
        status, headers = await connection.status()
        if status == 200:
            return True
        if status in (429, 503) and "retry-after" in headers:
            self.refused += 1
            await asyncio.sleep(min(float(headers["retry-after"]), 2))
            return False
        raise Lost(f"status {status}: {(await connection.rest())[:200]!r}")

    async def stream(self, connection, sent, stop_after=None, pause_s=0.0):
        """Reads events until the end or until `stop_after` of them came."""
        if not await self.accepted(connection):
            return
        n_pieces, finish = 0, None
        async for line in connection.reader:
            if not line.startswith(b"data: "):
                continue
            if line.startswith(b"data: [DONE]"):
                if finish not in ("stop", "length"):
                    raise Lost(f"the answer ended by {finish}")
                return
            choice = (json.loads(line[6:])["choices"] or [{}])[0]
            finish = choice.get("finish_reason") or finish
            if (choice.get("delta") or {}).get("content"):
                n_pieces += 1
                if n_pieces == 1 and sent is not None:
                    self.first_token_s.append(time.monotonic() - sent)
            if stop_after is not None and n_pieces >= stop_after:
                return connection.reset()
            if pause_s:
                await asyncio.sleep(pause_s)
        raise Lost("the stream broke off")

    async def whole_answer(self):
        async with Connection(self.port) as it:
            sent = time.monotonic()
            await it.send("/v1/chat/completions", self.ask(True))
            await self.stream(it, sent)

    async def answer_in_one_piece(self):
        """Through one of the interfaces."""
        path, key, more = self.dice.choice(INTERFACES)
        question, length = self.dice.choice(QUESTIONS), self.dice.randint(4, 48)
        text = {"messages": [{"role": "user", "content": question}]} if "chat" in path or "messages" in path else (
            {"input": question} if "responses" in path else {"prompt": question})
        asked = {"model": self.model, "stream": False, "max_tokens": length, "max_output_tokens": length, **text, **more}
        async with Connection(self.port) as it:
            await it.send(path, json.dumps(asked).encode())
            if await self.accepted(it):
                body = await it.rest()
                if not json.loads(body[body.index(b"{"):body.rindex(b"}") + 1]).get(key):
                    raise Lost(f"{path} has no {key}")

    async def leave_in_the_middle(self):
        async with Connection(self.port) as it:
            await it.send("/v1/chat/completions", self.ask(True, 256))
            await self.stream(it, None, stop_after=self.dice.randint(1, 12))

    async def leave_before_the_first_token(self):
        async with Connection(self.port) as it:
            await it.send("/v1/chat/completions", self.ask(True, 256))
            await asyncio.sleep(self.dice.uniform(0, 0.05))
            it.reset()

    async def slow_body(self):
        async with Connection(self.port) as it:
            await it.send("/v1/chat/completions", self.ask(True), pause_s=0.15)
            await self.stream(it, None)

    async def slow_reader(self):
        async with Connection(self.port) as it:
            await it.send("/v1/chat/completions", self.ask(True))
            await self.stream(it, None, pause_s=0.2)

    async def tokens(self):
        async with Connection(self.port) as it:
            await it.send("/tokenize", json.dumps({"content": self.dice.choice(QUESTIONS)}).encode())
            if await self.accepted(it):
                await it.rest()

    async def malformed(self):
        async with Connection(self.port) as it:
            await it.send("/v1/chat/completions", self.dice.choice(MALFORMED))
            status, _ = await it.status()
            if not 400 <= status < 500:
                raise Lost(f"a malformed request has status {status}")
            await it.rest()

    async def oversized(self):
        async with Connection(self.port) as it:
            it.writer.write(it.head("/v1/chat/completions", OVERSIZED_BYTES))
            for _ in range(8):
                if it.reader.at_eof() or it.writer.transport.is_closing():
                    break
                it.writer.write(bytes(64 << 10))
                await asyncio.sleep(0.01)
            status, _ = await it.status()
            if status != 413:
                raise Lost(f"an oversized request has status {status}")

    async def silent(self):
        """Half a head, then nothing."""
        async with Connection(self.port) as it:
            it.writer.write(it.head("/v1/chat/completions", 10)[:self.dice.randint(0, 60)])
            await asyncio.sleep(self.dice.uniform(0, 5))
            it.reset()


def processes(pid):
    """The server and what it has started."""
    found = [pid]
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            children = pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text()
        except FileNotFoundError:
            # The thread has ended meanwhile.
            continue
        for child in children.split():
            found += processes(int(child))
    return found


# Of resident memory, `file_mb` are pages of files: of the program, of models, of the database.
Sample = collections.namedtuple("Sample", "hours resident_mb file_mb descriptors threads")


def sample(pid, began):
    pages = descriptors = threads = file_pages = 0
    for it in processes(pid):
        _, resident, of_files, *_ = pathlib.Path(f"/proc/{it}/statm").read_text().split()
        pages, file_pages = pages + int(resident), file_pages + int(of_files)
        descriptors += len(os.listdir(f"/proc/{it}/fd"))
        threads += len(os.listdir(f"/proc/{it}/task"))
    mb = os.sysconf("SC_PAGE_SIZE") / 1e6
    return Sample((time.monotonic() - began) / 3600, pages * mb, file_pages * mb, descriptors, threads)


def slope(xs, ys):
    """Slope of the line of least squares, and its standard error."""
    mean_x, mean_y = statistics.fmean(xs), statistics.fmean(ys)
    spread = sum((x - mean_x) ** 2 for x in xs)
    rise = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys)) / spread
    residual = sum((y - mean_y - rise * (x - mean_x)) ** 2 for x, y in zip(xs, ys))
    return rise, math.sqrt(residual / (len(xs) - 2) / spread)


async def run(load, pid, seconds, clients):
    began = time.monotonic()
    until, warm = began + seconds, began + WARM_UP * seconds
    tasks = [asyncio.create_task(load.client(until)) for _ in range(clients)]
    samples = []
    while time.monotonic() < until:
        await asyncio.sleep(SAMPLE_S)
        if time.monotonic() > warm:
            samples.append(sample(pid, began))
    await asyncio.gather(*tasks)
    return samples


def quantile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nook", default=str(ROOT / "target/release/nook"))
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--model", default="starter")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", help="write the samples to this file")
    args = parser.parse_args()
    if args.seconds < 60:
        parser.error("a slope needs at least 60 seconds")

    checks = []
    with tempfile.TemporaryDirectory(prefix="inglenook-soak-") as data:
        nook = serving.Nook(args.nook, data, flags=())
        try:
            port = int(nook.url.rsplit(":", 1)[1])
            load = Load(port, args.model, args.seed)
            # One answer first: the worker and its model are there at rest.
            asyncio.run(load.whole_answer())
            at_rest = sample(nook.process.pid, time.monotonic())
            samples = asyncio.run(run(load, nook.process.pid, args.seconds, args.clients))
            time.sleep(10)
            after = sample(nook.process.pid, time.monotonic())
            asyncio.run(load.whole_answer())
        finally:
            serving.stop_all()

    rise, error = slope([it.hours for it in samples], [it.resident_mb for it in samples])
    n = sum(load.done.values())
    left = load.done["leave in the middle"] + load.done["leave before the first token"]
    answers = left + sum(load.done[it] for it in ("whole answer", "answer in one piece", "slow body", "slow reader"))
    print(f"{n} requests in {args.seconds} s by {args.clients} clients: " +
          ", ".join(f"{count} {name}" for name, count in load.done.most_common()))
    print(f"{left} of {answers} answers were left; {load.refused} requests were told to come back")
    print("time to the first token: " + ", ".join(
        f"p{round(part * 100)} {quantile(load.first_token_s, part) * 1000:.0f} ms" for part in (0.5, 0.9, 0.99)))
    print(f"resident memory: {samples[0].resident_mb:.1f} MB after the warm-up, {samples[-1].resident_mb:.1f} MB at the "
          f"end, slope {rise:+.2f} ± {error:.2f} MB per hour over {len(samples)} samples")
    file_rise, file_error = slope([it.hours for it in samples], [it.file_mb for it in samples])
    print(f"of it, pages of files: {samples[0].file_mb:.1f} and {samples[-1].file_mb:.1f} MB, "
          f"slope {file_rise:+.2f} ± {file_error:.2f} MB per hour")
    for fault, count in collections.Counter(load.lost).most_common(20):
        print(f"lost: {count} × {fault}")

    def check(name, holds):
        checks.append(holds)
        print(f"{'ok     ' if holds else 'FAILED '} {name}")

    check("no request is lost", not load.lost)
    check("answers were read, left and refused", all(load.done.values()) and len(load.first_token_s) > 0)
    check(f"resident memory grows by less than {MAX_SLOPE_MB_PER_HOUR} MB per hour",
          rise - 2 * error < MAX_SLOPE_MB_PER_HOUR)
    check(f"descriptors at rest: {at_rest.descriptors} before, {after.descriptors} after",
          after.descriptors <= at_rest.descriptors)
    check(f"threads at rest: {at_rest.threads} before, {after.threads} after", after.threads <= at_rest.threads)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps([it._asdict() for it in samples]))
    print(f"{sum(checks)} passed, {len(checks) - sum(checks)} failed")
    return 0 if all(checks) else 1


if __name__ == "__main__":
    sys.exit(main())
