"""Sessions of one name in a database: messages, usage, summaries, forks, and values with a time to live.

    sessions = SessionStore(open_database("sqlite:.vesper/sessions.db"), "support", SessionLimits())
    sessions.append("ada", [{"role": "user", "content": "Hello"}])
    sessions.read("ada").messages

A change under a receipt happens once, however often it is repeated: a run that is recovered after a kill appends its
turn once. Messages stay in the database when a limit drops them from the history.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal, TypeAlias

from vesper.sessions.databases import SessionDatabase
from vesper.sessions.errors import UnknownSession, WrongMessages
from vesper.sessions.history import check_id, first_kept, history_of, message_texts, usage_parts
from vesper.storage.ending import Ending
from vesper.storage.transaction import Row, Transaction

Compaction: TypeAlias = Literal["drop", "summary"]
MAX_KEY_CHARACTERS: Final = 200
_FULL_TIMES: Final = 4
"""Multiple of its limits at which a session without the summary that it needs takes no more messages."""
_COLUMNS: Final = (
    "id, created_us, updated_us, count, first, bytes, summary, input_tokens, output_tokens, cost_usd, forked_from"
)


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """How much of a session a model reads, and what happens beyond."""

    max_messages: int = 200
    max_bytes: int = 256 << 10
    compaction: Compaction = "drop"
    max_value: int = 256 << 10


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A session without its messages."""

    id: str
    created_us: int
    updated_us: int
    count: int
    """All messages that were appended."""
    first: int
    """Messages that the history leaves out: dropped, or in the summary."""
    bytes: int
    """Of the messages in the history."""
    summary: str | None
    input_tokens: int
    output_tokens: int
    cost_usd: Decimal
    forked_from: str | None
    """The session and the number of its messages at the fork: `ID@COUNT`."""


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One message and the run that appended it."""

    number: int
    at_us: int
    execution: str
    message: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class History:
    """What a model reads of a session."""

    messages: Sequence[Mapping[str, Any]]
    summary: str | None
    count: int
    is_over_limit: bool
    """True where a summary is due."""

    def members(self) -> dict[str, Any]:
        """Return the value of `session_read`."""
        return {
            "messages": list(self.messages),
            "summary": self.summary,
            "count": self.count,
            "is_over_limit": self.is_over_limit,
        }


class SessionStore:
    """The sessions of one name."""

    def __init__(self, database: SessionDatabase, name: str, limits: SessionLimits) -> None:
        self._database = database
        self.name = name
        self.limits = limits

    # -- reading ----------------------------------------------------------------------------------

    def recent(self, limit: int = 100, offset: int = 0) -> list[SessionSummary]:
        """Return sessions, those that changed last first."""
        select = f"SELECT {_COLUMNS} FROM vesper_sessions WHERE name = ? ORDER BY updated_us DESC, id LIMIT ? OFFSET ?"  # noqa: S608
        with self._database.reading() as transaction:
            return [_summary(row) for row in transaction.rows(select, (self.name, limit, offset))]

    def show(self, session: str) -> SessionSummary:
        """Return a session. Raises `UnknownSession`."""
        with self._database.reading() as transaction:
            found = self._find(transaction, session)
        if found is None:
            hint = "`vesper sessions list` shows those there are"
            raise UnknownSession(f"no session `{session}` of `{self.name}`: {hint}")
        return found

    def messages(self, session: str, first: int = 0) -> list[StoredMessage]:
        """Return every message from a number on, also those that the history leaves out."""
        with self._database.reading() as transaction:
            return self._messages(transaction, session, first)

    def read(self, session: str) -> History:
        """Return the history for a model; that of an unknown session is empty."""
        with self._database.reading() as transaction:
            found = self._find(transaction, check_id(session))
            if found is None:
                return History((), None, 0, False)
            kept = [each.message for each in self._messages(transaction, session, found.first)]
        return History(history_of(kept, found.summary), found.summary, found.count, self._is_over(found))

    # -- changing ---------------------------------------------------------------------------------

    def append(
        self,
        session: str,
        messages: object,
        usage: object = None,
        *,
        execution: str = "",
        receipt: str | None = None,
    ) -> int:
        """Append messages; return how many the session has. Raises `WrongMessages`."""
        texts, used = message_texts(messages), usage_parts(usage)

        def work(transaction: Transaction, now: int) -> int:
            found = self._find(transaction, session, transaction.locking) or self._create(transaction, session, now)
            added = sum(len(text.encode()) for text in texts)
            is_full = len(texts) + found.count - found.first > _FULL_TIMES * self.limits.max_messages
            if self.limits.compaction == "summary" and (
                is_full or found.bytes + added > _FULL_TIMES * self.limits.max_bytes
            ):
                raise WrongMessages(
                    f"the session `{session}` is {_FULL_TIMES} times over its limits, and nothing has summarised it: "
                    "compact it, by a `session` step or by `vesper sessions compact`"
                )
            for number, text in enumerate(texts, start=found.count):
                transaction.run(
                    "INSERT INTO vesper_session_messages (name, id, number, at_us, execution, message) "
                    "VALUES (?, ?, ?, ?, ?, ?)",
                    (self.name, session, number, now, execution, text),
                )
            count = found.count + len(texts)
            first, kept_bytes = self._limited(transaction, session, found, found.bytes + added)
            cost = found.cost_usd + used[2]
            transaction.run(
                "UPDATE vesper_sessions SET updated_us = ?, count = ?, first = ?, bytes = ?, input_tokens = ?, "
                "output_tokens = ?, cost_usd = ? WHERE name = ? AND id = ?",
                (
                    *(now, count, first, kept_bytes, found.input_tokens + used[0], found.output_tokens + used[1]),
                    *(format(cost, ""), self.name, session),
                ),
            )
            return count

        return int(self._change(session, receipt, work))

    def compact(self, session: str, summary: str, through: int, *, receipt: str | None = None) -> int:
        """Let a summary stand for the first `through` messages; return how many are left. Raises `WrongMessages`."""

        def work(transaction: Transaction, now: int) -> int:
            found = self._found(transaction, session)
            if not found.first <= through <= found.count:
                bounds = f"{found.first} to {found.count}"
                raise WrongMessages(f"`through` is {through}, and the history of `{session}` has the messages {bounds}")
            kept = self._messages(transaction, session, through)
            sizes = sum(map(_size, kept))
            transaction.run(
                "UPDATE vesper_sessions SET updated_us = ?, first = ?, bytes = ?, summary = ? "
                "WHERE name = ? AND id = ?",
                (now, through, sizes, summary, self.name, session),
            )
            return len(kept)

        return int(self._change(session, receipt, work))

    def fork(self, session: str, copy: str, at: int | None = None) -> SessionSummary:
        """Begin the session `copy` with the first `at` messages of another, and with its values. Raises as `compact`.

        A fork before the end of what the history leaves out has the messages themselves, and no summary.
        """

        def work(transaction: Transaction, now: int) -> int:
            found = self._found(transaction, session)
            end = found.count if at is None else at
            if not 0 <= end <= found.count:
                raise WrongMessages(f"`{session}` has {found.count} messages: a fork is at 0 to {found.count}")
            if self._find(transaction, copy) is not None:
                raise WrongMessages(f"there is a session `{copy}` already: choose another id")
            keeps_summary = found.summary is not None and end >= found.first
            transaction.run(
                "INSERT INTO vesper_session_messages (name, id, number, at_us, execution, message) "
                "SELECT name, ?, number, at_us, execution, message FROM vesper_session_messages "
                "WHERE name = ? AND id = ? AND number < ?",
                (copy, self.name, session, end),
            )
            transaction.run(
                "INSERT INTO vesper_session_values (name, id, key, value, expires_us) "
                "SELECT name, ?, key, value, expires_us FROM vesper_session_values WHERE name = ? AND id = ?",
                (copy, self.name, session),
            )
            first = found.first if keeps_summary or end > found.first else 0
            sizes = [_size(each) for each in self._messages(transaction, copy, first)]
            self._create(transaction, copy, now, f"{session}@{end}")
            transaction.run(
                "UPDATE vesper_sessions SET count = ?, first = ?, bytes = ?, summary = ? WHERE name = ? AND id = ?",
                (end, first, sum(sizes), found.summary if keeps_summary else None, self.name, copy),
            )
            return end

        check_id(copy)
        self._change(session, None, work)
        return self.show(copy)

    def delete(self, session: str) -> bool:
        """Delete a session with its messages and values; return whether there was one."""

        def work(transaction: Transaction, _: int) -> int:
            for table in ("messages", "values", "receipts"):
                transaction.run(f"DELETE FROM vesper_session_{table} WHERE name = ? AND id = ?", (self.name, session))  # noqa: S608
            return transaction.run("DELETE FROM vesper_sessions WHERE name = ? AND id = ?", (self.name, session))

        return bool(self._change(session, None, work))

    def prune(self, before_us: int) -> int:
        """Delete sessions without a change since then, and values whose time is over; return how many sessions."""
        with self._database.reading() as transaction:
            select = "SELECT id FROM vesper_sessions WHERE name = ? AND updated_us < ?"
            stale = [row[0] for row in transaction.rows(select, (self.name, before_us))]
        with Ending(self._database.writing()) as writing, writing as transaction:
            transaction.run(
                "DELETE FROM vesper_session_values WHERE name = ? AND expires_us <= ?",
                (self.name, transaction.now_us()),
            )
        return sum(self.delete(each) for each in stale)

    # -- values -----------------------------------------------------------------------------------

    def get(self, session: str, key: str) -> str | None:
        """Return the JSON text of a value; None where there is none, or its time is over."""
        with self._database.reading() as transaction:
            rows = transaction.rows(
                "SELECT value FROM vesper_session_values WHERE name = ? AND id = ? AND key = ? "
                "AND (expires_us IS NULL OR expires_us > ?)",
                (self.name, check_id(session), _key(key), transaction.now_us()),
            )
        return None if not rows else str(rows[0][0])

    def put(self, session: str, key: str, text: str, ttl_us: int = 0, *, receipt: str | None = None) -> None:
        """Store the JSON text of a value, for ever where `ttl_us` is 0."""
        if len(text.encode()) > self.limits.max_value:
            raise WrongMessages(f"the value is over `max_value` of `{self.name}`, {self.limits.max_value:,} bytes")

        def work(transaction: Transaction, now: int) -> int:
            return transaction.run(
                "INSERT INTO vesper_session_values (name, id, key, value, expires_us) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (name, id, key) DO UPDATE SET value = excluded.value, expires_us = excluded.expires_us",
                (self.name, session, _key(key), text, now + ttl_us if ttl_us else None),
            )

        self._change(session, receipt, work)

    def forget(self, session: str, key: str, *, receipt: str | None = None) -> bool:
        """Delete a value; return whether there was one."""

        def work(transaction: Transaction, _: int) -> int:
            delete = "DELETE FROM vesper_session_values WHERE name = ? AND id = ? AND key = ?"
            return transaction.run(delete, (self.name, session, _key(key)))

        return bool(self._change(session, receipt, work))

    # -- small parts ------------------------------------------------------------------------------

    def _change(self, session: str, receipt: str | None, work: Any) -> int:
        """Do `work` in a transaction, once for each receipt; return its number."""
        check_id(session)
        with Ending(self._database.writing()) as writing, writing as transaction:
            if receipt is not None:
                done = transaction.rows("SELECT value FROM vesper_session_receipts WHERE receipt = ?", (receipt,))
                if done:
                    return int(done[0][0])
            now = transaction.now_us()
            value = int(work(transaction, now))
            if receipt is not None:
                transaction.run(
                    "INSERT INTO vesper_session_receipts (receipt, name, id, at_us, value) VALUES (?, ?, ?, ?, ?)",
                    (receipt, self.name, session, now, str(value)),
                )
            return value

    def _find(self, transaction: Transaction, session: str, locking: str = "") -> SessionSummary | None:
        select = f"SELECT {_COLUMNS} FROM vesper_sessions WHERE name = ? AND id = ?{locking}"  # noqa: S608
        rows = transaction.rows(select, (self.name, session))
        return None if not rows else _summary(rows[0])

    def _found(self, transaction: Transaction, session: str) -> SessionSummary:
        found = self._find(transaction, session, transaction.locking)
        if found is None:
            raise UnknownSession(f"no session `{session}` of `{self.name}`")
        return found

    def _create(
        self, transaction: Transaction, session: str, now: int, forked_from: str | None = None
    ) -> SessionSummary:
        transaction.run(
            "INSERT INTO vesper_sessions (name, id, created_us, updated_us, count, first, bytes, summary, "
            "input_tokens, output_tokens, cost_usd, forked_from) VALUES (?, ?, ?, ?, 0, 0, 0, NULL, 0, 0, '0', ?) "
            "ON CONFLICT (name, id) DO NOTHING",
            (self.name, session, now, now, forked_from),
        )
        return self._found(transaction, session)  # of another process, where that was faster

    def _messages(self, transaction: Transaction, session: str, first: int) -> list[StoredMessage]:
        rows = transaction.rows(
            "SELECT number, at_us, execution, message FROM vesper_session_messages "
            "WHERE name = ? AND id = ? AND number >= ? ORDER BY number",
            (self.name, session, first),
        )
        return [StoredMessage(number, at_us, execution, json.loads(text)) for number, at_us, execution, text in rows]

    def _limited(self, transaction: Transaction, session: str, found: SessionSummary, size: int) -> tuple[int, int]:
        """Return the first message of the history and the bytes that it has then, under `compaction = "drop"`."""
        limits = self.limits
        kept = self._messages(transaction, session, found.first)
        if limits.compaction != "drop" or (len(kept) <= limits.max_messages and size <= limits.max_bytes):
            return found.first, size
        sizes = [_size(each) for each in kept]
        start = first_kept([each.message["role"] for each in kept], sizes, limits.max_messages, limits.max_bytes)
        return found.first + start, sum(sizes[start:])

    def _is_over(self, found: SessionSummary) -> bool:
        is_over = found.count - found.first > self.limits.max_messages or found.bytes > self.limits.max_bytes
        return is_over and self.limits.compaction == "summary"


def _summary(row: Row) -> SessionSummary:
    members: dict[str, Any] = dict(zip(_COLUMNS.split(", "), row, strict=True))
    return SessionSummary(**{**members, "cost_usd": Decimal(members["cost_usd"])})


def _size(stored: StoredMessage) -> int:
    return len(message_texts([stored.message])[0].encode())


def _key(key: str) -> str:
    if not 1 <= len(key) <= MAX_KEY_CHARACTERS:
        raise WrongMessages(f"a key has 1 to {MAX_KEY_CHARACTERS} characters")
    return key
