"""Export by `[observe]`: in a process of its own, because an exporter lives as long as its process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.web import ROOT, Web, says
from tests.unit.host.test_policies import RETRY, _node
from tests.support.otlp_receiver import Receiver
from vesper.config.settings import config_from
from vesper.effects.settings import ConfigError

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PROGRAM = """
import sys, vesper
from vesper.observe.metrics import count, observe, set_gauge
from vesper.values.generated.metrics import JOURNAL_LAG, OUTBOX_PENDING, RECOVERIES
count(RECOVERIES, ("asks_v1", "finished"), 7)
observe(JOURNAL_LAG, (), 0.5)
observe(JOURNAL_LAG, (), 99.0)
set_gauge(OUTBOX_PENDING, ("main",), 3)
node = vesper.load(sys.argv[1], host=vesper.Host.from_file(sys.argv[2]))
for number in range(3):
    assert node(event_id=f"e{number}").ok
with vesper.run_context(traceparent="00-TRACE-00f067aa0ba902b7-01"):
    assert node(event_id="sampled").ok
with vesper.run_context(traceparent="00-TRACE-00f067aa0ba902b7-00"):
    assert node(event_id="unsampled").ok
""".replace("TRACE", TRACE)


def run(folder: Path, url: str, settings: str) -> None:
    (folder / "asks_v1.vsp").write_text(_node(RETRY).lstrip("\n"), encoding="utf-8")
    (folder / "vesper.toml").write_text(
        f"""
[[grants]]
nodes = ["*"]
allow = ["*"]
[providers.shop]
base_url = "{url}"
allow_private_addresses = true
[observe]
{settings}
""",
        encoding="utf-8",
    )
    command = [sys.executable, "-c", PROGRAM, str(folder / "asks_v1.vsp"), str(folder / "vesper.toml")]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_spans_and_metrics_reach_the_receiver(tmp_path: Path) -> None:
    with Web() as web, Receiver() as receiver:
        web.on("/it", says("yes"))
        run(tmp_path, web.url, f'otlp = "{receiver.url}"\nservice = "shop"')
    runs = [each for each in receiver.spans if each.name == "sir.execute"]
    effects = {each.parent_id: each for each in receiver.spans if each.name == "sir.effect"}
    assert {each.service for each in receiver.spans} == {"shop"}
    assert len(runs) == len(effects) == 4  # the caller of the fifth run has decided against spans
    assert all(effects[each.span_id].trace_id == each.trace_id for each in runs)
    assert [each.parent_id for each in runs] == ["", "", "", "00f067aa0ba902b7"]
    assert runs[-1].trace_id == TRACE
    sent = [got.headers["traceparent"] for got in web.got]
    assert sent[:4] == [f"00-{each.trace_id}-{effects[each.span_id].span_id}-01" for each in runs]
    assert sent[4] == f"00-{TRACE}-00f067aa0ba902b7-00"
    assert receiver.sum_of("shop", "sir.recoveries", node="asks_v1") == 7
    assert receiver.sum_of("shop", "sir.journal.lag_ms") >= 2
    assert receiver.sum_of("shop", "sir.outbox.pending", database="main") == 3


def test_a_dead_receiver_fails_no_run(tmp_path: Path) -> None:
    with Web() as web:
        web.on("/it", says("yes"))
        run(tmp_path, web.url, 'otlp = "http://127.0.0.1:9"\nsample = "100 %"')


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"otlp": "localhost:4318"}, "the base URL of an OTLP/HTTP receiver is expected"),
        ({"sample": "200 %"}, 'from "0 %" to "100 %"'),
        ({"levels": {"vesper.host": "loud"}}, "loud"),
        ({"push": "1ms"}, "every second at most"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused(settings: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="observe") as raised:
        config_from({"observe": settings}, tmp_path)
    assert message in str(raised.value)


def test_an_export_without_opentelemetry_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vesper.config.observe.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"pip install 'vesper\[observe\]'"):
        config_from({"observe": {"otlp": "http://127.0.0.1:4318"}}, tmp_path)
