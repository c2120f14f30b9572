#!/usr/bin/env python3
"""Checks what packages are made of: the list of versions, that every system's configuration has all it needs, and that
packages of the same program have the same bytes.
"""

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
from reproducible import BUILD_TIME, FILE_TIMES, LEAD_BYTES, RpmHeader  # noqa: E402: beside this file
from update_list import ROOT, notes_of, update_list  # noqa: E402: beside this file

CHANGELOG = "# Changelog\n\n## [Unreleased]\n\nNew.\n\n## [1.2.0] - 2030-01-02\n\n- **Faster**\n\n## [1.1.0]\n\nOld.\n"

NOTES = [("1.2.0", "- **Faster**"), ("1.1.0", "Old."), ("9.9.9", "New.")]

# (names of signed packages, targets)
LISTS = [
    (["Inglenook_1.2.0_amd64.AppImage", "Inglenook_1.2.0_amd64.deb"], ["linux-x86_64", "linux-x86_64-appimage"]),
    (["Inglenook_1.2.0_x64-setup.exe", "Inglenook_1.2.0_x64_en-US.msi"],
     ["windows-x86_64", "windows-x86_64-msi", "windows-x86_64-nsis"]),
    (["Inglenook.app.tar.gz"], ["darwin-aarch64", "darwin-aarch64-app"]),
]

REFUSED = [[], ["Inglenook_1.2.0_amd64.deb"], ["a.AppImage", "b.AppImage"]]

# What `tauri build` reads for each system: the common file, and this one laid over it.
SYSTEMS = {"linux": None, "macos": "tauri.macos.conf.json", "windows": "tauri.windows.conf.json"}


def checked(name, is_right):
    if not is_right:
        print(f"FAILED  {name}")
    return is_right


def configuration(name):
    with open(os.path.join(ROOT, "src-tauri", name), encoding="utf-8") as file:
        return json.load(file)


def merged(base, more):
    """As the CLI merges: objects by key, everything else is replaced (RFC 7396)."""
    if not (isinstance(base, dict) and isinstance(more, dict)):
        return more
    return {**base, **{key: merged(base.get(key), value) for key, value in more.items()}}


def configurations():
    common = configuration("tauri.conf.json")
    for system, file in SYSTEMS.items():
        whole = merged(common, configuration(file)) if file else common
        bundle, plugins = whole["bundle"], whole["plugins"]
        yield f"{system}: an icon of its kind", all(
            os.path.exists(os.path.join(ROOT, "src-tauri", icon)) for icon in bundle["icon"])
        yield f"{system}: model files open it", bundle["fileAssociations"][0]["ext"] == ["gguf"]
        yield f"{system}: updates are refused without a signed version", plugins["updater"]["requireSignedVersion"] is True
        yield f"{system}: no key and no address stand in the configuration", (
            plugins["updater"]["pubkey"], plugins["updater"]["endpoints"]) == ("", [])
        yield f"{system}: updates are made only where they are signed", "createUpdaterArtifacts" not in bundle
        if file:
            yield f"{system}: links open it", plugins["deep-link"]["desktop"]["schemes"] == ["inglenook"]
    targets = {system: merged(common, configuration(file))["bundle"]["targets"] if file else common["bundle"]["targets"]
               for system, file in SYSTEMS.items()}
    yield "packages of each system", targets == {
        "linux": ["deb", "rpm"], "macos": ["dmg"], "windows": ["nsis", "msi"]}


def flatpak(deb):
    """The manifest takes every file of the .deb, under names that the sandbox exports."""
    manifest = configuration("linux/app.inglenook.Inglenook.json")
    with open(os.path.join(ROOT, "src-tauri/linux/inglenook.metainfo.xml"), encoding="utf-8") as file:
        metainfo = file.read()
    yield "Flatpak: the id is that of the metadata", f"<id>{manifest['id']}</id>" in metainfo
    listed = subprocess.run(["dpkg-deb", "--fsys-tarfile", deb], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(listed)) as tar:
        names = {member.name.removeprefix("./") for member in tar if member.isfile()}
    commands = " ".join(manifest["modules"][0]["build-commands"]).split()
    taken = {word for word in commands if word.startswith("usr/")}
    yield "Flatpak: it takes every file of the .deb", all(
        name in taken or any(name.startswith(f"{folder}/") for folder in taken) for name in names)
    yield "Flatpak: every file that it takes is in the .deb", all(
        word in names or any(name.startswith(f"{word}/") for name in names) for word in taken)
    icons = {os.path.basename(name).partition(".")[0] for name in names if name.startswith("usr/share/icons/")}
    yield "Flatpak: desktop entry, icons and media type have the names that it changes", (
        f"usr/share/applications/{manifest['rename-desktop-file']}" in names
        and icons == {manifest["rename-icon"]} and f"usr/share/mime/packages/{manifest['rename-mime-file']}" in names)


