"""Make a self-signed certificate: kubectl and client-go send tokens over TLS only."""

from __future__ import annotations

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from leases.apiserver.start_refusal import CannotStart
from leases.private_file import write_private

CERTIFICATE, KEY = "lease_api.crt", "lease_api.key"
VALID_FOR = timedelta(days=3650)
_RENEW_BEFORE = timedelta(days=30)
Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def check_certificate(directory: Path) -> None:
    """Raise CannotStart for files that cannot be used; no files are fine."""
    if (directory / KEY).exists():
        _kept_key(directory)
    if (directory / CERTIFICATE).exists():
        tls_context(directory)


def certificate_for(directory: Path, host: str, *, now: datetime) -> bytes:
    """The PEM of the server's certificate; make one where none is or the kept one does not fit.

    Raises CannotStart. A new certificate keeps the key, so that a stop between the two files
    leaves a pair that belongs together.
    """
    check_certificate(directory)
    certificate = directory / CERTIFICATE
    hosts = list(dict.fromkeys(["localhost", "127.0.0.1", "::1", host]))
    hosts = [each for each in hosts if each not in ("0.0.0.0", "::")]  # noqa: S104 - not bound here
    if certificate.exists() and _fits(certificate, hosts, now):
        return certificate.read_bytes()
    if not (directory / KEY).exists():
        write_private(directory / KEY, _new_key())
    made = _make_certificate(_kept_key(directory), hosts, now)
    write_private(certificate, made)
    return made


def tls_context(directory: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    certificate, key = directory / CERTIFICATE, directory / KEY
    if not key.exists():
        raise _refusal(certificate, f"cannot be used without its key {key}")
    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        raise _refusal(certificate, f"is no certificate for its key {key}") from error
    context.set_alpn_protocols(["http/1.1"])
    return context


def _kept_key(directory: Path) -> Key:
    path = directory / KEY
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), None)
    except (ValueError, TypeError) as error:  # TypeError: it wants a password
        raise _refusal(path, "is no private key in PEM without a password") from error
    if not isinstance(key, Key):
        raise _refusal(path, "is no RSA or elliptic-curve key")
    return key


def _refusal(path: Path, why: str) -> CannotStart:
    return CannotStart(
        f"{path} {why}: put good copies of {CERTIFICATE} and {KEY} in their place, or remove both; "
        "then new ones are made, and copies of the kubeconfig must be made anew."
    )


def _fits(certificate: Path, hosts: list[str], now: datetime) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(certificate)
        (found,) = cast("list[dict[str, Any]]", context.get_ca_certs())
        until = datetime.fromtimestamp(ssl.cert_time_to_seconds(found["notAfter"]), UTC)
    except (OSError, ValueError, KeyError):
        return False
    names = {name for _, name in found.get("subjectAltName", ())}
    compact = {name.replace("0:0:0:0:0:0:0:1", "::1").lower() for name in names}
    return set(hosts) <= compact and now + _RENEW_BEFORE < until


def _new_key() -> bytes:
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _make_certificate(key: Key, hosts: list[str], now: datetime) -> bytes:
    """Certificate in PEM for these names and addresses."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "leaseboard lease api")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + VALID_FOR)
        .add_extension(x509.SubjectAlternativeName([_name(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM)


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
