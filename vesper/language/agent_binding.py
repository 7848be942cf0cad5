"""What others know of an agent besides its IR, in which it is an ordinary node: its model, its tools, its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class AgentBinding:
    """A node of type `agent`."""

    model: str
    tools: tuple[tuple[str, str], ...]
    """Name for the model, and id of the node."""
    place: tuple[int, int, int, int]
    """Line, column, end line and end column at which the generated parts stand."""

    def to_data(self) -> dict[str, Any]:
        """Return the binding as JSON data."""
        return {"model": self.model, "tools": [list(each) for each in self.tools], "place": list(self.place)}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> AgentBinding:
        """Return the binding from its JSON data."""
        return cls(data["model"], tuple((name, node) for name, node in data["tools"]), tuple(data["place"]))
