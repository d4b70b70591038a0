"""Settings: good values become fields, wrong ones stop the start naming variable and value."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.config import (
    EVERY_CLUSTER,
    ClusterSpec,
    Config,
    ConfigError,
    check_clusters,
    check_names,
    load,
    parse_cluster,
)
from leases.kube.cluster_source import ClusterSource, SourceKind

EMBEDDED = ClusterSource(SourceKind.EMBEDDED)


def test_without_variables_the_embedded_cluster_is_watched():
    assert load({}).clusters == (ClusterSpec("embedded", EMBEDDED),)


def test_values_become_fields(tmp_path):
    config = load(
        {
            "LEASEBOARD_DATA": str(tmp_path),
            "LEASEBOARD_CLUSTERS": "a=embedded, b=url:http://127.0.0.1:8001,c=context:prod",
            "LEASEBOARD_HTTPS": "true",
            "LEASEBOARD_RETENTION_DAYS": "7",
            "LEASEBOARD_ABANDONED_SECONDS": "600",
        }
    )
    assert config.data == tmp_path
    assert [str(c.source) for c in config.clusters] == [
        "embedded",
        "url:http://127.0.0.1:8001",
        "context:prod",
    ]
    assert config.https
    assert (config.retention_days, config.abandoned_seconds) == (7, 600)


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("true", (EVERY_CLUSTER,)),
        ("1", (EVERY_CLUSTER,)),
        ("false", ()),
        ("prod", ("prod",)),
        (" prod, staging-2 ,", ("prod", "staging-2")),
    ],
)
def test_all_clusters_or_some_are_only_read(value, names):
    assert load({"LEASEBOARD_READ_ONLY": value}).read_only == names


def test_a_cluster_that_is_only_read_must_be_watched():
    a, b = (ClusterSpec(name, EMBEDDED) for name in ("a", "b"))
    for names in ((), ("b", "a"), (EVERY_CLUSTER,)):
        check_names(Config(read_only=names), (a, b))
    with pytest.raises(ConfigError) as refused:
        check_names(Config(read_only=("a", "c")), (a, b))
    assert str(refused.value) == (
        "LEASEBOARD_READ_ONLY names 'c', which is not watched: write true, or names among a, b."
    )


def test_labels_of_clusters_are_read_and_name_watched_ones():
    labels = load(
        {"LEASEBOARD_CLUSTER_LABELS": "a:env=prod, a:region=eu-1,b:env=test"}
    ).cluster_labels
    assert labels == (("a", "env", "prod"), ("a", "region", "eu-1"), ("b", "env", "test"))
    specs = tuple(ClusterSpec(name, EMBEDDED) for name in ("a", "b"))
    check_names(Config(cluster_labels=labels), specs)
    with pytest.raises(
        ConfigError, match="CLUSTER_LABELS names 'b', which is not watched: write n"
    ):
        check_names(Config(cluster_labels=labels), specs[:1])


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("env=prod", "write NAME:LABEL=VALUE, such as prod:env=prod, comma-separated"),
        ("a:env=", "write NAME:LABEL=VALUE"),
        ("a:Env=prod", "write NAME:LABEL=VALUE"),
        ("a:q=prod", "q has a meaning in URLs; give the label another name"),
        ("a:env=prod,a:env=test", "a:env is given twice; give it one value"),
    ],
)
def test_a_wrong_label_of_a_cluster_stops_the_start(value, said):
    with pytest.raises(ConfigError) as refused:
        load({"LEASEBOARD_CLUSTER_LABELS": value})
    assert f"LEASEBOARD_CLUSTER_LABELS cannot be {value!r}: {said}" in str(refused.value)


def test_the_plain_kubeconfig_variable_counts_where_ours_is_unset():
    both = {"KUBECONFIG": "/etc/kube/one:/etc/kube/two"}
    files = (Path("/etc/kube/one"), Path("/etc/kube/two"))
    assert load(both).kubeconfig == files
    assert load(both | {"LEASEBOARD_KUBECONFIG": ""}).kubeconfig == files
    assert load(both | {"LEASEBOARD_KUBECONFIG": "/own"}).kubeconfig == (Path("/own"),)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LEASEBOARD_RETENTION_DAYS", "soon"),
        ("LEASEBOARD_RETENTION_DAYS", "0"),
        ("LEASEBOARD_ABANDONED_SECONDS", "0"),
        ("LEASEBOARD_ABANDONED_SECONDS", "1h"),
        ("LEASEBOARD_HTTPS", "perhaps"),
        ("LEASEBOARD_CLUSTERS", "a"),
        ("LEASEBOARD_CLUSTERS", ""),
        ("LEASEBOARD_CLUSTERS", "a=embedded,a=in-cluster"),
        ("LEASEBOARD_CLUSTERS", "a=ftp://x"),
        ("LEASEBOARD_CLUSTERS", "A_b=embedded"),
        ("LEASEBOARD_DATABASE_URL", "mysql://x"),
        ("LEASEBOARD_TRUSTED_ORIGINS", "board.example.com"),
    ],
)
def test_a_wrong_value_is_named_with_its_variable(name, value):
    with pytest.raises(ConfigError) as caught:
        load({name: value})
    text = str(caught.value)
    assert text.startswith(f"{name} cannot be {value!r}: ")
    assert text.endswith(".")
    assert "\n" not in text


def test_an_unknown_variable_is_refused_with_the_list_of_known_ones():
    with pytest.raises(ConfigError, match="LEASEBOARD_DATTA is not a setting; .*LEASEBOARD_DATA"):
        load({"LEASEBOARD_DATTA": "x"})


@pytest.mark.parametrize(
    "text",
    ["", "a", "=embedded", "a=", "a=context:", "a=url:127.0.0.1", "a=url:http://", "a b=embedded"],
)
def test_a_cluster_without_the_right_form_is_refused(text):
    with pytest.raises(ValueError, match="embedded|cluster name"):
        parse_cluster(text)


def test_two_embedded_clusters_are_refused():
    with pytest.raises(ValueError, match="only one"):
        check_clusters((ClusterSpec("a", EMBEDDED), ClusterSpec("b", EMBEDDED)))


def test_a_url_may_carry_a_token_which_is_never_shown():
    spec = parse_cluster("b=url:https://s%40cret@api.example.com:6443/base/")
    assert (spec.source.value, spec.source.token) == ("https://api.example.com:6443/base", "s@cret")
    assert "cret" not in str(spec.source)
