"""The story of the demo, chapter by chapter, on a real server with real engines."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

import vesper
from vesper.cli.demo.provider import Provider
from vesper.cli.demo.scaled import REAL, SCALED
from vesper.cli.demo.server import WORKERS
from vesper.cli.demo.shop import DECISION, RIGHT_FEE, SAMPLE_PERCENT, WRONG_FEE, make_shop, recorded_orders
from vesper.cli.demo.traffic import Traffic
from vesper.cli.migrate.open_store import open_configured_store
from vesper.cli.output.terminal import style
from vesper.migration.control.modes import Mode
from vesper.migration.stores.overview import open_divergences, read_overview
from vesper.values.model import printable

_ORDERS = 40
_POLL_SECONDS = 0.1
_DECISION_SECONDS, _SLOW_DECISION_SECONDS, _WATCHED_DECISION_SECONDS = 0.02, 0.1, 1.0
"""Pauses of each caller between two decisions."""
_END_SECONDS = 40.0
_READING_SECONDS = 5.0
"""Time of a reader before the screen is cleared."""


class DemoFailed(click.ClickException):
    """A chapter of the demo failed."""


class Story:
    def __init__(self, folder: Path, provider: Provider, seconds: float) -> None:
        """`seconds` limits each wait for a change of mode."""
        self.folder = folder
        self.config = folder / "vesper.toml"
        self._provider = provider
        self._seconds = seconds
        self._numbers = itertools.count()
        self._begun = time.monotonic()
        self._history: list[dict[str, Any]] = []

    # -- output -----------------------------------------------------------------------------------

    def _title(self, number: int, text: str) -> None:
        click.echo(f"\n{style(f'{number}. {text}', 'bold', 'cyan')}")

    def _print_line(self, text: str, *colours: str) -> None:
        seconds = f"{time.monotonic() - self._begun:6.1f} s"
        click.echo(f"{style(seconds, 'dim')}  {style(text, *colours) if colours else text}")

    # -- chapters ---------------------------------------------------------------------------------

    def tell(self, watch: Callable[[], None] | None) -> None:
        """Run all chapters.

        `watch` shows the status of the nodes, under light traffic, until Ctrl-C.
        """
        self._prepare()
        self._title(2, "Traffic moves the decision to the direct engine")
        with self._serve("healthy") as traffic:
            self._migrate(traffic)
        self._title(3, "The direct engine becomes wrong")
        self._print_line("the server restarts; its direct engine has a planted fault now: above 100 it computes")
        click.echo(f"            {WRONG_FEE}  instead of  {RIGHT_FEE}")
        with self._serve("faulty") as traffic:
            self._find_fault(traffic)
            self._kill_worker(traffic)
            if watch is not None:
                self._title(5, "vesper status --watch, under light traffic, until Ctrl-C")
                with traffic.send_decisions(_WATCHED_DECISION_SECONDS):
                    time.sleep(_READING_SECONDS)
                    watch()

    def _prepare(self) -> None:
        self._title(1, "A shop with two nodes")
        make_shop(self.folder, self._provider.url)
        self._print_line(f"in {self.folder}: a decision (pure), a payment handler (effects), SQLite, vesper.toml")
        self._print_line(f"a payment provider that counts its charges, at {self._provider.url}")
        click.echo("\n  Scaled so that a minute is enough; everything else is as in production:")
        for mode, scaled in SCALED.items():
            if scaled != REAL[mode]:
                click.echo(f"    agreement for {mode.value:13} {float(scaled):.2%} instead of {float(REAL[mode]):.2%}")
        click.echo(f"    verified in direct_only     {SAMPLE_PERCENT} % of requests instead of 1 %")
        click.echo("    shadow work                 100 % of a processor instead of 5 %")
        click.echo("    reads of the store          every 100 ms instead of 250 ms")

    def _migrate(self, traffic: Traffic) -> None:
        """Send traffic until the direct engine answers the decision."""
        self._show_request(traffic)
        with traffic.send_decisions(_DECISION_SECONDS):
            self._await_mode(Mode.DIRECT_ONLY)
        self._print_line(f"{traffic.decisions:,} decisions, {traffic.wrong_fees} with a wrong fee", "green")
        if traffic.wrong_fees:
            raise DemoFailed("an engine without a planted fault gave wrong fees: please report it")

    def _find_fault(self, traffic: Traffic) -> None:
        """Send traffic until the node is demoted, and show the difference."""
        with traffic.send_decisions(_SLOW_DECISION_SECONDS):
            self._await_mode(Mode.SHADOW_DIRECT)
        wrong, count = traffic.wrong_fees, traffic.decisions
        self._print_line(
            f"{wrong} of {count:,} decisions had a wrong fee until Python answered again: the risk of direct_only,",
            "yellow",
        )
        click.echo("            which a pin to dual_verify avoids")
        self._print_line("the difference is kept, and blocks promotion until it is closed:")
        for line in self._divergences():
            click.echo(f"            {line}")

    def _kill_worker(self, traffic: Traffic) -> None:
        """Kill a worker amid orders; every order must be charged once."""
        self._title(4, "A worker is killed while it charges cards")

        def kill(number: int) -> None:
            if number == _ORDERS // 3:
                worker = int(traffic.request("/status", None)[1]["pid"])
                os.kill(worker, signal.SIGKILL)
                self._print_line(f"kill -9 {worker}, amid the orders", "red")

        self._print_line(f"{_ORDERS} orders, 8 at a time; unanswered ones are sent again under their Idempotency-Key")
        paid = traffic.order(_ORDERS, kill)
        made, asked = self._provider.charges_made, self._provider.requests.total()
        recorded = recorded_orders(self.folder)
        self._print_line(f"{len(paid)} of {_ORDERS} orders answered with 201; requests sent again: {traffic.resent}")
        self._print_line(f"the provider was asked {asked} times, and charged {made} times")
        if len(paid) != _ORDERS or self._provider.charges != paid or recorded != paid:
            raise DemoFailed(
                f"not every order was charged and recorded once: {len(paid)} paid, {made} charged, "
                f"{len(recorded)} recorded; refused: {printable(json.dumps(traffic.refused))}.\n"
                f"The end of the server's log:\n{_end_of_log(self.folder / 'server.log')}"
            )
        self._print_line("every order was charged once, and recorded once", "green")

    # -- parts ------------------------------------------------------------------------------------

    @contextmanager
    def _serve(self, health: str) -> Iterator[Traffic]:
        root = str(Path(vesper.__file__).parents[1])
        path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
        log = self.folder / "server.log"
        with log.open("ab") as errors:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "vesper.cli.demo.server", health],
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": path},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,  # Ctrl-C is for the demo, which ends the server
            )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            port = process.stdout.readline().strip()
            if not port:
                raise DemoFailed(f"the server did not start:\n{_end_of_log(log)}")
            self._print_line(f"vesper serve: http://127.0.0.1:{port}, {WORKERS} workers, log in {log}")
            yield Traffic(int(port), self._numbers)
        finally:
            process.stdin.close()
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            process.stdout.close()

    def _show_request(self, traffic: Traffic) -> None:
        given = {"amount": "250.00", "balance": "1000", "country": "DE", "user_age_days": 400}
        _, found = traffic.request(f"/nodes/{DECISION}", given)
        click.echo(f"            POST /nodes/{DECISION}  {json.dumps(given)}")
        click.echo(f"            {json.dumps(found)}")

    def _await_mode(self, wanted: Mode) -> None:
        """Report changes of mode until this one is reached."""
        until = time.monotonic() + self._seconds
        while True:
            mode = self._report_changes()
            if mode is wanted:
                return
            if time.monotonic() > until:
                now = "not routed" if mode is None else f"in {mode.value}"
                raise DemoFailed(
                    f"{DECISION} has not reached {wanted.value} within {self._seconds:g} s (it is {now}): the machine "
                    f"may be busy, try --seconds {self._seconds * 4:g}. The end of the server's log:\n"
                    f"{_end_of_log(self.folder / 'server.log')}"
                )
            time.sleep(_POLL_SECONDS)

    def _report_changes(self) -> Mode | None:
        """Print new changes of the decision's mode; return the mode."""
        with suppress(click.ClickException), open_configured_store(self.config, None) as opened:
            found = read_overview(opened.store, opened.settings, node=DECISION).nodes
            if not found or found[0].state is None:
                return None
            for line in opened.store.history(found[0].key)[len(self._history) :]:
                record = json.loads(line.text)
                self._history.append(record)
                if record["kind"] == "changed":
                    is_rise = Mode(record["after"]).level > Mode(record["before"]).level
                    text = f"{record['before']} → {record['after']}: {printable(record['why'])}"
                    self._print_line(text, "green" if is_rise else "red")
            return found[0].state.mode
        return None

    def _divergences(self) -> list[str]:
        with open_configured_store(self.config, None) as opened:
            found = read_overview(opened.store, opened.settings, node=DECISION).nodes
            assert found[0].state is not None
            return [
                f"{each.fingerprint}  {each.where}  vesper divergences show {each.fingerprint} --config {self.config}"
                for each in open_divergences(opened.store, found[0].state)
            ]


def _end_of_log(path: Path) -> str:
    """Return the end of a log."""
    return "\n".join(printable(line) for line in path.read_text("utf-8", "replace").splitlines()[-20:])