TAURI = os.path.join(ROOT, "ui/node_modules/.bin/tauri")
# When both packages were made, as far as they say.
EPOCH = 1_900_000_000


def pack(folder, umask, zone):
    """Packs a program that stands in for the window; gives the packages with their bytes."""
    target = os.path.join(folder, zone.replace("/", "-"))
    os.makedirs(os.path.join(target, "debug"))
    shutil.copy(sys.executable, os.path.join(target, "debug", "inglenook"))
    env = dict(os.environ, CARGO_TARGET_DIR=target, SOURCE_DATE_EPOCH=str(EPOCH), TZ=zone)
    subprocess.run([TAURI, "bundle", "--ci", "--debug", "--bundles", "deb,rpm"], cwd=os.path.join(ROOT, "src-tauri"),
                   env=env, umask=umask, check=True, capture_output=True)
    bundle = os.path.join(target, "debug", "bundle")
    packages = [os.path.join(bundle, kind, name) for kind in ("deb", "rpm") for name in os.listdir(os.path.join(bundle, kind))
                if name.endswith(f".{kind}")]
    subprocess.run([sys.executable, os.path.join(ROOT, ".make/reproducible.py"), *packages], env=env, umask=umask, check=True)
    found = {}
    for package in packages:
        with open(package, "rb") as file:
            found[os.path.basename(package)] = file.read()
    return found


def reproducible_packages():
    """The same program, packed in two folders at two times, with other rights for new files and in another time zone."""
    missing = [what for what in (TAURI, shutil.which("dpkg-deb") or "dpkg-deb") if not os.path.exists(what)]
    if missing or sys.platform != "linux":
        print(f"SKIPPED reproducible packages: needs Linux, {' and '.join(missing) or 'and no more'}")
        yield "skipped", True
        return
    with tempfile.TemporaryDirectory() as folder:
        first, began = pack(folder, 0o022, "UTC"), int(time.time())
        while int(time.time()) == began:
            time.sleep(0.05)
        second = pack(folder, 0o027, "Asia/Kathmandu")
        with open(os.path.join(folder, "inglenook.deb"), "wb") as file:
            file.write(next(content for name, content in first.items() if name.endswith(".deb")))
        yield from flatpak(file.name)
    yield "a .deb and an .rpm are packed", sorted(name.rpartition(".")[2] for name in first) == ["deb", "rpm"]
    for name, content in first.items():
        yield f"{name} has the same bytes when it is packed again", second.get(name) == content
    for name, content in first.items():
        if name.endswith(".rpm"):
            header = RpmHeader(content, (RpmHeader(content, LEAD_BYTES).end + 7) // 8 * 8)
            times = {number for tag in (BUILD_TIME, FILE_TIMES) for number in header.numbers(tag)}
            yield f"{name} has one time", times == {EPOCH}


def main():
    results = [checked(f"notes of {version}", notes_of(CHANGELOG, version) == notes) for version, notes in NOTES]
    for names, targets in LISTS:
        files = {name: f"signature of {name}\n" for name in names}
        found = update_list("1.2.0", "2030-01-02T03:04:05Z", "-", "https://example.org/a b/", files)
        results.append(checked(f"targets of {names}", sorted(found["platforms"]) == targets))
        for entry in found["platforms"].values():
            name = entry["url"].rpartition("/")[2]
            results.append(checked(f"signature of {name}", entry["signature"] == f"signature of {name}"))
    for names in REFUSED:
        try:
            update_list("1.2.0", "", "", "https://example.org", dict.fromkeys(names, "x"))
            results.append(checked(f"{names} are refused", False))
        except ValueError:
            results.append(True)
    results += [checked(name, is_right) for name, is_right in [*configurations(), *reproducible_packages()]]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
