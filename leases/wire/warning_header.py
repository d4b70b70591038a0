"""Read the Warning headers of an API server (RFC 7234, warn-code 299).

Source: k8s.io/apimachinery/pkg/util/net/http.go, `ParseWarningHeaders`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


def warnings_in(headers: Iterable[str]) -> list[str]:
    """Return the texts; a header may have several. Anything else in a header is left out."""
    return [
        re.sub(r"\\(.)", r"\1", text) for header in headers for text in _WARNING.findall(header)
    ]
