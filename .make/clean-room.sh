#!/usr/bin/env bash
# A bare Debian 12 with nothing but git, make, Rust, Node and Python; a fresh clone of HEAD in it; and a make verb.
#
#   sudo .make/clean-room.sh run      make run on a display, one question typed, a picture of the answer
#   sudo .make/clean-room.sh test     .ci/run
#
# Needs root, debootstrap, and for `run` Xvfb, xdotool and ImageMagick outside, as a desktop would be there.
# ROOM (/srv/inglenook-room) is made once and used again; CLONE and target are always fresh. Rust and Node are
# lent from this machine. REFERENCE, if set, is shown inside beside the clone.
set -euo pipefail
cd "$(dirname "$0")/.."

verb=${1:?run or test}
room=${ROOM:-/srv/inglenook-room}
rust=$(rustc --print sysroot)
node=$(command -v node)
npm=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")

if [ ! -e "$room/etc/debian_version" ]; then
  debootstrap --variant=minbase --include=git,make,python3,ca-certificates bookworm "$room"
fi
mkdir -p "$room"/{opt/rust,opt/npm,work,root/.cargo,tmp/.X11-unix}
install -D "$node" "$room/usr/local/bin/node"
printf '#!/bin/sh\nexec node /opt/npm/bin/npm-cli.js "$@"\n' >"$room/usr/local/bin/npm"
printf '#!/bin/sh\nexec node /opt/npm/bin/npx-cli.js "$@"\n' >"$room/usr/local/bin/npx"
chmod +x "$room/usr/local/bin/npm" "$room/usr/local/bin/npx"
cp /etc/resolv.conf "$room/etc/resolv.conf"
# debootstrap writes none, and every computer has one.
echo '127.0.0.1 localhost' >"$room/etc/hosts"
cp /etc/ssl/certs/ca-certificates.crt "$room/etc/ssl/certs/ca-certificates.crt"

mkdir -p /tmp/.X11-unix && chmod 1777 /tmp/.X11-unix
mounted=()
lend() { mkdir -p "$room$2"; mount --bind ${3:+-o "$3"} "$1" "$room$2"; mounted=("$room$2" "${mounted[@]}"); }
leave() { for place in "${mounted[@]}"; do umount "$place" || umount -l "$place"; done; }
trap leave EXIT
mount -t proc proc "$room/proc" && mounted=("$room/proc")
lend /dev /dev
lend /sys /sys
mkdir -p "$room/dev/shm" "$room/dev/pts"
# A plain bind leaves out what is mounted below /dev: without this no pseudo-terminal can be opened.
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts "$room/dev/pts" && mounted=("$room/dev/pts" "${mounted[@]}")
lend "$rust" /opt/rust ro
lend "$npm" /opt/npm ro
lend /tmp/.X11-unix /tmp/.X11-unix
[ -z "${REFERENCE:-}" ] || lend "$REFERENCE" /work/shared/reference ro

rm -rf "$room/work/main"
git clone --quiet --no-hardlinks . "$room/work/main"

inside() {
  chroot "$room" /usr/bin/env -i HOME=/root LANG=C.UTF-8 TERM=dumb DISPLAY="${display:-}" \
    PATH=/opt/rust/bin:/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin \
    NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt \
    bash -c "cd /work/main && $1"
}

if [ "$verb" = test ]; then
  time inside .ci/run
  exit
fi

number=${DISPLAY_NUMBER:-88}
display=":$number"
Xvfb "$display" -screen 0 1280x900x24 -nolisten tcp &
xvfb=$!
began=$(date +%s)
inside "make run" &
shell=$!
finish() { kill "$shell" 2>/dev/null || true; kill "$xvfb" 2>/dev/null || true; leave; }
trap finish EXIT
until DISPLAY=$display xdotool search --onlyvisible --name '^Inglenook$' >/dev/null 2>&1; do
  kill -0 "$shell" || { echo "make run ended before a window was there"; exit 1; }
  sleep 1
done
echo "── the window was there after $(($(date +%s) - began)) s"
window=$(DISPLAY=$display xdotool search --onlyvisible --name '^Inglenook$' | tail -n 1)
sleep 3
DISPLAY=$display xdotool windowfocus "$window" type --delay 20 'How do I add a model?'
DISPLAY=$display xdotool key Return
sleep 10
DISPLAY=$display import -window root clean-room.png
echo "── look at clean-room.png"
pids=$(DISPLAY=$display xdotool getwindowpid "$window" || true)
[ -z "$pids" ] || kill "$pids"
wait "$shell" || true
