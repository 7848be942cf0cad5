"""The locks hold what their packages ask for, on every supported Python and not only on the one that runs this."""

from __future__ import annotations

import re
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.proofs.versions.run import SUPPORTED
from tests.support.install_locked import locked_requirement, uv_settings

ROOT = Path(__file__).parents[3]


def locked(name: str) -> dict[str, list[Requirement]]:
    """The packages of a lock by name, each with the markers that it is installed under: a version for some Pythons may
    stand beside one for others."""
    text = (ROOT / name).read_text(encoding="utf-8")
    lines = re.findall(r"^[a-z].*?(?= \\$)", text, flags=re.MULTILINE)
    found: dict[str, list[Requirement]] = {}
    for each in map(Requirement, lines):
        found.setdefault(canonicalize_name(each.name), []).append(each)
    return found


def missing(
    packages: dict[str, list[Requirement]], asked: dict[str, list[Requirement]], environment: dict[str, str]
) -> list[str]:
    """What a package that is installed there asks for and the lock would not install there."""

    def is_installed(name: str) -> bool:
        versions = packages.get(canonicalize_name(name), [])
        return any(each.marker is None or each.marker.evaluate(environment) for each in versions)

    return [
        f"{name} asks for {each}"
        for name, needed in asked.items()
        if is_installed(name)
        for each in needed
        if (each.marker is None or each.marker.evaluate({**environment, "extra": ""})) and not is_installed(each.name)
    ]


def needs(packages: dict[str, list[Requirement]]) -> dict[str, list[Requirement]]:
    """What each package asks for, by the metadata of those that are installed beside this."""
    found: dict[str, list[Requirement]] = {}
    for name in packages:
        try:
            found[name] = [Requirement(each) for each in Distribution.from_name(name).requires or []]
        except PackageNotFoundError:  # one for another system or another Python
            continue
    return found


def on(version: str) -> dict[str, str]:
    """What markers see on the first release of a Python; all else is as it is here."""
    return {"python_version": version, "python_full_version": f"{version}.0"}


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
@pytest.mark.parametrize("version", SUPPORTED)
def test_a_lock_is_complete_on_every_supported_python(lock: str, version: str) -> None:
    packages = locked(lock)
    asked = needs(packages)
    assert set(asked) >= {"click", "libcst", "pyyaml", "sqlglot"}
    assert missing(packages, asked, on(version)) == []


def test_what_only_another_python_asks_for_is_noticed() -> None:
    packages = locked("requirements.lock")
    del packages["pyyaml-ft"]
    asked = {"libcst": [Requirement('pyyaml-ft>=8.0.0; python_version == "3.13"')]}
    assert missing(packages, asked, on("3.13")) == ['libcst asks for pyyaml-ft>=8.0.0; python_version == "3.13"']
    assert missing(packages, asked, on("3.12")) == []


def test_uv_is_bootstrapped_with_the_hashes_of_the_lock() -> None:
    lock = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
    head, *hashes = locked_requirement(lock, "uv").splitlines()
    assert head.startswith("uv==")
    assert len(hashes) > 10
    assert all(each.strip().startswith("--hash=sha256:") for each in hashes)
    assert not hashes[-1].endswith("\\")
    with pytest.raises(SystemExit, match="does not pin nothing"):
        locked_requirement(lock, "nothing")


def test_settings_of_pip_reach_uv_and_the_environment_wins() -> None:
    listed = """\
:env:.find-links='/a /b'
:env:.disable-pip-version-check='1'
global.index-url='https://one.example/simple'
global.extra-index-url='\\nhttps://two.example/simple\\nhttps://three.example/simple'
global.find-links='/c'
install.index-url='https://four.example/simple'
"""
    assert uv_settings(listed) == {
        "UV_DEFAULT_INDEX": "https://four.example/simple",
        "UV_INDEX": "https://two.example/simple https://three.example/simple",
        "UV_FIND_LINKS": "/a /b",
    }
