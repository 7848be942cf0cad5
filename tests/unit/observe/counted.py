"""The text of metrics, and the counts of calls without effects."""

from __future__ import annotations

from pathlib import Path

import pytest

import vesper
from vesper.observe.metrics import BOUNDS_MS, Distribution, count, observe, render, set_gauge, snapshot
from vesper.values.generated.metrics import (
    DIVERGENCES,
    EXECUTION_DURATION,
    EXECUTIONS_ERRORS,
    EXECUTIONS_TOTAL,
    JOURNAL_LAG,
    OUTBOX_AGE,
    REQUEST_DURATION,
)
from vesper.values.metric import MetricSpec

PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
NODE = """\
node_id: NAME_v1
type: function
intent: Divide a hundred by a number
inputs:
  of: integer
outputs:
  success:
    rest: integer
contracts:
  preconditions: [of < 100]
flow:
  - operation: return
    success: {rest: "mod(100, of)"}
"""


def value(metric: MetricSpec, *labels: str) -> float:
    for each in snapshot(is_own=True):
        if each.metric is metric and each.labels == labels:
            return sum(each.value.counts) if isinstance(each.value, Distribution) else each.value
    return 0


@pytest.mark.parametrize(
    "accept, is_openmetrics",
    [
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        ("application/openmetrics-text", True),
        ("text/plain;q=0.9, application/openmetrics-text;q=0.5", False),
        ("application/openmetrics-text;q=0", False),
        (PROMETHEUS, True),
    ],
)
def test_the_accept_header_selects_the_format(accept: str, is_openmetrics: bool) -> None:
    count(DIVERGENCES, ("n",))
    kind, text = render(accept)
    assert kind.startswith("application/openmetrics-text" if is_openmetrics else "text/plain; version=0.0.4")
    assert text.endswith(b"# EOF\n") is is_openmetrics
    family = b"sir_divergences" if is_openmetrics else b"sir_divergences_total"
    assert b"# TYPE " + family + b" counter\n" in text


def test_label_values_are_escaped() -> None:
    count(DIVERGENCES, ('a"b\\c\nd',))
    assert 'sir_divergences_total{node="a\\"b\\\\c\\nd"} 1\n' in render()[1].decode()


def test_durations_are_seconds_in_prometheus_with_an_exemplar_in_openmetrics() -> None:
    labels = ("exemplary_v1", "GET")
    observe(REQUEST_DURATION, labels, 0.003)
    observe(REQUEST_DURATION, labels, 0.03, "0af7651916cd43dd8448eb211c80319c")
    series = 'sir_request_duration_seconds_bucket{node="exemplary_v1",method="GET",le='
    plain = render()[1].decode()
    assert f'{series}"0.005"}} 1\n{series}"0.01"}} 1\n{series}"0.025"}} 1\n{series}"0.05"}} 2\n' in plain
    assert f'{series}"+Inf"}} 2\n' in plain
    assert 'sir_request_duration_seconds_sum{node="exemplary_v1",method="GET"} 0.033\n' in plain
    traced = render("application/openmetrics-text")[1].decode()
    assert "# UNIT sir_request_duration_seconds seconds\n" in traced
    assert f'{series}"0.05"}} 2 # {{trace_id="0af7651916cd43dd8448eb211c80319c"}} 0.03 ' in traced
    (found,) = [each.value for each in snapshot() if each.labels == labels]
    assert isinstance(found, Distribution)
    assert found.sum_ms == pytest.approx(33)
    assert found.exemplar is not None
    assert found.exemplar.value_ms == pytest.approx(30)
    assert sum(found.counts) == 2
    assert len(found.counts) == len(BOUNDS_MS) + 1


def test_a_gauge_of_time_is_in_seconds() -> None:
    set_gauge(OUTBOX_AGE, ("timed",), 1500)
    assert 'sir_outbox_age_seconds{database="timed"} 1.5\n' in render()[1].decode()


def test_wrong_labels_and_kinds_are_refused() -> None:
    with pytest.raises(ValueError, match=r"sir.divergences is a Counter with the labels \(node\)"):
        count(DIVERGENCES)
    with pytest.raises(ValueError, match=r"sir\.journal\.lag_ms"):
        count(JOURNAL_LAG)
    with pytest.raises(ValueError, match="trace id"):
        observe(JOURNAL_LAG, (), 1.0, "xyz")


@pytest.mark.parametrize("engine", ["python", "interp"])
@pytest.mark.parametrize("limits", [None, vesper.Limits(seconds=5.0)])
def test_calls_without_effects_are_counted(tmp_path: Path, engine: str, limits: vesper.Limits | None) -> None:
    name = f"{engine}_{'free' if limits is None else 'limited'}"
    path = tmp_path / f"{name}_v1.vsp"
    path.write_text(NODE.replace("NAME", name))
    node = vesper.load(path, engine=engine, limits=limits)
    labels = (f"{name}_v1", "python" if engine == "python" else "direct")
    assert node.call({"of": 7}) == {"rest": 2}
    assert node(of=7).ok
    assert node.run_json(b'{"of":7}').startswith(b'{"kind":"returned"')
    assert node.map([{"of": 7}, {"of": 9}]) == [{"rest": 2}, {"rest": 1}]
    assert value(EXECUTIONS_TOTAL, *labels) == 5
    assert value(EXECUTION_DURATION, *labels) == 1  # the first of 64
    assert not node(of=0).ok
    node.run_json(b'{"of":0}')
    assert not node(of=200).ok
    node.run_json(b'{"of":200}')
    assert not node(of="x").ok
    node.run_json(b'{"of":"x"}')
    errors = [each for each in snapshot() if each.metric is EXECUTIONS_ERRORS]
    found = {each.labels[1]: each.value for each in errors if each.labels[0] == labels[0]}
    assert found == {"division_by_zero": 2, "contract_broken": 2, "bad_input": 2}
    assert value(EXECUTIONS_TOTAL, *labels) == 11
