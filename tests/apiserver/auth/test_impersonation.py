"""Impersonate-* headers: who may send them, and whose rights the request then has."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from leases.apiserver.auth import Tokens
from tests.apiserver.clients import ADMIN, LEASES, VIEWER, Answer, Process

READER = "reader-token"
ME = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    data: Path = tmp_path_factory.mktemp("impersonation") / "data"
    with Process(data) as process:
        tokens = Tokens(data)
        tokens.replace("reader", "read", READER)
        tokens.close()
        ask(process, "POST", LEASES, body={"metadata": {"name": "kept"}})
        yield process


def ask(
    api: Process,
    method: str,
    path: str,
    *headers: tuple[str, str],
    token: str = ADMIN,
    body: dict[str, Any] | None = None,
) -> Answer:
    connection = http.client.HTTPConnection(urlsplit(api.url).netloc, timeout=60)
    connection.putrequest(method, path)
    data = json.dumps(body).encode() if body is not None else b""
    content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
    for name, value in (
        ("Authorization", f"Bearer {token}"),
        ("Content-Type", content_type),
        ("Content-Length", str(len(data))),
        *headers,
    ):
        connection.putheader(name, value)
    connection.endheaders(data)
    answer = Answer(connection.getresponse())
    connection.close()
    return answer


def user(name: str, *groups: str) -> list[tuple[str, str]]:
    return [("Impersonate-User", name), *(("Impersonate-Group", group) for group in groups)]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", LEASES),
        ("GET", f"{LEASES}/kept"),
        ("GET", f"{LEASES}?watch=true"),
        ("GET", "/apis/coordination.k8s.io/v1/leases"),
        ("GET", "/api/v1/namespaces"),
        ("GET", "/api/v1/namespaces/default"),
        ("GET", "/metrics"),
        ("POST", LEASES),
        ("PUT", f"{LEASES}/kept"),
        ("PATCH", f"{LEASES}/kept"),
        ("DELETE", f"{LEASES}/kept"),
        ("DELETE", LEASES),
    ],
)
def test_behind_a_proxy_viewer_does_nothing_that_viewer_may_not(
    api: Process, method: str, path: str
) -> None:
    body = {"metadata": {"name": "kept"}} if method in ("POST", "PUT", "PATCH") else None
    own = ask(api, method, path, token=VIEWER, body=body)
    proxied = ask(api, method, path, *user("viewer"), body=body)
    assert own.status == proxied.status == 403
    assert own.json == proxied.json


def test_an_impersonated_user_has_the_role_of_its_token(api: Process) -> None:
    assert ask(api, "GET", LEASES, *user("reader")).status == 200
    assert ask(api, "DELETE", LEASES, *user("reader")).status == 403
    assert ask(api, "GET", LEASES, *user("admin")).status == 200


def test_a_name_without_a_token_sees_discovery_only(api: Process) -> None:
    assert ask(api, "GET", LEASES, *user("nobody")).status == 403
    assert ask(api, "GET", "/apis", *user("nobody")).status == 200
    assert ask(api, "GET", "/apis", *user("system:anonymous")).status == 403
    assert ask(api, "GET", "/apis", *user("x", "system:unauthenticated")).status == 403
    assert ask(api, "GET", "/version", *user("system:anonymous")).status == 200


def test_the_group_of_masters_may_do_everything(api: Process) -> None:
    assert ask(api, "GET", LEASES, *user("nobody", "a", "system:masters")).status == 200


def test_the_headers_make_the_user_that_a_review_shows(api: Process) -> None:
    answer = ask(
        api, "POST", ME,
        *user("jane", "devs", "ops"),
        ("Impersonate-Uid", "u-1"),
        ("Impersonate-Extra-Example.com%2fScopes", "view"),
        ("Impersonate-Extra-Example.com%2fScopes", "edit"),
        body={},
    )  # fmt: skip
    assert answer.json["status"]["userInfo"] == {
        "username": "jane",
        "uid": "u-1",
        "groups": ["devs", "ops", "system:authenticated"],
        "extra": {"example.com/scopes": ["view", "edit"]},
    }


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("system:serviceaccount:a:b", ["system:serviceaccounts", "system:serviceaccounts:a"]),
        ("system:node:n1", ["system:nodes"]),
        ("system:serviceaccount:a", []),
    ],
)
def test_accounts_and_nodes_get_their_groups(api: Process, name: str, groups: list[str]) -> None:
    shown = ask(api, "POST", ME, *user(name), body={}).json["status"]["userInfo"]
    assert shown == {"username": name, "groups": [*groups, "system:authenticated"]}


@pytest.mark.parametrize("token", [VIEWER, READER])
@pytest.mark.parametrize(
    ("headers", "wants"),
    [
        (user("admin"), 'impersonate-on:user-info:get resource "leases" in API group "coor'),
        (user("a", "b"), 'impersonate-on:user-info:get resource "leases" in API group "coor'),
        (user("system:serviceaccount:a:b"), "impersonate-on:serviceaccount:get resource"),
        (
            user("system:serviceaccount:a:b", "c"),
            'impersonate resource "serviceaccounts" in API group "" in the namespace "a"',
        ),
        (user("system:node:n1"), "impersonate-on:arbitrary-node:get resource"),
        (
            user("system:node:n1", "c"),
            'impersonate resource "users" in API group "" at the cluster scope',
        ),
        (user("system:node:N_1"), "impersonate-on:user-info:get resource"),
    ],
)
def test_without_the_role_write_nobody_impersonates(
    api: Process, token: str, headers: list[tuple[str, str]], wants: str
) -> None:
    answer = ask(api, "GET", f"{LEASES}/kept", *headers, token=token)
    assert answer.status == 403
    assert f"cannot {wants}" in answer.json["message"]


def test_without_the_role_write_nobody_impersonates_on_paths(api: Process) -> None:
    answer = ask(api, "GET", "/version", *user("x"), token=VIEWER)
    assert answer.json["message"] == (
        'forbidden: User "viewer" cannot impersonate-on:user-info:get path "/version"'
    )


def test_groups_without_a_name_are_refused(api: Process) -> None:
    answer = ask(
        api, "GET", LEASES, ("Impersonate-Group", "g"), ("Impersonate-Extra-b", "c\"d"),
        ("Impersonate-Extra-a", ""), ("Impersonate-Uid", "1"), token=VIEWER,
    )  # fmt: skip
    assert answer.status == 400
    assert answer.json["message"] == (
        'requested &user.DefaultInfo{Name:"", UID:"1", Groups:[]string{"g"}, Extra:map[string]'
        '[]string{"a":[]string{""}, "b":[]string{"c\\"d"}}} without impersonating a user name'
    )


def test_an_empty_name_impersonates_nobody(api: Process) -> None:
    assert ask(api, "GET", LEASES, ("Impersonate-User", "")).status == 200
    assert ask(api, "GET", LEASES, ("Impersonate-User", ""), token=VIEWER).status == 403


def test_names_are_shown_without_html(api: Process) -> None:
    answer = ask(api, "GET", LEASES, *user("<b>&"))
    assert 'User "&lt;b&gt;&amp;" cannot list' in answer.json["message"]
