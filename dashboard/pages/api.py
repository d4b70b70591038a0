"""The OpenAPI 3.1 document of Leaseboard's own JSON, and a page of it.

The OpenAPI 3.1 document of Leaseboard's own JSON, made of api_answers.yaml and the URL conf.
"""

import re
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.urls import get_resolver
from django.views.decorators.http import require_safe

from dashboard.access.guards import check_view
from dashboard.access.security_log import SecurityEvent
from dashboard.config import VERSION
from dashboard.lists import responses
from dashboard.lists.declaration import List
from leases.domain.change import ChangeType
from leases.domain.incident import Cause, Confidence
from leases.domain.kind import Kind
from leases.domain.phase import Phase
from leases.domain.watched_times import ConnectionState

Json = dict[str, Any]
ENUMS: tuple[type[StrEnum], ...] = (
    Kind, Phase, ChangeType, Cause, Confidence, ConnectionState, SecurityEvent,
)  # fmt: skip
PRIMITIVES: dict[str, Json] = {
    "string": {"type": "string"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "time": {"type": "string", "format": "date-time"},
    "any": {},
    "texts": {"type": "object", "additionalProperties": {"type": "string"}},
    "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
}
CONTENT_TYPES = {
    "csv": "text/csv",
    "ndjson": "application/x-ndjson",
    "markdown": "text/markdown",
}
DESCRIPTION = (
    "All of it is read by GET. Times are RFC 3339 in UTC with microseconds; a value that does not "
    "exist is null. The WebSocket /c/{cluster}/live/changes/ sends changes as they happen, to "
    "people who are signed in and to API tokens; docs/api.md describes its frames."
)
REFUSALS = {
    "400": ("A parameter cannot be used.", "BadRequest", "application/json"),
    "401": ("No token was sent, or one that opens nothing.", "Problem", "application/problem+json"),
    "403": ("The role may not read this.", "Problem", "application/problem+json"),
    "404": ("There is no such cluster or thing.", "Problem", "application/problem+json"),
}


@cache
def read_answers() -> Json:
    text = Path(__file__).with_name("api_answers.yaml").read_text()
    answers: Json = yaml.safe_load(text)
    return answers


def openapi(version: str) -> Json:
    """The whole document. `version` is that of Leaseboard."""
    source = read_answers()
    answers = {name: _declared(name) | answer for name, answer in source["answers"].items()}
    enums = {
        one.__name__: {"type": "string", "enum": [word.value for word in one]} for one in ENUMS
    }
    schemas = {name: object_of(fields) for name, fields in source["schemas"].items()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Leaseboard", "version": version, "description": DESCRIPTION},
        "security": [{"token": []}, {"session": []}],
        "paths": {
            path_of(name): {"get": operation(name, answer, source["parameters"])}
            for name, answer in answers.items()
        },
        "components": {
            "schemas": enums | schemas,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "An API token"},
                "session": {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME},
            },
        },
    }


def _declared(name: str) -> Json:
    """What the list of this name says of itself."""
    path_of(name)  # which makes sure that all pages are loaded
    one = List.declared.get(name)
    if one is None:
        return {}
    return {
        "formats": ["json", *one.files],
        "known": one.shows_now,
        "spans": one.spans_clusters,
        "list": [parameter.name for parameter in one.reads.PARAMETERS.values()],
    }


def path_of(name: str) -> str:
    """The path of a URL by its name, such as /c/{cluster}/leases/."""
    template: str = get_resolver().reverse_dict.getlist(name)[0][0][0][0]
    return "/" + template.replace("%(", "{").replace(")s", "}")


def operation(name: str, answer: Json, described: dict[str, str]) -> Json:
    """The GET of one path."""
    inside = re.findall(r"{(\w+)}", path_of(name))
    names = [*answer.get("list", ()), *answer.get("parameters", "").split()]
    written = dict.fromkeys(names, PRIMITIVES["string"])
    # In a query, each property of an object is a parameter of its own.
    written |= dict.fromkeys(answer.get("free", "").split(), PRIMITIVES["texts"])
    if "formats" in answer:
        written = {"format": {"type": "string", "enum": answer["formats"]}} | written
    refusals = {
        code: one for code, one in REFUSALS.items() if code == "404" or "open" not in answer
    }
    operation: Json = {
        "operationId": name,
        "summary": answer["summary"],
        "parameters": [
            *(_parameter(one, "path", PRIMITIVES["string"]) for one in inside),
            *(
                _parameter(one, "query", schema) | {"description": described[one]}
                for one, schema in written.items()
            ),
        ],
        "responses": {"200": answered(answer)}
        | {
            code: {"description": text, "content": {kind: {"schema": reference(schema)}}}
            for code, (text, schema, kind) in refusals.items()
        },
    }
    return operation | ({"security": []} if "open" in answer else {})


def _parameter(name: str, place: str, schema: Json) -> Json:
    return {
        "name": name,
        "in": place,
        "required": place == "path" or name == "format",
        "schema": schema,
    }


def answered(answer: Json) -> Json:
    """The response of a request that was understood."""
    if "answer" in answer:
        schema = reference(answer["answer"])
    else:
        fields = {
            "items": [answer["item"]],
            "total": "integer | of all pages",
            "next": "string? | the URL of the next page",
            "now": "time",
        }
        if answer.get("known"):
            fields["connection?"] = "ConnectionState | unless the cluster is live"
            fields["as_of?"] = "time? | when Leaseboard last heard from the cluster"
            fields["behind_seconds?"] = "number | how old the newest event is that it took"
        if answer.get("spans"):
            fields["not_live"] = "[NotLive] | the wanted clusters that may have more than is shown"
        schema = object_of(fields)
    content: Json = {"application/json": {"schema": schema}}
    for one in answer.get("formats", ["json"])[1:]:
        content[CONTENT_TYPES[one]] = {"schema": PRIMITIVES["string"]}
    return {"description": answer["summary"], "content": content}


def object_of(fields: dict[str, Any]) -> Json:
    """The schema of an object; api_answers.yaml says how its fields are written."""
    return {
        "type": "object",
        "properties": {name.rstrip("?"): field(text) for name, text in fields.items()},
        "required": [name for name in fields if not name.endswith("?")],
    }


def field(written: str | list[str]) -> Json:
    if isinstance(written, list):
        return {"type": "array", "items": field(written[0])}
    kind, _, description = map(str.strip, written.partition("|"))
    if kind.startswith("["):
        schema: Json = {"type": "array", "items": field(kind[1:-1])}
    elif kind.endswith("?"):
        plain = field(kind[:-1])
        schema = (
            plain | {"type": [plain["type"], "null"]}
            if "type" in plain
            else {"anyOf": [plain, {"type": "null"}]}
        )
    else:
        schema = dict(PRIMITIVES[kind]) if kind in PRIMITIVES else reference(kind)
    return schema | ({"description": description} if description else {})


def reference(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


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
