"""JSON schemas of ServiceMonitor and PrometheusRule, with the fields that `deploy/` uses.

Written by hand from the custom resource definitions of the Prometheus operator 0.82; no registry
has them as a package. A field that is not here is a fault: look it up and add it.
"""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator

Schema = dict[str, Any]
# Prometheus' durations: the units of each value go from large to small.
DURATION = {
    "type": "string",
    "pattern": r"^(0|(\d+y)?(\d+w)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?)$",
    "minLength": 1,
}
TEXT = {"type": "string"}
TEXTS = {"type": "object", "additionalProperties": TEXT}


def fields(*required: str, **known: Schema) -> Schema:
    return {
        "type": "object",
        "properties": known,
        "required": required,
        "additionalProperties": False,
    }


def list_of(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def resource(kind: str, spec: Schema) -> Draft202012Validator:
    named = fields("name", name=TEXT, namespace=TEXT, labels=TEXTS, annotations=TEXTS)
    return Draft202012Validator(
        fields(
            "apiVersion", "kind", "metadata", "spec",
            apiVersion={"const": "monitoring.coreos.com/v1"},
            kind={"const": kind}, metadata=named, spec=spec,
        )
    )  # fmt: skip


RULE = fields(
    "expr", "alert",
    alert=TEXT, expr={"type": ["string", "integer"]}, labels=TEXTS, annotations=TEXTS,
    **{"for": DURATION},
)  # fmt: skip
GROUP = fields("name", name={"type": "string", "minLength": 1}, rules=list_of(RULE))
CREDENTIALS = fields("key", key=TEXT, name=TEXT, optional={"type": "boolean"})
ENDPOINT = fields(
    port=TEXT, path=TEXT, interval=DURATION,
    authorization=fields(type=TEXT, credentials=CREDENTIALS),
)  # fmt: skip
VALIDATORS = {
    "PrometheusRule": resource("PrometheusRule", fields(groups=list_of(GROUP))),
    "ServiceMonitor": resource(
        "ServiceMonitor",
        fields(
            "endpoints", "selector",
            endpoints=list_of(ENDPOINT), selector=fields(matchLabels=TEXTS),
        ),
    ),
}  # fmt: skip


def operator_faults(manifest: dict[str, Any]) -> list[str]:
    """Unknown fields, wrong types and missing required fields, each with its path."""
    kind = manifest["kind"]
    return [f"{kind}{error.json_path[1:]}: {error.message}"
            for error in VALIDATORS[kind].iter_errors(manifest)]  # fmt: skip
