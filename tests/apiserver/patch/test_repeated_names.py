"""Repeated and unknown names in a strategic merge patch."""

from __future__ import annotations

from tests.apiserver.clients import LEASES, Client, lease

STRATEGIC = "application/strategic-merge-patch+json"
BODY = b'{"z":1,"spec":{"y":1,"leaseDurationSeconds":3,"leaseDurationSeconds":4,"b":1},"a":1}'


def test_the_last_of_repeated_names_is_merged(client: Client) -> None:
    client.call("POST", LEASES, lease("merged", holderIdentity="h"))
    path = f"{LEASES}/merged"
    answer = client.call("PATCH", path, BODY, content_type=STRATEGIC, fieldValidation="Ignore")
    assert answer.json["spec"] == {"holderIdentity": "h", "leaseDurationSeconds": 4}


def test_unknown_names_are_told_in_the_order_of_their_texts(client: Client) -> None:
    client.call("POST", LEASES, lease("warned"))
    answer = client.call("PATCH", f"{LEASES}/warned", BODY, content_type=STRATEGIC)
    told = ["duplicate", "unknown", "unknown", "unknown", "unknown"]
    names = ["spec.leaseDurationSeconds", "a", "spec.b", "spec.y", "z"]
    assert answer.headers.get_all("Warning") == [
        f'299 - "{word} field \\"{name}\\""' for word, name in zip(told, names, strict=True)
    ]
