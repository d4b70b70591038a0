"""How secrets are kept in the database: tokens as digests, secrets of receivers and
kubeconfigs encrypted.

The key follows from the secret key, so who reads the database alone reads no secret, and replicas
with the same LEASEBOARD_SECRET_KEY read each other's.
"""

import base64
import hashlib
import hmac
import secrets
from functools import lru_cache

import msgspec
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.utils.crypto import salted_hmac
from django.utils.encoding import force_bytes

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


RECEIVERS, KUBECONFIGS, PASTED = (
    b"leaseboard receivers",
    b"leaseboard kubeconfigs",
    b"leaseboard pasted",
)
_decode = msgspec.json.Decoder(Target).decode


class CannotUnseal(Exception):
    """Sealed with another secret key, or too long ago."""


def seal_text(text: str, purpose: bytes) -> str:
    """Encrypt it. What is sealed for one purpose cannot be unsealed for another."""
    return _cipher(purpose, *_keys()).encrypt(text.encode()).decode()


def unseal_text(sealed: str, purpose: bytes, *, within: int | None = None) -> str:
    """Raises CannotUnseal. `within`: seconds since it was sealed; None: any."""
    try:
        return _cipher(purpose, *_keys()).decrypt(sealed.encode(), within).decode()
    except InvalidToken as error:
        raise CannotUnseal("It was stored with another secret key.") from error


def _keys() -> tuple[str | bytes, ...]:
    """The key that seals, and older ones that may have sealed."""
    return (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)


def seal(target: Target) -> str:
    _hide(target)
    return seal_text(msgspec.json.encode(target).decode(), RECEIVERS)


def unseal(sealed: str) -> Target:
    """Raises CannotUnseal."""
    try:
        target = _decode(unseal_text(sealed, RECEIVERS))
    except (CannotUnseal, msgspec.MsgspecError) as error:
        raise CannotUnseal(
            "Its address was stored with another secret key: write it again, or give all replicas "
            "the same LEASEBOARD_SECRET_KEY."
        ) from error
    _hide(target)
    return target


def _hide(target: Target) -> None:
    """Let no log line contain what is secret: the address of a Slack channel is, too."""
    hide(target.url, target.secret, target.password)


@lru_cache(maxsize=8)
def _cipher(purpose: bytes, *secret_keys: str | bytes) -> MultiFernet:
    digests = (
        hashlib.blake2b(force_bytes(one), key=purpose, digest_size=32).digest()
        for one in secret_keys
    )
    return MultiFernet([Fernet(base64.urlsafe_b64encode(one)) for one in digests])
