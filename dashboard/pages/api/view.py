"""`/api/openapi.json` for programs, and `/api/`, the same for people."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.access.guards import check_view
from dashboard.configuration.version import VERSION
from dashboard.pages.api.document import openapi
from dashboard.parts.frame import responses


@require_safe
def openapi_document(_request: HttpRequest) -> HttpResponseBase:
    """The document names nothing of this installation, so everybody may read it."""
    return responses.json(openapi(VERSION))


@require_safe
def api(request: HttpRequest) -> HttpResponseBase:
    """What programs can read, with the parameters and fields of each answer."""
    refusal = check_view(request)
    if refusal is not None:
        return refusal
    document = openapi(VERSION)
    schemas = document["components"]["schemas"]
    answers = [_presented(path, one["get"]) for path, one in document["paths"].items()]
    context = {
        "answers": answers,
        "objects": [
            {"name": name, "fields": _fields(schema)}
            for name, schema in schemas.items()
            if "properties" in schema
        ],
        "words": [
            {"name": name, "words": schema["enum"]}
            for name, schema in schemas.items()
            if "enum" in schema
        ],
        "address": request.build_absolute_uri("/").rstrip("/"),
    }
    return render(request, "api/index.html", context)


def _presented(path: str, operation: dict[str, Any]) -> dict[str, Any]:
    parameters = [one for one in operation["parameters"] if one["in"] == "query"]
    schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
    item = schema.get("properties", {}).get("items", {}).get("items", schema)
    return {
        "name": operation["operationId"],
        "path": path,
        "summary": operation["summary"],
        "formats": parameters[0]["schema"]["enum"] if parameters else ["json"],
        "parameters": parameters[1:],
        "object": _type(item),
        "listed": "properties" in schema,
    }


def _fields(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "type": _type(field),
            "description": field.get("description", ""),
            "optional": name not in schema["required"],
        }
        for name, field in schema["properties"].items()
    ]


def _type(schema: dict[str, Any]) -> str:
    """The type in a word or two."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return f"{_type(schema['anyOf'][0])} or null"
    kind = schema.get("type", "any value")
    if kind == "array":
        return f"list of {_type(schema['items'])}"
    if isinstance(kind, list):
        return f"{_type(schema | {'type': kind[0]})} or null"
    return "time" if schema.get("format") == "date-time" else str(kind)
