"""Who is let in at each URL, and with which methods. tests.access.test_matrix holds them to it."""

from __future__ import annotations

import msgspec

READ, POST, FORM = ("GET", "HEAD"), ("POST",), ("GET", "HEAD", "POST")
# The proxy's groups make its visitor an operator. Who is spoofed is refused everywhere.
VISITORS = ("stranger", "wall", "screen", "guest", "operator", "admin", "proxy")
ALL, READERS, ADMINS = (
    frozenset(VISITORS),
    frozenset({"operator", "admin", "proxy"}),
    frozenset({"admin"}),
)
TOKENS = frozenset({"operator token", "admin token"})  # that open something; they only read
ADMIN_TOKEN = frozenset({"admin token"})
ENDED_TOKENS = frozenset({"expired token", "revoked token", "garbage token"})


class Rule(msgspec.Struct, frozen=True):
    """Who is let in, with which methods."""

    who: frozenset[str]
    methods: tuple[str, ...] = READ
    tokens: frozenset[str] | None = None  # None: all, where operators are let in

    def lets_in_token(self, visitor: str) -> bool:
        if self.tokens is not None:
            return visitor in self.tokens
        return visitor in TOKENS and "operator" in self.who


RULES = {
    "home": Rule(READERS),
    "overview": Rule(READERS),
    "leases": Rule(READERS),
    "lease": Rule(READERS),
    "lease_asked": Rule(READERS),
    "timeline": Rule(READERS),
    "holders": Rule(READERS),
    "holder_pods": Rule(READERS),
    "holder": Rule(READERS),
    "holder_place": Rule(READERS),
    "nodes": Rule(READERS),
    "node_cells": Rule(READERS),
    "incidents": Rule(READERS),
    "near_misses": Rule(READERS),
    "reliability": Rule(READERS),
    "reliability_objective": Rule(ADMINS, POST),
    "incident": Rule(READERS, FORM),
    "history": Rule(READERS),
    "stretch": Rule(READERS),
    "wall": Rule(READERS | {"wall", "screen"}),
    "fleet_wall": Rule(READERS),
    "search": Rule(READERS),
    "search_all": Rule(READERS),
    "timeline_all": Rule(READERS),
    "history_all": Rule(READERS),
    "incidents_all": Rule(READERS),
    "audit": Rule(READERS),
    "audit_row": Rule(READERS),
    "api": Rule(READERS),
    "openapi": Rule(ALL),
    "api_tokens": Rule(READERS, FORM, tokens=frozenset()),
    "revoke_api_token": Rule(READERS, FORM, tokens=frozenset()),
    "security_log": Rule(ADMINS, tokens=ADMIN_TOKEN),
    "components": Rule(READERS),
    "new_lease": Rule(ADMINS, FORM),
    "lease_edit": Rule(ADMINS, FORM),
    "lease_release": Rule(ADMINS, FORM),
    "lease_hand_over": Rule(ADMINS, FORM),
    "lease_yaml": Rule(ADMINS, FORM),
    "lease_outcome": Rule(READERS),
    "lease_delete": Rule(ADMINS, FORM),
    "delete_many": Rule(ADMINS, FORM),
    "write_rights": Rule(ADMINS),
    "deletions": Rule(ADMINS),
    "deletion": Rule(ADMINS),
    "stop_deletion": Rule(ADMINS, POST),
    "switch_cluster": Rule(READERS),
    "lease_kind": Rule(ADMINS, POST),
    "lease_vacancy": Rule(ADMINS, POST),
    "saved_views": Rule(READERS),
    "save_view": Rule(READERS, FORM, tokens=frozenset()),
    "start_view": Rule(READERS, POST, tokens=frozenset()),
    "saved_view": Rule(READERS),
    "edit_view": Rule(READERS, FORM, tokens=frozenset()),
    "remove_view": Rule(READERS, POST, tokens=frozenset()),
    "people": Rule(ADMINS, FORM),
    "person": Rule(ADMINS, FORM),
    "time_zone": Rule(READERS, FORM, tokens=frozenset()),
    "own_password": Rule(frozenset({"guest", "operator", "admin"}), FORM, frozenset()),
    "wall_links": Rule(ADMINS, FORM),
    "revoke_wall_link": Rule(ADMINS, FORM),
    "screen": Rule(ALL, FORM),
    "screen_code": Rule(ADMINS, POST),
    "wall_screens": Rule(ADMINS),
    "revoke_screen": Rule(ADMINS, POST),
    "notifications": Rule(ADMINS),
    "new_receiver": Rule(ADMINS, FORM),
    "receiver": Rule(ADMINS, FORM),
    "test_receiver": Rule(ADMINS, POST),
    "delete_receiver": Rule(ADMINS, FORM),
    "notification_log": Rule(ADMINS),
    "quiet_times": Rule(ADMINS, FORM),
    "end_quiet_time": Rule(ADMINS, POST),
    "acknowledge_incident": Rule(READERS, POST),
    "clusters": Rule(ADMINS, tokens=ADMIN_TOKEN),
    "new_cluster": Rule(ADMINS, FORM, tokens=ADMIN_TOKEN),
    "cluster": Rule(ADMINS, FORM, tokens=ADMIN_TOKEN),
    "pause_cluster": Rule(ADMINS, POST),
    "resume_cluster": Rule(ADMINS, POST),
    "remove_cluster": Rule(ADMINS, FORM, tokens=ADMIN_TOKEN),
    "badges": Rule(ADMINS, FORM),
    "revoke_badge": Rule(ADMINS, POST),
    "badge_svg": Rule(ALL),
    "badge_json": Rule(ALL),
    "sign_in": Rule(ALL, (*FORM, "PUT", "OPTIONS")),
    "redeem_sign_in_link": Rule(ALL, POST),
    "sign_in_by_link": Rule(ALL),
    "sign_out": Rule(ALL, ("POST", "OPTIONS")),
    "healthz": Rule(ALL),
    "readyz": Rule(ALL),
    "metrics": Rule(ALL),
}
