#!/usr/bin/env python3
"""Copies what the tests of the crate `vision` need out of the full reference data, and hashes of what is large.

    python3 tests/reference/vision/select.py ../shared/reference/vision
"""

import hashlib
import json
import shutil
import sys
from pathlib import Path

FAMILIES = ["gemma3", "qwen3_5", "qwen3_vl", "gemma4", "gemma4_e", "mistral3", "lfm2_vl", "smolvlm", "idefics3"]
SMALL_FILES = ["config.json", "preprocessor_config.json", "processor_config.json", "tokens.json", "tokenizer.json", "gguf.json"]


def data_hash(npy: Path) -> str:
    """SHA-256 of the array's bytes, without the header (format version 1)."""
    content = npy.read_bytes()
    start = 10 + int.from_bytes(content[8:10], "little")
    return hashlib.sha256(content[start:]).hexdigest()


def copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def main() -> None:
    full, here = Path(sys.argv[1]), Path(__file__).parent
    hashes = {}
    index = json.loads((full / "images/index.json").read_text())
    copy(full / "images/index.json", here / "images/index.json")
    for image in index["images"]:
        copy(full / "images" / image["file"], here / "images" / image["file"])
        # Decoders of JPEG differ by a level or two: these are compared sample by sample.
        if image["format"] == "JPEG":
            copy(full / "images" / image["rgb"], here / "images" / image["rgb"])
    resample = json.loads((full / "resample/index.json").read_text())
    copy(full / "resample/index.json", here / "resample/index.json")
    for case in resample["cases"]:
        copy(full / "resample" / case["src"], here / "resample" / case["src"])
        hashes["resample/" + case["out"]] = data_hash(full / "resample" / case["out"])
    for family in FAMILIES:
        for name in SMALL_FILES:
            if (full / family / name).exists():
                copy(full / family / name, here / family / name)
        copy(full / family / "images/index.json", here / family / "images/index.json")
        for image in json.loads((full / family / "images/index.json").read_text()):
            if image.get("pixels"):
                hashes[f"{family}/{image['file']}"] = data_hash(full / family / "images" / image["pixels"])
    (here / "hashes.json").write_text(json.dumps(hashes, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
