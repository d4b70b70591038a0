"""Bodies in the binary encoding, made here by hand, byte by byte."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.apiserver.clients import LEASES, Answer, Client, Process
from tests.apiserver.codec.proto_client import KIND, field, fields

UNHANDLED = 'Lease in version "v1" cannot be handled as a Lease'
MOMENT = datetime(2024, 5, 1, 10, 0, 0, tzinfo=UTC)


def unknown(raw: bytes, version: str = "coordination.k8s.io/v1", kind: str = "Lease") -> bytes:
    return b"k8s\0" + field(1, field(1, version) + field(2, kind)) + field(2, raw) + field(3, "")


def entry(key: str, value: str) -> bytes:
    return field(1, key) + field(2, value)


def moment(nanos: int) -> bytes:
    return field(1, int(MOMENT.timestamp())) + field(2, nanos)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with Process(tmp_path_factory.mktemp("binary") / "data") as process:
        client = Client(process.url)
        yield client
        client.close()
        assert "Traceback" not in process.log.read_text()


def post(client: Client, data: bytes, **query: str) -> Answer:
    return client.call("POST", LEASES, data, content_type=KIND, **query)


def test_a_lease_as_client_go_sends_it(client: Client) -> None:
    meta = (
        field(1, "one") + field(2, "") + field(3, "default") + field(5, "") + field(7, 0)
        + field(8, b"") + field(11, entry("app", "x")) + field(11, entry("tier", "y"))
        + field(12, entry("note", "é")) + field(14, "x.y/a") + field(14, "x.y/b")
        + field(13, field(1, "Node") + field(3, "n") + field(4, "u") + field(5, "v1") + field(6, 1))
    )  # fmt: skip
    spec = (
        field(1, "me") + field(2, 15) + field(3, moment(123_456_789)) + field(4, moment(1_000))
        + field(5, 7)
    )  # fmt: skip
    made = post(client, unknown(field(1, meta) + field(2, spec)))
    assert made.status == 201, made.text
    assert made.json["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": "2024-05-01T10:00:00.123456Z",
        "renewTime": "2024-05-01T10:00:00.000001Z",
        "leaseTransitions": 7,
    }
    found = made.json["metadata"]
    assert found["labels"] == {"app": "x", "tier": "y"}
    assert found["annotations"] == {"note": "é"}
    assert found["finalizers"] == ["x.y/a", "x.y/b"]
    assert found["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": True}
    ]
    assert datetime.fromisoformat(found["creationTimestamp"]).year > 2024


def test_a_binary_renewal_and_deletion(client: Client) -> None:
    version = post(client, unknown(field(1, field(1, "two")))).json["metadata"]["resourceVersion"]
    meta, spec = field(1, "two") + field(6, version), field(1, "") + field(4, moment(0))
    path = f"{LEASES}/two"
    data = unknown(field(1, meta) + field(2, spec))
    done = client.call("PUT", path, data, content_type=KIND)
    assert done.json["spec"] == {"holderIdentity": "", "renewTime": "2024-05-01T10:00:00.000000Z"}
    options = unknown(field(2, field(2, version)), kind="DeleteOptions")
    stale = client.call("DELETE", path, options, content_type=KIND)
    assert (stale.status, stale.json["reason"]) == (409, "Conflict")
    options = unknown(field(1, 0) + field(4, "Background"), kind="DeleteOptions")
    assert client.call("DELETE", path, options, content_type=KIND).status == 200


def test_metadata_that_comes_twice_is_merged(client: Client) -> None:
    post(client, unknown(field(1, field(1, "twice"))))
    path = f"{LEASES}/twice"
    stored = client.send("GET", path, accept=KIND).read()
    raw = dict(fields(stored[4:]))[2]
    again = unknown(raw + field(1, field(11, entry("app", "x"))))
    done = client.call("PUT", path, again, content_type=KIND)
    assert (done.status, done.json["metadata"]["labels"]) == (200, {"app": "x"})


@pytest.mark.parametrize(
    ("data", "code", "expected"),
    [
        (b"{}", 400, "provided data does not appear to be a protobuf message"),
        (b"k8s\0\x0a\xff", 400, "unexpected EOF"),
        (b"", 400, "(must be of type Lease): empty data (<empty>)"),
        (b"k8s\0", 400, "(must be of type Lease): empty body (6b387300)"),
        (b"k8s\0\x0f", 400, "): proto: wrong wireType = 7 for field TypeMeta (6b3873000f)"),
        (b"k8s\0\x2f", 400, "(must be of type Lease): proto: illegal wireType 7"),
        (unknown(b"\x0a\x05ab"), 400, f"{UNHANDLED}: unexpected EOF"),
        (unknown(b"\x0c"), 400, f"{UNHANDLED}: proto: Lease: wiretype end group for non-group"),
        (unknown(b"\x02\x00"), 400, f"{UNHANDLED}: proto: Lease: illegal tag 0 (wire type 2)"),
        (unknown(b"\x0a" + b"\xff" * 10), 400, f"{UNHANDLED}: proto: integer overflow"),
        (unknown(b"\x0a" + b"\xff" * 9 + b"\1"), 400, f"{UNHANDLED}: proto: negative length"),
        (
            unknown(field(2, field(2, "text"))),
            400,
            f"{UNHANDLED}: proto: wrong wireType = 2 for field LeaseDurationSeconds",
        ),
        (
            unknown(field(1, field(5, 1))),
            400,
            f"{UNHANDLED}: proto: wrong wireType = 0 for field UID",
        ),
        (unknown(field(2, field(4, field(1, 2**62)))), 400, "out of range"),
        (unknown(b"", kind="Pod"), 400, "no kind"),
        (unknown(b""), 422, "name or generateName is required"),
        (unknown(field(1, field(1, "x")) + field(2, field(2, -1))), 422, "must be greater than 0"),
    ],
)
def test_bodies_that_are_refused(client: Client, data: bytes, code: int, expected: str) -> None:
    answer = post(client, data)
    assert (answer.status, answer.json["kind"]) == (code, "Status")
    assert expected in answer.json["message"]


@settings(max_examples=2 * settings.default.max_examples, database=None)
@given(
    st.recursive(st.binary(max_size=6), lambda inner: st.lists(inner, max_size=4), max_leaves=12)
)
def test_no_bytes_make_the_server_fail(client: Client, tree: bytes | list[object]) -> None:
    def grown(node: bytes | list[object]) -> bytes:
        if isinstance(node, bytes):
            return node
        return b"".join(field(at + 1, grown(each)) for at, each in enumerate(node))

    answer = post(client, unknown(grown(tree)), dryRun="All")
    assert answer.status in (201, 400, 422), answer.text
