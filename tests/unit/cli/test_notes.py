"""`vesper check` prints notes about correct nodes in full, with their own colour."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from vesper.cli.main import vesper

TRIAGE = Path(__file__).parents[3] / "nodes" / "support" / "ticket_triage_v1.vsp"


def test_a_note_is_printed_in_full() -> None:
    result = CliRunner().invoke(vesper, ["check", str(TRIAGE)])
    assert result.exit_code == 0
    assert "note[VSP3106]: the output `summary` is sensitive" in result.output
