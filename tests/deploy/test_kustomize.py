"""The overlays render, and Kubernetes would take what they render."""

from __future__ import annotations

import pytest
import yaml

from dashboard.config import load
from dashboard.management.commands.doctor import COMPONENTS as COMPONENTS_OF
from leases.domain.notify import Sort
from tests.deploy.operator_schemas import VALIDATORS, operator_faults
from tests.deploy.schemas import VERSIONS, faults
from tests.deploy.shipped import DEPLOY, pod_of, rendered

OVERLAYS = ("sqlite", "postgresql", "proxy")
COMPONENTS = tuple(sorted(one.name for one in (DEPLOY / "components").iterdir()))
WITH_COMPONENT = tuple(f"sqlite with {one}" for one in COMPONENTS)
RECEIVERS = {Sort.ALERTMANAGER: {9093}, Sort.EMAIL: {25, 465, 587}, Sort.WEBHOOK: {80, 8080}}
MONITORED = "sqlite with prometheus-operator"


@pytest.mark.parametrize("overlay", OVERLAYS + WITH_COMPONENT)
def test_every_manifest_is_what_the_schemas_of_each_version_allow(overlay):
    found = rendered(overlay).values()
    assert len(found) >= 12
    assert ({one["kind"] for one in found} >= VALIDATORS.keys()) == (overlay == MONITORED)
    for version in VERSIONS:
        assert [fault for one in found for fault in faults(one, version)] == [], version


@pytest.mark.parametrize("sort", RECEIVERS)
def test_a_component_lets_out_what_goes_to_its_receivers(sort):
    without, found = rendered("sqlite"), rendered(f"sqlite with {sort}")
    (added,) = found.keys() - without.keys()
    assert {name for name, one in without.items() if found[name] != one} == set()
    spec = found[added]["spec"]
    labels = found["Deployment/leaseboard"]["spec"]["template"]["metadata"]["labels"]
    assert spec["podSelector"]["matchLabels"].items() <= labels.items()
    assert spec["policyTypes"] == ["Egress"], "it must close nothing"
    ports = {one["port"] for rule in spec["egress"] for one in rule["ports"]}
    assert ports == RECEIVERS[sort]
    assert COMPONENTS_OF[sort] == f"deploy/components/{sort}"
    assert COMPONENTS_OF.keys() == RECEIVERS.keys()


def test_the_base_lets_out_https_and_what_leaseboard_itself_needs():
    egress = rendered("postgresql")["NetworkPolicy/leaseboard"]["spec"]["egress"]
    assert {one["port"] for rule in egress for one in rule["ports"]} == {53, 443, 5432, 6443}


def test_a_volume_needs_no_mode_that_few_storage_classes_have():
    claim = rendered("sqlite")["PersistentVolumeClaim/leaseboard"]
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_edit_component_adds_the_right_to_edit_and_nothing_else(overlay):
    without, found = rendered(overlay), rendered(f"{overlay} with edit")
    added = found.keys() - without.keys()
    assert added == {"ClusterRole/leaseboard-edit", "ClusterRoleBinding/leaseboard-edit"}
    changed = {name for name, one in without.items() if found[name] != one}
    assert changed == {"ConfigMap/leaseboard"}
    assert load(without["ConfigMap/leaseboard"]["data"]).read_only
    assert not load(found["ConfigMap/leaseboard"]["data"]).read_only
    bound = found["ClusterRoleBinding/leaseboard-edit"]["subjects"]
    account = found["ServiceAccount/leaseboard"]["metadata"]
    assert [(one["name"], one["namespace"]) for one in bound] == [
        (account["name"], account["namespace"])
    ]


def test_the_component_of_secrets_adds_the_right_to_read_them_and_the_setting():
    without, found = rendered("postgresql"), rendered("postgresql with cluster-secrets")
    name = "leaseboard-cluster-secrets"
    assert found.keys() - without.keys() == {f"Role/{name}", f"RoleBinding/{name}"}
    assert found[f"Role/{name}"]["rules"] == [
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]}
    ]
    changed = {name for name, one in without.items() if found[name] != one}
    assert changed == {"ConfigMap/leaseboard"}
    assert str(load(found["ConfigMap/leaseboard"]["data"]).cluster_secrets) == "in-cluster"


