"""The certificate of the embedded API: made once, kept in the data directory, trusted through the kubeconfig."""

from __future__ import annotations

import ipaddress
import os
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

FILE_NAME = "lease_api.pem"  # key and certificate
LASTS = timedelta(days=3650)
LOCAL = ("localhost", "127.0.0.1", "::1")


def ensure_certificate(data: Path, *, host: str) -> Path:
    """The file of key and certificate; made anew when there is none for this host, or it has run out."""
    path = data / FILE_NAME
    names = (*LOCAL, *({host} - {*LOCAL, "0.0.0.0", "::"}))  # noqa: S104 - left out, not bound
    if not path.exists() or not _serves(path, names):
        _write(path, _make(names))
    return path


def server_context(path: Path) -> ssl.SSLContext:
    """A context that serves with the certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(path)
    context.set_alpn_protocols(["http/1.1"])
    return context


def authority(path: Path) -> bytes:
    """The certificate alone, as PEM: what clients are to trust."""
    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    return certificate.public_bytes(serialization.Encoding.PEM)


def _serves(path: Path, names: tuple[str, ...]) -> bool:
    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (ValueError, x509.ExtensionNotFound):
        return False
    current = datetime.now(UTC) < certificate.not_valid_after_utc - timedelta(days=30)
    return current and set(map(_general_name, names)) <= set(extension.value)


def _make(names: tuple[str, ...]) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Leaseboard Lease API")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + LASTS)
        .add_extension(x509.SubjectAlternativeName(list(map(_general_name, names))), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ) + certificate.public_bytes(serialization.Encoding.PEM)


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _write(path: Path, content: bytes) -> None:
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    draft.replace(path)
