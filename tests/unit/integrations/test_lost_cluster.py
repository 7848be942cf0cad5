"""A cluster that loses its workers ends a job with a message; an exception in a worker stays what it is."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray")

import ray
from ray.exceptions import UserCodeException, WorkerCrashedError

from vesper.batch.errors import BatchError
from vesper.batch.partitioned_job import Work
from vesper.batch.partitions import Partition
from vesper.integrations import ray as ours


class Lost:
    """A dataset whose workers end with an exception."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def map_batches(self, *_: Any, **__: Any) -> Lost:
        return self

    def iter_batches(self, **_: Any) -> Any:
        raise self._error


@pytest.mark.parametrize(
    "error, expected",
    [(WorkerCrashedError(), BatchError), (UserCodeException("a bug"), UserCodeException)],
)
def test_a_lost_worker_is_named_and_a_bug_is_not_hidden(
    error: Exception, expected: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray.data, "from_arrow", lambda _: Lost(error))
    monkeypatch.setattr(ours, "_quiet_context", nullcontext)
    work = Work([Partition("in.csv", "file", 0, 9, 9, "part-00000.csv")], Path(), "csv", "2026-11-18T00:00:00Z")
    with pytest.raises(expected) as raised:
        list(ours.run_parts(work, None, 1))  # type: ignore[arg-type]  # no worker loads it
    if expected is BatchError:
        assert "WorkerCrashedError" in str(raised.value)
        assert "continue with --resume" in str(raised.value)
