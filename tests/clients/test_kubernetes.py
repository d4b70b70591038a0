"""The official Python client, with typed objects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.clients.presence import imported

pytestmark = pytest.mark.clients
RENEWED = datetime(2024, 5, 1, 12, 0, 0, 123457, tzinfo=timezone(timedelta(hours=2)))


@pytest.fixture
def api(kubeconfig: Path) -> Iterator[Any]:
    config, client = imported("kubernetes.config"), imported("kubernetes.client")
    connection = config.new_client_from_config(str(kubeconfig))
    yield client.CoordinationV1Api(connection)
    connection.close()


def lease(name: str, **spec: Any) -> Any:
    client = imported("kubernetes.client")
    meta = client.V1ObjectMeta(name=name, labels={"app": name})
    return client.V1Lease(metadata=meta, spec=client.V1LeaseSpec(**spec))


def refused(call: Any, *arguments: Any, **more: Any) -> Any:
    with pytest.raises(imported("kubernetes.client").ApiException) as caught:
        call(*arguments, **more)
    return caught.value


def test_a_lease_from_its_creation_to_its_end(api: Any, namespace: str) -> None:
    made = api.create_namespaced_lease(
        namespace, lease("one", holder_identity="a", lease_duration_seconds=15, renew_time=RENEWED)
    )
    found = api.read_namespaced_lease("one", namespace)
    assert found == made
    assert found.spec.renew_time == RENEWED.astimezone(UTC)
    found.spec.holder_identity = "b"
    taken = api.replace_namespaced_lease("one", namespace, found)
    assert taken.spec.holder_identity == "b"
    stale = refused(api.replace_namespaced_lease, "one", namespace, found)
    assert (stale.status, stale.reason) == (409, "Conflict")
    assert "the object has been modified" in stale.body
    assert api.delete_namespaced_lease("one", namespace)["status"] == "Success"
    assert refused(api.read_namespaced_lease, "one", namespace).status == 404


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        ("json-patch+json", [{"op": "add", "path": "/spec/holderIdentity", "value": "b"}]),
        ("merge-patch+json", {"spec": {"holderIdentity": "b"}}),
        ("strategic-merge-patch+json", {"spec": {"holderIdentity": "b"}}),
    ],
)
def test_a_patch_of_each_kind(api: Any, namespace: str, kind: str, patch: Any) -> None:
    api.create_namespaced_lease(namespace, lease("one", holder_identity="a", lease_transitions=3))
    done = api.patch_namespaced_lease("one", namespace, patch, _content_type=f"application/{kind}")
    assert (done.spec.holder_identity, done.spec.lease_transitions) == ("b", 3)


def test_an_apply_conflicts_until_it_is_forced(api: Any, namespace: str) -> None:
    def apply(manager: str, holder: str, **more: Any) -> Any:
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "one"},
            "spec": {"holderIdentity": holder},
        }
        return api.patch_namespaced_lease(
            "one",
            namespace,
            body,
            field_manager=manager,
            _content_type="application/apply-patch+yaml",
            **more,
        )

    assert apply("first", "a").spec.holder_identity == "a"
    error = json.loads(refused(apply, "second", "b").body)
    assert [cause["message"] for cause in error["details"]["causes"]] == ['conflict with "first"']
    assert apply("second", "b", force=True).spec.holder_identity == "b"


def test_pages_and_selectors(api: Any, namespace: str) -> None:
    for name in ("a", "b", "c"):
        api.create_namespaced_lease(namespace, lease(name))
    first = api.list_namespaced_lease(namespace, limit=2)
    rest = api.list_namespaced_lease(namespace, limit=2, _continue=first.metadata._continue)
    assert [item.metadata.name for item in first.items + rest.items] == ["a", "b", "c"]
    assert first.metadata.remaining_item_count == 1
    chosen = api.list_lease_for_all_namespaces(
        label_selector="app in (b, c)", field_selector=f"metadata.namespace={namespace}"
    )
    assert [item.metadata.name for item in chosen.items] == ["b", "c"]
    api.delete_collection_namespaced_lease(namespace, label_selector="app!=a")
    left = api.list_namespaced_lease(namespace)
    assert [item.metadata.name for item in left.items] == ["a"]


def test_a_watch_goes_on_from_a_list(api: Any, namespace: str) -> None:
    since = api.list_namespaced_lease(namespace).metadata.resource_version
    made = api.create_namespaced_lease(namespace, lease("one", holder_identity="a"))
    made.spec.renew_time = RENEWED
    api.replace_namespaced_lease("one", namespace, made)
    api.delete_namespaced_lease("one", namespace)
    watch = imported("kubernetes.watch").Watch()
    seen = []
    for event in watch.stream(
        api.list_namespaced_lease, namespace, resource_version=since, timeout_seconds=10
    ):
        seen.append((event["type"], event["object"].spec.renew_time))
        if event["type"] == "DELETED":
            watch.stop()
    at = RENEWED.astimezone(UTC)
    assert seen == [("ADDED", None), ("MODIFIED", at), ("DELETED", at)]


def test_a_dry_run_keeps_nothing(api: Any, namespace: str) -> None:
    made = api.create_namespaced_lease(namespace, lease("one"), dry_run="All")
    assert made.metadata.uid
    assert refused(api.read_namespaced_lease, "one", namespace).status == 404


def test_invalid_values_are_reported_by_field(api: Any, namespace: str) -> None:
    error = refused(api.create_namespaced_lease, namespace, lease("one", lease_duration_seconds=0))
    assert error.status == 422
    causes = json.loads(error.body)["details"]["causes"]
    assert [cause["field"] for cause in causes] == ["spec.leaseDurationSeconds"]


def test_discovery_version_and_access(api: Any, namespace: str) -> None:
    client = imported("kubernetes.client")
    groups = client.ApisApi(api.api_client).get_api_versions().groups
    assert "coordination.k8s.io" in [group.name for group in groups]
    resources = client.CoordinationV1Api(api.api_client).get_api_resources().resources
    assert "leases" in [resource.name for resource in resources]
    assert client.VersionApi(api.api_client).get_code().git_version.startswith("v1.")
    attributes = client.V1ResourceAttributes(
        group="coordination.k8s.io", resource="leases", verb="create", namespace=namespace
    )
    asked = client.V1SelfSubjectAccessReview(
        spec=client.V1SelfSubjectAccessReviewSpec(resource_attributes=attributes)
    )
    review = client.AuthorizationV1Api(api.api_client).create_self_subject_access_review(asked)
    assert review.status.allowed is True
    names = [item.metadata.name for item in client.CoreV1Api(api.api_client).list_namespace().items]
    assert namespace in names
