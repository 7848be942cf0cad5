"""Testing nodes with effects, without servers: public as `vesper.testing`.

`Stubs` is a Host that a test answers. `Recorder` writes a run that was performed for real as a case of the node, and
`Replay` answers from such a file.
"""

from __future__ import annotations

from typing import Any

from vesper.api.node import Node
from vesper.host import replaying
from vesper.host.recording import NotRecorded, Recorder
from vesper.host.replaying import ReplayMismatch
from vesper.host.stub_answers import Asked, StubError, StubMismatch, Unanswered
from vesper.host.stubbing import NOON, Stubs

__all__ = [
    "NOON", "Asked", "NotRecorded", "Recorder", "Replay", "ReplayMismatch", "StubError", "StubMismatch", "Stubs",
    "Unanswered",
]  # fmt: skip


class Replay(replaying.Replay):
    """A Host that answers from a file of recorded cases, and from nothing else.

        replay = Replay("tests/recorded/payment.yaml")
        node = vesper.load("payment_handler", host=replay)
        outcome = node(replay.inputs(node))

    Where the file has several cases, `case` names one, or the inputs of the call say which. Every request must be the
    next one of the case, with the fields that it lists; any other is a `ReplayMismatch`. A call without a start of its
    own starts when the recording did.
    """

    def inputs(self, node: Node) -> dict[str, Any]:
        """The inputs of the recorded run, with placeholders for what is sensitive."""
        return dict(self.chosen(node._compiled).inputs)
