"""Each secret that Leaseboard knows is planted, used, and used wrongly; then it is searched for.

The search covers the log, pages, errors, metrics, exports, doctor, backup and the database. There,
an address or a password of a receiver is encrypted, and a token is a digest. Readable there is one
secret: the key of a session, which is Django's. test_secrets_stay_secret.py does the same with
the log as JSON and a PostgreSQL that refuses.
"""

from __future__ import annotations

import base64
import http.server
import json
import re
import sqlite3
import tarfile
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.apps import apps

from dashboard.config import Config
from leases.domain.notify import Sort, Target
from tests.support.every_url import every_page
from tests.support.processes import Server, manage, serving, wait_for
from tests.support.programs.lease_apis import lease_api
from tests.support.signing_in import Cookies, Opener, cookie_keeper, press_button

SECRET_SETTINGS = {
    "database_url", "clusters", "kubeconfig", "secret_key", "metrics_token", "cluster_secrets",
}  # fmt: skip
PLAIN_SETTINGS = {
    "data", "allowed_hosts", "trusted_origins", "url", "https", "proxy_addresses",
    "proxy_user_header", "proxy_groups_header", "proxy_roles", "metrics_elections",
    "reason_required", "read_only", "impersonate", "abandoned_seconds", "slow_seconds",
    "slow_statement_ms", "log_format", "drain_seconds", "retention_days", "retention_rows",
    "reliability_days", "print_links", "hsts_seconds", "hsts_subdomains", "hsts_preload",
    "cluster_labels", "cluster_secrets_namespace",
}  # fmt: skip
SECRETS_OF_RECEIVERS = {"url", "secret", "password"}
PLAIN_OF_RECEIVERS = {"host", "port", "security", "username", "sender", "to"}
SECRET_COLUMNS = {  # what it holds instead of the secret
    "leases_addedcluster.sealed": "encrypted",
    "auth_user.password": "hash",
    "django_session.session_key": "the secret itself",
    "leases_apitoken.digest": "digest",
    "leases_badge.digest": "digest",
    "leases_refusedrow.digest": "digest, of a row",
    "leases_receiver.sealed": "encrypted",
    "leases_signinlink.digest": "digest",
    "leases_walllink.digest": "digest",
    "leases_wallscreen.code_digest": "digest, keyed",
    "leases_wallscreen.digest": "digest",
}
GONE = ("leases_signinlink", "leases_walllink", "leases_badge", "leases_apitoken")
KEY = "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n"


def canary(of: str) -> str:
    return f"c4nary-{of.replace('_', '-')}-9e1f"


def test_everything_that_could_be_secret_has_its_place_here():
    assert {field.name for field in fields(Config)} == SECRET_SETTINGS | PLAIN_SETTINGS
    marked = {one.name for one in fields(Config) if one.metadata["secret"] or not one.repr}
    assert marked <= SECRET_SETTINGS
    assert set(Target.__struct_fields__) == SECRETS_OF_RECEIVERS | PLAIN_OF_RECEIVERS
    columns = {
        f"{model._meta.db_table}.{field.column}"
        for model in apps.get_models()
        for field in model._meta.concrete_fields
        if re.search("password|secret|token|digest|sealed|session_key", field.column)
        and model._meta.app_label != "axes"  # which is told no password
    }
    assert columns == set(SECRET_COLUMNS)


class Echo(http.server.BaseHTTPRequestHandler):
    """A receiver that fails, and repeats all that it was sent."""

    def do_POST(self) -> None:
        body = f"{self.path} {self.headers}".encode()
        self.send_response(500, self.path)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_given: object) -> None:
        pass


@pytest.fixture
def echo() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def kubeconfig(home: Path, url: str) -> str:
    """A context for each sort of credentials; all of them are wrong."""
    said = home / "credential.json"
    status = {"token": canary("exec_token")}
    kind = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    said.write_text(json.dumps(kind | {"status": status}))
    key = base64.b64encode(KEY.format(canary("client_key")).encode()).decode()
    oidc = {"id-token": canary("id_token"), "refresh-token": canary("refresh_token"),
            "client-secret": canary("client_secret"), "idp-issuer-url": url}  # fmt: skip
    users: dict[str, Any] = {
        "token": {"token": canary("kube_token")},
        "password": {"username": "u", "password": canary("kube_password")},
        "key": {"client-certificate-data": key, "client-key-data": key},
        "exec": {"exec": {**kind, "command": "cat", "args": [str(said)]}},
        "oidc": {"auth-provider": {"name": "oidc", "config": oidc}},
    }
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "token",
        "clusters": [{"name": "one", "cluster": {"server": url}}],
        "users": [{"name": name, "user": user} for name, user in users.items()],
        "contexts": [{"name": one, "context": {"cluster": "one", "user": one}} for one in users],
    }
    path = home / "kubeconfig"
    path.write_text(json.dumps(config))
    contexts = ",".join(f"{name}=context:{name}" for name in users)
    tls = url.replace("http://", f"https://{canary('url_token')}@")
    return f"a=url:{url.replace('://', '://' + canary('url_token') + '@')},tls=url:{tls},{contexts}"


