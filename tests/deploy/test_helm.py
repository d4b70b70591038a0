"""The Helm chart renders what the kustomize base says, and Kubernetes would take it."""

from __future__ import annotations

from functools import cache
from typing import Any

import helm_python
import pytest
import yaml

from dashboard.config import load
from tests.deploy.schemas import VERSIONS, faults
from tests.deploy.shipped import DEPLOY, Manifest, rendered

CHART = DEPLOY / "helm"
ALL: dict[str, Any] = {
    "replicas": 2,
    "clusters": ["here=in-cluster", "prod=context:prod"],
    "clusterSecrets": {"enabled": True, "namespace": "argocd"},
    "ingress": {"enabled": True},
    "proxy": {
        "addresses": ["10.0.0.10"],
        "roles": {"readers": "operator", "lease-admins": "admin"},
    },
    "edit": True,
    "receivers": ["alertmanager", "email", "webhook"],
    "settings": {"LEASEBOARD_RETENTION_DAYS": "30"},
}
VOLUME = {"database": {"volume": {"enabled": True}}}
GIVEN: dict[str, dict[str, Any]] = {"defaults": {}, "all": ALL, "volume": VOLUME}


def helm(values: dict[str, Any]) -> dict[str, Manifest]:
    """The manifests by `Kind/name`, rendered by Helm's own engine."""
    with helm_python.Chart.load(str(CHART)) as chart:
        chart.validate_schema(values)
        files = chart.render(values, name="leaseboard", namespace="leaseboard")
    found = [one for text in files.values() for one in yaml.safe_load_all(text) if one]
    return {f"{one['kind']}/{one['metadata']['name']}": one for one in found}


@cache
def chart_with(name: str) -> dict[str, Manifest]:
    return helm(GIVEN[name])


@pytest.mark.parametrize("name", GIVEN)
def test_every_manifest_is_what_the_schemas_of_each_version_allow(name):
    found = chart_with(name).values()
    assert len(found) >= 10
    for version in VERSIONS:
        assert [fault for one in found for fault in faults(one, version)] == [], version


def said(manifest: Manifest) -> Manifest:
    """What matters of a manifest: not its labels, nor what only one of the two renderers adds."""
    one = {key: value for key, value in manifest.items() if key != "metadata"}
    if one["kind"] == "Deployment":
        template = one["spec"]["template"]
        del template["metadata"]
        (container,) = template["spec"]["containers"]
        del container["image"]
        container.pop("imagePullPolicy", None)
    return one


@pytest.mark.parametrize(
    ("name", "overlay"), [("defaults", "base"), ("volume", "sqlite"), ("all", "postgresql")]
)
def test_the_chart_says_what_kustomize_says(name, overlay):
    values = GIVEN[name] if name != "all" else {"replicas": 2, "ingress": {"enabled": True}}
    ours, theirs = helm(values), dict(rendered("../base" if overlay == "base" else overlay))
    del theirs["Namespace/leaseboard"]  # helm install --create-namespace makes it
    assert ours.keys() == theirs.keys()
    theirs = yaml.safe_load(yaml.safe_dump(theirs))  # a copy, which `said` may cut
    assert {key: said(one) for key, one in ours.items()} == {
        key: said(one) for key, one in theirs.items()
    }


def test_values_become_settings_rights_and_ports():
    found = chart_with("all")
    config = load(
        {
            k: v
            for k, v in found["ConfigMap/leaseboard"]["data"].items()
            if k != "FORWARDED_ALLOW_IPS"
        }
    )
    assert [spec.name for spec in config.clusters] == ["here", "prod"]
    assert config.cluster_secrets_namespace == "argocd"
    assert dict(config.proxy_roles) == {"readers": "operator", "lease-admins": "admin"}
    assert config.retention_days == 30
    assert not config.read_only
    for component in ("edit", "cluster-secrets"):
        theirs = rendered(f"postgresql with {component}")
        for key in theirs.keys() - rendered("postgresql").keys():
            assert said(found[key]) == said(theirs[key])
    assert found["Role/leaseboard-cluster-secrets"]["metadata"]["namespace"] == "argocd"
    egress = found["NetworkPolicy/leaseboard"]["spec"]["egress"]
    ports = {one["port"] for rule in egress for one in rule["ports"]}
    assert ports == {53, 443, 6443, 5432, 9093, 25, 465, 587, 80, 8080}


@pytest.mark.parametrize(
    ("values", "about"),
    [
        ({"replica": 2}, "replica"),
        ({"replicas": 2} | VOLUME, "enabled"),
        ({"receivers": ["pager"]}, "receivers"),
        ({"settings": {"DATA": "x"}}, "LEASEBOARD_"),
        ({"proxy": {"roles": {"a": "root"}}}, "roles"),
    ],
)
def test_a_wrong_value_is_refused_by_the_schema(values, about):
    with pytest.raises(helm_python.HelmError, match=about):
        helm(values)


def test_lint_finds_nothing():
    assert [str(one) for one in getattr(helm_python.lint(str(CHART)), "errors", ())] == []
