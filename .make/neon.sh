#!/usr/bin/env bash
# The kernels' own tests on 64-bit ARM under emulation: once with plain NEON, once with its dot product of bytes.
# Linked statically, as threads of dynamic programs hang there; in a target folder of its own, as the system's
# compiler builds it.
set -euo pipefail
cd "$(dirname "$0")/.."
.make/setup.sh neon

export RUSTC=/usr/bin/rustc
export CARGO_TARGET_DIR=target/neon
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=qemu-aarch64
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-C target-feature=+crt-static"
for cpu in cortex-a72 max; do
  echo "── kernels on $cpu"
  QEMU_CPU=$cpu timeout "${NEON_LIMIT_S:-1800}" \
    cargo test --locked --target aarch64-unknown-linux-gnu --package kernels --lib "$@"
done
