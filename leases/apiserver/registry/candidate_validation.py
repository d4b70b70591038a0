"""Validate LeaseCandidates. Source: pkg/apis/coordination/validation/validation.go."""

from __future__ import annotations

from typing import Any

from leases.apiserver.errors import not_supported, required
from leases.domain.election.semver import Version, parse_version, precedence
from leases.wire.name_rules import qualified_name_errors
from leases.wire.status import StatusCause
from leases.wire.status_causes import bad_value, go_quote

OLDEST_EMULATION = "OldestEmulationVersion"
_ZERO: Version = (0, 0, 0, ())


def strategy_errors(strategy: str) -> list[StatusCause]:
    """A strategy is Kubernetes' own or a qualified name with a domain.

    kube-apiserver doubles the path, too.
    """
    path = "spec.strategy.strategy"
    if "/" not in strategy:
        if strategy == OLDEST_EMULATION:
            return []
        return [not_supported(path, go_quote(strategy), [OLDEST_EMULATION])]
    return [bad_value(path, go_quote(strategy), text) for text in qualified_name_errors(strategy)]


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
    if precedence(binary or _ZERO) >= precedence(emulation):
        return []
    detail = "must be greater than or equal to `emulationVersion`"
    return [bad_value("spec.binaryVersion", go_quote(text), detail)]
