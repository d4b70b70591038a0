#!/usr/bin/env bash
# Run the first command of README.md word for word, as a newcomer does: in a checkout of its own, without a virtual
# environment, with the Python of the system, into which Debian, Ubuntu and Homebrew let pip install nothing. Only the ports are
# added. Needs the network. CI runs it.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
if ! python3 -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "NOT TRIED: $(python3 --version 2>&1), without venv or older than 3.11, is the Python of this system"
  exit 0
fi
scratch=$(mktemp -d)
server=
end() {
  if [ -n "$server" ]; then kill -KILL -- "-$server" 2>/dev/null || true; fi
  rm -rf "$scratch"
}
trap end EXIT
git -c safe.directory="$PWD" ls-files -z | xargs -0 cp --parents -t "$scratch" --
command=$(awk '/^## Quick start/ {on = 1} on && /^    / {print substr($0, 5); exit}' README.md)
test -n "$command"
free_port() { python3 -c 'import socket; one = socket.socket(); one.bind(("127.0.0.1", 0)); print(one.getsockname()[1])'; }
port=$(free_port)
cd "$scratch"
for name in $(compgen -e LEASEBOARD_) VIRTUAL_ENV PYTHONPYCACHEPREFIX; do unset "$name"; done
set -m
bash -c "$command --port $port --api-port $(free_port)" >log 2>&1 &
server=$!
for _ in $(seq 3000); do
  [ "$(curl -fsS "http://127.0.0.1:$port/readyz" 2>/dev/null)" = ok ] && break
  kill -0 "$server" 2>/dev/null || { cat log; exit 1; }
  sleep 0.2
done
test "$(curl -fsS "http://127.0.0.1:$port/readyz")" = ok
test -x .venv/bin/python3
kill -INT -- "-$server"
wait "$server"
server=
echo "the first command of README.md serves with $(python3 --version), and ends with 0 at Ctrl-C"
