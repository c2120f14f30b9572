#!/bin/sh
# A Python with PyTorch for the CPU and the two pinned packages, in .venv.
# On Debian PyTorch comes from apt: PyPI's x86 wheel would bring gigabytes of CUDA.
set -eu
cd "$(dirname "$0")"
python=/usr/bin/python3
if ! $python -c "import torch, venv, ensurepip" 2>/dev/null; then
    if ! command -v apt-get >/dev/null; then
        echo "Please install PyTorch 1.13 or newer for $python, then run this again." >&2
        exit 1
    fi
    as_root=""
    [ "$(id -u)" = 0 ] || as_root=sudo
    echo "installing python3-torch (Debian)"
    $as_root apt-get update -qq
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        python3-torch python3-numpy python3-venv libopenblas0-pthread
fi
$python -m venv --system-site-packages .venv
.venv/bin/pip install --quiet --requirement requirements.txt
.venv/bin/python -c "import torch, tokenizers, gguf; print('torch', torch.__version__, 'tokenizers', tokenizers.__version__)"
