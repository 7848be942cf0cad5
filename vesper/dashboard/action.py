"""Actions: changes by a person, with a role, a reason and a line in the history."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from vesper.dashboard.access.caller import Role
from vesper.dashboard.page import Context
from vesper.dashboard.problem import BadRequest, Refused

MIN_REASON_CHARACTERS = 3
MAX_REASON_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class Done:
    """A performed action: a message, and the page that shows the result."""

    message: str
    location: str


@dataclass(frozen=True, slots=True)
class Action:
    """A change: POST `path` from a form, POST `/api` + `path` from a program."""

    name: str
    path: str
    role: Role
    perform: Callable[[Context, Mapping[str, str]], Done]
    """Runs in a thread with the fields of the form; raises `Refused` where the state forbids it."""
    summary: str
    needs_reason: bool = True

    def run(self, context: Context, fields: Mapping[str, str]) -> Done:
        """Check role and reason, then perform. Raises `Problem`."""
        context.caller.require(self.role)
        if self.needs_reason:
            reason = fields.get("reason", "").strip()
            if not MIN_REASON_CHARACTERS <= len(reason) <= MAX_REASON_CHARACTERS or not _is_text(reason):
                raise BadRequest(
                    f"`{self.name}` needs a reason of {MIN_REASON_CHARACTERS} to {MAX_REASON_CHARACTERS} characters",
                    "Go back and fill in the field “Reason”: the history keeps it.",
                )
            fields = {**fields, "reason": reason}
        return self.perform(context, fields)


def _is_text(text: str) -> bool:
    return text.replace("\n", " ").replace("\r", " ").isprintable()


__all__ = ["Action", "Context", "Done", "Refused", "Role"]
