"""The errors the API answers with, as metav1.Status; and reports of unexpected failures.

Source of the words: apimachinery/pkg/api/errors.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import msgspec

from leases.wire.status import ApiError, Status, StatusCause, StatusDetails, error_of, go_quote

GROUP = "coordination.k8s.io"
META_GROUP = "meta.k8s.io"
MEDIA_TYPES = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
BODY_LIMIT = 3 * 1024 * 1024


class ResumableError(ApiError):
    """An error with a continue token in its Status."""

    def __init__(self, status: Status, *, resume: str) -> None:
        super().__init__(status)
        self.resume = resume


def failure(code: int, reason: str, message: str, details: StatusDetails | None = None) -> ApiError:
    return error_of(Status(code=code, reason=reason, message=message, details=details))


def about(name: str, kind: str, group: str = GROUP, **more: Any) -> StatusDetails:
    return StatusDetails(name=name, group=group, kind=kind, **more)


def qualified(resource: str, group: str = GROUP) -> str:
    return f"{resource}.{group}" if group else resource


def bad_request(message: str) -> ApiError:
    return failure(400, "BadRequest", message)


def internal(message: str) -> ApiError:
    """A 500 as the server makes one of a plain error: no reason, no details."""
    return failure(500, "", message)


def unauthorized() -> ApiError:
    return failure(401, "Unauthorized", "Unauthorized")


def not_found(resource: str, name: str, group: str = GROUP) -> ApiError:
    message = f"{qualified(resource, group)} {go_quote(name)} not found"
    return failure(404, "NotFound", message, about(name, resource, group))


def no_such_path() -> ApiError:
    message = "the server could not find the requested resource"
    return failure(404, "NotFound", message, StatusDetails())


def method_not_allowed() -> ApiError:
    message = "the server does not allow this method on the requested resource"
    return failure(405, "MethodNotAllowed", message, StatusDetails())


def not_acceptable(message: str, details: StatusDetails | None = None) -> ApiError:
    return failure(406, "NotAcceptable", message, details)


def unsupported_body() -> ApiError:
    unknown = "the body of the request was in an unknown format"
    message = f"{unknown} - accepted media types include: {MEDIA_TYPES}"
    return failure(415, "UnsupportedMediaType", message)


def too_large(why: str = f"limit is {BODY_LIMIT}") -> ApiError:
    return failure(413, "RequestEntityTooLarge", f"Request entity too large: {why}")


def already_exists(
    resource: str, name: str, group: str = GROUP, *, deleting: bool = False
) -> ApiError:
    before = "object is being deleted: " if deleting else ""
    message = f"{before}{qualified(resource, group)} {go_quote(name)} already exists"
    return failure(409, "AlreadyExists", message, about(name, resource, group))


def conflict(kind: str, name: str, why: str, group: str = GROUP) -> ApiError:
    message = f"Operation cannot be fulfilled on {qualified(kind, group)} {go_quote(name)}: {why}"
    return failure(409, "Conflict", message, about(name, kind, group))


MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def invalid(kind: str, name: str, causes: Sequence[StatusCause], group: str = GROUP) -> ApiError:
    """422 with every cause; the message lists them as field.ErrorList does: each text only once."""
    texts = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in causes))
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    message = f"{qualified(kind, group)} {go_quote(name)} is invalid: {listed}"
    return failure(422, "Invalid", message, about(name, kind, group, causes=tuple(causes)))


def invalid_options(kind: str, causes: Sequence[StatusCause]) -> ApiError:
    return invalid(kind, "", causes, META_GROUP)


def expired(message: str) -> ApiError:
    return failure(410, "Expired", message)


def future_version(asked: int, current: int) -> ApiError:
    """504: the resourceVersion was not reached within the wait."""
    cause = StatusCause(reason="ResourceVersionTooLarge", message="Too large resource version")
    details = StatusDetails(causes=(cause,), retry_after_seconds=1)
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return failure(504, "Timeout", message, details)


def timed_out() -> ApiError:
    """504: the client took too long to send its request."""
    message = "Timeout: request did not complete within the allotted timeout"
    return failure(504, "Timeout", message, StatusDetails())


def forbidden(message: str, details: StatusDetails) -> ApiError:
    return failure(403, "Forbidden", message, details)


def required(field: str, detail: str = "") -> StatusCause:
    message = f"Required value: {detail}" if detail else "Required value"
    return StatusCause(reason="FieldValueRequired", message=message, field=field)


def not_supported(field: str, value: str, supported: Sequence[str]) -> StatusCause:
    listed = ", ".join(f'"{item}"' for item in supported)
    message = f"Unsupported value: {value}: supported values: {listed}"
    return StatusCause(reason="FieldValueNotSupported", message=message, field=field)


def not_allowed(field: str, detail: str) -> StatusCause:
    return StatusCause(reason="FieldValueForbidden", message=f"Forbidden: {detail}", field=field)


def too_long(field: str, limit: int) -> StatusCause:
    message = f"Too long: may not be more than {limit} bytes"
    return StatusCause(reason="FieldValueTooLong", message=message, field=field)


def status_body(error: ApiError) -> dict[str, Any]:
    """The Status of an error in the order in which Go writes it."""
    status = error.status
    metadata = (
        {"continue": error.resume} if isinstance(error, ResumableError) and error.resume else {}
    )
    body: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": metadata,
        "status": "Failure",
    }
    if status.message:
        body["message"] = status.message
    if status.reason:
        body["reason"] = status.reason
    if status.details is not None:
        body["details"] = msgspec.to_builtins(status.details)
    return body | {"code": status.code}


def success_body(name: str, group: str, resource: str, uid: str) -> dict[str, Any]:
    """The Status that answers a delete."""
    details = msgspec.to_builtins(about(name, resource, group, uid=uid))
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }


logger = logging.getLogger(__name__)

# Gets the name of the failed part and the error, on the event loop.
Failed = Callable[[str, Exception], None]


class Keep(Protocol):
    """Runs a task and restarts it when it dies, until `may_end` returns True."""

    def __call__(
        self, task: str, work: Callable[[], Awaitable[None]], *, may_end: Callable[[], bool]
    ) -> asyncio.Task[None]: ...


def log_failure(part: str, error: Exception) -> None:
    """The default of a server without a supervisor."""
    logger.error("The part %s of the Lease API failed on an unexpected error", part, exc_info=error)


def run_once(
    task: str, work: Callable[[], Awaitable[None]], *, may_end: Callable[[], bool]
) -> asyncio.Task[None]:
    """The default of a server without a supervisor: await the task to see how it ended."""
    del may_end

    async def run() -> None:
        await work()

    return asyncio.create_task(run(), name=task)
