#!/usr/bin/env bash
# Builds the window and opens it; where there is no display, the terminal chat instead.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -z "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] && [ "$(uname -s)" = Linux ]; then
  echo "── There is no display here (neither DISPLAY nor WAYLAND_DISPLAY is set): opening \`nook chat\` instead of the window."
  .make/setup.sh terminal
  make ui
  echo "── program: build (the first time takes some minutes)"
  cargo build --release --package cli
  exec target/release/nook chat --model starter
fi

.make/setup.sh window
make ui
echo "── window: build (the first time takes some minutes)"
cargo build --release --package inglenook
echo "── opening Inglenook"
exec target/release/inglenook
