"""Which wrong list option is named first, and in what words."""

from __future__ import annotations

import base64

import pytest

from leases.apiserver.registry.get_list import encode_token
from tests.apiserver.clients import LEASES, Client, lease

NO_LABEL = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    "'12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
NO_NUMBER = "for 'Gt', 'Lt' operators, the value must be an integer"
WRONG_FIELD = "json: cannot unmarshal {} into Go struct field continueToken.{} of type {}"
TOKEN = "invalid continue token: continue key is not valid: "


@pytest.mark.parametrize(
    ("selector", "errors"),
    [
        ("a>-1", [f'values[0][a]: Invalid value: "-1": {NO_LABEL}']),
        ("a<+5", [f'values[0][a]: Invalid value: "+5": {NO_LABEL}']),
        ("a>", [f'values[0]: Invalid value: "": {NO_NUMBER}']),
        ("a<1.5", [f'values[0]: Invalid value: "1.5": {NO_NUMBER}']),
        ("a>9223372036854775808",
         [f'values[0]: Invalid value: "9223372036854775808": {NO_NUMBER}']),
        ("a<-", [f'values[0]: Invalid value: "-": {NO_NUMBER}',
                 f'values[0][a]: Invalid value: "-": {NO_LABEL}']),
    ],
)  # fmt: skip
def test_a_compared_value_is_an_integer_and_a_label(
    client: Client, selector: str, errors: list[str]
) -> None:
    answer = client.call("GET", LEASES, labelSelector=selector)
    listed = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
    assert answer.json["message"] == f"unable to parse requirement: {listed}"


def test_a_label_that_is_no_int64_is_never_compared(client: Client) -> None:
    for number, text in enumerate(("7", "9223372036854775808", "x", "-7")):
        body = lease(f"n{number}")
        body["metadata"]["labels"] = {"rank": text}
        client.call("POST", LEASES, body)
    found = client.call("GET", LEASES, labelSelector="rank>0").json["items"]
    assert [item["metadata"]["name"] for item in found] == ["n0"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"labelSelector": "=", "limit": "x", "timeoutSeconds": "y"}, 'parsing "y"'),
        ({"fieldSelector": "=", "limit": "x"}, 'parsing "x"'),
        ({"labelSelector": "=", "fieldSelector": "x"}, "found '='"),
    ],
)
def test_numbers_are_read_before_selectors(
    client: Client, query: dict[str, str], message: str
) -> None:
    for method in ("GET", "DELETE"):
        assert message in client.call(method, LEASES, **query).json["message"]


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (b'"x"', "json: cannot unmarshal string into Go value of type storage.continueToken"),
        (b'{"rv":1.5}', WRONG_FIELD.format("number 1.5", "rv", "int64")),
        (b'{"start":{}}', WRONG_FIELD.format("object", "start", "string")),
        (b"{", "unexpected end of JSON input"),
        (b"null", "server does not recognize this encoded version "),
    ],
)  # fmt: skip
def test_an_unreadable_continue_token(client: Client, token: bytes, message: str) -> None:
    text = base64.urlsafe_b64encode(token).rstrip(b"=").decode()
    answer = client.call("GET", LEASES, **{"continue": text})
    assert (answer.status, answer.json["message"]) == (400, TOKEN + message)


@pytest.mark.parametrize("selector", ["=", "==", "!=", "metadata.name=p0,=,!="])
def test_a_field_term_without_field_and_value_selects_everything(
    client: Client, selector: str
) -> None:
    client.call("POST", LEASES, lease("p0"))
    found = client.call("GET", LEASES, fieldSelector=selector)
    assert found.status == 200
    assert "p0" in {item["metadata"]["name"] for item in found.json["items"]}


def test_a_token_of_a_version_to_come_is_a_timeout(client: Client) -> None:
    token = encode_token("default/a\0", 99_999_999)
    answer = client.call("GET", LEASES, **{"continue": token})
    assert (answer.status, answer.json["reason"]) == (504, "Timeout")
    assert "Too large resource version: 99999999, current: " in answer.json["message"]


def test_a_resource_version_beside_a_token_is_not_read(client: Client) -> None:
    for name in ("p0", "p1"):
        client.call("POST", LEASES, lease(name))
    token = client.call("GET", LEASES, limit="1").json["metadata"]["continue"]
    answer = client.call("GET", LEASES, **{"continue": token, "resourceVersion": "x"})
    expected = "specifying resource version is not allowed when using continue"
    assert (answer.status, answer.json["message"]) == (400, expected)


def test_the_grace_of_a_deleted_object_cannot_change(client: Client) -> None:
    body = lease("held")
    body["metadata"]["finalizers"] = ["a.io/b"]
    client.call("POST", LEASES, body)
    client.call("DELETE", f"{LEASES}/held")
    patch = {"content_type": "application/merge-patch+json"}
    for seconds, status in ((9, 422), (0, 200), (None, 200)):
        change = {"metadata": {"deletionGracePeriodSeconds": seconds}}
        assert client.call("PATCH", f"{LEASES}/held", change, **patch).status == status
