"""Links that open the wall without signing in: signed by the secret key, named and revocable in
the database."""

from __future__ import annotations

from datetime import datetime

from django.core.signing import BadSignature, Signer
from django.urls import reverse

from leases.models import WallLink

PARAMETER = "key"
_signer = Signer(salt="leaseboard.wall")


def key_of(link: WallLink) -> str:
    """The key that stands in the link's URL. It is derived, so that nothing secret is stored."""
    return _signer.sign(str(link.pk))


def url_of(link: WallLink, *, cluster: str) -> str:
    return f"{reverse('wall', args=[cluster])}?{PARAMETER}={key_of(link)}"


def opens_wall(key: str, *, now: datetime) -> bool:
    """Whether this key belongs to a link that is neither revoked nor past its end."""
    try:
        number = int(_signer.unsign(key))
    except (BadSignature, ValueError):
        return False
    link = WallLink.objects.filter(pk=number, revoked_at=None).first()
    return link is not None and (link.expires_at is None or now < link.expires_at)
