"""The caller of a request and its roles."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from vesper.dashboard.problem import Forbidden


class Role(Enum):
    """What a caller may do."""

    VIEWER = "viewer"
    """See pages."""
    OPERATOR = "operator"
    """Change a service: modes, runs in doubt, divergences."""
    AUTHOR = "author"
    """Change files: nodes and their cases."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A person or program, by the name that histories record."""

    name: str
    roles: frozenset[Role] = frozenset({Role.VIEWER})
    remedy: str = ""
    """How this caller gets further roles."""

    def can(self, role: Role) -> bool:
        return role in self.roles

    def require(self, role: Role) -> None:
        """Raise `Forbidden` where the role is missing."""
        if role not in self.roles:
            raise Forbidden(f"{self.name} lacks the role `{role.value}`", self.remedy)
