"""Finishes runs without a process: abandoned by a dead one, woken from a wait, or queued.

A run is executed again from START with its recorded completions, on its own definition. A woken or queued run of a
routed node is routed like a new one, so that its end becomes evidence; an abandoned run continues on the engine it was
on, and on Python if that was the direct engine.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from vesper.engines.engine import EngineUnavailable
from vesper.engines.registry import ENGINES
from vesper.host.driving import drive
from vesper.host.in_doubt import InDoubt
from vesper.host.prepared import Prepared, Recovered, compiled_from
from vesper.host.recovery.deferred import Deferred
from vesper.host.routed import HostedProgram
from vesper.host.run_context import RunContext
from vesper.host.run_metrics import RunTimer, count_recovery
from vesper.host.run_spans import drive_traced
from vesper.host.waiting import RunWaits
from vesper.journal.entry import Kind
from vesper.journal.journal import Fenced, NotTaken, Recorded, Run, Summary
from vesper.journal.owner import is_dead
from vesper.storage.per_process import PerProcess

if TYPE_CHECKING:
    from vesper.host.host import Host

_log = logging.getLogger("vesper.host")
RESUMED: dict[str, object] = {}
"""Runs that threads of this process resume: the journal gives a run of this process to any of them."""


class Resuming:
    """The part of a Host that takes runs over and finishes them."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.deferred = Deferred()
        self._loading = PerProcess(threading.Lock)

    def attempt(self, execution: str, node_id: str, engine: str | None, is_left: bool) -> Recovered | None:
        """Finish a run unless it failed recently; None if another process was faster.

        A run that cannot be finished is logged and deferred. With `is_left`, a run that cannot be taken over is
        deferred, too. Raises `HostClosed`.
        """
        from vesper.host.host import HostClosed

        if not self.deferred.is_due(execution):
            return None
        try:
            recovered = self._host.resume(execution, engine)
        except HostClosed:
            raise
        except NotTaken:
            if is_left:  # a woken run may wait and be woken again soon
                self.deferred.failed(execution)
            return None
        except Exception as error:  # noqa: BLE001  # whatever it is, it is about this run, and others wait
            self.deferred.failed(execution)
            _log.warning("%s of %s cannot be finished yet: %s", execution, node_id, error)
            recovered = Recovered(execution, node_id, None, f"{type(error).__name__}: {error}")
            count_recovery(recovered)
        else:
            self.deferred.done(execution)
        return recovered

    def resume(self, execution: str, engine: str | None) -> Recovered:
        """Take one run over and finish it, or bring it to its next wait. Raises `NotTaken`."""
        token = object()
        if RESUMED.setdefault(execution, token) is not token:
            raise NotTaken(f"execution {execution} cannot be taken over: a thread of this process is resuming it")
        try:
            return self._resume(execution, engine)
        finally:
            del RESUMED[execution]

    def _resume(self, execution: str, engine: str | None) -> Recovered:
        host = self._host
        recorded = host.journal.read(execution)
        summary = recorded.summary
        if host._is_ours(summary):
            raise NotTaken(f"execution {summary.execution} cannot be taken over: this process is running it")
        last_engine = _engine_of(recorded)
        # A process that died under the direct engine may have died of it: the reference finishes what it left.
        is_lost = last_engine in ("interp", "jit") and is_dead(summary.owner)
        if summary.owner:
            engine = engine or ("python" if is_lost else last_engine)
        inputs = recorded.entries[0].entry.body.get("inputs")
        # What can go wrong with the node goes wrong before the run is ours.
        prepared = self.prepared_of(summary, inputs if isinstance(inputs, Mapping) else {}, engine, last_engine)
        host.check_equipped(prepared.compiled.node, prepared.plans)
        run = host.journal.take_over(summary.execution, prepared.engine)
        if is_lost:
            for tell in host.on_lost:
                tell(summary)
        if not summary.owner:
            return self.finish(run, prepared)
        recovered = self._drive(run, prepared, None)
        count_recovery(recovered)
        return recovered

    def prepared_of(
        self, summary: Summary, inputs: Mapping[str, object], engine: str | None, last_engine: str | None = None
    ) -> Prepared:
        """Return the definition of a run on `engine`.

        Without `engine`, it is on the route of the node if this process has the node loaded, else on `last_engine` or
        the engine on which the run began. Raises `EngineUnavailable`.
        """
        host, semantic_hash = self._host, summary.semantic_hash
        routed = host._selecting.get(semantic_hash) if engine is None else None
        if routed is not None and isinstance(routed.program, HostedProgram):
            return routed.program.route(routed, inputs, summary.execution)
        chosen = engine or last_engine or summary.engine
        found = host._prepared.get((semantic_hash, chosen, ""))
        if found is None:
            if chosen not in ENGINES:
                raise EngineUnavailable(f"there is no engine `{chosen}` here; the engines are {', '.join(ENGINES)}")
            with self._loading.get():  # woken runs often have one definition: it is loaded once
                found = host._prepared.get((semantic_hash, chosen, ""))
                if found is None:
                    compiled = compiled_from(host.journal.definition(semantic_hash))
                    found = host.prepare(compiled, ENGINES[chosen].load(compiled), chosen)
        return found

    def finish(self, run: Run, prepared: Prepared) -> Recovered:
        """Drive a woken or queued run that this process has taken over. Metrics count its end as that of a new run."""
        return self._drive(run, prepared, RunTimer)

    def _drive(self, run: Run, prepared: Prepared, timer_class: type[RunTimer] | None) -> Recovered:
        host, node_id = self._host, prepared.compiled.node.node_id
        body = run.recorded[0].body
        inputs, now, record = body["inputs"], body["now"], body.get("context")
        assert isinstance(inputs, Mapping)
        assert isinstance(now, datetime)
        context = RunContext.from_record(record) if isinstance(record, Mapping) else None
        timer = None if timer_class is None else timer_class(prepared, context)
        try:
            steps = host._drive_run(prepared, run, inputs, now, None, context=context)
            outcome = drive(drive_traced(steps, host._tracing, prepared, run.execution, context))
        except RunWaits as waits:
            host.keeper.notice()
            return Recovered(run.execution, node_id, None, waits.description, is_waiting=True)
        except InDoubt as doubt:
            if timer is not None:
                timer.failed("in_doubt")
            return Recovered(run.execution, node_id, None, doubt.why)
        except Fenced as reason:
            return Recovered(run.execution, node_id, None, str(reason))
        if timer is not None:
            timer.ended(outcome)
            if host.after_run is not None:
                host.after_run(prepared, run.execution)
        return Recovered(run.execution, node_id, outcome)


def _engine_of(recorded: Recorded) -> str:
    """Return the engine that a run was on last.

    An engine that handed the run over is not used again, unless a person names it.
    """
    handoffs = [each.entry.body for each in recorded.entries if each.entry.kind is Kind.HANDOFF]
    return str(handoffs[-1].get("engine", recorded.summary.engine)) if handoffs else recorded.summary.engine
