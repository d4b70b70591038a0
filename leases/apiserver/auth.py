"""Who a client is and what it may do: bearer tokens, roles, impersonation.

A user has the name of its token and one group, that name with an s. Roles are none (discovery
only), read and write.

The role `write` may do everything, `read` gets, lists and watches. The groups add what Kubernetes'
default cluster roles give: discovery and the reviews of oneself.

Source: apiserver/pkg/endpoints/filters/impersonation/{constrained_impersonation,mode}.go.
"""

import hashlib
import hmac
import math
import sqlite3
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote

import msgspec

from leases.apiserver.errors import about, bad_request, forbidden, qualified, unauthorized
from leases.apiserver.storage.journal import FILE_NAME, connect
from leases.wire.microtime import format_time
from leases.wire.name_rules import label_name_errors, subdomain_errors
from leases.wire.status import StatusDetails, go_quote

ROLES = ("none", "read", "write")
ANONYMOUS = "system:anonymous"
AUTHENTICATED, UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"
MASTERS = "system:masters"
# Seconds between two looks whether another process changed the tokens.
_TRUSTED = 0.1


class TokenError(ValueError):
    """A token cannot be created or found; the text says what to do."""


class User(msgspec.Struct, frozen=True):
    """Who sends a request; `role` is one of ROLES, or empty without a token."""

    name: str
    role: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: dict[str, tuple[str, ...]] = {}


class Token(msgspec.Struct, frozen=True):
    """One token as `lease_tokens list` shows it, without its value."""

    name: str
    role: str
    created: str


_NOBODY = User(ANONYMOUS, "", (UNAUTHENTICATED,))


def _hashed(value: str) -> bytes:
    return hashlib.sha256(value.encode("utf-8", "surrogateescape")).digest()


class Tokens:
    """The tokens of one data directory. May be used by several processes at once."""

    def __init__(self, directory: Path) -> None:
        self._database = connect(directory / FILE_NAME)
        self._generation = -1
        self._looked = -math.inf
        self._users: list[tuple[bytes, User]] = []

    def close(self) -> None:
        self._database.close()

    def create(self, name: str, role: str, value: str) -> None:
        """Raises TokenError when a token has this name or value."""
        row = (name, role, _hashed(value), format_time(datetime.now(UTC)))
        try:
            self._database.execute("INSERT INTO tokens VALUES (?, ?, ?, ?)", row)
        except sqlite3.IntegrityError:
            message = f"There is a token {name!r}, or one with this value; revoke it first."
            raise TokenError(message) from None
        self._changed()

    def replace(self, name: str, role: str, value: str) -> None:
        """Create a token and replace one of the same name."""
        row = (name, role, _hashed(value), format_time(datetime.now(UTC)))
        self._database.execute("INSERT OR REPLACE INTO tokens VALUES (?, ?, ?, ?)", row)
        self._changed()

    def revoke(self, name: str) -> None:
        """Raises TokenError when no token has this name."""
        gone = self._database.execute("DELETE FROM tokens WHERE name = ?", (name,))
        if gone.rowcount == 0:
            raise TokenError(f"There is no token {name!r}; see `lease_tokens list`.")
        self._changed()

    def all(self) -> list[Token]:
        rows = self._database.execute("SELECT name, role, created FROM tokens ORDER BY name")
        return [Token(*row) for row in rows]

    def _changed(self) -> None:
        self._looked = -math.inf
        self._database.execute("UPDATE meta SET value = value + 1 WHERE key = 'tokens'")

    def _fresh(self) -> list[tuple[bytes, User]]:
        (generation,) = self._database.execute(
            "SELECT value FROM meta WHERE key = 'tokens'"
        ).fetchone()
        if generation != self._generation:
            rows = self._database.execute("SELECT hash, name, role FROM tokens")
            self._users = [
                (bytes(digest), User(name, role, (f"{name}s", AUTHENTICATED)))
                for digest, name, role in rows
            ]
            self._generation = generation
        self._looked = time.monotonic()
        return self._users

    def user(self, authorization: str | None) -> User:
        """The user of an Authorization header; anonymous without a readable one. Raises 401."""
        scheme, _, rest = (authorization or "").strip().partition(" ")
        value = rest.split(" ", 1)[0]
        if scheme.lower() != "bearer" or not value:
            return _NOBODY
        digest = _hashed(value)
        trusted = time.monotonic() - self._looked < _TRUSTED
        found = _of(digest, self._users) if trusted else None
        if found is None:
            found = _of(digest, self._fresh())
        if found is None:
            raise unauthorized()
        return found

    def subject(
        self,
        name: str,
        groups: tuple[str, ...],
        uid: str = "",
        extra: dict[str, tuple[str, ...]] | None = None,
    ) -> User:
        """A user with the rights of the token of that name; system:masters may do everything."""
        roles = {user.name: user.role for _, user in self._fresh()}
        role = "write" if MASTERS in groups else roles.get(name, "")
        return User(name, role, groups, uid, extra or {})


