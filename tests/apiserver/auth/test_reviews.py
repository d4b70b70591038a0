"""Access reviews, rules reviews, token reviews and whoami."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from leases.apiserver.auth import Tokens
from tests.apiserver.clients import ADMIN, VIEWER, Answer, Client, Process

AUTHORIZATION = "/apis/authorization.k8s.io/v1"
AUTHENTICATION = "/apis/authentication.k8s.io/v1"
SELF = f"{AUTHORIZATION}/selfsubjectaccessreviews"
SUBJECT = f"{AUTHORIZATION}/subjectaccessreviews"
LOCAL = f"{AUTHORIZATION}/namespaces/team/localsubjectaccessreviews"
RULES = f"{AUTHORIZATION}/selfsubjectrulesreviews"
TOKENS = f"{AUTHENTICATION}/tokenreviews"
LEASE = {"verb": "get", "group": "coordination.k8s.io", "resource": "leases", "namespace": "team"}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    data = tmp_path_factory.mktemp("reviews") / "data"
    with Process(data) as process:
        tokens = Tokens(data)
        tokens.replace("reader", "read", "reader-token")
        tokens.close()
        yield process


def review(
    api: Process, path: str, spec: dict[str, Any], token: str = ADMIN, **meta: Any
) -> Answer:
    client = Client(api.url, token)
    answer = client.call("POST", path, {"metadata": meta, "spec": spec})
    client.close()
    return answer


@pytest.mark.parametrize(
    ("token", "asked", "allowed"),
    [
        (ADMIN, {"verb": "delete"}, True),
        ("reader-token", {}, True),
        ("reader-token", {"verb": "delete"}, False),
        (VIEWER, {}, False),
        (VIEWER, {"verb": "*", "group": "*", "resource": "*"}, False),
        (
            VIEWER,
            {
                "verb": "create",
                "group": "authorization.k8s.io",
                "resource": "selfsubjectaccessreviews",
            },
            True,
        ),
    ],
)
def test_one_may_what_the_role_may(
    api: Process, token: str, asked: dict[str, str], allowed: bool
) -> None:
    answer = review(api, SELF, {"resourceAttributes": LEASE | asked}, token)
    assert answer.status == 201
    assert answer.json["status"]["allowed"] is allowed


@pytest.mark.parametrize(
    ("verb", "path", "allowed"),
    [
        ("get", "/version", True),
        ("post", "/version", False),
        ("get", "/apis/coordination.k8s.io", True),
        ("get", "/apisx", False),
        ("get", "/metrics", False),
    ],
)
def test_paths_are_for_reading(api: Process, verb: str, path: str, allowed: bool) -> None:
    spec = {"nonResourceAttributes": {"path": path, "verb": verb}}
    answer = review(api, SELF, spec, VIEWER)
    assert answer.json["status"]["allowed"] is allowed
    client = Client(api.url, VIEWER)
    assert (client.call(verb.upper(), path).status == 403) is not allowed
    client.close()


@pytest.mark.parametrize(
    ("subject", "allowed"),
    [
        ({"user": "admin"}, True),
        ({"user": "reader"}, True),
        ({"user": "viewer"}, False),
        ({"user": "nobody"}, False),
        ({"groups": ["system:masters"]}, True),
        ({"user": "x", "groups": ["system:authenticated"], "extra": {"a": ["b"]}}, False),
    ],
)
@pytest.mark.parametrize("path", [SUBJECT, LOCAL])
def test_reviews_of_others(api: Process, path: str, subject: dict[str, Any], allowed: bool) -> None:
    answer = review(api, path, {"resourceAttributes": LEASE} | subject)
    assert answer.json["status"]["allowed"] is allowed
    assert answer.json["spec"] == {"resourceAttributes": LEASE} | subject
    assert review(api, path, {"resourceAttributes": LEASE} | subject, VIEWER).status == 403


@pytest.mark.parametrize(
    ("path", "spec", "fields"),
    [
        (SUBJECT, {}, ["spec.resourceAttributes", "spec.user"]),
        (LOCAL, {"user": "a", "nonResourceAttributes": {}}, ["spec.nonResourceAttributes"]),
        (
            LOCAL,
            {"user": "a", "resourceAttributes": {"namespace": "b"}},
            ["spec.resourceAttributes.namespace"],
        ),
        (
            SELF,
            {"resourceAttributes": {"labelSelector": {}, "fieldSelector": {"rawSelector": "a",
             "requirements": [{"key": "", "operator": "In"}, {"key": "k", "operator": "Other"}]}}},
            [
                "spec.resourceAttributes.fieldSelector.rawSelector",
                "spec.resourceAttributes.fieldSelector.requirements[0].key",
                "spec.resourceAttributes.fieldSelector.requirements[0].values",
                "spec.resourceAttributes.labelSelector.requirements",
            ],
        ),
        (
            SELF,
            {"resourceAttributes": {"labelSelector": {"requirements": [
                {"key": "-", "operator": "Exists", "values": ["_"]}]}}},
            [
                "spec.resourceAttributes.labelSelector.requirements[0].values",
                "spec.resourceAttributes.labelSelector.requirements[0].key",
                "spec.resourceAttributes.labelSelector.requirements[0].values[0]",
            ],
        ),
    ],
)  # fmt: skip
def test_what_a_spec_may_not_hold(
    api: Process, path: str, spec: dict[str, Any], fields: list[str]
) -> None:
    answer = review(api, path, spec)
    assert answer.status == 422
    assert [cause["field"] for cause in answer.json["details"]["causes"]] == fields


def test_selectors_that_cannot_be_read_are_ignored(api: Process) -> None:
    selectors = {
        "labelSelector": {"rawSelector": "a in"},
        "fieldSelector": {
            "requirements": [
                {"key": "metadata.name", "operator": "In", "values": ["x"]},
                {"key": "metadata.name", "operator": "Exists"},
            ]
        },
    }
    answer = review(api, SELF, {"resourceAttributes": LEASE | selectors})
    assert answer.json["status"] == {
        "allowed": True,
        "evaluationError": "spec.resourceAttributes.fieldSelector partially ignored due to parse "
        "error; spec.resourceAttributes.labelSelector ignored due to parse error",
    }


@pytest.mark.parametrize(
    ("meta", "status"),
    [
        ({"uid": "a", "namespace": "b", "managedFields": [{}]}, 201),
        ({"generateName": "a"}, 422),
        ({"labels": {"a": "b"}}, 422),
        ({"resourceVersion": "1"}, 422),
    ],
)
def test_metadata_must_be_empty(api: Process, meta: dict[str, Any], status: int) -> None:
    assert review(api, SELF, {"resourceAttributes": LEASE}, **meta).status == status


def test_a_namespace_in_a_local_review_must_be_that_of_the_path(api: Process) -> None:
    spec = {"user": "viewer", "resourceAttributes": LEASE}
    assert review(api, LOCAL, spec, namespace="other").status == 400
    assert review(api, LOCAL, spec, namespace="team").status == 201
    assert review(api, LOCAL.replace("/namespaces/team", ""), spec).status == 404


def test_rules_say_what_the_role_may(api: Process) -> None:
    def verbs(token: str) -> list[list[str]]:
        status = review(api, RULES, {"namespace": "team"}, token).json["status"]
        return [rule["verbs"] for rule in status["resourceRules"] if rule["resources"] == ["*"]]

    assert verbs(ADMIN) == [["*"]]
    assert verbs("reader-token") == [["get", "list", "watch"]]
    assert verbs(VIEWER) == []
    assert review(api, RULES, {}).json["message"] == "no namespace on request"


def test_a_token_review_names_the_user(api: Process) -> None:
    status = review(api, TOKENS, {"token": VIEWER}).json["status"]
    assert status == {
        "authenticated": True,
        "user": {"username": "viewer", "groups": ["viewers", "system:authenticated"]},
        "audiences": ["https://kubernetes.default.svc.cluster.local"],
    }
    refused = {"user": {}, "error": "invalid bearer token"}
    assert review(api, TOKENS, {"token": "wrong"}).json["status"] == refused
    assert review(api, TOKENS, {"token": VIEWER, "audiences": ["a"]}).json["status"] == refused
    assert review(api, TOKENS, {}).status == 400
    assert review(api, TOKENS, {"token": VIEWER}, VIEWER).status == 403


def test_discovery_names_the_reviews(api: Process) -> None:
    client = Client(api.url)
    for path, kinds in ((AUTHORIZATION, 4), (AUTHENTICATION, 2)):
        resources = client.call("GET", path).json["resources"]
        assert [each["verbs"] for each in resources] == [["create"]] * kinds
        for each in resources:
            place = f"{path}/namespaces/team" if each["namespaced"] else path
            assert client.call("GET", f"{place}/{each['name']}").status == 405
            assert client.call("POST", f"{place}/{each['name']}/x", {}).status == 404
    client.close()
