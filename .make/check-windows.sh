#!/usr/bin/env bash
# Compiles all crates of ours for 64-bit Windows, without linking: `check-windows.sh [CRATE…]`. C code (SQLite, ring) is
# compiled by MinGW, which Debian has; the standard library of Windows comes through rustup. It finds what does not
# compile there. What runs there is tested on Linux, by rules that take the system as a parameter.
set -euo pipefail
cd "$(dirname "$0")/.."
TARGET=x86_64-pc-windows-gnu

.make/setup.sh windows
command -v rustup >/dev/null || {
  echo "Missing: rustup, which brings the standard library of $TARGET. See https://rustup.rs." >&2
  exit 1
}
rustup target add "$TARGET"

crates=(--workspace --exclude fuzz)
[ $# -eq 0 ] || crates=("${@/#/--package=}")
CARGO_TARGET_DIR=target/windows cargo check --locked --target "$TARGET" "${crates[@]}"
