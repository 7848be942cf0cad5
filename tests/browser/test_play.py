"""The playground in Chromium: a fault is typed, shown and corrected; the node runs and is saved after its diff."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Dashboard
from vesper.repository.starter import starter

TEXT = starter("fee_v1", "function")
ADDRESS = "/play?node=fee_v1"
VALUE_LINE = TEXT.splitlines().index("    value: amount * rate")


@pytest.fixture
def playground(tmp_path: Path) -> Iterator[Dashboard]:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "fee_v1.vsp").write_text(TEXT)
    with Dashboard(tmp_path, "--no-browser", command="play") as found:
        yield found
        assert "Traceback" not in found.log


def test_a_fault_is_shown_corrected_run_and_saved(playground: Dashboard, open_page: Any) -> None:
    file = playground.folder / "nodes" / "fee_v1.vsp"
    page = open_page(playground.url + ADDRESS)
    page.wait_for_selector("#play[data-language=ready]", state="attached")

    page.click("#editor .view-lines")
    page.keyboard.press("Control+Home")
    for _ in range(VALUE_LINE):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    page.keyboard.type("s")
    page.wait_for_selector("#editor .squiggly-error")
    page.keyboard.press("F8")
    page.get_by_text("is named `rates`").first.wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("Backspace")
    page.wait_for_selector("#editor .squiggly-error", state="detached")

    page.get_by_label("amount").first.fill("50.00")
    page.keyboard.press("Control+Enter")
    page.get_by_text("the engines agree").wait_for()
    assert page.locator(".engines .card").all_inner_texts()[1].count("5.0000") == 1

    page.click("#editor .view-lines")
    page.keyboard.press("Control+Home")
    page.keyboard.type("# reviewed\n")
    page.get_by_text("unsaved changes").wait_for()
    assert file.read_text() == TEXT
    page.keyboard.press("Control+s")
    page.wait_for_selector("#save-dialog .line-insert")
    page.keyboard.press("Enter")
    page.get_by_text("Saved fee_v1.vsp.").wait_for()
    assert file.read_text() == "# reviewed\n" + TEXT


def test_unsaved_text_survives_a_reload_and_a_changed_file_is_not_replaced(
    playground: Dashboard, open_page: Any
) -> None:
    file = playground.folder / "nodes" / "fee_v1.vsp"
    page = open_page(playground.url + ADDRESS, width=360, dark=True)
    page.wait_for_selector("#play[data-ready]", state="attached")
    page.click("#editor .view-lines")
    page.keyboard.press("Control+Home")
    page.keyboard.type("# mine\n")
    page.get_by_text("unsaved changes").wait_for()
    file.write_text("# theirs\n" + TEXT)
    page.reload()
    page.get_by_text("Your unsaved text was kept in this browser.").wait_for()
    page.click("#save")
    page.get_by_text("Replace the file").wait_for()
    page.keyboard.press("Escape")
    assert file.read_text() == "# theirs\n" + TEXT
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
