"""Plots: what is on the line, where there is none, and what a reader of the text gets."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from tests.unit.migration.support.remote_answers import FEE, MINUTE_US, NOON_US
from vesper.dashboard.draw.plot import draw_confidence, draw_file, draw_modes
from vesper.dashboard.draw.plot_layout import nines
from vesper.migration.control.modes import Mode
from vesper.migration.statistics.wilson import lower_bound
from vesper.migration.stores.series import Band, Change, Divergent, Point, Series, series
from vesper.migration.stores.traffic import Sample
from vesper.trace.svg import element

_SVG = "{http://www.w3.org/2000/svg}"
END_US = NOON_US + 3 * MINUTE_US


def point(at_us: int, clean: int, divergences: int = 0) -> Point:
    return Point(at_us, lower_bound(clean + divergences, divergences), clean, divergences)


def of(*lines: list[Point], **more: object) -> Series:
    return Series("fee_v1", "e", lines, [Band(Mode.SHADOW_DIRECT, NOON_US, END_US)], [], END_US, **more)  # type: ignore[arg-type]  # fields by name


def texts(drawn: str, kind: str = "text") -> list[str]:
    return [each.text or "" for each in ET.fromstring(drawn).iter(f"{_SVG}{kind}")]


def test_a_line_rises_with_the_confidence() -> None:
    line = [point(NOON_US + at * MINUTE_US, 10**at) for at in range(1, 4)]
    drawn = draw_confidence(of(line))
    found = re.search(r'class="line" points="([^"]*)"', drawn)
    assert found is not None
    heights = [float(each.split(",")[1]) for each in found[1].split()]
    assert heights == sorted(heights, reverse=True)
    assert len(set(heights)) == 3
    assert [nines(each) for each in (0.0, 0.9, 1.0)] == [0.0, pytest.approx(1.0), 5.0]


def test_n_and_divergences_are_on_the_line() -> None:
    drawn = draw_confidence(of([point(NOON_US, 10), point(END_US, 12_345, 2)]))
    assert "n = 12,345, 2 divergences" in texts(drawn)
    assert any(each.startswith("2026-11-15 12:00:00Z: ") and each.endswith("n = 10") for each in texts(drawn, "title"))


def test_a_change_has_its_number_and_its_reason() -> None:
    rise = Change(NOON_US, Mode.SHADOW_DIRECT, Mode.CANARY_DIRECT, "evidence", "controller", "206 runs")
    fall = Change(END_US, Mode.CANARY_DIRECT, Mode.PYTHON_ONLY, "kill", "ann", "<b>odd</b> answers")
    found = of([point(NOON_US, 206)], changes=[rise, fall])
    titles = texts(draw_confidence(found), "title")
    assert "2 · 2026-11-15 12:03:00Z · canary_direct → python_only · kill, by ann: <b>odd</b> answers" in titles
    listed = texts(draw_file(found))
    assert listed[-2].endswith("evidence, by controller: 206 runs")
    assert "<b>" not in draw_file(found)


def test_there_is_no_line_where_nothing_was_recorded() -> None:
    def sample(at: int, clean: int) -> Sample:
        return Sample(NOON_US + at * MINUTE_US, clean, 0, Mode.SHADOW_DIRECT)

    samples = [sample(0, 0), sample(1, 50), sample(2, 60), sample(600, 60), sample(601, 70), sample(602, 0)]
    found = series(FEE, (), samples, NOON_US + 700 * MINUTE_US)
    assert found is not None
    assert [[each.clean for each in line] for line in found.lines] == [[50, 60], [60, 70]]
    assert draw_confidence(found).count("<polyline") == 2
    assert draw_confidence(of([point(NOON_US, 5)])).count('class="spot dot"') == 1, "a point alone is a dot"
    assert "<polyline" not in draw_confidence(of())


def test_many_divergences_are_few_marks() -> None:
    end = NOON_US + 10**9
    found = [Divergent(NOON_US + at, f"{at:016x}") for at in range(0, 10**9, 10**5)]
    drawn = draw_confidence(Series("fee_v1", "e", [], [Band(Mode.SHADOW_DIRECT, NOON_US, end)], found, end))
    assert 300 <= drawn.count('class="mark"') <= 402
    assert len(drawn) < 100_000


def test_a_moment_is_drawn_too() -> None:
    moment = Series("a<b>_v1", "e", [[point(NOON_US, 5)]], [Band(Mode.PYTHON_ONLY, NOON_US, NOON_US)], [], NOON_US)
    assert texts(draw_file(moment), "title")[0] == "Confidence of a<b>_v1"


def test_a_picture_of_a_page_has_no_style_of_its_own() -> None:
    drawn = draw_confidence(of([point(NOON_US, 5)]))
    assert "<style" not in drawn
    assert " style=" not in drawn
    assert "prefers-color-scheme: dark" in draw_file(of())


def test_modes_are_stacked() -> None:
    drawn = draw_modes("nodes", "Nodes", [NOON_US, NOON_US + MINUTE_US], [(0, 3, 0, 0, 0), (0, 1, 2, 0, 0)], END_US)
    assert {"1 shadow_direct", "2 canary_direct"} <= set(texts(drawn))
    assert drawn.count("<polygon") == 2, "modes without nodes are not drawn"
    assert "At the end: 0 python_only, 1 shadow_direct, 2 canary_direct" in texts(drawn, "desc")[0]


def test_elements_escape() -> None:
    assert element("text", text="<&>", class_='"') == '<text class="&quot;">&lt;&amp;&gt;</text>'
