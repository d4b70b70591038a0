"""The image, the compose file, the systemd unit and the alert rules say what they should."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from dashboard.config import PREFIX, Config
from tests.deploy.shipped import DEPLOY, steps
from tests.support.processes import ROOT, Server, get

SETTINGS = {PREFIX + name.upper() for name in Config.__dataclass_fields__}


def test_the_image_runs_without_root_and_installs_by_hash_alone():
    build, final = steps()
    (install,) = [rest for word, rest in build if word == "RUN" and "install" in rest]
    assert {"--require-hashes", "--only-binary", "requirements.txt"} <= {*install.split()}
    said = dict(final)
    user, group = said["USER"].split(":")
    assert int(user) > 0
    assert int(group) > 0
    assert not re.search(
        r"\b(apt|gcc|install)\b", " ".join(rest for word, rest in final if word == "RUN")
    )
    assert "/healthz" in said["HEALTHCHECK"]
    assert said["ENTRYPOINT"] == '["python3", "manage.py"]'


def test_what_the_image_copies_is_all_that_the_program_needs():
    build, _ = steps()
    copied = {rest.split()[0] for word, rest in build if word == "COPY"}
    assert {name for name in copied if not (ROOT / name).exists()} == set()
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line[0] == "!"}
    assert let_in == copied


@pytest.mark.parametrize("name", ["compose.yaml", "leaseboard.service", "base/configmap.yaml"])
def test_every_setting_that_a_file_names_exists(name):
    named = set(re.findall(rf"{PREFIX}\w+", (DEPLOY / name).read_text()))
    assert named
    assert named <= SETTINGS


def test_the_compose_file_is_what_the_specification_allows():
    from compose_pydantic import ComposeSpecification
    from pydantic import ValidationError

    whole = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    ComposeSpecification.model_validate(whole)
    whole["services"]["leaseboard"] |= {"red_only": True, "cap_drop": "ALL"}
    with pytest.raises(ValidationError, match=r"cap_drop[\s\S]*red_only"):
        ComposeSpecification.model_validate(whole)


def test_the_compose_file_shuts_the_container_in():
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["leaseboard"]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


def test_the_unit_is_what_systemd_knows():
    if shutil.which("systemd-analyze") is None:
        assert os.environ.get("CI") != "true", "systemd-analyze is missing: apt-get install systemd"
        pytest.skip("systemd-analyze is not installed: apt-get install systemd")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--recursive-errors=no", str(DEPLOY / "leaseboard.service")],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "Unknown" not in done.stderr


def unit_lines() -> dict[str, list[str]]:
    """The words of each setting of the systemd unit; of a repeated one, the last."""
    lines = (DEPLOY / "leaseboard.service").read_text().splitlines()
    return {name: rest.split() for name, found, rest in (line.partition("=") for line in lines)
            if found and not name.startswith("#")}  # fmt: skip


def test_the_unit_starts_a_server_that_is_well(tmp_path):
    unit = unit_lines()
    python, program, command, *arguments = unit["ExecStart"]
    (folder,) = unit["WorkingDirectory"]
    assert (python, command) == (f"{folder}/.venv/bin/python3", "serve")
    variables = dict(word.split("=", 1) for word in unit["Environment"])
    assert variables.pop("LEASEBOARD_DATA") == f"/var/lib/{unit['StateDirectory'][0]}"
    server = Server(tmp_path / "data", *arguments, program=(program,), **variables)
    assert get(f"{server.url}/healthz")[0] == 200
    server.process.terminate()
    assert server.process.wait(timeout=60) == 0


def test_the_composed_container_starts_a_server_that_is_well(tmp_path):
    """With its own SQLite file for PostgreSQL, and a kubeconfig of an API server that is down."""
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["leaseboard"]
    entry = json.loads(next(rest for word, rest in steps()[-1] if word == "ENTRYPOINT"))
    _, program, command, *arguments = [*entry, *service["command"]]
    assert command == "serve"
    variables = service["environment"]
    assert variables.pop("LEASEBOARD_DATABASE_URL").startswith("postgresql://")
    named = {"clusters": "cluster", "users": "user", "contexts": "context"}
    of = {"cluster": {"server": "http://127.0.0.1:1"}, "user": {},
          "context": {"cluster": "prod", "user": "prod"}}  # fmt: skip
    known = {many: [{"name": "prod", one: of[one]}] for many, one in named.items()}
    (tmp_path / "kubeconfig").write_text(
        yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **known})
    )
    variables["LEASEBOARD_KUBECONFIG"] = str(tmp_path / "kubeconfig")
    variables["LEASEBOARD_SECRET_KEY"] = "k" * 40
    server = Server(tmp_path / "data", *arguments, program=(program,), **variables)
    assert get(f"{server.url}/healthz")[0] == 200
    server.process.terminate()
    assert server.process.wait(timeout=60) == 0


def test_the_composed_container_reads_a_kubeconfig_that_is_its_owners_alone(tmp_path):
    """The service that copies it, run with the rights that the compose file leaves it."""
    if os.geteuid() != 0:
        assert os.environ.get("CI") != "true", "only root can act for two users"
        pytest.skip("only root can act for two users")
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    copies, reads = services["kubeconfig"], services["leaseboard"]
    (secret,) = copies["secrets"]
    place = Path(reads["environment"]["LEASEBOARD_KUBECONFIG"])
    assert copies["volumes"] == [f"kubeconfig:{place.parent}"]
    assert f"kubeconfig:{place.parent}:ro" in reads["volumes"]
    assert reads["depends_on"]["kubeconfig"] == {"condition": "service_completed_successfully"}
    there = {f"/run/secrets/{secret}": tmp_path / "theirs", str(place): tmp_path / "volume/config"}
    there[f"/run/secrets/{secret}"].write_text("of somebody")
    there[f"/run/secrets/{secret}"].chmod(0o600)
    os.chown(there[f"/run/secrets/{secret}"], 1000, 1000)
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume").chmod(0o755)
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(0o755)
    assert copies["cap_drop"] == ["ALL"]
    bounds = ",".join(["-all", *(f"+{one.lower()}" for one in copies["cap_add"])])
    words = [str(there.get(word, word)) for word in copies["entrypoint"]]
    user, group = dict(steps()[-1])["USER"].split(":")
    read = [
        "setpriv",
        f"--reuid={user}",
        f"--regid={group}",
        "--clear-groups",
        "--bounding-set=-all",
    ]
    for _ in range(2):  # a second start finds the file of the first
        subprocess.run(["setpriv", f"--bounding-set={bounds}", *words], check=True, timeout=60)
        done = subprocess.run(
            [*read, "cat", str(there[str(place)])], capture_output=True, text=True, check=True,
            timeout=60,
        )  # fmt: skip
        assert done.stdout == "of somebody"
    assert there[str(place)].stat().st_mode & 0o777 == 0o400
    refused = subprocess.run(
        [*read, "cat", words[-2]], capture_output=True, check=False, timeout=60
    )
    assert refused.returncode != 0, "this is why it is copied"


def test_the_alert_rules_do_what_their_tests_say():
    if shutil.which("promtool") is None:
        assert os.environ.get("CI") != "true", "promtool is missing: apt-get install prometheus"
        pytest.skip("promtool is not installed: apt-get install prometheus")
    done = subprocess.run(
        ["promtool", "test", "rules", "alerts_test.yaml"],
        cwd=DEPLOY, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
