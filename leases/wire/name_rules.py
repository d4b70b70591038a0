"""Rules for names, labels and finalizers.

Source: apimachinery/pkg/util/validation and api/validation/path.
"""

import re
import secrets

_SUBDOMAIN = re.compile(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII
)
_LABEL_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_NAME_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", re.ASCII)
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+", re.ASCII)
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
MAX_GENERATED_BASE = 58

SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_NAME_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_NAME_PART_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_LABEL_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    "'12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_CONFIG_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
    "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


def _masked(name: str, *, prefix: bool) -> str:
    """A generateName may end in a dash, because letters follow."""
    return name[:-2] + "a" if prefix and len(name) > 1 and name.endswith("-") else name


def _long(text: str, limit: int, before: str = "", unit: str = "bytes") -> list[str]:
    over = len(text.encode()) > limit
    return [f"{before}must be no more than {limit} {unit}"] if over else []


def subdomain_errors(name: str, *, prefix: bool = False, unit: str = "characters") -> list[str]:
    """Check a DNS subdomain, the form of a Lease's name; label keys count bytes."""
    name = _masked(name, prefix=prefix)
    wrong = _long(name, 253, unit=unit)
    return wrong if _SUBDOMAIN.fullmatch(name) else [*wrong, SUBDOMAIN_TEXT]


def label_name_errors(name: str, *, prefix: bool = False) -> list[str]:
    """Check a DNS label, the form of a namespace's name."""
    name = _masked(name, prefix=prefix)
    wrong = _long(name, 63, unit="characters")
    if _LABEL_NAME.fullmatch(name):
        return wrong
    return [*wrong, "must not contain dots" if _SUBDOMAIN.fullmatch(name) else _LABEL_NAME_TEXT]


def config_key_errors(name: str, *, prefix: bool = False) -> list[str]:
    """Check a ConfigMap key, the form of a LeaseCandidate's name."""
    del prefix
    wrong = _long(name, 253, unit="characters")
    if not _CONFIG_KEY.fullmatch(name):
        wrong.append(_CONFIG_KEY_TEXT)
    if name in (".", ".."):
        wrong.append(f"must not be '{name}'")
    elif name.startswith(".."):
        wrong.append("must not start with '..'")
    return wrong


def qualified_name_errors(key: str) -> list[str]:
    """Check a label or annotation key, a finalizer, or a strategy with a domain."""
    parts = key.split("/")
    wrong: list[str] = []
    if len(parts) > 2:
        optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_NAME_PART_TEXT} {optional}"]
    if len(parts) == 2:
        prefix = subdomain_errors(parts[0], unit="bytes") if parts[0] else ["must be non-empty"]
        wrong += [f"prefix part {text}" for text in prefix]
    name = parts[-1]
    wrong += _long(name, 63, "name part ") if name else ["name part must be non-empty"]
    return wrong if _NAME_PART.fullmatch(name) else [*wrong, f"name part {_NAME_PART_TEXT}"]


def label_value_errors(value: str) -> list[str]:
    wrong = _long(value, 63)
    return wrong if _LABEL_VALUE.fullmatch(value) else [*wrong, _LABEL_VALUE_TEXT]


def generated_name(base: str) -> str:
    """Make a name from generateName: the base, cut, and five random letters that make no words."""
    return base[:MAX_GENERATED_BASE] + "".join(secrets.choice(_SUFFIX_LETTERS) for _ in range(5))
