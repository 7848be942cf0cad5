"""The language model of the shop: served processes register the effect, the process of the proof does not."""

from __future__ import annotations

from vesper.effects.custom.performer import effect


@effect("language_model", effect_class="keyed")
def language_model(system: str, user: str, most_tokens: int, key: str) -> object:
    """Respond as a model does that knows one queue."""
    return {"queue": "shipping", "urgency": 3, "summary": user[:100], "tags": ["delay"]}
