"""Install a lock file into the environment of this interpreter, by the uv that the lock pins.

    .venv/bin/python tests/support/install_locked.py requirements-dev.lock

Needs only the standard library and pip, which installs uv with the hashes of the lock. uv reads no settings of pip, so
this passes them on as uv's own variables; a variable of uv that is set already wins.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

_PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
_COMPLETE = ["--quiet", "--require-hashes", "--no-deps", "--requirement"]
"""Options of pip and uv for a lock, which names every package, whatever the metadata of the others say."""
_SECTIONS = ("global", "install", ":env:")
"""Sections of pip's settings; a later one overrides."""
_UV_VARIABLES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "no-index": "UV_NO_INDEX",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "timeout": "UV_HTTP_TIMEOUT",
    "proxy": "ALL_PROXY",
    "cert": "SSL_CERT_FILE",
}


def uv_settings(listed: str) -> dict[str, str]:
    """Return the variables of uv for settings as `pip config list` prints them."""
    found: dict[str, str] = {}
    for section in _SECTIONS:
        for name, value in re.findall(rf"^{section}\.([a-z-]+)=(.+)$", listed, flags=re.MULTILINE):
            if name in _UV_VARIABLES:
                found[_UV_VARIABLES[name]] = " ".join(ast.literal_eval(value).split())
    return found


def locked_requirement(lock: str, package: str) -> str:
    """Return the lines of one package in a lock: its version and its hashes."""
    found = re.search(rf"^{package}==.*\n(?: +--hash.*\n)*", lock, flags=re.MULTILINE)
    if found is None:
        raise SystemExit(f"error: the lock does not pin {package}: run `make lock`")
    return found[0]


def install(lock: Path, environment: Mapping[str, str]) -> None:
    """Install uv by pip, then all of the lock by uv."""
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder) / "uv.lock"
        own.write_text(locked_requirement(lock.read_text(encoding="utf-8"), "uv"), encoding="utf-8")
        _run([*_PIP, "install", "--no-compile", *_COMPLETE, str(own)], environment)
    listed = subprocess.run([*_PIP, "config", "list"], stdout=subprocess.PIPE, text=True, check=True).stdout
    # Hashes decide which file is right, whichever index has it.
    uv = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--python", sys.executable]
    _run([*uv, "--index-strategy", "unsafe-best-match", *_COMPLETE, str(lock)], uv_settings(listed) | dict(environment))


def _run(command: list[str], environment: Mapping[str, str]) -> None:
    code = subprocess.run(command, env=environment, check=False).returncode
    if code != 0:
        raise SystemExit(f"error: `{' '.join(command[:4])} …` exited with {code}; its reason is above")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: install_locked.py LOCK")
    install(Path(sys.argv[1]), os.environ)