def read(browser: Opener, url: str, body: dict[str, str] | None = None, token: str = "") -> str:
    """Status, headers but for cookies, and text of an answer."""
    data = None if body is None else urllib.parse.urlencode(body).encode()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, data, headers)
    try:
        answer = browser.open(request, timeout=60)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        kept = [
            f"{name}: {text}"
            for name, text in answer.headers.items()
            if name.lower() != "set-cookie"
        ]
        return "\n".join([str(answer.status), answer.url, *kept, answer.read().decode()])


def send(browser: Opener, page: str, /, **given: str) -> str:
    """Send the form of a page, as a browser does."""
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', read(browser, page))
    assert token is not None, page
    return read(browser, page, {"csrfmiddlewaretoken": token[1], **given})


def found(pattern: str, page: str) -> str:
    match = re.search(pattern, page)
    assert match is not None, page
    return match[1]


def open_screen(server: Server, browser: Opener, made: str) -> dict[str, str]:
    """By a code of the wall link that was just made."""
    token = found(r'name="csrfmiddlewaretoken" value="([^"]+)"', made)
    there = f"{server.url}{found(r'(/wall-links/[0-9]+/code/)', made)}"
    code = found(r"data-code>([A-Z0-9 ]+)<", read(browser, there, {"csrfmiddlewaretoken": token}))
    screen = cookie_keeper()
    assert "/c/a/wall/?screen=1" in send(screen, f"{server.url}/wall/", code=code)
    (jar,) = [one.cookiejar for one in screen.handlers if isinstance(one, Cookies)]  # type: ignore[attr-defined]
    (cookie,) = [str(one.value) for one in jar if one.name.startswith("leaseboard_screen_")]
    return {"code": code, "code in one": code.replace(" ", ""), "screen": cookie}


def add_clusters(server: Server, browser: Opener, api: Path) -> str:
    """Add one cluster on its page, and one that is refused. Returns the token of the first."""
    text = (api / "kubeconfig").read_text()
    page, token = f"{server.url}/clusters/new/", yaml.safe_load(text)["users"][0]["user"]["token"]
    assert "The cluster added is added." in send(browser, page, name="added", kubeconfig=text)
    wrong = text.replace(token, canary("added_token"))
    refused = send(browser, page, name="wrong", kubeconfig=wrong)
    assert "does not accept our credentials" in refused
    assert "c4nary" not in refused
    metrics = f"{server.url}/metrics"
    wait_for(
        lambda: (
            'leaseboard_connected{cluster="added"} 1'
            in read(browser, metrics, token=canary("metrics_token"))
        ),
        what="the added cluster",
    )
    return str(token)


def use_everything(server: Server, browser: Opener, echo: str) -> dict[str, str]:
    """Make and use the secrets that Leaseboard makes itself. Returns them."""
    secrets: dict[str, str] = {}
    password = canary("password")
    send(browser, f"{server.url}/account/password/", new_password1=password, new_password2=password)
    secrets["api_token"] = found(
        r"(lbt_[\w-]+)",
        send(browser, f"{server.url}/tokens/", name="ci", role="operator", days="9"),
    )
    made = send(browser, f"{server.url}/wall-links/", name="hall", clusters="a", days="7")
    secrets["wall_link"] = found(r"key=([\w-]+)", made)
    secrets |= open_screen(server, browser, made)
    made = send(browser, f"{server.url}/badges/", name="readme", cluster="a", lease="")
    secrets["badge"] = found(r"/badge/([\w-]+)\.svg", made)
    made = send(browser, f"{server.url}/people/", username="olga", role="operator")
    secrets["sign_in_link"] = found(r"/sign-in/([\w-]+)/", made)
    for sort in Sort:
        given = {"name": sort, "group_seconds": "0", "enabled": "on"}
        given |= {"url": f"{echo}/{canary('url')}", "secret": canary("secret")}
        if sort == "email":
            given |= {"host": "127.0.0.1", "port": "9", "security": "none", "username": "u"}
            given |= {"password": canary("password"), "sender": "a@example.com"}
            given |= {"to": "b@example.com"}
        send(browser, f"{server.url}/notifications/receivers/new/?sort={sort}", **given)
    page = read(browser, f"{server.url}/notifications/")
    for number in sorted({*re.findall(r"/notifications/receivers/(\d+)/", page)}):
        url = f"{server.url}/notifications/receivers/{number}/"
        token = found(r'name="csrfmiddlewaretoken" value="([^"]+)"', read(browser, url))
        read(browser, f"{url}test/", {"csrfmiddlewaretoken": token})
    (jar,) = [one.cookiejar for one in browser.handlers if isinstance(one, Cookies)]  # type: ignore[attr-defined]
    return secrets | {one.name: str(one.value) for one in jar}


