"""A new password ends the unused sign-in links of its account, wherever it was set."""

from __future__ import annotations

from typing import Any

from dashboard.access.sign_in import links


class EndSignInLinks:
    """No validator: Django tells each of its validators of a new password that was saved."""

    def validate(self, password: str, user: Any = None) -> None:
        """Accept every password."""

    def password_changed(self, password: str, user: Any = None) -> None:
        del password
        links.withdraw(user)

    def get_help_text(self) -> str:
        return "A new password ends the sign-in links that were not used."
