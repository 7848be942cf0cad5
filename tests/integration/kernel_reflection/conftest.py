"""A kernel for the tests of a file, and a client of it for each version of the reflection protocol."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.kernel_reflection.world import USER_LIMIT, World
from tests.support.work.kernel_process import KernelProcess
from tests.support.work.reflected import VERSIONS, Reflected

MAX_MESSAGE_BYTES = 100_000


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KernelProcess]:
    """A kernel that has to outlive its tests, without a word on standard error."""
    folder = tmp_path_factory.mktemp("kernel")
    settings = {"rate_per_hour": str(USER_LIMIT), "max_message_bytes": str(MAX_MESSAGE_BYTES)}
    with KernelProcess(folder, **settings) as process:
        yield process
        check_health(process)
        assert process.end() == 0
        assert process.stderr == ""


@pytest.fixture(params=VERSIONS, scope="module")
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def kernel(process: KernelProcess, version: str) -> Iterator[Reflected]:
    with Reflected(process.address, version) as client:
        yield client


@pytest.fixture
def world(kernel: Reflected) -> Iterator[World]:
    found = World(kernel)
    yield found
    found.close()


def check_health(process: KernelProcess) -> None:
    """Fail where the kernel does not live and serve."""
    assert process.is_alive
    with Reflected(process.address) as client:
        for service in client.services:
            if service.startswith("vesper."):
                assert client.call("grpc.health.v1.Health/Check", {"service": service}).answer == {"status": "SERVING"}
