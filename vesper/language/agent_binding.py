"""Model, tools and place of an agent, which its IR does not contain. In the IR an agent is an ordinary node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class AgentBinding:
    """The model, tools and place of a node of type `agent`."""

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
