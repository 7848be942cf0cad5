"""Events in memory reach the application at its Host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.host.small import host_in, node_from
from vesper.effects.events.event import Event
from vesper.effects.settings import ConfigError

NODE = """
node_id: tell_v1
type: event_handler
intent: Tell everybody
inputs:
  event_id: string
  text: string
outputs:
  success: {told: string}
flow:
  - step: told
    operation: event_publish
    topic: news
    payload: {text: "{text}"}
    effect: keyed
    key: event_id
  - operation: return
    success: {told: told}
security:
  capabilities_required: [events.publish.news]
"""


@pytest.mark.parametrize("settings", [{"events": {"url": "memory:"}}, {"topics": {"news": {"url": "memory:"}}}])
def test_subscribers_get_what_runs_publish(tmp_path: Path, settings: dict[str, Any]) -> None:
    got: list[Event] = []
    gone: list[Event] = []
    with host_in(tmp_path, settings) as host:
        host.subscribe("news", got.append)
        host.subscribe("news", gone.append)()  # and at once no more
        tell = node_from(NODE, tmp_path, host)
        first = tell(event_id="e1", text="first")
        tell(event_id="e1", text="first")  # a repeat under the same key is no second event
    # Closing waits for what is on its way.
    assert gone == []
    assert [(each.topic, each.payload, each.id) for each in got] == [("news", {"text": "first"}, first["told"])]


@pytest.mark.parametrize(
    "settings, said",
    [
        ({}, "no topic `news` is configured"),
        ({"topics": {"news": {"url": "redis://localhost"}}}, "is in Redis: read its stream `vesper:events:news`"),
    ],
)
def test_a_topic_that_has_no_subscribers_here_is_told(tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    with host_in(tmp_path, settings) as host, pytest.raises(ConfigError, match=said):
        host.subscribe("news", print)
