#!/usr/bin/env python3
"""Writes the list of versions that the updater of the window reads: `update_list.py FOLDER URL [DATE]`.

FOLDER, or folders in it, hold the packages of one version with their signatures (`NAME.sig`, as `tauri build` makes
them). URL is the address of the folder where all of them will be published, without folders in it. Writes FOLDER/latest.json. Packages without a signature are left
out; without any signature nothing is written, and that is an error. Notes come from the changelog.
"""

import datetime
import json
import os
import re
import sys
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# (ending of a package's name, its target in the list). An updater looks for its kind of package first.
TARGETS = [
    (".AppImage", ["linux-x86_64-appimage", "linux-x86_64"]),
    ("-setup.exe", ["windows-x86_64-nsis", "windows-x86_64"]),
    (".msi", ["windows-x86_64-msi"]),
    (".app.tar.gz", ["darwin-aarch64-app", "darwin-aarch64"]),
]


def notes_of(changelog, version):
    """The section of a version; the one of what is unreleased where it has none yet."""
    sections = re.split(r"^## ", changelog, flags=re.M)[1:]
    for name in (f"[{version}]", version, "[Unreleased]", "Unreleased"):
        for section in sections:
            if section.startswith(name):
                return section.partition("\n")[2].strip()
    return ""


def update_list(version, date, notes, url, files):
    """The list as an object. `files`: names of packages with the text of their signatures."""
    platforms = {}
    for name, signature in sorted(files.items()):
        for ending, targets in TARGETS:
            if name.endswith(ending):
                address = url.rstrip("/") + "/" + urllib.parse.quote(name)
                for target in targets:
                    if target in platforms:
                        raise ValueError(f"{name}: there is another package for {target}")
                    platforms[target] = {"url": address, "signature": signature.strip()}
    if not platforms:
        raise ValueError("no package has a signature")
    return {"version": version, "notes": notes, "pub_date": date, "platforms": platforms}


def main(folder, url, date=None):
    if not url.startswith("https://"):
        raise ValueError(f"{url} is no https address")
    with open(os.path.join(ROOT, "Cargo.toml"), encoding="utf-8") as file:
        version = re.search(r'^version = "(.+?)"', file.read(), flags=re.M).group(1)
    with open(os.path.join(ROOT, "CHANGELOG.md"), encoding="utf-8") as file:
        notes = notes_of(file.read(), version)
    files = {}
    for place, _, names in os.walk(folder):
        for name in names:
            if name + ".sig" in names:
                with open(os.path.join(place, name + ".sig"), encoding="utf-8") as file:
                    files[name] = file.read()
    date = date or datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    found = update_list(version, date, notes, url, files)
    with open(os.path.join(folder, "latest.json"), "w", encoding="utf-8") as file:
        json.dump(found, file, indent=2, ensure_ascii=False)
        file.write("\n")
    print(f"{version}: {', '.join(sorted(found['platforms']))}")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (TypeError, ValueError, OSError) as error:
        sys.exit(f"update_list.py: {error}\n{__doc__.splitlines()[0]}")
