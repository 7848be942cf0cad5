"""Kernels that share a log in PostgreSQL: one serves, the others stand by."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from tests.support.servers import Postgres
from tests.support.waiting import eventually
from vesper.kernel import Kernel, KernelError, KernelNotStarted, v1

COUNTS = v1.GetProcessCountsRequest()


def request(number: int) -> v1.SubmitRequest:
    return v1.SubmitRequest(process=v1.CreateProcessRequest(request_id=f"r-{number}"))


@pytest.fixture
def kernels(postgres: Postgres) -> Iterator[tuple[Kernel, Kernel, str]]:
    """The writer, a standby and their database."""
    dsn = postgres.new_database()
    with Kernel(dsn) as first, Kernel(dsn) as second:
        yield first, second, dsn


def serves(kernel: Kernel) -> bool:
    try:
        kernel.client.get_process_counts(COUNTS)
    except KernelError as error:
        if error.code != "UNAVAILABLE":
            raise
        return False
    return True


def test_a_standby_refuses_and_goes_on_where_the_writer_was_killed(kernels: tuple[Kernel, Kernel, str]) -> None:
    first, second, _ = kernels
    assert first.client.submit(request(1)).created
    for call in (lambda: second.client.submit(request(2)), lambda: second.client.get_process_counts(COUNTS)):
        with pytest.raises(KernelError, match="stands by: another kernel writes the log") as refused:
            call()
        assert refused.value.code == "UNAVAILABLE"
    first.kill()
    eventually(lambda: serves(second))
    assert not second.client.submit(request(1)).created
    assert second.client.submit(request(2)).created


def test_no_accepted_request_is_lost_over_kills(postgres: Postgres) -> None:
    dsn = postgres.new_database()
    kernels = [Kernel(dsn).start(), Kernel(dsn).start()]
    accepted: list[int] = []
    is_over = threading.Event()

    def submit() -> None:
        number = 0
        while not is_over.is_set():
            for kernel in tuple(kernels):
                try:
                    kernel.client.submit(request(number))
                except (KernelError, KernelNotStarted):
                    continue
                accepted.append(number)
                number += 1
                break

    client = threading.Thread(target=submit)
    client.start()
    try:
        for _ in range(4):
            before = len(accepted)
            eventually(lambda: len(accepted) > before + 20)  # noqa: B023  # called at once
            old = next(each for each in kernels if serves(each))
            kernels.remove(old)
            old.kill()
            kernels.append(Kernel(dsn).start())
    finally:
        is_over.set()
        client.join()
    writer = next(each for each in kernels if serves(each))
    for number in accepted:
        assert not writer.client.submit(request(number)).created
    for each in kernels:
        each.stop()


def test_a_kernel_that_loses_its_session_goes_on_with_what_was_written(
    kernels: tuple[Kernel, Kernel, str],
) -> None:
    first, second, dsn = kernels
    first.client.submit(request(1))
    second.stop()
    with psycopg.connect(dsn, autocommit=True) as connection:
        ended = connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_database ON pg_database.oid = database"
            " WHERE locktype = 'advisory' AND granted AND datname = current_database()"
        ).fetchall()
    assert ended == [(True,)]
    eventually(lambda: serves(first))
    assert not first.client.submit(request(1)).created


def test_a_database_that_cannot_be_reached_is_said_without_its_password() -> None:
    with pytest.raises(KernelNotStarted, match="connection to server") as refused:
        Kernel("postgresql://someone:hunter2@127.0.0.1:1/none").start()
    assert "hunter2" not in str(refused.value)