def _of(digest: bytes, users: list[tuple[bytes, User]]) -> User | None:
    """Compare every token, each in constant time."""
    found = None
    for known, user in users:
        if hmac.compare_digest(known, digest):
            found = user
    return found


AUTHENTICATION_GROUP, AUTHORIZATION_GROUP = "authentication.k8s.io", "authorization.k8s.io"
_READING = ("get", "list", "watch")
_ACCESS_REVIEWS = ("selfsubjectaccessreviews", "selfsubjectrulesreviews")
_WHO_AM_I = "selfsubjectreviews"
_SELF_REVIEWS = {(AUTHENTICATION_GROUP, _WHO_AM_I)} | {
    (AUTHORIZATION_GROUP, name) for name in _ACCESS_REVIEWS
}
_PUBLIC = ("/healthz", "/livez", "/readyz", "/version", "/version/")
_WELL_KNOWN = ("/.well-known", "/.well-known/*")
_DISCOVERY = ("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*")


class Access(msgspec.Struct, frozen=True):
    """What a request wants to do with a resource, as Kubernetes' RequestInfo has it."""

    verb: str
    group: str
    resource: str
    namespace: str
    name: str
    subresource: str = ""


class PathAccess(msgspec.Struct, frozen=True):
    """What a request wants to do with a path that is no resource."""

    verb: str
    path: str


class AccessRule(msgspec.Struct, frozen=True):
    """Verbs on resources, or on paths when there are no groups."""

    verbs: tuple[str, ...]
    names: tuple[str, ...]
    groups: tuple[str, ...] = ()


def rules(user: User) -> list[AccessRule]:
    """All that the user may do, in the form of RBAC."""
    found = []
    if user.role == "write":
        found += [AccessRule(("*",), ("*",), ("*",)), AccessRule(("*",), ("*",))]
    if user.role == "read":
        found.append(AccessRule(_READING, ("*",), ("*",)))
    if AUTHENTICATED in user.groups:
        found += [
            AccessRule(("create",), _ACCESS_REVIEWS, (AUTHORIZATION_GROUP,)),
            AccessRule(("create",), (_WHO_AM_I,), (AUTHENTICATION_GROUP,)),
            AccessRule(("get",), _PUBLIC),
            AccessRule(("get",), _WELL_KNOWN),
            AccessRule(("get",), tuple(sorted(_DISCOVERY + _PUBLIC))),
        ]
    elif UNAUTHENTICATED in user.groups:
        found.append(AccessRule(("get",), _PUBLIC))
    return found


def permission(user: User, access: Access | PathAccess) -> str | None:
    """Why the user may do this (the role `write` needs no reason), or None when it may not."""
    if user.role == "write":
        return ""
    if isinstance(access, PathAccess):
        return _path_permission(user, access)
    if user.role == "read" and access.verb in _READING:
        return "allowed by the role read"
    self_review = access.verb == "create" and (access.group, access.resource) in _SELF_REVIEWS
    return _bound("system:basic-user") if self_review and AUTHENTICATED in user.groups else None


def _path_permission(user: User, access: PathAccess) -> str | None:
    if access.verb != "get":
        return None
    if access.path in _PUBLIC:
        for group in (AUTHENTICATED, UNAUTHENTICATED):
            if group in user.groups:
                return _bound("system:public-info-viewer", group)
    known = any(
        access.path.startswith(path[:-1]) if path.endswith("*") else access.path == path
        for path in _DISCOVERY + _WELL_KNOWN
    )
    return _bound("system:discovery") if known and AUTHENTICATED in user.groups else None


def _bound(role: str, group: str = AUTHENTICATED) -> str:
    return (
        f'RBAC: allowed by ClusterRoleBinding "{role}" of ClusterRole "{role}" to Group "{group}"'
    )


def authorize(user: User, access: Access | PathAccess) -> None:
    """Raises 403 in the words of the RBAC authorizer."""
    if permission(user, access) is None:
        raise refusal(user, access)


def refusal(user: User, access: Access | PathAccess) -> Exception:
    """The 403. Source: apiserver/pkg/endpoints/handlers/responsewriters/errors.go."""
    if isinstance(access, PathAccess):
        why = f'User "{user.name}" cannot {access.verb} path "{access.path}"'
        return forbidden(f"forbidden: {_without_html(why)}", StatusDetails())
    where = f'in the namespace "{access.namespace}"' if access.namespace else "at the cluster scope"
    resource = access.resource + (f"/{access.subresource}" if access.subresource else "")
    why = (
        f'User "{user.name}" cannot {access.verb} resource "{resource}" '
        f'in API group "{access.group}" {where}'
    )
    named = f' "{access.name}"' if access.name else ""
    subject = qualified(access.resource, access.group)
    message = f"{subject}{named} is forbidden: {_without_html(why)}"
    return forbidden(message, about(access.name, access.resource, access.group))


def _without_html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


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
