"""Ids of messages and keys of their runs."""

from __future__ import annotations

import pytest

from vesper.topics.message import Message, checked_id, requeued_id


@pytest.mark.parametrize(
    "given, expected",
    [(None, "1-0"), ("e1", "e1"), ("a b", None), ("", None), ("x" * 200, "x" * 200), ("x" * 201, None), ("é", None)],
)
def test_an_id_that_is_no_key_is_hashed(given: str | None, expected: str | None) -> None:
    found = checked_id(given, "1-0")
    assert found == expected or (expected is None and found.startswith("sha256:") and len(found) == 71)


def test_attempts_and_requeued_messages_have_keys_of_their_own() -> None:
    assert [Message("m1", "", None, "").run_key(n) for n in (1, 2)] == ["m1", "m1 2"]
    again = requeued_id(requeued_id("m1", "mail"), "mail")
    assert again == "m1#requeued-2@mail"
    message = Message(again, "", None, "")
    assert (message.event_id, message.is_for("mail"), message.is_for("ledger")) == ("m1", True, False)
    assert Message("m1", "", None, "").is_for("ledger")


def test_the_mark_of_a_requeued_message_survives_a_long_id() -> None:
    marked = requeued_id("x" * 200, "g" * 64)
    message = Message(checked_id(marked, "1-0"), "", None, "")
    assert (message.id, message.event_id) == (marked, "x" * 200)
    assert len({message.run_key(1), message.run_key(2)}) == 2
    assert len(message.run_key(2)) <= 255
