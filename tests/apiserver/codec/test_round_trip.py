"""Any Lease that went in comes out with its spec byte for byte, wherever it is read."""

from __future__ import annotations

import json
import re
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings

from tests.apiserver.clients import LEASES, Client, Process
from tests.apiserver.patch import generated


def written(spec: dict[str, Any]) -> str:
    """The spec as Go writes it: compact, in the order of its fields, safe inside HTML."""
    text = json.dumps(spec, ensure_ascii=False, separators=(",", ":"))
    return re.sub("[<>&\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", text)


class Kept:
    """A server, a watch on it from the beginning, and the spec that every Lease must have."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.wanted: dict[str, str] = {}
        self.connect()

    def connect(self) -> None:
        self.client = Client(self.process.url)
        self.watcher = Client(self.process.url)
        version = self.client.call("GET", LEASES).json["metadata"]["resourceVersion"]
        self.events: HTTPResponse = self.watcher.send(
            "GET", LEASES, watch="1", resourceVersion=version
        )

    def close(self) -> None:
        self.client.close()
        self.events.close()
        self.watcher.close()

    def create(self, spec: dict[str, Any]) -> None:
        name = f"lease-{len(self.wanted):05}"
        self.wanted[name] = written(spec)
        made = self.client.call("POST", LEASES, {"metadata": {"name": name}, "spec": spec})
        assert made.status == 201, made.text
        self.check(name, made.text)

    def replace(self, spec: dict[str, Any]) -> None:
        name = next(reversed(self.wanted))
        body = self.client.call("GET", f"{LEASES}/{name}").json
        if written(body["spec"]) == written(spec):
            return
        self.wanted[name] = written(spec)
        done = self.client.call("PUT", f"{LEASES}/{name}", body | {"spec": spec})
        assert done.status == 200, done.text
        self.check(name, done.text)

    def check(self, name: str, answer: str) -> None:
        """The answer to a write, a read after it, and its event."""
        wanted = f'"spec":{self.wanted[name]}'
        assert answer.rstrip("\n").endswith(wanted + "}")
        assert self.client.call("GET", f"{LEASES}/{name}").text == answer
        event = self.events.readline().decode()
        assert event.rstrip("\n").endswith(wanted + "}}")

    def check_all(self) -> None:
        """A list, and a watch from nothing, show every Lease as it went in."""
        listed = self.client.call("GET", LEASES).text
        found = {item["metadata"]["name"] for item in json.loads(listed)["items"]}
        assert found == set(self.wanted)
        for wanted in self.wanted.values():
            assert f'"spec":{wanted}}}' in listed
        stream = Client(self.process.url)
        events = stream.send("GET", LEASES, watch="1")
        for wanted in self.wanted.values():
            assert events.readline().decode().rstrip("\n").endswith(f'"spec":{wanted}}}}}')
        events.close()
        stream.close()


def test_a_spec_comes_out_as_it_went_in_whatever_reads_it(tmp_path: Path) -> None:
    process = Process(tmp_path / "data")
    with process:
        kept = Kept(process)

        @settings(
            max_examples=2 * settings.default.max_examples,
            deadline=None,
            database=None,
            suppress_health_check=[HealthCheck.too_slow],
        )
        @given(first=generated.specs, second=generated.specs)
        def write(first: dict[str, Any], second: dict[str, Any]) -> None:
            kept.create(first)
            kept.replace(second)

        write()
        kept.check_all()
        process.kill()
        process.start()
        kept.close()
        kept.connect()
        kept.check_all()
        kept.close()
        assert process.stop() == 0
        process.start()
        kept.connect()
        kept.check_all()
        kept.close()


def test_a_micro_time_keeps_its_microseconds(tmp_path: Path) -> None:
    with Process(tmp_path / "data") as process:
        client = Client(process.url)
        for at, micro in enumerate(("000000", "000001", "100000", "999999")):
            moment = f"2024-02-29T23:59:59.{micro}Z"
            spec = {"acquireTime": moment, "renewTime": moment.replace("Z", "+00:00")}
            body = {"metadata": {"name": f"n{at}"}, "spec": spec}
            made = client.call("POST", LEASES, body)
            assert made.json["spec"] == {"acquireTime": moment, "renewTime": moment}
            shown = client.call("GET", f"{LEASES}/n{at}", accept="application/yaml").text
            assert yaml.safe_load(shown)["spec"] == made.json["spec"]
        client.close()
