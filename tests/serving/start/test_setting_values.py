"""Values of settings that cannot be used: one sentence, and nothing of a secret in it."""

from __future__ import annotations

import logging

import pytest

from dashboard.config import Config, ConfigError, load, parse_clusters
from dashboard.log_lines import (
    RedactingFormatter,
    SentenceFilter,
    hide,
    passwords_in,
    redact,
    without_credentials,
)
from leases.kube.cluster_source import parse_source

CANARY = "s3cr3t-canary-/#?&"
SECRET = "CANARY"

WRONG = {
    "DATA": ["", "  ", "~nobody-of-this-name/x", "x" * 300 + "\0"],
    "SECRET_KEY": ["", "   ", SECRET, f"{SECRET}{'x' * 20}"],
    "RETENTION_DAYS": ["1000000", "36501", "0", "9" * 5000, "²", "٣", "1e3", "1_000", " 7"],
    "RETENTION_ROWS": ["9" * 30, "0", "-5"],
    "READ_ONLY": ["", " , ", "prod staging", "Prod!", "prod;staging", "*", "-", "true,false!"],
    "PROXY_ADDRESSES": ["proxy", "10.0.0.0/33", "10.0.0.1/8", "0.0.0.0/0", "10.0.0.1,::/0"],
    "PROXY_USER_HEADER": ["", "X User", "X_User", "X-User:", "é", "X" * 61],
    "PROXY_GROUPS_HEADER": ["", "-"],
    "PROXY_ROLES": ["board", "=admin", "board=", "board=owner", "a=admin,b"],
    "METRICS_ELECTIONS": ["9" * 30, "x"],
    "METRICS_TOKEN": [f"{SECRET} x", f"{SECRET}\n", f"{SECRET}é"],
    "ALLOWED_HOSTS": ["", " , ", "http://x.example", "x.example:8000", "a/b", "x y", "é*", "[::1"],
    "URL": ["leases.example.com", "ftp://leases.example.com", "https://leases.example.com/board"],
    "HSTS_SECONDS": ["-1", "1e9", "99999999999", "a day"],
    "HSTS_SUBDOMAINS": ["", "perhaps"],
    "HSTS_PRELOAD": ["on"],
    "PRINT_LINKS": ["", "true", "Terminal"],
    "TRUSTED_ORIGINS": [
        "https://", "https://x/path", f"https://u:{SECRET}@x", "https://x:port", "x.example",
        "https://[::1", "ftp://x",
    ],
    "DATABASE_URL": [
        f"postgresql://u:{SECRET}@h:port/x", f"postgresql://u:{SECRET}@h:99999/x",
        f"postgresql://u:{SECRET}@[::1/x", f"postgresql://u:{SECRET}@h", f"//u:{SECRET}@h/x",
        f"postgresql://u:{SECRET}%00@h/x", f"mysql://u:{SECRET}@h/x", f"u:{SECRET}@h/x",
        f"postgresql:u:{SECRET}@h/x", f"postgresql://u:{SECRET}/with/slash@h:p/x",
        f"nosuch://h/x?password={SECRET}", "sqlite:", "sqlite://:memory:", "sqlite://host/x", "x",
    ],
    "CLUSTERS": [
        f"a=url:ftp://{SECRET}@h", f"a=url:https://{SECRET}@h/?q", f"url:https://{SECRET}@h",
        f"A!=url:https://{SECRET}@h", f"a=url:https://{SECRET}@h:99999",
        f"a=url:https://{SECRET}@h:x", f"a=url:https://{SECRET}@[::1", f"a=https://{SECRET}@h",
        f"a=url:https://{SECRET}%0d%0aX:1@h", f"a=url:https://{SECRET}%20x@h", f"{SECRET}@h=x",
        f"a=url:https://{SECRET}@h,a=url:https://{SECRET}@h", f"url:https://{SECRET}==@h=",
        f"a=embedded,b=url:https://{SECRET}@h x",
    ],
}  # fmt: skip


