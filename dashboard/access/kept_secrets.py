"""How secrets are kept in the database: tokens as digests, secrets of receivers encrypted.

The key follows from the secret key, so who reads the database alone reads no secret, and replicas
with the same LEASEBOARD_SECRET_KEY read each other's.
"""

import base64
import hashlib
import hmac
import secrets
from functools import lru_cache

import msgspec
from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from django.utils.crypto import salted_hmac

from dashboard.log_lines import hide
from leases.domain.notify import Target

TOKEN_BYTES = 32


def new_token() -> str:
    """256 random bits, as text for a URL."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def digest_of(token: str) -> str:
    """What is stored. A plain SHA-256 is enough, because nobody can guess 256 random bits."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def digest_of_code(code: str) -> str:
    """What is stored of a short code, whose digest alone could be tried out in seconds."""
    return salted_hmac("leaseboard.screen-code", code, algorithm="sha256").hexdigest()


def is_token_of(token: str, digest: str) -> bool:
    """Whether this digest was made of this token; takes equally long for every wrong token."""
    return hmac.compare_digest(digest_of(token), digest)


_PURPOSE = b"leaseboard receivers"
_decode = msgspec.json.Decoder(Target).decode


class CannotUnseal(Exception):
    """Sealed with another secret key."""


def seal(target: Target) -> str:
    _hide(target)
    return _cipher(settings.SECRET_KEY).encrypt(msgspec.json.encode(target)).decode()


def unseal(sealed: str) -> Target:
    """Raises CannotUnseal."""
    try:
        target = _decode(_cipher(settings.SECRET_KEY).decrypt(sealed.encode()))
    except (InvalidToken, msgspec.MsgspecError) as error:
        raise CannotUnseal(
            "Its address was stored with another secret key: write it again, or give all replicas "
            "the same LEASEBOARD_SECRET_KEY."
        ) from error
    _hide(target)
    return target


def _hide(target: Target) -> None:
    """Let no log line contain what is secret: the address of a Slack channel is, too."""
    hide(target.url, target.secret, target.password)


@lru_cache(maxsize=2)
def _cipher(secret_key: str) -> Fernet:
    key = hashlib.blake2b(secret_key.encode(), key=_PURPOSE, digest_size=32).digest()
    return Fernet(base64.urlsafe_b64encode(key))
