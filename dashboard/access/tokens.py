"""Random tokens that stand in links. The database keeps only a digest: whoever reads the database
cannot open a link with what is in it."""

from __future__ import annotations

import hashlib
import hmac
import secrets

TOKEN_BYTES = 32


def new_token() -> str:
    """256 random bits, as text for a URL."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def digest_of(token: str) -> str:
    """What is stored. A plain SHA-256 is enough, because nobody can guess 256 random bits."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def is_token_of(token: str, digest: str) -> bool:
    """Whether this digest was made of this token; takes equally long for every wrong token."""
    return hmac.compare_digest(digest_of(token), digest)