def test_an_unknown_field_and_a_wrong_type_are_faults():
    pod = {"containers": [{"name": "a", "imge": "b", "tty": "yes"}]}
    spec = {"template": {"spec": pod}}
    said = "\n".join(faults({"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec}))
    for part in ("'selector' is a required", "'imge' was unexpected", "containers[0].tty"):
        assert part in said
    assert faults({"apiVersion": "apps/v9", "kind": "Deployment"}) == [
        "Kubernetes 1.36 has no Deployment of apps/v9"
    ]


def test_faults_of_the_operators_manifests_are_found():
    rules = rendered(MONITORED)["PrometheusRule/leaseboard"]
    first = {**rules["spec"]["groups"][0]["rules"][0], "for": "5 minutes", "sumary": ""}
    groups = [{"name": "a", "rules": [first]}]
    said = "\n".join(operator_faults({**rules, "spec": {"groups": groups}}))
    assert "PrometheusRule.spec.groups[0].rules[0].for" in said
    assert "sumary" in said
    monitor = rendered(MONITORED)["ServiceMonitor/leaseboard"]
    said = "\n".join(operator_faults({**monitor, "spec": {"endpoints": [{"port": 8000}]}}))
    assert "ServiceMonitor.spec.endpoints[0].port" in said
    assert "'selector' is a required property" in said


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_process_may_do_nothing_on_its_node(overlay):
    pod = pod_of(overlay)
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_its_settings_are_settings(overlay):
    data = rendered(overlay)["ConfigMap/leaseboard"]["data"]
    config = load(data)
    assert [str(cluster.source) for cluster in config.clusters] == ["in-cluster"]
    assert pod_of(overlay)["terminationGracePeriodSeconds"] >= config.drain_seconds + 5


def test_the_overlays_differ_in_what_they_say():
    single, both = (rendered(one)["Deployment/leaseboard"]["spec"] for one in OVERLAYS[:2])
    assert (single["replicas"], single["strategy"]) == (1, {"type": "Recreate"})
    volumes = {volume["name"]: volume for volume in single["template"]["spec"]["volumes"]}
    assert volumes["data"] == {
        "name": "data", "persistentVolumeClaim": {"claimName": "leaseboard"},
    }  # fmt: skip
    assert both["replicas"] == 2
    assert both["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}


def test_the_rights_are_those_of_clusterroles_yaml_without_the_right_to_edit():
    whole = yaml.safe_load_all((DEPLOY / "clusterroles.yaml").read_text())
    rules = {one["metadata"]["name"]: one.get("rules") for one in whole
             if one["kind"] == "ClusterRole"}  # fmt: skip
    found = rendered("postgresql")
    for name in ("leaseboard-read", "leaseboard-evidence"):
        assert found[f"ClusterRole/{name}"]["rules"] == rules[name]
    assert "ClusterRole/leaseboard-edit" not in found
    edit = yaml.safe_load_all((DEPLOY / "components/edit/rights.yaml").read_text())
    assert next(iter(edit))["rules"] == rules["leaseboard-edit"]


def test_the_rules_of_the_operator_are_those_of_alerts_yaml():
    alerts = yaml.safe_load((DEPLOY / "alerts.yaml").read_text())
    assert rendered(MONITORED)["PrometheusRule/leaseboard"]["spec"] == alerts


def test_selectors_find_the_pods_and_the_service():
    found = rendered("postgresql")
    labels = found["Deployment/leaseboard"]["spec"]["template"]["metadata"]["labels"]
    policy, budget = found["NetworkPolicy/leaseboard"], found["PodDisruptionBudget/leaseboard"]
    assert found["Service/leaseboard"]["spec"]["selector"] == labels
    assert policy["spec"]["podSelector"]["matchLabels"] == labels
    assert budget["spec"]["selector"]["matchLabels"] == labels
    monitor = rendered(MONITORED)["ServiceMonitor/leaseboard"]["spec"]["selector"]
    assert (
        monitor["matchLabels"].items() <= found["Service/leaseboard"]["metadata"]["labels"].items()
    )
