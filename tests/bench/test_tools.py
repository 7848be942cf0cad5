"""What the benchmarks make of their numbers: the JSON line, counted instructions, growth, the page and its pictures."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.bench import growth, hooks, instructions, ours, quick
from tests.bench.pictures import Bar, bars
from tests.bench.pictures import growth as growth_picture
from tests.bench.report import Bound, Report, Row, Section, as_json, is_busy, machine, page, write
from vesper.cli.bench.interpreter import this_interpreter
from vesper.cli.bench.rounds import timing_of
from vesper.compiler import compile_file
from vesper.engines.registry import ENGINES

SVG = "{http://www.w3.org/2000/svg}"

# -- bench-quick ----------------------------------------------------------------------------------


def test_the_last_line_is_one_json_object(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from dataclasses import replace

    times = {"bare Python": timing_of([0.01]), "first call, engine python": timing_of([0.05, 0.04])}
    monkeypatch.setattr(quick, "this_interpreter", lambda: replace(this_interpreter(), is_optimised=True))
    monkeypatch.setattr(ours, "starts", lambda *_: times)
    monkeypatch.setattr(ours, "WARM_SECONDS", 0.0)
    monkeypatch.setattr(sys, "argv", ["quick.py", "--seconds", "0.01", "--rows", "300", "--rounds", "1"])
    assert quick.main() == 0
    told = capsys.readouterr()
    found = json.loads(told.out.splitlines()[-1])
    assert tuple(found) == quick.KEYS
    assert found["first_call_ms"] == 30.0
    for key, value in found.items():
        if value is None:
            assert f"{key}: null: " in told.err
        else:
            assert value > 0
    assert all(found[key] is not None for key in ("w1_vs_plain", "w2_vs_plain", "w3_vs_plain", "tracing_vs_off"))


# -- instructions ---------------------------------------------------------------------------------


def dump(name: str, total: int) -> str:
    return f"version: 1\ndesc: Trigger: Client Request: {name}\nevents: Ir\nfn=(1)\n1 2\ntotals: {total}\n"


def test_the_loop_around_a_call_is_not_counted() -> None:
    dumps = [dump("W1 nothing=10", 500), dump("W1 interp=10", 90_500), dump("W1 nothing json=5", 50)]
    dumps += [dump("W1 run_json=5", 10_050), "version: 1\ndesc: Trigger: Program termination\ntotals: 7\n"]
    assert instructions.a_call(dumps) == {"W1 interp": 9_000.0, "W1 run_json": 2_000.0}


def test_three_in_a_hundred_are_borne_and_no_more() -> None:
    known = {"W1 interp": 1_000.0, "W2 interp": 1_000.0, "W1 plain": 1_000.0}
    assert instructions.compared(known, {"W1 interp": 1_029.0, "W2 interp": 500.0, "W1 plain": 1_400.0})[1] == []
    _, worse = instructions.compared(known, {"W1 interp": 1_031.0, "W2 interp": 1_000.0, "W1 plain": 1_000.0})
    assert worse == ["W1 interp: 1,031 instructions a call, +3.1% of the 1,000 that are known"]


def test_what_is_not_counted_any_more_is_noticed_and_what_is_new_is_not_compared() -> None:
    lines, worse = instructions.compared({"W1 interp": 10.0}, {"W1 jit": 5.0})
    assert worse == ["W1 interp: it was counted before, and is not there any more"]
    assert lines[0].endswith("new")


def test_the_known_counts_are_of_all_workloads_and_say_where() -> None:
    document = json.loads(instructions.FILE.read_text(encoding="utf-8"))
    assert set(document["where"]) == {"architecture", "python"}
    for title in ("W1", "W2", "W3"):
        assert {f"{title} plain", f"{title} python", f"{title} interp"} <= set(document["instructions"])
    assert "W1 run_json" in document["instructions"]


# -- hooks ----------------------------------------------------------------------------------------


def counts_of_hooks(**other: float) -> dict[str, dict[str, float]]:
    python = {"off": 100.0, "bare": 100.0, "traced": 300.0, "untraced": 200.0, "sampled": 150.0}
    seeing = {"off": 50.0, "traced": 80.0, "untraced": 40.0, "sampled": 100.0}
    engines = ("interp", "jit")
    return {
        "python": {f"{title} python {name}": value for title in hooks.TITLES for name, value in python.items()},
        hooks.SEEING: {
            f"{title} {each} {name}": value
            for title in hooks.TITLES
            for each in engines
            for name, value in seeing.items()
        }
        | other,
        hooks.BLIND: {f"{title} {each} off": 50.0 for title in hooks.TITLES for each in engines},
    }


def test_what_hooks_cost_is_told_of_their_controls() -> None:
    found = hooks.ratios(counts_of_hooks())
    assert {name: each for name, each in found.items() if name.startswith("W1")} == {
        "W1 python off": 1.0, "W1 python traced": 1.5, "W1 python sampled": 1.5,
        "W1 interp off": 1.0, "W1 interp traced": 2.0, "W1 interp sampled": 2.0,
        "W1 jit off": 1.0, "W1 jit traced": 2.0, "W1 jit sampled": 2.0,
    }  # fmt: skip
    assert hooks.too_much(found) == []


def test_one_in_a_hundred_is_borne_where_nobody_traces_and_twice_where_somebody_does() -> None:
    worse = {"W1 interp off": 50.6, "W2 jit traced": 80.1, "W2 interp sampled": 900.0}
    assert hooks.too_much(hooks.ratios(counts_of_hooks(**worse))) == [
        "W1 interp off: 1.012 of its control, and at most 1.01 is allowed",
        "W2 jit traced: 2.002 of its control, and at most 2 is allowed",
    ]


def test_what_is_known_of_hooks_is_of_every_engine_and_within_its_bounds() -> None:
    document = json.loads(hooks.FILE.read_text(encoding="utf-8"))
    assert document["profile"] in ("release", "quick")  # as optimised, made in parts or whole
    assert set(document["of_control"]) == set(hooks.ratios(counts_of_hooks()))
    assert hooks.ratios(document["instructions"]) == document["of_control"]
    assert hooks.too_much(document["of_control"]) == []


# -- growth ---------------------------------------------------------------------------------------


def test_a_cliff_is_where_each_costs_far_more_than_before() -> None:
    level = [(10.0, 1e-5), (100.0, 5e-5), (1000.0, 5e-4)]
    assert growth.cliffs({"level": level}) == []
    assert growth.cliffs({"steep": [*level, (10_000.0, 2e-2)]}) == [
        "steep: at 10,000 each costs 4.0 times what it cost at a smaller size"
    ]


@pytest.mark.parametrize("steps", [7, 20], ids=["one node", "a node that calls others"])
def test_a_node_of_many_steps_runs_on_every_engine(steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "A_NODE", 10)
    monkeypatch.setattr(growth, "A_PART", 5)
    compiled, bag = compile_file(growth.write_node(tmp_path, steps))
    assert compiled is not None, bag.sorted()
    assert len(compiled.callees) == (0 if steps <= 10 else 4)
    answers = [engine.load(compiled).call({"x": 3, "y": 5}) for engine in ENGINES.values()]
    assert all(each == answers[0] for each in answers)


# -- the page -------------------------------------------------------------------------------------

SECTION = Section(
    "w1",
    "W1",
    "A payment decision.",
    "plain Python",
    [Row("plain & simple", 1e-6, 1.0, "decimal", "exact", 1.02), Row("ours", 5e-7, 0.5, is_ours=True)],
    ["numba is not installed"],
)


def test_a_page_says_where_what_is_missing_and_which_bars_are_met() -> None:
    bounds = [Bound("W1", 0.42, 0.5), Bound("two threads", 1.8, 1.9, is_least=True), Bound("batch", 1.0, None)]
    bounds += [Bound("threads", least, 1.9, is_least=True, beside="others: 2.1") for least in (1.8, 2.7)]
    report = Report([SECTION], bounds, {**machine(), "load": 9.0, "processors": 2})
    text = page(report)
    assert "| W1 | at most 0.42 | 0.5 | NOT MET |" in text
    assert "| two threads | at least 1.8 | 1.9 | met |" in text
    assert "| batch | at most 1 | – | not measured |" in text
    assert "| threads | at least 1.8 | 1.9 | met; others: 2.1 |" in text
    assert "| threads | at least 2.7 | 1.9 | NOT MET; others: 2.1 |" in text
    assert "not there: numba is not installed" in text
    assert text.index("**ours**") < text.index("plain & simple")
    assert "The machine was busy" in text
    assert this_interpreter().version in text
    assert as_json(report)["sections"]["w1"]["rows"][0] == {"name": "ours", "ns": 500.0, "ratio": 0.5, "answers": ""}


def test_a_quiet_machine_is_not_called_busy() -> None:
    assert not is_busy({"load": 0.9, "processors": 2})
    assert is_busy({"load": 1.1, "processors": 2})


def test_pictures_are_written_beside_the_page(tmp_path: Path) -> None:
    (tmp_path / "growth_lines.svg").write_text("<svg/>", encoding="utf-8")
    write(Report([SECTION], [], machine()), tmp_path, tmp_path / "raw")
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "README.md",
        "growth_lines.svg",
        "raw",
        "results.json",
        "w1.svg",
    ]
    raw = json.loads((tmp_path / "raw" / "results.json").read_text(encoding="utf-8"))
    assert raw["sections"]["w1"]["rows"][0]["name"] == "ours"
    summary = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert summary["ratios"] == {"w1": {"ours": 0.5}}
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "![W1](w1.svg)" in text
    assert "(growth_lines.svg)" in text
    assert "(growth_rows.svg)" not in text
    picture = ET.fromstring((tmp_path / "w1.svg").read_text(encoding="utf-8"))  # well-formed
    texts = [each.text for each in picture.iter(f"{SVG}text")]
    assert "plain & simple" in texts
    assert "500 ns" in texts


def test_longer_bars_take_longer() -> None:
    picture = ET.fromstring(bars("t", "a", [Bar("a", 900.0, "900 ns"), Bar("b", 20_000.0, "20 µs", True)]))
    widths = [float(each.attrib["width"]) for each in picture.iter(f"{SVG}rect")][1:]
    assert 0 < widths[0] < widths[1]


def test_a_line_of_growth_is_drawn_with_its_slope() -> None:
    text = growth_picture("t", "a", "rows", {"<ours>": [(1, 1e-6), (10, 1e-5), (100, 1e-3)]})
    picture = ET.fromstring(text)
    lines = [each.attrib["points"].split() for each in picture.iter(f"{SVG}polyline")]
    assert [len(line) for line in lines] == [2, 3]
    assert "<ours>" in [each.text for each in picture.iter(f"{SVG}text")]
