#!/usr/bin/env bash
# Build the image of the Dockerfile on a base made of Debian packages, and run it as a cluster would: a root file system
# that cannot be written, the image's own user, no capabilities. Prints its size. Needs root, the network, and the Debian
# packages buildah, mmdebstrap and curl; CI runs it. deploy/README.md says more.
set -euo pipefail
if ! unshare --mount true 2>/dev/null; then
  echo "NOT BUILT: this machine lets nobody mount (root with CAP_SYS_ADMIN may)"
  exit 0
fi
# In mounts of its own, which end with it.
[ -n "${OWN_MOUNTS-}" ] || OWN_MOUNTS=yes exec unshare --mount "$0"
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin
scratch=$(mktemp -d)
server=
driver=overlay  # vfs, which copies each layer whole, where the file system of TMPDIR allows no overlay
b() { buildah --root "$scratch/store" --runroot "$scratch/run" --storage-driver "$driver" "$@"; }
end() {
  if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; wait "$server" || true; fi
  for place in proc dev data tmp ""; do umount -l "$scratch/root/$place" 2>/dev/null || true; done
  b rm --all >/dev/null 2>&1 || true
  rm -rf --one-file-system "$scratch"
}
trap end EXIT
b images >/dev/null 2>&1 || driver=vfs

# In place of python:3.11-slim-bookworm: Debian's Python, with pip in /usr/local as that image has it. The packages are
# unpacked, not set up: it takes a tenth of the time.
mmdebstrap --quiet --variant=extract --include=python3,python3-venv,coreutils,dash bookworm "$scratch/base"
env -i PATH="$PATH" chroot "$scratch/base" /usr/bin/python3 -m venv /usr/local
mkdir "$scratch/base/proc"
base=$(b from scratch)
b add -q "$base" "$scratch/base" / >/dev/null
b config --env PATH=/usr/local/bin:/usr/bin:/bin "$base"
b commit -q --rm "$base" leaseboard-base >/dev/null
rm -rf --one-file-system "$scratch/base"

volumes=(-v /etc/ssl/certs:/etc/ssl/certs:ro -v /etc/resolv.conf:/etc/resolv.conf:ro)
[ ! -e /etc/pip.conf ] || volumes+=(-v /etc/pip.conf:/etc/pip.conf:ro)
b build -q --isolation chroot --network host --format docker "${volumes[@]}" \
  --build-arg PYTHON=localhost/leaseboard-base -t leaseboard . >"$scratch/id" 2>"$scratch/build" || { cat "$scratch/build"; exit 1; }

image=$(b mount "$(b from --pull-never leaseboard)")
echo "image $(du -sm "$image" | cut -f1) MB:" \
  "environment $(du -sm "$image/venv" | cut -f1) MB, code $(du -sm "$image/app" | cut -f1) MB"
for tool in gcc cc ld; do test -z "$(find "$image" -xdev -name "$tool")"; done
for python in /venv/bin/python3 /usr/local/bin/python3; do
  if chroot "$image" "$python" -c 'import pip' 2>/dev/null; then echo "$python has pip"; exit 1; fi
done

# The program, its user, directory and variables are those of the image.
test "$(b inspect --type image --format '{{len .Docker.Config.Healthcheck.Test}}' leaseboard)" -gt 0
of() { b inspect --type image --format "$1" leaseboard; }
mapfile -t words < <(of '{{range .OCIv1.Config.Entrypoint}}{{println .}}{{end}}{{range .OCIv1.Config.Cmd}}{{println .}}{{end}}' | grep .)
mapfile -t variables < <(of '{{range .OCIv1.Config.Env}}{{println .}}{{end}}' | grep .)
user=$(of '{{.OCIv1.Config.User}}') folder=$(of '{{.OCIv1.Config.WorkingDir}}')
# Below the ports of outgoing connections and those that the tests choose.
free_port() {
  python3 -c 'import random, socket
while True:
    with socket.socket() as one:
        try:
            one.bind(("", random.randrange(2000, 10000)))
        except OSError:
            continue
        print(one.getsockname()[1])
        break'
}
port=$(free_port) api_port=$(free_port)

mkdir "$scratch/root" "$scratch/data"
chmod 755 "$scratch"
mount --bind "$image" "$scratch/root"
mount -o remount,bind,ro "$scratch/root"
chown "$user" "$scratch/data"
mount --bind "$scratch/data" "$scratch/root/data"
mount -t proc proc "$scratch/root/proc"
mount --rbind /dev "$scratch/root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$scratch/root/tmp"
if touch "$scratch/root/app/written" 2>/dev/null; then echo "the root can be written"; exit 1; fi
(cd / && exec env -i "${variables[@]}" setpriv --no-new-privs "$(command -v chroot)" --userspec="$user" "$scratch/root" \
  /bin/sh -c 'cd "$1" && shift && exec "$@"' start "$folder" "${words[@]}" --port "$port" \
  --api-port "$api_port") >"$scratch/log" 2>&1 &
server=$!
url=http://127.0.0.1:$port
events() { curl -fsS "$url/metrics" | awk '/^leaseboard_watch_events_total/ {sum += $2} END {print int(sum)}'; }
for _ in $(seq 1500); do
  curl -fsS "$url/readyz" >/dev/null 2>&1 && break
  kill -0 "$server" 2>/dev/null || { wait "$server" || echo "ended with $?"; cat "$scratch/log"; exit 1; }
  sleep 0.2
done
before=$(events)
for _ in $(seq 1500); do
  [ "$(events)" -gt "$before" ] && break
  sleep 0.2
done
test "$(events)" -gt "$before"
test "$(stat -c %u:%g "/proc/$server")" = "$user"
test "$(awk '/CapEff/ {print $2}' "/proc/$server/status")" = 0000000000000000
echo "serves as user $user on a read-only root and sees Leases change ($before events, then $(events))," \
  "$(awk '/VmRSS/ {print int($2 / 1024)}' "/proc/$server/status") MB resident"
kill -TERM "$server"
wait "$server"
server=
echo "ended with 0 after SIGTERM"
