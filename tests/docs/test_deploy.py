"""The recipes of `docs/how-to/deploy`: they parse, they fit each other, and what can run here runs."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.console import ROOT, parse_session
from tests.support.waiting import eventually
from tests.unit.verify.test_workflows import problem
from vesper.config.settings import Config, read_config

FOLDER = ROOT / "docs" / "how-to" / "deploy"
PAGE = (ROOT / "docs" / "how-to" / "deploy.md").read_text(encoding="utf-8")
KEYS = {"VESPER_SECRET_SHOP_KEY": "key-of-the-shop-0123", "VESPER_SECRET_METRICS_KEY": "key-of-metrics-01234"}
ORDER = {"amount": "12.50", "balance": "100.00", "currency": "EUR", "country": "DE", "user_age_days": 400}
EVIDENCE_SECONDS = 10
WAIT_SECONDS = 60


def settings() -> Config:
    return read_config(FOLDER / "vesper.toml")


def test_the_page_names_every_file() -> None:
    named = set(re.findall(r"\]\(deploy/([\w.]+)\)", PAGE))
    assert named == {each.name for each in FOLDER.iterdir() if each.is_file()}


# -- container ------------------------------------------------------------------------------------


def instructions() -> list[tuple[str, str]]:
    text = (FOLDER / "Containerfile").read_text(encoding="utf-8")
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines)]


def test_the_container() -> None:
    found = instructions()
    assert {name for name, _ in found} <= {"FROM", "COPY", "RUN", "WORKDIR", "USER", "ENV", "VOLUME", "EXPOSE", "CMD"}
    last = dict(found)
    assert ":" in last["FROM"]
    assert last["USER"] == "10001:10001"
    assert problem(shlex.join(json.loads(last["CMD"]))) is None
    assert f"--port {last['EXPOSE']}" in " ".join(json.loads(last["CMD"]))
    assert last["VOLUME"] == f"{last['WORKDIR']}/.vesper"
    commands = [part.strip() for name, rest in found if name == "RUN" for part in rest.split("&&")]
    assert [each for each in commands if each.startswith("vesper") and problem(each) is not None] == []
    # Nothing that the service runs belongs to its user.
    assert [name for name, _ in found].index("USER") > max(n for n, (name, _) in enumerate(found) if name == "COPY")


# -- Kubernetes -----------------------------------------------------------------------------------


def documents() -> dict[str, Any]:
    found = yaml.safe_load_all((FOLDER / "kubernetes.yml").read_text(encoding="utf-8"))
    return {each["kind"]: each for each in found}


def test_kubernetes_fits_the_container_and_the_settings() -> None:
    found = documents()
    pod = found["StatefulSet"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    last = dict(instructions())
    assert container["ports"] == [{"name": "http", "containerPort": int(last["EXPOSE"])}]
    assert f"{pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}" == last["USER"]
    mounts = {each["mountPath"]: each for each in container["volumeMounts"]}
    assert mounts.keys() == {last["VOLUME"], "/tmp"}
    assert mounts[last["VOLUME"]]["subPath"] == "vesper"
    (claim,) = found["StatefulSet"]["spec"]["volumeClaimTemplates"]
    volumes = {claim["metadata"]["name"], *(each["name"] for each in pod["volumes"])}
    assert {each["name"] for each in mounts.values()} == volumes
    stop = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] > stop + settings().serve.grace + EVIDENCE_SECONDS
    assert {each["name"] for each in container["env"]} == KEYS.keys()
    assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    labels = found["StatefulSet"]["spec"]["template"]["metadata"]["labels"]
    assert found["Service"]["spec"]["selector"] == labels
    assert found["StatefulSet"]["spec"]["selector"]["matchLabels"] == labels


# -- systemd --------------------------------------------------------------------------------------


def test_the_unit_of_systemd_fits_the_settings() -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]  # the documented way to keep the case of names
    unit.read_string((FOLDER / "shop.service").read_text(encoding="utf-8"))
    service = unit["Service"]
    assert problem(service["ExecStart"]) is None
    assert int(service["TimeoutStopSec"]) > settings().serve.grace + EVIDENCE_SECONDS
    assert service["KillMode"] == "mixed"
    assert service["ReadWritePaths"] == f"{service['WorkingDirectory']}/.vesper"
    assert "MemoryDenyWriteExecute" not in service


# -- servers --------------------------------------------------------------------------------------


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    for each in ("vesper.toml", "service.py", "gunicorn.conf.py"):
        shutil.copy(FOLDER / each, tmp_path)
    (tmp_path / "nodes").mkdir()
    shutil.copy(ROOT / "nodes" / "payments" / "payment_decision_v1.vsp", tmp_path / "nodes")
    return tmp_path


@contextmanager
def running(module: str, words: list[str], folder: Path) -> Iterator[str]:
    """Start a server on a free port; yield its address, which it prints."""
    environment = {**os.environ, **KEYS, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *words], cwd=folder, env=environment, stdout=output, stderr=output
        )

    def address() -> str:
        assert process.poll() is None, log.read_text(encoding="utf-8")
        found = re.search(r"http://127\.0\.0\.1:\d+", log.read_text(encoding="utf-8"))
        return "" if found is None else found[0]

    try:
        eventually(lambda: bool(address()), WAIT_SECONDS)
        yield address()
        process.terminate()
        assert process.wait(WAIT_SECONDS) in (0, -15)
    finally:
        process.kill()
        process.wait()


def request(url: str, key: str | None, value: object = None) -> tuple[int, bytes]:
    headers = {"Content-Type": "application/json", **({"X-API-Key": KEYS[key]} if key else {})}
    body = None if value is None else json.dumps(value).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=WAIT_SECONDS) as response:  # noqa: S310  # loopback
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def check_service(url: str) -> None:
    assert request(f"{url}/livez", None)[0] == 200
    assert request(f"{url}/readyz", None)[0] == 200
    assert request(f"{url}/nodes/payment_decision_v1", None, ORDER)[0] == 401
    status, body = request(f"{url}/nodes/payment_decision_v1", "VESPER_SECRET_SHOP_KEY", ORDER)
    assert (status, json.loads(body)["fee"]) == (200, "0.66250")
    assert request(f"{url}/metrics", "VESPER_SECRET_SHOP_KEY")[0] == 403
    status, body = request(f"{url}/metrics", "VESPER_SECRET_METRICS_KEY")
    assert status == 200
    assert b"payment_decision_v1" in body


def test_the_settings_serve(shop: Path) -> None:
    with running("vesper", ["serve", "--port", "0", "--workers", "1"], shop) as url:
        check_service(url)


def test_the_recipe_of_uvicorn(shop: Path) -> None:
    (block,) = re.findall(r"^```console uvicorn\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (command,) = parse_session(block)
    program, *words = shlex.split(command.text.replace("--port 8000", "--port 0").replace("--workers 2", "--workers 1"))
    assert program == "uvicorn"
    with running(program, words, shop) as url:
        check_service(url)


def test_the_settings_of_gunicorn() -> None:
    found: dict[str, Any] = {}
    exec(compile((FOLDER / "gunicorn.conf.py").read_text(encoding="utf-8"), "gunicorn.conf.py", "exec"), found)
    assert found["graceful_timeout"] >= settings().serve.grace + EVIDENCE_SECONDS
    assert found["worker_class"] == "uvicorn_worker.UvicornWorker"
