#!/usr/bin/env python3
"""Signed lists for tests: minisign's form of Ed25519 (RFC 8032), made from a word instead of a secret key.

    python3 tests/hub/sign.py WORD                     its public key
    python3 tests/hub/sign.py WORD FILE                writes FILE.minisig
    python3 tests/hub/sign.py WORD --manifest FOLDER OWNER/NAME
                                                       lists the files of FOLDER for that repository, and signs the list
"""

import base64
import hashlib
import json
import os
import sys

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
CHUNK_BYTES = 256 << 10


def base_point():
    y = 4 * pow(5, P - 2, P) % P
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    x = x if x % 2 == 0 else P - x
    return (x, y, 1, x * y % P)


def add(a, b):
    """Of points in extended coordinates."""
    k = (a[1] - a[0]) * (b[1] - b[0]) % P
    m = (a[1] + a[0]) * (b[1] + b[0]) % P
    t = 2 * a[3] * b[3] * D % P
    z = 2 * a[2] * b[2] % P
    e, f, g, h = m - k, z - t, z + t, m + k
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def times(scalar, point):
    result = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            result = add(result, point)
        point = add(point, point)
        scalar >>= 1
    return result


def packed(point):
    inverse = pow(point[2], P - 2, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def number(*parts):
    return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little")


class Key:
    def __init__(self, word):
        seed = hashlib.sha256(word.encode()).digest()
        half = hashlib.sha512(seed).digest()
        scalar = int.from_bytes(half[:32], "little")
        self.scalar = (scalar & ~7 & ((1 << 254) - 1)) | 1 << 254
        self.prefix = half[32:]
        self.bytes = packed(times(self.scalar, base_point()))
        self.id = hashlib.sha256(self.bytes).digest()[:8]

    def public(self):
        return base64.b64encode(b"Ed" + self.id + self.bytes).decode()

    def sign(self, message):
        r = number(self.prefix, message) % ORDER
        point = packed(times(r, base_point()))
        s = (r + number(point, self.bytes, message) * self.scalar) % ORDER
        return point + s.to_bytes(32, "little")

    def minisig(self, data, comment="made for a test"):
        signature = self.sign(hashlib.blake2b(data).digest())
        whole = self.sign(signature + comment.encode())
        line = base64.b64encode(b"ED" + self.id + signature).decode()
        end = base64.b64encode(whole).decode()
        return f"untrusted comment: a test's\n{line}\ntrusted comment: {comment}\n{end}\n"


def manifest(folder, repository):
    files = []
    for path in sorted(os.listdir(folder)):
        if not path.endswith((".gguf", ".safetensors")):
            continue
        digest, chunks = hashlib.sha256(), []
        with open(os.path.join(folder, path), "rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                digest.update(chunk)
                chunks.append(hashlib.sha256(chunk).hexdigest())
        files.append({
            "path": path, "bytes": os.path.getsize(os.path.join(folder, path)), "sha256": digest.hexdigest(),
            "chunk_bytes": CHUNK_BYTES, "chunks": chunks,
        })
    return json.dumps({"format": "inglenook-manifest 1", "repository": repository, "files": files}).encode()


def write_manifest(key, folder, repository):
    listed = manifest(folder, repository)
    path = os.path.join(folder, "inglenook.manifest.json")
    with open(path, "wb") as file:
        file.write(listed)
    with open(path + ".minisig", "w") as file:
        file.write(key.minisig(listed))


def main():
    key = Key(sys.argv[1])
    if len(sys.argv) == 2:
        print(key.public())
    elif sys.argv[2] == "--manifest":
        write_manifest(key, sys.argv[3], sys.argv[4])
    else:
        with open(sys.argv[2], "rb") as file:
            # One more argument is the trusted comment.
            text = key.minisig(file.read(), *sys.argv[3:4])
        with open(sys.argv[2] + ".minisig", "w") as file:
            file.write(text)


if __name__ == "__main__":
    main()
