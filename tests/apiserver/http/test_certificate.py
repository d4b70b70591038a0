"""The kept certificate and key: whole after a power cut, refused when they cannot be used."""

from __future__ import annotations

import errno
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dashboard.serving.data_directory import secret_key
from leases.apiserver.http.port import (
    CERTIFICATE,
    KEY,
    CannotStart,
    certificate_for,
    check_certificate,
    tls_context,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_the_certificate_is_kept_until_it_does_not_fit(tmp_path: Path) -> None:
    first = certificate_for(tmp_path, "127.0.0.1", now=NOW)
    assert certificate_for(tmp_path, "localhost", now=NOW) == first
    other = certificate_for(tmp_path, "lease.example.com", now=NOW)
    assert other != first
    much_later = NOW + timedelta(days=3640)
    assert certificate_for(tmp_path, "lease.example.com", now=much_later) != other
    tls_context(tmp_path)  # the new certificate belongs to the kept key


def test_an_unusable_file_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    certificate_for(tmp_path, "127.0.0.1", now=NOW)
    (tmp_path / CERTIFICATE).write_bytes(b"")
    with pytest.raises(CannotStart, match=r"lease_api\.crt is no certificate"):
        certificate_for(tmp_path, "127.0.0.1", now=NOW)
    assert (tmp_path / CERTIFICATE).read_bytes() == b""


@pytest.mark.parametrize("moment", range(8))
@pytest.mark.parametrize("host", ["127.0.0.1", "lease.example.com"])
def test_a_stop_at_any_moment_never_blocks_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int, host: str
) -> None:
    """`moment`: how many flushes to disk succeed before the power is cut."""
    if host != "127.0.0.1":  # the second certificate, beside the first key
        certificate_for(tmp_path, "127.0.0.1", now=NOW)
        secret_key(tmp_path)
    left = moment
    flush = os.fsync

    def cut(handle: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.EIO, "the power is cut")
        flush(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", cut)
        try:
            certificate_for(tmp_path, host, now=NOW)
            secret_key(tmp_path)
        except Exception:
            assert left < 0
    check_certificate(tmp_path)
    certificate_for(tmp_path, host, now=NOW)
    assert tls_context(tmp_path)
    assert len(secret_key(tmp_path)) > 50
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {CERTIFICATE, KEY, "secret_key"}
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
