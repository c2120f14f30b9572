#!/usr/bin/env bash
# Brings what building or testing needs onto this machine: `setup.sh GROUP…`
#   node      Node 20.19 or newer (an older one fetches its successor from npm into target/tools)
#   terminal  a C compiler, for SQLite
#   window    terminal + WebKitGTK's headers
#   peers     terminal + what builds llama.cpp and reads its headers
#   test      what drives the window and a browser without a display, nginx, and software that plays a GPU
#   gpu       only the latter
#   keychain  a keychain and a bus to reach it by
#   bare      a bare Debian to install into, and what looks at its window
#   windows   a C compiler for Windows
#   neon      a compiler for 64-bit ARM and its emulator
# Debian and its kin: installs by apt as root or through passwordless sudo. Elsewhere, or without
# permission: says exactly what to install, and stops.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "── $*"; }

packages() {
  case $1 in
    node) ;;
    terminal) echo build-essential ;;
    window) echo build-essential pkg-config libwebkit2gtk-4.1-dev ;;
    peers) echo build-essential cmake libclang-dev ;;
    gpu) echo build-essential mesa-vulkan-drivers libvulkan1 ;;
    keychain) echo build-essential dbus gnome-keyring libsecret-tools ;;
    test) echo webkit2gtk-driver xvfb xdotool dbus python3-gi gir1.2-gtk-3.0 libayatana-appindicator3-1 fonts-dejavu-core \
      chromium nginx-light mesa-vulkan-drivers libvulkan1 ;;
    bare) echo debootstrap xvfb xdotool imagemagick ;;
    windows) echo build-essential gcc-mingw-w64-x86-64 ;;
    neon) echo rustc-web libstd-rust-web-dev:arm64 gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user ;;
    *) echo "setup.sh: no group $1" >&2; exit 2 ;;
  esac
}

# Elsewhere we can't know the packages' names: the programs and libraries themselves are looked for.
have_without_dpkg() {
  case $1 in
    node) true ;;
    terminal) command -v cc >/dev/null ;;
    window) command -v cc >/dev/null && pkg-config --exists webkit2gtk-4.1 2>/dev/null ;;
    peers) command -v cc >/dev/null && command -v cmake >/dev/null && command -v clang >/dev/null ;;
    bare) command -v debootstrap >/dev/null && command -v Xvfb >/dev/null && command -v xdotool >/dev/null && command -v import >/dev/null ;;
    windows) command -v x86_64-w64-mingw32-gcc >/dev/null ;;
    neon) command -v qemu-aarch64 >/dev/null && command -v aarch64-linux-gnu-gcc >/dev/null ;;
    keychain) command -v dbus-run-session >/dev/null && command -v gnome-keyring-daemon >/dev/null && command -v secret-tool >/dev/null ;;
    gpu) ldconfig -p 2>/dev/null | grep -q libvulkan.so.1 ;;
    test) ldconfig -p 2>/dev/null | grep -q libvulkan.so.1 && command -v WebKitWebDriver >/dev/null && command -v Xvfb >/dev/null && command -v xdotool >/dev/null && /usr/bin/python3 -c 'import gi' 2>/dev/null && command -v chromium >/dev/null && command -v nginx >/dev/null ;;
  esac
}

system_packages() {
  local wanted=() missing=() group package
  if ! command -v dpkg-query >/dev/null; then
    for group in "$@"; do
      have_without_dpkg "$group" && continue
      echo "Missing for $group. On Debian 12 it is: $(packages "$group"). Please install the like of it." >&2
      exit 1
    done
    return 0
  fi
  for group in "$@"; do read -ra more <<<"$(packages "$group")"; wanted+=("${more[@]}"); done
  for package in "${wanted[@]}"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0

  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
      as_root=(sudo -n)
    else
      printf 'These system packages are missing. Please run:\n\n  sudo apt-get install --no-install-recommends %s\n\nand then the same make command again.\n' "${missing[*]}" >&2
      exit 1
    fi
  fi
  say "system packages: ${missing[*]}"
  # packages of another architecture are found only once dpkg knows of it
  case " ${missing[*]} " in *:arm64\ *) "${as_root[@]}" dpkg --add-architecture arm64 ;; esac
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300)
  "${apt[@]}" update
  "${apt[@]}" install --no-install-recommends "${missing[@]}" || {
    printf 'apt could not install them. Please run:\n\n  apt-get install --no-install-recommends %s\n' "${missing[*]}" >&2
    exit 1
  }
}

node_is_new_enough() {
  command -v node >/dev/null && node -e '
    const [major, minor] = process.versions.node.split(".").map(Number);
    process.exit(major > 20 || (major === 20 && minor >= 19) ? 0 : 1)'
}

node_22() {
  node_is_new_enough && return 0
  if ! command -v npm >/dev/null; then
    echo "Node 20.19 or newer and npm are missing: https://nodejs.org, or apt-get install nodejs npm." >&2
    exit 1
  fi
  say "Node $(node --version 2>/dev/null || echo none) is too old for the page: fetching Node 22 into target/tools"
  mkdir -p target/tools
  npm install --prefix target/tools --no-audit --no-fund --no-save node@22
}

rust() {
  local wanted have
  wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
  have=$(rustc --version 2>/dev/null | cut -d' ' -f2 || true)
  [ -n "$have" ] && [ "$(printf '%s\n%s\n' "$wanted" "$have" | sort -V | head -n1)" = "$wanted" ] && return 0
  echo "Rust $wanted or newer is missing (found: ${have:-none}): https://rustup.rs, or rustup update stable." >&2
  exit 1
}

system_packages "$@"
for group in "$@"; do
  case $group in
    node) node_22 ;;
    terminal | window | peers) rust ;;
  esac
done
