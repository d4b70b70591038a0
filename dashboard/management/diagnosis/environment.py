"""Find every setting that stops a start, and set it aside so that the rest can be examined."""

from __future__ import annotations

import atexit
import secrets
import shutil
import tempfile
from collections.abc import MutableMapping
from dataclasses import fields
from difflib import get_close_matches

from dashboard.config import PREFIX, Config, ConfigError, load
from dashboard.management.diagnosis.finding import Finding, Level
from dashboard.serving.data_directory import BadDataDirectory, open_data_directory
from dashboard.serving.secret_key import BadSecretKey, secret_key

CHECK = "settings"
DATA = "data directory"
KNOWN = [PREFIX + item.name.upper() for item in fields(Config)]

# Filled by manage.py, before Django reads the settings.
set_aside: list[Finding] = []


def set_bad_settings_aside(environ: MutableMapping[str, str]) -> list[Finding]:
    """Remove from the environment what no start accepts. Returns the problems."""
    findings = []
    for name in [name for name in environ if name.startswith(PREFIX)]:
        value = environ[name]
        try:
            load({name: value})
        except ConfigError as error:
            findings.append(_finding(name, str(error)))
            del environ[name]
    config = load(environ)
    try:
        data = open_data_directory(config.data)
        if not config.secret_key:
            secret_key(data)
    except BadDataDirectory as error:
        findings.append(_problem(DATA, str(error)))
        instead = tempfile.mkdtemp(prefix="leaseboard-doctor-")
        atexit.register(shutil.rmtree, instead, ignore_errors=True)
        environ["LEASEBOARD_DATA"] = instead
    except BadSecretKey as error:
        findings.append(_problem("secret key", str(error)))
        environ["LEASEBOARD_SECRET_KEY"] = secrets.token_urlsafe(50)
    return findings


def examine_settings(config: Config, names: list[str]) -> list[Finding]:
    """What was set aside; else how many settings are set."""
    findings = list(set_aside)
    if not any(finding.check == CHECK for finding in findings):
        listed = ", ".join(sorted(names)) or "none; the defaults hold"
        findings.insert(0, Finding(check=CHECK, level=Level.OK, found=f"Set: {listed}."))
    if config.https and config.allowed_hosts == Config().allowed_hosts:
        findings.append(
            Finding(
                check=CHECK,
                level=Level.WARNING,
                found="LEASEBOARD_HTTPS is true, but the pages answer to localhost only.",
                do="Name the host that browsers use in LEASEBOARD_ALLOWED_HOSTS.",
            )
        )
    return findings


def _finding(name: str, said: str) -> Finding:
    if name in KNOWN:
        found, _, do = said.partition(": ")
        return Finding(
            check=CHECK, level=Level.PROBLEM, found=f"{found}.", do=f"{do[:1].upper()}{do[1:]}"
        )
    close = get_close_matches(name, KNOWN, n=1)
    return Finding(
        check=CHECK,
        level=Level.PROBLEM,
        found=f"{name} is not a setting.",
        do=f"Did you mean {close[0]}?" if close else "docs/operations.md lists all settings.",
    )


def _problem(check: str, said: str) -> Finding:
    found, _, do = said.partition(": ")
    do = f"{do[:1].upper()}{do[1:]}"
    return Finding(check=check, level=Level.PROBLEM, found=f"{found}.", do=do)
