"""The message of a failed effect: the code, its place, and the reason that the performer gives."""

from __future__ import annotations

from pathlib import Path

import pytest

import vesper
from tests.unit.host.small import host_in, node_from
from vesper.engines.outcome import Failed

READ = """
node_id: read_report_v1
type: event_handler
intent: Read a report
inputs: {event_id: string, name: string}
outputs: {success: {content: string}}
flow:
  - step: report
    operation: file
    action: read
    root: reports
    path: "{name}.txt"
    returns: string
  - operation: return
    success: {content: report}
security:
  capabilities_required: [filesystem.read.reports]
"""


@pytest.mark.parametrize("engine", ["python", "interp"])
def test_the_message_has_the_reason_that_the_command_shows(tmp_path: Path, engine: str) -> None:
    with host_in(tmp_path, {"files": {"reports": {"path": str(tmp_path)}}}) as host:
        node = node_from(READ, tmp_path, host, engine)
        outcome = node(event_id="e1", name="absent")
        assert outcome.error is not None
        assert outcome.error.code == "not_found"
        assert "absent.txt" in outcome.error.message
        found = outcome.error.outcome
        assert isinstance(found, Failed)
        assert found.why
        assert found.why in outcome.error.message
        with pytest.raises(vesper.VesperError, match=r"absent\.txt"):
            outcome.unwrap()


def test_the_reason_is_no_part_of_an_outcome_that_is_compared() -> None:
    assert Failed("not_found", 3, (), "no file a") == Failed("not_found", 3, (), "no file b")


def test_the_reason_is_withheld_where_inputs_are_sensitive(tmp_path: Path) -> None:
    text = READ.replace("read_report_v1", "read_secret_report_v1") + "  sensitive_data: [name]\n"
    with host_in(tmp_path, {"files": {"reports": {"path": str(tmp_path)}}}) as host:
        outcome = node_from(text, tmp_path, host)(event_id="e1", name="absent")
        assert outcome.error is not None
        assert outcome.error.code == "not_found"
        assert "absent" not in outcome.error.message.replace("{name}", "")
