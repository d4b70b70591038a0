"""The resourceVersion that a written object carries."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.clients import LEASES, Client, lease


def numbered(name: str, version: str) -> dict[str, Any]:
    body = lease(name)
    body["metadata"]["resourceVersion"] = version
    return body


@pytest.mark.parametrize(
    ("version", "status", "message"),
    [
        ("x\n", 500, 'strconv.ParseUint: parsing "x\\n": invalid syntax'),
        ("-1", 500, 'strconv.ParseUint: parsing "-1": invalid syntax'),
        (str(2**64), 500, f'strconv.ParseUint: parsing "{2**64}": value out of range'),
        ("7", 201, None),
    ],
)
def test_an_update_that_creates_reads_it(
    client: Client, version: str, status: int, message: str | None
) -> None:
    answer = client.call("PUT", f"{LEASES}/put", numbered("put", version))
    assert (answer.status, answer.json.get("message")) == (status, message)


@pytest.mark.parametrize(
    ("version", "status"), [("x", 201), (str(2**64), 201), ("0", 201), ("7", 500)]
)
def test_a_create_takes_none_but_what_is_no_number(
    client: Client, version: str, status: int
) -> None:
    name = f"new-{len(version)}{version[0]}"
    assert client.call("POST", LEASES, numbered(name, version)).status == status


def test_a_list_of_no_number(client: Client) -> None:
    answer = client.call("GET", LEASES, resourceVersion='"')
    told = 'resourceVersion: Invalid value: "\\"": strconv.ParseUint: parsing "\\"": invalid syntax'
    assert answer.json["message"] == f"invalid resource version: {told}"