def refusal(name: str, value: str) -> ConfigError:
    try:
        load({f"LEASEBOARD_{name}": value})
    except ConfigError as refused:
        return refused
    pytest.fail(f"{value} was taken")


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_is_one_sentence_without_its_secret(name):
    for value in WRONG[name]:
        refused = refusal(name, value)
        text = str(refused)
        assert text.startswith(f"LEASEBOARD_{name} cannot be "), value
        assert SECRET not in text
        assert "\n" not in text
        assert len(text) < 500
        assert refused.__suppress_context__, f"a traceback would show {value}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RETENTION_DAYS", "36500"),
        ("ALLOWED_HOSTS", "*, .example.com,board.example.com,10.0.0.7,[::1],my_host"),
        ("URL", "https://leases.example.com/"),
        ("TRUSTED_ORIGINS", "https://board.example.com,https://*.example.com:8443"),
        ("DATABASE_URL", "sqlite:////var/lib/x.sqlite3"),
        ("DATABASE_URL", "sqlite:///x.sqlite3"),
        ("DATABASE_URL", "postgresql://u:p%40ss@db.example.com:5432/board?sslmode=require"),
        ("DATABASE_URL", "postgres://u@/board?host=/run/postgresql"),
        ("DATABASE_URL", "postgresql://[::1]/x"),
        ("SECRET_KEY", "x" * 32),
        ("CLUSTERS", "a=url:https://u%3Ap@[::1]:6443/base"),
    ],
)
def test_a_good_value_is_taken(name, value):
    load({f"LEASEBOARD_{name}": value})


def test_no_repr_shows_a_secret():
    config = load(
        {
            "LEASEBOARD_SECRET_KEY": "CANARY" * 10,
            "LEASEBOARD_METRICS_TOKEN": "CANARY",
            "LEASEBOARD_CLUSTERS": "a=url:https://CANARY@h",
            "LEASEBOARD_DATABASE_URL": "postgresql://u:CANARY@h/x",
        }
    )
    assert isinstance(config, Config)
    assert "CANARY" not in repr(config)
    assert "CANARY" not in repr(parse_clusters("a=url:https://CANARY@h"))
    assert "CANARY" not in f"{parse_source('url:https://CANARY@h')!r}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://u:p@h/x", "postgresql://[hidden]@h/x"),
        ("postgresql://u:p@ss/w@h/x?sslmode=x", "postgresql://[hidden]@h/x?[hidden]"),
        ("a=url:https://t@h,b=url:https://t2@h2", "a=url:https://[hidden]@h2"),
        ("u:p@h", "[hidden]@h"),
        ("embedded=embedded", "embedded=embedded"),
        ("", ""),
    ],
)
def test_credentials_are_cut_out_of_any_text(text, shown):
    assert without_credentials(text) == shown


def test_hidden_secrets_are_cut_out_of_all_that_is_logged_as_they_are_and_as_urls_spell_them():
    hide(CANARY, "", "abc")
    line = logging.LogRecord(
        "x",
        logging.ERROR,
        "",
        1,
        "said %s and %s, abc",
        (CANARY, "s3cr3t-canary-%2F%23%3F%26"),
        None,
    )
    assert RedactingFormatter().format(line) == "said [hidden] and [hidden], abc"
    assert redact("abc") == "abc"


def test_passwords_of_a_database_url_are_found_as_they_are_sent_and_as_they_are_written():
    found = passwords_in("postgresql://u:p%40ss@h/x?password=other&sslmode=require")
    assert {"p%40ss", "p@ss", "other"} <= set(found)
    assert "require" not in found


def test_a_request_that_django_refuses_is_one_short_line():
    try:
        raise ValueError("where")
    except ValueError as error:
        trace = (ValueError, error, error.__traceback__)
    record = logging.LogRecord(
        "django.security.DisallowedHost", logging.ERROR, "", 1, "x" * 60_000, (), trace
    )
    assert SentenceFilter().filter(record)
    text = RedactingFormatter().format(record)
    assert len(text) <= 300
    assert "\n" not in text
