#!/usr/bin/env bash
# A bare Debian 12 into which the .deb is put as a user would: its menu entry opens the window, a double-clicked model
# is handed to that window, and its removal leaves the chats and says where.
#
# Needs root, and what `setup.sh bare` brings. ROOM (/srv/inglenook-installed) is made once and used again.
# Pictures: target/installed-*.png
set -euo pipefail
cd "$(dirname "$0")/.."

room=${ROOM:-/srv/inglenook-installed}
display=":${DISPLAY_NUMBER:-89}"
deb=$(ls -t target/release/bundle/deb/*.deb | head -n 1)
home=/home/someone

if [ ! -e "$room/etc/debian_version" ]; then
  debootstrap --variant=minbase --include=ca-certificates bookworm "$room"
fi
cp /etc/resolv.conf "$room/etc/resolv.conf"
cp -r /etc/apt/sources.list* /etc/apt/apt.conf.d "$room/etc/apt/" 2>/dev/null || true
cp /etc/ssl/certs/ca-certificates.crt "$room/etc/ssl/certs/ca-certificates.crt"
mkdir -p /tmp/.X11-unix "$room/tmp/.X11-unix" && chmod 1777 /tmp/.X11-unix
mounted=()
lend() { mkdir -p "$room$2"; mount --bind "$1" "$room$2"; mounted=("$room$2" "${mounted[@]}"); }
inside() { chroot "$room" /usr/bin/env -i HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
as_user() {
  chroot "$room" /usr/sbin/runuser -u someone -- /usr/bin/env -i HOME=$home LANG=C.UTF-8 DISPLAY="$display" \
    XDG_DATA_DIRS=/usr/local/share:/usr/share LIBGL_ALWAYS_SOFTWARE=1 PATH=/usr/bin:/bin dbus-run-session -- "$@"
}
leave() {
  chroot "$room" pkill -u someone || true
  [ -z "${xvfb:-}" ] || kill "$xvfb" 2>/dev/null || true
  for place in "${mounted[@]}"; do umount "$place" || umount -l "$place"; done
}
trap leave EXIT
mount -t proc proc "$room/proc" && mounted=("$room/proc")
lend /dev /dev
lend /sys /sys
lend /tmp/.X11-unix /tmp/.X11-unix

passed=0
ok() { echo "ok      $1"; passed=$((passed + 1)); }
failed() { echo "FAILED  $1" >&2; echo "$passed passed, 1 failed"; exit 1; }
until_true() {
  local what=$1 tries=0
  shift
  until "$@" >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 60 ] || failed "$what"
    sleep 1
  done
  ok "$what"
}

inside apt-get -qq update
# what a desktop has: it opens menu entries and files
inside apt-get -qq -y install --no-install-recommends dbus libgtk-3-bin libglib2.0-bin xdg-utils shared-mime-info \
  desktop-file-utils procps fonts-dejavu-core >/dev/null
inside apt-get -qq -y purge inglenook >/dev/null 2>&1 || true
cp "$deb" "$room/tmp/inglenook.deb"
inside apt-get -qq -y install --no-install-recommends /tmp/inglenook.deb >/dev/null
ok "the package installs with what Debian has"
inside desktop-file-validate /usr/share/applications/Inglenook.desktop || failed "the menu entry is valid"
ok "the menu entry is valid"
inside id someone >/dev/null 2>&1 || inside useradd --create-home someone
rm -rf "$room$home/.local" && mkdir -p "$room$home/Downloads"
cp models/starter/starter.gguf "$room$home/Downloads/A model.gguf"
inside chown -R someone $home
kind=$(as_user gio info -a standard::content-type "$home/Downloads/A model.gguf" | sed -n 's/.*content-type: //p')
[ "$kind" = application/x-gguf ] || failed "a .gguf is known as a model, not as $kind"
ok "a .gguf is known as a model"
opener=$(as_user gio mime application/x-gguf)
grep -q "Default application.*Inglenook.desktop" <<<"$opener" || failed "Inglenook opens models: $opener"
ok "Inglenook opens models"

Xvfb "$display" -screen 0 1280x900x24 -nolisten tcp >/dev/null 2>&1 &
xvfb=$!
sleep 2
export DISPLAY=$display
window() { xdotool search --onlyvisible --name 'Inglenook$'; }
as_user sh -c 'gtk-launch Inglenook; sleep 600' >/dev/null 2>&1 &
until_true "the menu entry opens the window" window
sleep 5
import -window root target/installed-window.png
as_user gio open "$home/Downloads/A model.gguf" >/dev/null 2>&1 &
sleep 6
[ "$(window | wc -l)" = 1 ] || failed "one window, also after a model was opened"
ok "one window, also after a model was opened"
import -window root target/installed-model.png
[ -n "$(inside find $home/.local/share -name '*.db' -print -quit)" ] || failed "the chats have a place"
ok "the chats have a place"
inside pkill -u someone || true
sleep 2
removed=$(inside apt-get -y remove inglenook 2>&1)
grep -q "chats and models were kept" <<<"$removed" || failed "its removal says where the chats are"
ok "its removal says where the chats are"
[ -n "$(inside find $home/.local/share -name '*.db' -print -quit)" ] || failed "its removal leaves them"
ok "its removal leaves them"
[ ! -e "$room/usr/bin/inglenook" ] || failed "the program has gone"
ok "the program has gone"
echo "$passed passed, 0 failed"
