#!/usr/bin/env bash
# The kernels' own tests on 64-bit ARM under emulation: with plain NEON, with its dot product of bytes (neoverse-n1),
# and with its matrix product (max); each processor tests the levels below its own as well, and fails where emulation
# lacks its own. Linked statically, as threads of dynamic programs hang there; by the system's compiler, whose packages
# bring the standard library of that processor, and so in a separate target folder. Without GPUs: under
# emulation there is none.
set -euo pipefail
cd "$(dirname "$0")/.."
.make/setup.sh neon

export RUSTC=/usr/bin/rustc
export CARGO_TARGET_DIR=target/neon
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=qemu-aarch64
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-C target-feature=+crt-static"
for cpu in cortex-a72=neon neoverse-n1=neon_dot max=neon_i8mm; do
  echo "── kernels on ${cpu%=*}"
  QEMU_CPU=${cpu%=*} INGLENOOK_ISA=${cpu#*=} timeout "${NEON_LIMIT_S:-1800}" \
    cargo test --locked --target aarch64-unknown-linux-gnu --package kernels --lib --no-default-features "$@"
done
