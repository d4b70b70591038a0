"""The machine under the process: disk, memory, port."""

from __future__ import annotations

import errno
import http.client
import re
import shutil
import socket
from pathlib import Path

from dashboard.configuration.version import VERSION
from dashboard.health.view import VERSION_HEADER
from dashboard.management.diagnosis.finding import Finding, Level

MIB = 2**20
LITTLE_DISK, TOO_LITTLE_DISK = 1024 * MIB, 64 * MIB
# 130,000 Leases take 342 MiB (docs/scale.md).
LITTLE_MEMORY, TOO_LITTLE_MEMORY = 512 * MIB, 128 * MIB
NO_LIMIT = 1 << 60  # bytes; cgroup v1 writes a number near 2**63 for "none"
ANSWER_SECONDS = 3.0

disk_usage = shutil.disk_usage  # a test puts a small disk here


def examine_disk(folder: Path) -> Finding:
    try:
        free = disk_usage(folder).free
    except OSError as error:
        return Finding(
            check="disk", level=Level.PROBLEM, found=f"{folder} cannot be read ({error.strerror}).",
            do="Check LEASEBOARD_DATA and its volume.",
        )  # fmt: skip
    level = _level(free, warn=LITTLE_DISK, fail=TOO_LITTLE_DISK)
    return Finding(
        check="disk",
        level=level,
        found=f"{free // MIB:,} MiB are free where {folder} is.",
        do="" if level is Level.OK else "Make room, or lower LEASEBOARD_RETENTION_ROWS or _DAYS.",
    )


def examine_memory(root: Path = Path("/")) -> Finding:
    limits = _memory_limits(root)
    if not limits:
        return Finding(check="memory", level=Level.OK, found="No limit is known on this system.")
    limit, source = min(limits)
    level = _level(limit, warn=LITTLE_MEMORY, fail=TOO_LITTLE_MEMORY)
    return Finding(
        check="memory",
        level=level,
        found=f"This process may use {limit // MIB:,} MiB ({source}).",
        do="" if level is Level.OK else "130,000 Leases need 342 MiB: raise the limit.",
    )


def examine_port(host: str, port: int, allowed_host: str) -> Finding:
    """Whether `serve` could listen there, or does."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            return Finding(check="port", level=Level.OK, found=f"{host} port {port} is free.")
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                return Finding(
                    check="port", level=Level.PROBLEM,
                    found=f"Cannot listen on {host} port {port} ({error.strerror or error}).",
                    do="Choose others with --host and --port.",
                )  # fmt: skip
    return _user_of(host, port, allowed_host)


def _user_of(host: str, port: int, allowed_host: str) -> Finding:
    """Who uses the port: Leaseboard names its version in a header."""
    running = _running_version(host, port, allowed_host)
    where = f"{host} port {port}"
    if running is None:
        return Finding(
            check="port", level=Level.PROBLEM, found=f"Another program uses {where}.",
            do="Stop it, or choose another with --port.",
        )  # fmt: skip
    if running != VERSION:
        return Finding(
            check="port", level=Level.WARNING, do="Restart serve.",
            found=f"Leaseboard {running} serves {where}, but {VERSION} is installed.",
        )  # fmt: skip
    return Finding(check="port", level=Level.OK, found=f"Leaseboard {running} serves {where}.")


def _running_version(host: str, port: int, allowed_host: str) -> str | None:
    there = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - not bound
    connection = http.client.HTTPConnection(there, port, timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", "/healthz", headers={"Host": allowed_host})
        return connection.getresponse().headers.get(VERSION_HEADER)
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def _level(there: int, *, warn: int, fail: int) -> Level:
    if there < fail:
        return Level.PROBLEM
    return Level.WARNING if there < warn else Level.OK


def _memory_limits(root: Path) -> list[tuple[int, str]]:
    """The limits in bytes with their sources: the cgroups of this process, the machine."""
    found = []
    groups = _text(root / "proc/self/cgroup")
    own = re.search(r"^0::/(.*)$", groups, re.MULTILINE)
    base = root / "sys/fs/cgroup"
    places = [base / "memory.max", base / "memory/memory.limit_in_bytes"]
    if own and ".." not in own[1]:
        below = base / own[1]
        places += [folder / "memory.max" for folder in (below, *below.parents)
                   if folder.is_relative_to(base)]  # fmt: skip
    for place in places:
        text = _text(place).strip()
        if text.isdecimal() and int(text) < NO_LIMIT:
            found.append((int(text), f"/{place.relative_to(root)}"))
    if total := re.search(r"^MemTotal:\s+(\d+) kB", _text(root / "proc/meminfo"), re.MULTILINE):
        found.append((int(total[1]) * 1024, "the machine's memory"))
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
