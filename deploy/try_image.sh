#!/usr/bin/env bash
# Build the image's tree without a container builder, and run it as the image would: a clean directory, a user without
# rights, a tree that cannot be written. Needs the network, root and setpriv; prints sizes. deploy/README.md says more.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$(mktemp -d)
server=
trap 'if [ -n "$server" ]; then kill "$server" 2>/dev/null; wait "$server" || true; fi; rm -rf "$root"' EXIT
chmod 755 "$root"
mkdir -m 755 "$root/app"
mkdir -m 700 "$root/data"

# The stage `build` of the Dockerfile, line by line.
cp requirements.txt manage.py "$root/app/"
for room in leases dashboard templates static; do
  tar --exclude=__pycache__ -cf - "$room" | tar -xf - -C "$root/app"
done
python3 -m venv --without-pip "$root/venv"
python3 -m pip --python "$root/venv/bin/python3" install -q --no-cache-dir --only-binary :all: --require-hashes \
  -r "$root/app/requirements.txt"
(cd "$root/app" && "$root/venv/bin/python3" -m compileall -q -j 0 "$root/venv/lib" leases dashboard manage.py)

# What the last stage promises: nobody else's tree to write to, no compiler and no pip in the environment.
chmod -R a-w,a+rX "$root/app" "$root/venv"
chown -R 65534:65534 "$root/data"
test ! -e "$root/venv/bin/pip"
echo "environment $(du -sm "$root/venv" | cut -f1) MB, code $(du -sm "$root/app" | cut -f1) MB"

port=${PORT:-18000}
as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --bounding-set -all)
(cd "$root/app" && exec env -i PATH="$root/venv/bin:/usr/bin:/bin" HOME=/nonexistent PYTHONDONTWRITEBYTECODE=1 \
  PYTHONUNBUFFERED=1 MALLOC_ARENA_MAX=1 LEASEBOARD_DATA="$root/data" \
  "${as_nobody[@]}" python3 manage.py serve --host 127.0.0.1 --port "$port") >"$root/log" 2>&1 &
server=$!
for _ in $(seq 300); do
  curl -fsS "http://127.0.0.1:$port/readyz" >/dev/null 2>&1 && break
  kill -0 "$server" || { cat "$root/log"; exit 1; }
  sleep 0.2
done
curl -fsS "http://127.0.0.1:$port/readyz"
curl -fsS "http://127.0.0.1:$port/metrics" | grep '^leaseboard_watch_events_total'
test "$(stat -c %u "/proc/$server")" = 65534
echo "serves and watches as user 65534, $(awk '/VmRSS/ {print int($2 / 1024)}' "/proc/$server/status") MB resident"
kill -TERM "$server"
wait "$server"
server=
test -z "$(find "$root/app" "$root/venv" -newer "$root/data/secret_key" -type f)"
echo "ended with 0; nothing was written outside the data directory"
