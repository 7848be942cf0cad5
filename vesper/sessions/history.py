"""What a model reads of a session, and which messages a limit leaves in it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from vesper.sessions.errors import WrongMessages

ROLES: Final = ("user", "assistant", "tool")
MAX_ID_CHARACTERS: Final = 200
SUMMARY_OPENING: Final = "Summary of the conversation so far:\n"


def check_id(session: str) -> str:
    """Return the id of a session. Raises `WrongMessages` for a text that is none."""
    if not 1 <= len(session) <= MAX_ID_CHARACTERS or not session.isprintable():
        raise WrongMessages(f"the id of a session has 1 to {MAX_ID_CHARACTERS} printable characters")
    return session


def message_texts(messages: object) -> list[str]:
    """Return each message as canonical JSON text. Raises `WrongMessages` with the first that has no role."""
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        raise WrongMessages("`messages` is a list of messages")
    texts = []
    for number, each in enumerate(messages):
        if not isinstance(each, Mapping) or each.get("role") not in ROLES:
            raise WrongMessages(f"the message {number} has no `role` among {', '.join(ROLES)}")
        texts.append(json.dumps(each, ensure_ascii=False, separators=(",", ":"), default=_number))
    return texts


def _number(value: object) -> object:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    raise WrongMessages(f"a message holds a {type(value).__name__}, which is not JSON")


def usage_parts(usage: object) -> tuple[int, int, Decimal]:
    """Return input tokens, output tokens and cost of a `usage`. Raises `WrongMessages`."""
    if usage is None:
        return 0, 0, Decimal(0)
    if not isinstance(usage, Mapping):
        raise WrongMessages("`usage` is an object with `input_tokens`, `output_tokens` and `cost_usd`")
    try:
        tokens = [int(usage.get(name) or 0) for name in ("input_tokens", "output_tokens")]
        cost = Decimal(str(usage.get("cost_usd") or 0))
    except (ValueError, TypeError, InvalidOperation):
        raise WrongMessages("`usage` has whole numbers of tokens and `cost_usd` as a decimal") from None
    if min(tokens) < 0 or not cost.is_finite() or cost < 0:
        raise WrongMessages("`usage` has no negative numbers")
    return tokens[0], tokens[1], cost


def first_kept(roles: Sequence[str], sizes: Sequence[int], max_messages: int, max_bytes: int) -> int:
    """Return the index of the first message that a limit keeps.

    A kept history begins with a message of the user: a provider refuses the answer of a tool without its call. The
    last turn always stays, whatever its size.
    """
    starts = [index for index, role in enumerate(roles) if role == "user"] or [0]
    left = sum(sizes)
    dropped = 0
    for start in starts:
        left -= sum(sizes[dropped:start])
        dropped = start
        if len(roles) - start <= max_messages and left <= max_bytes:
            return start
    return starts[-1]


def history_of(messages: Sequence[Mapping[str, Any]], summary: str | None) -> list[Mapping[str, Any]]:
    """Return the messages for a model: the summary first, as a message of the user."""
    if summary is None:
        return list(messages)
    opening = SUMMARY_OPENING + summary
    if messages and messages[0]["role"] == "user" and isinstance(messages[0].get("content"), str):
        # Providers refuse two messages of one role in a row.
        return [{**messages[0], "content": f"{opening}\n\n{messages[0]['content']}"}, *messages[1:]]
    return [{"role": "user", "content": opening}, *messages]