def failures(server: Server) -> int:
    """How many receivers have failed."""
    with closing(sqlite3.connect(server.data / "leaseboard.sqlite3")) as history:
        rows = history.execute("SELECT count(*) FROM leases_receiver WHERE failures > 0")
        return int(rows.fetchone()[0])


def fail_with(server: Server, secrets: dict[str, str]) -> str:
    """Use tokens while their tables are gone; all answers. Known rights are still good for 200."""
    with closing(sqlite3.connect(server.data / "leaseboard.sqlite3", timeout=60)) as history:
        for table in GONE:
            history.execute(f"ALTER TABLE {table} RENAME TO {table}_gone")
    stranger = cookie_keeper()
    said = [
        read(stranger, f"{server.url}/sign-in/{secrets['sign_in_link']}/"),
        read(stranger, f"{server.url}/c/a/wall/?key={secrets['wall_link']}"),
        read(stranger, f"{server.url}/badge/{secrets['badge']}.svg"),
        read(stranger, f"{server.url}/c/a/leases/?format=json", token=secrets["api_token"]),
    ]
    statuses = {one.splitlines()[0] for one in said}
    assert "503" in statuses <= {"200", "500", "503"}
    # Each answer names its own address, in which the token stands.
    return "\n".join(one.partition("\n")[2].partition("\n")[2] for one in said)


def test_no_secret_is_found_where_it_must_not_be(tmp_path: Path, echo: str) -> None:
    environment = {
        "LEASEBOARD_SECRET_KEY": f"{canary('secret_key')}{'x' * 32}",
        "LEASEBOARD_METRICS_TOKEN": canary("metrics_token"),
        "LEASEBOARD_KUBECONFIG": str(tmp_path / "kubeconfig"),
    }
    with lease_api(tmp_path / "api") as (_, url):
        environment["LEASEBOARD_CLUSTERS"] = kubeconfig(tmp_path, url)
        place = url.replace("://", f"://{canary('secrets_token')}@")
        environment["LEASEBOARD_CLUSTER_SECRETS"] = f"url:{place}"
        environment["LEASEBOARD_CLUSTER_SECRETS_NAMESPACE"] = "board"
        with serving(tmp_path / "data", **environment) as server:
            browser = cookie_keeper()
            press_button(browser, server.printed("Sign in"))
            secrets = use_everything(server, browser, echo)
            secrets["added_cluster"] = add_clusters(server, browser, tmp_path / "api")
            wait_for(lambda: failures(server) == len(Sort), what="all receivers to fail")
            texts = {page.path: read(browser, server.url + page.path) for page in every_page()}
            for path in ("history", "leases", "incidents"):
                texts[f"{path} as CSV"] = read(browser, f"{server.url}/c/a/{path}/?format=csv")
            for path in ("audit", "security-log"):
                texts[f"{path} as JSON"] = read(browser, f"{server.url}/{path}/?format=json")
            texts["wrong"] = send(
                cookie_keeper(),
                f"{server.url}/sign-in/",
                username="admin",
                password=canary("typed"),
            )
            for token in (canary("metrics_token"), secrets["api_token"], f"lbt_{canary('wrong')}"):
                texts[f"metrics {token}"] = read(
                    cookie_keeper(), f"{server.url}/metrics", token=token
                )
            with closing(sqlite3.connect(server.data / "leaseboard.sqlite3")) as history:
                stored = "\n".join(history.iterdump())
            for command in ("doctor", "backup", "export_history"):
                given = [str(tmp_path / "x.tar")] if command == "backup" else []
                done = manage(server.data, command, *given, **environment)
                texts[command] = done.stdout + done.stderr
            refused = {
                "LEASEBOARD_DATABASE_URL": f"postgresql://u:{canary('database')}@127.0.0.1:9/x"
            }
            done = manage(server.data, "doctor", "--timeout", "1", **environment | refused)
            texts["doctor without a database"] = done.stdout + done.stderr
            texts["errors"] = fail_with(server, secrets)
            log = server.text.partition("Stop         Ctrl-C\n")[2]  # behind the printed links
    with tarfile.open(tmp_path / "x.tar") as backup:
        texts["names in the backup"] = " ".join(backup.getnames())
    readable = {secrets.pop(next(one for one in secrets if one.startswith("sessionid_")))}
    assert all(one in stored for one in readable)
    texts |= {"the log": log}
    for name, text in texts.items():
        leaked = [one for one in ("c4nary", *secrets.values(), *readable) if one in text]
        assert not leaked, (name, leaked, text[max(0, text.find(leaked[0]) - 300) :][:600])
    assert not [one for one in ("c4nary", *secrets.values()) if one in stored]
