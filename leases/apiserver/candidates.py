"""What a LeaseCandidate must say. Source: pkg/apis/coordination/validation/validation.go."""

from __future__ import annotations

import re
from typing import Any

from leases.apiserver.errors import bad_value, go_quote, not_supported, required
from leases.apiserver.names import qualified_name_errors
from leases.wire.status import StatusCause

OLDEST_EMULATION = "OldestEmulationVersion"
_NUMBER = r"(?:0|[1-9]\d*)"
_SEMVER = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?", re.ASCII
)
Version = tuple[int, int, int, tuple[str, ...]]
_ZERO: Version = (0, 0, 0, ())


def strategy_errors(strategy: str) -> list[StatusCause]:
    """Kubernetes' own, or a qualified name with a domain.

    The path is doubled in the server, too.
    """
    path = "spec.strategy.strategy"
    if "/" not in strategy:
        if strategy == OLDEST_EMULATION:
            return []
        return [not_supported(path, go_quote(strategy), [OLDEST_EMULATION])]
    return [bad_value(path, go_quote(strategy), text) for text in qualified_name_errors(strategy)]


def parse_version(text: str) -> Version | None:
    """A strict semantic version, without its build metadata; None when it is none."""
    shape = _SEMVER.fullmatch(text)
    if shape is None:
        return None
    pre = tuple(shape[4].split(".")) if shape[4] else ()
    for part in pre:
        if not part or (part.isdecimal() and len(part) > 1 and part[0] == "0"):
            return None
    if shape[5] and "" in shape[5].split("."):
        return None
    return int(shape[1]), int(shape[2]), int(shape[3]), pre


def _order(version: Version) -> tuple[Any, ...]:
    """Precedence by semver.org: a pre-release comes before its release, numbers before words."""
    pre = version[3]
    parts = tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in pre)
    return version[:3], not pre, parts


def candidate_errors(spec: dict[str, Any], old: dict[str, Any] | None) -> list[StatusCause]:
    wrong: list[StatusCause] = []
    lease = spec["leaseName"]
    if not lease:
        wrong.append(required("spec.leaseName"))
    binary_text, emulation_text = spec["binaryVersion"], spec.get("emulationVersion", "")
    strategy = spec.get("strategy", "")
    binary = parse_version(binary_text)
    emulation = parse_version(emulation_text)
    not_semver = "must be a valid semantic version"
    if emulation_text and emulation is None:
        wrong.append(bad_value("spec.emulationVersion", go_quote(emulation_text), not_semver))
    if not binary_text:
        wrong.append(required("spec.binaryVersion"))
    elif binary is None:
        wrong.append(bad_value("spec.binaryVersion", go_quote(binary_text), not_semver))
    wrong += _comparison(binary_text, binary, emulation)
    if not strategy:
        wrong.append(required("spec.strategy"))
    else:
        wrong += strategy_errors(strategy)
    if strategy == OLDEST_EMULATION and (emulation is None or emulation[:3] == (0, 0, 0)):
        detail = f"must be specified when `strategy` is '{OLDEST_EMULATION}'"
        wrong.append(required("spec.emulationVersion", detail))
    if old is not None and old["leaseName"] != lease:
        wrong.append(bad_value("spec.leaseName", go_quote(lease), "field is immutable"))
    return wrong


def _comparison(text: str, binary: Version | None, emulation: Version | None) -> list[StatusCause]:
    if not text or emulation is None:
        return []
    if _order(binary or _ZERO) >= _order(emulation):
        return []
    detail = "must be greater than or equal to `emulationVersion`"
    return [bad_value("spec.binaryVersion", go_quote(text), detail)]
