"""A self-signed certificate, made with the standard library: kubectl sends a token over TLS only.

ECDSA on P-256 with SHA-256 (FIPS 186-4), X.509 v3 in DER (RFC 5280). The key is used for TLS by
OpenSSL; the arithmetic here signs once, when the certificate is made.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import secrets
from datetime import UTC, datetime, timedelta

_P = 0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF
_N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_G = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
Point = tuple[int, int] | None

VALID_FOR = timedelta(days=3650)
_SIGNED_WITH = "1.2.840.10045.4.3.2"  # ecdsa-with-SHA256
_EC_KEY = "1.2.840.10045.2.1"
_P256 = "1.2.840.10045.3.1.7"


def make_certificate(hosts: list[str], *, now: datetime) -> tuple[bytes, bytes]:
    """Certificate and private key in PEM, for these names and addresses."""
    secret = secrets.randbelow(_N - 1) + 1
    public = _encoded(_times(secret, _G))
    name = _seq(_set(_seq(_oid("2.5.4.3"), _tlv(0x0C, b"leaseboard lease api"))))
    algorithm = _seq(_oid(_SIGNED_WITH))
    body = _seq(
        _tlv(0xA0, _int(2)),
        _int(secrets.randbits(127) | 1),
        algorithm,
        name,
        _seq(_time(now - timedelta(hours=1)), _time(now + VALID_FOR)),
        name,
        _seq(_seq(_oid(_EC_KEY), _oid(_P256)), _bits(public)),
        _tlv(0xA3, _seq(*_extensions(hosts, public))),
    )
    certificate = _seq(body, algorithm, _bits(_signature(secret, body)))
    key = _seq(
        _int(1),
        _tlv(0x04, secret.to_bytes(32, "big")),
        _tlv(0xA0, _oid(_P256)),
        _tlv(0xA1, _bits(public)),
    )
    return _pem("CERTIFICATE", certificate), _pem("EC PRIVATE KEY", key)


def _extensions(hosts: list[str], public: bytes) -> list[bytes]:
    identity = hashlib.sha1(public, usedforsecurity=False).digest()
    critical = _tlv(0x01, b"\xff")
    return [
        _extension("2.5.29.19", _seq(_tlv(0x01, b"\xff")), critical),  # a CA: its own
        _extension("2.5.29.15", _tlv(0x03, b"\x02\x84"), critical),  # signs data and certificates
        _extension("2.5.29.37", _seq(_oid("1.3.6.1.5.5.7.3.1"))),  # serves TLS
        _extension("2.5.29.14", _tlv(0x04, identity)),
        _extension("2.5.29.35", _seq(_tlv(0x80, identity))),
        _extension("2.5.29.17", _seq(*(_alternative(host) for host in hosts))),
    ]


def _extension(oid: str, value: bytes, critical: bytes = b"") -> bytes:
    return _seq(_oid(oid), critical, _tlv(0x04, value))


def _alternative(host: str) -> bytes:
    try:
        return _tlv(0x87, ipaddress.ip_address(host).packed)
    except ValueError:
        return _tlv(0x82, host.encode("idna"))


def _add(one: Point, other: Point) -> Point:
    if one is None or other is None:
        return one or other
    if one[0] == other[0]:
        if (one[1] + other[1]) % _P == 0:
            return None
        slope = (3 * one[0] * one[0] - 3) * pow(2 * one[1], -1, _P)
    else:
        slope = (other[1] - one[1]) * pow(other[0] - one[0], -1, _P)
    x = (slope * slope - one[0] - other[0]) % _P
    return x, (slope * (one[0] - x) - one[1]) % _P


def _times(factor: int, point: Point) -> tuple[int, int]:
    result: Point = None
    while factor:
        if factor & 1:
            result = _add(result, point)
        point = _add(point, point)
        factor >>= 1
    if result is None:
        raise ValueError("the point at infinity is no key")
    return result


def _encoded(point: tuple[int, int]) -> bytes:
    return b"\x04" + point[0].to_bytes(32, "big") + point[1].to_bytes(32, "big")


def _signature(secret: int, data: bytes) -> bytes:
    digest = int.from_bytes(hashlib.sha256(data).digest(), "big")
    while True:
        nonce = secrets.randbelow(_N - 1) + 1
        r = _times(nonce, _G)[0] % _N
        s = pow(nonce, -1, _N) * (digest + r * secret) % _N
        if r and s:
            return _seq(_int(r), _int(s))


def _tlv(tag: int, value: bytes) -> bytes:
    size = len(value)
    if size < 128:
        return bytes((tag, size)) + value
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + value


def _seq(*parts: bytes) -> bytes:
    return _tlv(0x30, b"".join(parts))


def _set(*parts: bytes) -> bytes:
    return _tlv(0x31, b"".join(parts))


def _int(value: int) -> bytes:
    return _tlv(0x02, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def _bits(value: bytes) -> bytes:
    return _tlv(0x03, b"\x00" + value)


def _time(moment: datetime) -> bytes:
    """GeneralizedTime from 2050 on, UTCTime before, as RFC 5280 wants."""
    moment = moment.astimezone(UTC)
    if moment.year < 2050:
        return _tlv(0x17, moment.strftime("%y%m%d%H%M%SZ").encode())
    return _tlv(0x18, moment.strftime("%Y%m%d%H%M%SZ").encode())


def _oid(text: str) -> bytes:
    first, second, *rest = (int(part) for part in text.split("."))
    out = bytearray([first * 40 + second])
    for part in rest:
        septets = [part & 0x7F]
        while part := part >> 7:
            septets.append(part & 0x7F | 0x80)
        out += bytes(reversed(septets))
    return _tlv(0x06, bytes(out))


def _pem(label: str, data: bytes) -> bytes:
    text = base64.b64encode(data).decode()
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""]).encode()
