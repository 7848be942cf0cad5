"""Chromium before a dashboard on a copy of the sample project. `make test-browser` runs these tests.

Each page that a test opens is watched: an error in its console, an uncaught exception or a request that leaves the
machine fails the test.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlsplit

import pytest

from tests.browser.estate import Bank

ROOT: Final = Path(__file__).parents[2]
_START_SECONDS: Final = 60
_ENDED_SECONDS: Final = 20
_WAIT_MS: Final = 30_000

if "VESPER_BROWSER" not in os.environ:
    collect_ignore_glob = ["test_*.py"]  # they need Chromium: `make test-browser` installs it


@pytest.fixture(scope="session")
def bank() -> Iterator[Bank]:
    with Bank() as found:
        yield found


@pytest.fixture(scope="session")
def estate(tmp_path_factory: pytest.TempPathFactory, bank: Bank) -> Path:
    """Return the sample project. It is made in a process of its own, whose thresholds are scaled."""
    folder = tmp_path_factory.mktemp("estate") / "project"
    subprocess.run(
        [sys.executable, "-m", "tests.browser.estate", str(folder), bank.url], cwd=ROOT, check=True, timeout=300
    )
    return folder


class Dashboard:
    """A dashboard process on a folder of its own, whose direct engine has the planted fault."""

    def __init__(self, folder: Path, *options: str, command: str = "dashboard") -> None:
        self.folder = folder
        self._log = (folder / f"{command}.log").open("w+b")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.browser.faulty", command, "--port", "0", *options],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )
        until = time.monotonic() + _START_SECONDS
        while not (found := re.search(r"http://\S+?(?=[/;,\s])", self.log)):
            assert self._process.poll() is None, self.log
            assert time.monotonic() < until, self.log
            time.sleep(0.05)
        self.url = found[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(_ENDED_SECONDS)
        finally:
            self._process.kill()
            self._process.wait()
            self._log.close()

    @property
    def log(self) -> str:
        return Path(self._log.name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def dashboard(estate: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """Start a dashboard that may change things, on a copy of the sample project."""
    folder = tmp_path_factory.mktemp("copy") / "project"
    shutil.copytree(estate, folder)
    with Dashboard(folder, "--allow-changes") as found:
        yield found
        assert "Traceback" not in found.log


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert path is not None, "Chromium is missing: install it (Debian: apt-get install chromium)"
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield found
        found.close()


@dataclass
class Problems:
    """What a page did wrong while a test used it."""

    found: list[str] = field(default_factory=list)

    def watch(self, page: Any, url: str) -> None:
        own = urlsplit(url).netloc

        def check_request(request: Any) -> None:
            parts = urlsplit(request.url)
            if parts.netloc != own and parts.scheme not in ("data", "blob", "about"):
                self.found.append(f"a request to {request.url}")

        def check_console(message: Any) -> None:
            if message.type in ("error", "warning"):
                self.found.append(f"console: {message.text}")

        page.on("request", check_request)
        page.on("console", check_console)
        page.on("pageerror", lambda error: self.found.append(f"exception: {error}"))


@pytest.fixture
def open_page(browser: Any) -> Iterator[Any]:
    """Return a function that opens a page in a fresh profile: `open_page(url, width=…, dark=…)`."""
    contexts: list[Any] = []
    problems = Problems()

    def open_(url: str, width: int = 1280, dark: bool = False, scripts: bool = True) -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            java_script_enabled=scripts,
            accept_downloads=True,
        )
        context.set_default_timeout(_WAIT_MS)
        contexts.append(context)
        page = context.new_page()
        problems.watch(page, url)
        page.goto(url)
        return page

    yield open_
    for each in contexts:
        each.close()
    assert problems.found == []
