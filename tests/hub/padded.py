#!/usr/bin/env python3
"""A GGUF model of any size: another one with an additional, unused tensor of random bytes.

    python3 tests/hub/padded.py SOURCE.gguf OUT.gguf BYTES [SEED]
"""

import random
import struct
import sys

# Bytes of GGUF's kinds of values; 8 is a string, 9 an array.
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
BLOCK = 8 << 20


class Reader:
    def __init__(self, file):
        self.file = file

    def number(self, form):
        return struct.unpack("<" + form, self.file.read(struct.calcsize(form)))[0]

    def text(self):
        return self.file.read(self.number("Q"))

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            inner, count = self.number("I"), self.number("Q")
            if inner in SIZES:
                return self.file.read(SIZES[inner] * count)
            for _ in range(count):
                self.value(inner)
            return None
        return self.file.read(SIZES[kind])


def padded(source, out, n_bytes, seed=1):
    with open(source, "rb") as file:
        reader = Reader(file)
        magic, version = file.read(4), reader.number("I")
        assert magic == b"GGUF" and version >= 2, "no GGUF"
        n_tensors, n_pairs = reader.number("Q"), reader.number("Q")
        alignment = 32
        for _ in range(n_pairs):
            key, kind = reader.text(), reader.number("I")
            value = reader.value(kind)
            if key == b"general.alignment":
                alignment = struct.unpack("<I", value)[0]
        for _ in range(n_tensors):
            reader.text()
            file.read(8 * reader.number("I"))
            file.read(4 + 8)
        end_of_infos = file.tell()
        file.seek(0)
        head = bytearray(file.read(end_of_infos))
        file.seek(end_of_infos + (-end_of_infos) % alignment)
        data = file.read()
    name = b"padding.weight"
    place = len(data) + (-len(data)) % alignment
    count = max((n_bytes - len(head) - place - 4096) // 4, 1)
    head[8:16] = struct.pack("<Q", n_tensors + 1)
    head += struct.pack("<Q", len(name)) + name + struct.pack("<IQIQ", 1, count, 0, place)
    head += bytes((-len(head)) % alignment)
    dice = random.Random(seed)
    with open(out, "wb") as file:
        file.write(head + data + bytes(place - len(data)))
        left = 4 * count
        while left:
            n = min(BLOCK, left)
            file.write(dice.randbytes(n))
            left -= n
        file.write(bytes((-file.tell()) % alignment))


if __name__ == "__main__":
    padded(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 1)
