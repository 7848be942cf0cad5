"""An event as a subscriber receives it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from vesper.values.json_value import Json, plain_json


@dataclass(frozen=True, slots=True)
class Event:
    id: str
    topic: str
    json: Json
    event_key: str | None
    execution: str
    published_at: datetime

    @property
    def payload(self) -> object:
        """Return new plain objects each time, so that changing them changes no other copy."""
        return plain_json(self.json)
