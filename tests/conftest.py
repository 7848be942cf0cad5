"""What every test may use."""

from __future__ import annotations

import atexit
import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.support.goldens import Golden

if TYPE_CHECKING:
    from tests.support.servers import Postgres, Redis

# Files of nodes in here are material of tests, and most are wrong on purpose: Vesper's own plugin leaves them alone.
collect_ignore_glob = ["*.vsp"]

# Machine code is made when a node is loaded, wherever a test does not say otherwise: a few calls would never be enough.
os.environ.setdefault("VESPER_JIT", "always")
os.environ.pop("FORCE_COLOR", None)  # workflows set it, and output is compared without colours
# What a test keeps on disk must not decide what the next one sees; tests of the cache say where theirs is.
os.environ["VESPER_CACHE"] = "off"
# A container that runs the tests as root may have a checkout of another user.
os.environ["VESPER_TRUST"] = str(Path(__file__).parents[1])

# Workers of pytest inherit a width of 80; commands of tests have the width that a pipe has.
os.environ.pop("COLUMNS", None)

# A shell that starts the tests in its background has them ignore Ctrl-C, and with them all that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("vesper", derandomize=True, deadline=None, max_examples=100, print_blob=True)
settings.load_profile("vesper")


@atexit.register
def _mute_native_reports() -> None:
    """Drop what native libraries print while Python ends, such as leak reports of nanobind.

    Registered before any test runs, so it runs after every other exit handler: their errors stay visible.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite goldens and snapshots instead of comparing")


def pytest_collection() -> None:
    """Many thousand tests and what their modules hold stay to the end: Python's collector need not look at them again
    and again, neither while they are collected nor in the tests that call it."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _generated_once() -> Iterator[None]:
    """Loading a node again takes no second generation of its Python: that is most of what loading costs."""
    from tests.support.generated import GeneratedOnce
    from vesper.engines import python_engine

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(python_engine, "generate_module", GeneratedOnce())
        yield


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compares text with a file of the repository; `make update` rewrites the file."""
    return Golden(update=bool(request.config.getoption("--update")))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server of this test process; `postgres.new_database()` gives an empty database."""
    from tests.support.servers import Postgres

    server = Postgres()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Redis]:
    """A Redis server of this test process; tests use keys of their own."""
    from tests.support.servers import Redis

    server = Redis()
    yield server
    server.remove()
