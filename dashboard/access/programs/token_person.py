"""Who a program's request acts for."""

from __future__ import annotations

from collections.abc import Iterable

from dashboard.access.roles import READ_SECURITY_LOG, READ_TRAIL, VIEW
from leases.models import ApiToken

READS = {
    "operator": frozenset({VIEW, READ_TRAIL}),
    "admin": frozenset({VIEW, READ_TRAIL, READ_SECURITY_LOG}),
}


class TokenPerson:
    """Stands in for `request.user`: the token's person, who may only read."""

    is_active = is_authenticated = True
    is_anonymous = is_staff = is_superuser = False

    def __init__(self, token: ApiToken) -> None:
        self.token = token
        self.pk = self.id = token.user_id
        self.username = token.user.get_username()
        self._permissions = frozenset(filter(token.user.has_perm, READS[token.role]))

    def __str__(self) -> str:
        return f"The API token {self.token.name} of {self.username}"

    def get_username(self) -> str:
        return self.username

    def has_perm(self, permission: str, obj: object = None) -> bool:
        return permission in self._permissions

    def has_perms(self, permissions: Iterable[str], obj: object = None) -> bool:
        return self._permissions.issuperset(permissions)

    def has_module_perms(self, app_label: str) -> bool:
        return any(one.startswith(f"{app_label}.") for one in self._permissions)
