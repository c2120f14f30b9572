"""A model that takes its time: the starter's layers many times over, and no token that ends an answer.

What it says is noise; that it says it for long is what a test of stopping, killing or watching needs.
Standard library only.
"""

import struct
import sys

ALIGN = 32
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, ARRAY, U32 = 8, 9, 4
TURN_END = b"<|im_end|>"


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, form):
        (value,) = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def string(self):
        length = self.number("Q")
        self.at += length
        return bytes(self.data[self.at - length:self.at])

    def skip(self, kind):
        if kind == STRING:
            self.string()
        elif kind == ARRAY:
            of, count = self.number("I"), self.number("Q")
            if of in SIZES:
                self.at += SIZES[of] * count
            else:
                for _ in range(count):
                    self.skip(of)
        else:
            self.at += SIZES[kind]


def read(path):
    with open(path, "rb") as file:
        r = Reader(file.read())
    assert r.number("I") == 0x46554747, "not a GGUF"
    r.number("I")
    n_tensors, n_keys = r.number("Q"), r.number("Q")
    keys = {}
    for _ in range(n_keys):
        name, kind = r.string().decode(), r.number("I")
        start = r.at
        r.skip(kind)
        keys[name] = (kind, r.data[start:r.at])
    tensors = []
    for _ in range(n_tensors):
        name = r.string().decode()
        shape = [r.number("Q") for _ in range(r.number("I"))]
        tensors.append([name, shape, r.number("I"), r.number("Q")])
    base = -(-r.at // ALIGN) * ALIGN
    ends = sorted([t[3] for t in tensors] + [len(r.data) - base])
    for tensor in tensors:
        offset = tensor[3]
        tensor[3] = r.data[base + offset:base + ends[ends.index(offset) + 1]]
    return keys, tensors


def write(path, keys, tensors):
    string = lambda text: struct.pack("<Q", len(text.encode())) + text.encode()
    head = struct.pack("<IIQQ", 0x46554747, 3, len(tensors), len(keys))
    head += b"".join(string(name) + struct.pack("<I", kind) + value for name, (kind, value) in keys.items())
    offset = 0
    for name, shape, kind, data in tensors:
        head += string(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
        head += struct.pack("<IQ", kind, offset)
        offset += -(-len(data) // ALIGN) * ALIGN
    with open(path, "wb") as file:
        file.write(head + b"\0" * (-len(head) % ALIGN))
        for *_, data in tensors:
            file.write(data + b"\0" * (-len(data) % ALIGN))


def deepen(source, target, times):
    """Writes `source` with its layers repeated `times` times over."""
    keys, tensors = read(source)
    assert "general.alignment" not in keys, "written for the default alignment"
    arch = struct.unpack_from("<Q", keys["general.architecture"][1])[0]
    arch = keys["general.architecture"][1][8:8 + arch].decode()
    count = f"{arch}.block_count"
    (n_layers,) = struct.unpack("<I", keys[count][1])
    keys[count] = (U32, struct.pack("<I", n_layers * times))
    # Token 0 ends nothing: it is never likely, and if it comes the answer merely ends early.
    for name in [name for name in keys if name.endswith(("eos_token_id", "eot_token_id", "eom_token_id"))]:
        keys[name] = (U32, struct.pack("<I", 0))
    # A token of that name ends a turn whatever the keys say, and noise holds one soon.
    kind, tokens = keys["tokenizer.ggml.tokens"]
    assert tokens.count(TURN_END) == 1, "the token that ends a turn"
    keys["tokenizer.ggml.tokens"] = (kind, tokens.replace(TURN_END, TURN_END.replace(b"end", b"not")))
    keys["general.name"] = (STRING, struct.pack("<Q", 4) + b"Slow")
    deep = []
    for name, shape, kind, data in tensors:
        if not name.startswith("blk."):
            deep.append((name, shape, kind, data))
            continue
        _, layer, rest = name.split(".", 2)
        for i in range(times):
            deep.append((f"blk.{int(layer) + i * n_layers}.{rest}", shape, kind, data))
    write(target, keys, deep)


if __name__ == "__main__":
    deepen(sys.argv[1], sys.argv[2], int(sys.argv[3]))
