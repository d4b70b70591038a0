"""Impersonate-* headers: a client with the role `write` acts as another user.

Source: apiserver/pkg/endpoints/filters/impersonation/{constrained_impersonation,mode}.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import unquote

import msgspec

from leases.apiserver.auth.authorization import Access, PathAccess, authorize
from leases.apiserver.auth.tokens import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, Tokens, User
from leases.apiserver.errors import bad_request
from leases.wire.name_rules import label_name_errors, subdomain_errors
from leases.wire.status_causes import go_quote

_PREFIX = b"impersonate-"
_EXTRA = b"impersonate-extra-"
_SERVICE_ACCOUNT, _NODE = "system:serviceaccount:", "system:node:"


class Wanted(msgspec.Struct):
    """The user that a client asks to be."""

    name: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, list[str]] = {}

    @property
    def only_named(self) -> bool:
        return not (self.uid or self.groups or self.extra)


def wanted_user(headers: Iterable[tuple[bytes, bytes]]) -> Wanted | None:
    """The user that the headers ask for, or None. Raises 400 for other headers without a name."""
    given = [(name, value) for name, value in headers if name.startswith(_PREFIX)]
    if not given:
        return None
    names: dict[bytes, list[str]] = {}
    for name, value in given:
        names.setdefault(name, []).append(value.decode("utf-8", "replace"))
    extra: dict[str, list[str]] = {}
    for name, values in names.items():
        if name.startswith(_EXTRA):
            extra.setdefault(_unescaped(name[len(_EXTRA) :].decode("latin-1")), []).extend(values)
    wanted = Wanted(
        names.get(b"impersonate-user", [""])[0],
        names.get(b"impersonate-uid", [""])[0],
        tuple(names.get(b"impersonate-group", ())),
        extra,
    )
    if wanted.name:
        return wanted
    if not wanted.only_named:
        raise bad_request(f"requested {_go_syntax(wanted)} without impersonating a user name")
    return None


def _unescaped(key: str) -> str:
    """The decoded key; as it is where it is badly encoded."""
    parts = key.split("%")[1:]
    good = all(len(part) > 1 and set(part[:2]) <= set("0123456789abcdef") for part in parts)
    return unquote(key) if good else key


def _go_syntax(wanted: Wanted) -> str:
    """The user as fmt's %#v shows it."""
    extra = ", ".join(
        f"{go_quote(key)}:{_go_texts(values)}" for key, values in sorted(wanted.extra.items())
    )
    return (
        f'&user.DefaultInfo{{Name:"", UID:{go_quote(wanted.uid)}, '
        f"Groups:{_go_texts(wanted.groups)}, "
        f"Extra:map[string][]string{f'{{{extra}}}' if extra else '(nil)'}}}"
    )


def _go_texts(texts: Iterable[str]) -> str:
    listed = ", ".join(map(go_quote, texts))
    return f"[]string{{{listed}}}" if listed else "[]string(nil)"


def impersonated(user: User, wanted: Wanted, access: Access | PathAccess, tokens: Tokens) -> User:
    """The wanted user, with the rights of the token of its name. Raises 403."""
    account = _service_account(wanted.name)
    node = wanted.name.startswith(_NODE) and not subdomain_errors(wanted.name[len(_NODE) :])
    mode = "serviceaccount" if account else "arbitrary-node" if node else "user-info"
    if mode == "user-info" or wanted.only_named:
        verb = f"impersonate-on:{mode}:{access.verb}"
        authorize(user, msgspec.structs.replace(access, verb=verb))
    elif account:
        authorize(user, Access("impersonate", "", "serviceaccounts", *account))
    else:
        authorize(user, Access("impersonate", "", "users", "", wanted.name))
    groups = wanted.groups
    if account and not groups:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account[0]}")
    elif node and wanted.only_named:
        groups = ("system:nodes",)
    usual = UNAUTHENTICATED if wanted.name == ANONYMOUS else AUTHENTICATED
    if UNAUTHENTICATED not in groups and usual not in groups:
        groups += (usual,)
    extra = {key: tuple(values) for key, values in wanted.extra.items()}
    return tokens.subject(wanted.name, groups, wanted.uid, extra)


def _service_account(name: str) -> tuple[str, str] | None:
    """Namespace and name. Source: apiserver/pkg/authentication/serviceaccount/util.go."""
    parts = name.removeprefix(_SERVICE_ACCOUNT).split(":")
    if not name.startswith(_SERVICE_ACCOUNT) or len(parts) != 2:
        return None
    namespace, account = parts
    wrong = label_name_errors(namespace) or subdomain_errors(account)
    return None if wrong else (namespace, account)
