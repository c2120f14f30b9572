#!/usr/bin/env python3
"""Makes finished .deb and .rpm packages reproducible, in place: built twice, they have the same bytes.

    .make/reproducible.py PACKAGE…

The bundler writes the time of packing into both, the order of a folder into the .deb, and into the .rpm the rights that
new files get from the umask. Everything gets the time of the last commit, or SOURCE_DATE_EPOCH in seconds
(https://reproducible-builds.org/docs/source-date-epoch/). Packages are signed after this, not before.
"""

import gzip
import hashlib
import os
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

LEAD_BYTES = 96
HEADER_MAGIC = b"\x8e\xad\xe8\x01"
# Tags of the signature header, and of the header proper (rpm's lib/rpmtag.h).
SIGNATURE_SHA1, SIGNATURE_SHA256, SIGNATURE_SIZE = 269, 273, 1000
# The region, the size of the unpacked payload, and room for signatures that come later.
UNCHANGED_IN_SIGNATURE = {62, 1007, 1008, 999}
BUILD_TIME, FILE_MODES, FILE_TIMES = 1006, 1030, 1034
PAYLOAD_SHA256, UNPACKED_PAYLOAD_SHA256, COMPRESSOR = 5092, 5097, 1125
# As the bundler compresses.
GZIP_LEVEL = 6


def commit_time():
    """SOURCE_DATE_EPOCH, or the time of the last commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return int(given or subprocess.check_output(["git", "log", "-1", "--format=%ct"], cwd=ROOT))


def usual_mode(mode):
    """The mode of a file that everyone may read, and run if its owner may."""
    return mode & ~0o777 | (0o755 if mode & 0o100 else 0o644)


def settle_deb(path, time):
    """Packs a .deb again by dpkg-deb, which sorts files, names root as their owner and writes no time into gzip."""
    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(path))) as folder:
        content, packed = os.path.join(folder, "content"), os.path.join(folder, "packed.deb")
        subprocess.run(["dpkg-deb", "--raw-extract", path, content], check=True)
        sums = os.path.join(content, "DEBIAN", "md5sums")
        with open(sums, encoding="utf-8") as file:
            lines = sorted(file, key=lambda line: line.split(maxsplit=1)[1])
        with open(sums, "w", encoding="utf-8") as file:
            file.writelines(lines)
        for place, _, names in os.walk(content, topdown=False):
            for name in names:
                file = os.path.join(place, name)
                os.chmod(file, usual_mode(os.stat(file).st_mode))
                os.utime(file, (time, time))
            os.chmod(place, 0o755)
            os.utime(place, (time, time))
        env = dict(os.environ, SOURCE_DATE_EPOCH=str(time))
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", content, packed], check=True, env=env,
                       stdout=subprocess.DEVNULL)
        os.replace(packed, path)


class RpmHeader:
    """A header structure of an RPM: an index of tags, and a store of their values, which keep their lengths."""

    def __init__(self, data, start):
        if data[start:start + 4] != HEADER_MAGIC:
            raise ValueError("no RPM header where one belongs")
        n_entries, n_bytes = struct.unpack(">II", data[start + 8:start + 16])
        store = start + 16 + 16 * n_entries
        self.end = store + n_bytes
        self.bytes = bytearray(data[start:self.end])
        self.entries = {}
        for at in range(start + 16, store, 16):
            tag, _, offset, count = struct.unpack(">IIII", data[at:at + 16])
            self.entries[tag] = (store - start + offset, count)

    def set_numbers(self, tag, number):
        """Sets each of a tag's numbers of 32 bits."""
        at, count = self.entries[tag]
        self.bytes[at:at + 4 * count] = struct.pack(">I", number) * count

    def set_usual_modes(self):
        at, count = self.entries[FILE_MODES]
        modes = struct.unpack(f">{count}H", self.bytes[at:at + 2 * count])
        self.bytes[at:at + 2 * count] = struct.pack(f">{count}H", *map(usual_mode, modes))

    def numbers(self, tag):
        """A tag's numbers of 32 bits."""
        at, count = self.entries[tag]
        return struct.unpack(f">{count}I", self.bytes[at:at + 4 * count])

    def text(self, tag):
        at, _ = self.entries[tag]
        return self.bytes[at:self.bytes.index(0, at)].decode()

    def set_text(self, tag, text):
        if len(text) != len(self.text(tag)):
            raise ValueError(f"RPM tag {tag} has another length")
        at, _ = self.entries[tag]
        self.bytes[at:at + len(text)] = text.encode()


def settle_cpio(archive, time):
    """Sets time and mode of each file of a cpio archive (form `newc`: numbers in 8 hexadecimal digits)."""
    archive, at = bytearray(archive), 0
    while True:
        if archive[at:at + 6] != b"070701":
            raise ValueError("the payload is no cpio archive of the usual form")
        mode, size, name_bytes = (int(archive[at + field:at + field + 8], 16) for field in (14, 54, 94))
        name = archive[at + 110:at + 110 + name_bytes - 1]
        if name == b"TRAILER!!!":
            return bytes(archive)
        archive[at + 14:at + 22] = b"%08x" % usual_mode(mode)
        archive[at + 46:at + 54] = b"%08x" % time
        content = (at + 110 + name_bytes + 3) // 4 * 4
        at = (content + size + 3) // 4 * 4


def settle_rpm(path, time):
    """Sets times and modes in an .rpm, and the checksums over them. There is no tool of rpm's for that."""
    with open(path, "rb") as file:
        data = file.read()
    signature = RpmHeader(data, LEAD_BYTES)
    header = RpmHeader(data, (signature.end + 7) // 8 * 8)
    settled = {SIGNATURE_SHA1, SIGNATURE_SHA256, SIGNATURE_SIZE}
    unknown = set(signature.entries) - settled - UNCHANGED_IN_SIGNATURE
    if unknown or header.text(COMPRESSOR) != "gzip":
        raise ValueError(f"{path} is signed or of another form: tags {sorted(unknown)}, {header.text(COMPRESSOR)}")
    archive = settle_cpio(gzip.decompress(data[header.end:]), time)
    payload = gzip.compress(archive, GZIP_LEVEL, mtime=0)
    header.set_numbers(BUILD_TIME, time)
    header.set_numbers(FILE_TIMES, time)
    header.set_usual_modes()
    header.set_text(PAYLOAD_SHA256, hashlib.sha256(payload).hexdigest())
    header.set_text(UNPACKED_PAYLOAD_SHA256, hashlib.sha256(archive).hexdigest())
    signature.set_text(SIGNATURE_SHA1, hashlib.sha1(header.bytes).hexdigest())
    signature.set_text(SIGNATURE_SHA256, hashlib.sha256(header.bytes).hexdigest())
    signature.set_numbers(SIGNATURE_SIZE, len(header.bytes) + len(payload))
    padding = bytes(-len(signature.bytes) % 8)
    with open(path + ".part", "wb") as file:
        file.write(data[:LEAD_BYTES] + signature.bytes + padding + header.bytes + payload)
    os.replace(path + ".part", path)


def main():
    time = commit_time()
    for path in sys.argv[1:]:
        {".deb": settle_deb, ".rpm": settle_rpm}[os.path.splitext(path)[1]](path, time)


if __name__ == "__main__":
    main()
