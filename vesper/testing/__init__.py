"""Test doubles for nodes with effects, public as `vesper.testing`.

`Stubs` is a Host with answers from the test; `model` has scripts of models' answers for it. `Recorder` writes a
performed run as a case of the node. `Replay` is a Host with answers from such a file. `fixed_sources` stops the clock
of a Host and repeats its random bytes.
"""

from __future__ import annotations

from vesper.host.stub_answers import Asked, StubError, StubMismatch, Unanswered
from vesper.storage.sources import Sources
from vesper.testing import model
from vesper.testing.fixed_sources import fixed_sources
from vesper.testing.recorder import NotRecorded, Recorder
from vesper.testing.replay_host import Replay, ReplayMismatch
from vesper.testing.stubs import NOON, Stubs

__all__ = [
    "NOON", "Asked", "NotRecorded", "Recorder", "Replay", "ReplayMismatch", "Sources", "StubError", "StubMismatch",
    "Stubs", "Unanswered", "fixed_sources", "model",
]  # fmt: skip
