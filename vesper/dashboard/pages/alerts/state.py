"""The state of each alert, from the stores and the metrics directory.

`/readyz` and `vesper status` read these sources, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from vesper.dashboard.page import Context, Unavailable
from vesper.dashboard.pages.journal.overview import MAX_COUNTED
from vesper.dashboard.service import open_configured, read_metrics, unsent_findings
from vesper.host.run_metrics import STUCK_SECONDS
from vesper.journal.journal import JournalError, Status
from vesper.journal.moments import number, time_text
from vesper.migration.stores.overview import Overview, read_overview
from vesper.migration.stores.status_text import ago_text
from vesper.migration.stores.store import StoreError
from vesper.observe.metrics import Sample
from vesper.serve.supervisor import VARIABLE
from vesper.values.generated.alert_rules import ALERT_RULES
from vesper.values.generated.metrics import BREAKER_STATE, OUTBOX_AGE
from vesper.values.metric import AlertRule, MetricSpec
from vesper.values.model import printable

_OPEN_BREAKER: Final = 2
_MAX_NAMED: Final = 5
_QUIET_STORE_US: Final = 24 * 3_600 * 10**6
"""Age of the last report of a process from which on the store counts as abandoned."""


class AlertState(Enum):
    """Present state of an alert."""

    FIRING = "firing"
    UNKNOWN = "unknown"
    """What tells the state cannot be read."""
    QUIET = "quiet"
    PROMETHEUS = "Prometheus only"


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert rule, or a check of the stores."""

    name: str
    severity: str
    state: AlertState
    what: str
    """What has happened when it fires."""
    now: str
    """What was found now; empty for a rule of Prometheus."""
    action: str
    link: str | None
    """Address of the page where something can be done."""
    rule: str | None
    """The expression of Prometheus, of a shipped rule."""
    after: str | None

    @property
    def order(self) -> tuple[int, bool]:
        return list(AlertState).index(self.state), self.severity != "critical"


Finding = tuple[AlertState, str]
"""A state, and what was found."""


@dataclass(frozen=True, slots=True)
class _Check:
    """A check of the stores that no rule of Prometheus has."""

    name: str
    severity: str
    what: str
    action: str
    link: str
    find: Callable[[_Stores], Finding]


class _Stores:
    """The stores of one request, each read once. Alerts report a problem of their store."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._overview: Overview | None = None

    @property
    def overview(self) -> Overview:
        if self._overview is None:
            opened = open_configured(self.context.stores)
            self._overview = read_overview(opened.store, opened.settings)
        return self._overview

    def series(self, metric: MetricSpec) -> list[Sample]:
        """Return the series of a gauge over all processes of the metrics directory. Raises `Unavailable`."""
        samples = read_metrics(self.context.stores.config)
        if samples is None:
            raise Unavailable(
                "the metrics",
                "the service shares no folder of them",
                f"Name one as `directory` under `[observe]`, or set {VARIABLE} as for the service.",
            )
        return [each for each in samples if each.metric.place == metric.place]


def read_alerts(context: Context) -> list[Alert]:
    """Return the shipped rules and the checks of the stores."""
    stores = _Stores(context)
    return [*(_of_rule(each, stores) for each in ALERT_RULES), *(_of_check(each, stores) for each in _CHECKS)]


def _of_rule(rule: AlertRule, stores: _Stores) -> Alert:
    find, link = _RULES.get(rule.name, (None, None))
    state, now = (AlertState.PROMETHEUS, "") if find is None else _find_state(find, stores)
    what = re.sub(r"\{\{ \$(?:labels\.)?(\w+) \}\}", lambda found: found[1].upper(), rule.doc).replace("VALUE", "N")
    return Alert(rule.name, rule.severity, state, what, now, rule.action, link, rule.expression, rule.after)


def _of_check(check: _Check, stores: _Stores) -> Alert:
    state, now = _find_state(check.find, stores)
    return Alert(check.name, check.severity, state, check.what, now, check.action, check.link, None, None)


def _find_state(find: Callable[[_Stores], Finding], stores: _Stores) -> Finding:
    try:
        return find(stores)
    except Unavailable as problem:
        return AlertState.UNKNOWN, f"{problem.what}. {problem.remedy}"
    except (JournalError, StoreError, OSError) as problem:
        return AlertState.UNKNOWN, printable(str(problem))


def _alert_if(found: bool, firing: str, quiet: str) -> Finding:
    return (AlertState.FIRING, firing) if found else (AlertState.QUIET, quiet)


def _join_names(names: Iterator[str]) -> str:
    listed = [printable(each) for each in names]
    return ", ".join(listed[:_MAX_NAMED]) + (
        f" and {len(listed) - _MAX_NAMED} more" if len(listed) > _MAX_NAMED else ""
    )


# -- rules ----------------------------------------------------------------------------------------


def _divergences(stores: _Stores) -> Finding:
    nodes = [each for each in stores.overview.nodes if each.state is not None and each.state.open]
    count = sum(len(each.state.open) for each in nodes if each.state is not None)
    named = _join_names(each.key.node for each in nodes)
    return _alert_if(bool(nodes), f"{number(count, 'open divergence')} of {named}", "no divergence is open")


def _in_doubt(stores: _Stores) -> Finding:
    found = stores.context.stores.journal.find(status=Status.IN_DOUBT, limit=MAX_COUNTED)
    more = " or more" if len(found) >= MAX_COUNTED else ""
    named = _join_names(iter(dict.fromkeys(each.node_id for each in found)))
    return _alert_if(bool(found), f"{number(len(found), 'run')}{more} of {named}", "no run is in doubt")


def _journal_writable(stores: _Stores) -> Finding:
    journal = stores.context.stores.journal
    try:
        journal.check_writable()
    except JournalError as problem:
        return AlertState.FIRING, printable(str(problem))
    return AlertState.QUIET, "the journal is writable"


def _outboxes(stores: _Stores) -> Finding:
    ages = {each.labels[0]: _value(each) / 1_000 for each in stores.series(OUTBOX_AGE)}
    stuck = (f"{name} for {age:.0f} s" for name, age in ages.items() if age > STUCK_SECONDS)
    oldest = f"the oldest event has waited {max(ages.values(), default=0):.0f} s"
    return _alert_if(any(age > STUCK_SECONDS for age in ages.values()), _join_names(stuck), oldest)


def _breakers(stores: _Stores) -> Finding:
    opened = [each for each in stores.series(BREAKER_STATE) if _value(each) == _OPEN_BREAKER]
    return _alert_if(
        bool(opened), _join_names(f"{each.labels[1]} of {each.labels[0]}" for each in opened), "no breaker is open"
    )


def _value(sample: Sample) -> float:
    assert isinstance(sample.value, int | float)
    return sample.value


_RULES: Final[dict[str, tuple[Callable[[_Stores], Finding], str | None]]] = {
    "VesperDivergence": (_divergences, "/divergences"),
    "VesperInDoubt": (_in_doubt, "/journal"),
    "VesperJournalErrors": (_journal_writable, "/journal"),
    "VesperOutboxStuck": (_outboxes, None),
    "VesperBreakerOpen": (_breakers, None),
}
"""Rules whose state is known without a history of metrics."""


# -- checks ---------------------------------------------------------------------------------------


def _kill_switch(stores: _Stores) -> Finding:
    switch = stores.overview.killed
    if switch is None:
        return AlertState.QUIET, "the kill switch is off"
    return AlertState.FIRING, f"by {printable(switch.who)} at {time_text(switch.at_us)}: {printable(switch.why)}"


def _latches(stores: _Stores) -> Finding:
    held = [each for each in stores.overview.nodes if each.state is not None and each.state.latches]
    return _alert_if(bool(held), _join_names(each.key.node for each in held), "no node is latched")


def _unreadable(stores: _Stores) -> Finding:
    broken = [each for each in stores.overview.nodes if each.problem is not None]
    return _alert_if(
        bool(broken), _join_names(f"{each.key.node}: {each.problem}" for each in broken), "every node is readable"
    )


def _store_age(stores: _Stores) -> Finding:
    written, now_us = stores.overview.written_us, stores.context.now_us
    if written is None:
        return AlertState.QUIET, "no process has reported yet"
    said = f"last report {ago_text(written, now_us)}"
    return _alert_if(now_us - written > _QUIET_STORE_US, said, said)


def _store_warnings(stores: _Stores) -> Finding:
    unsent = unsent_findings(stores.context.stores)
    said = [*map(printable, (*stores.overview.warnings, *unsent))]
    return _alert_if(bool(said), "; ".join(said), "the store has no warning")


def _unfinished(stores: _Stores) -> Finding:
    found = stores.context.stores.journal.unfinished(MAX_COUNTED)
    more = " or more" if len(found) >= MAX_COUNTED else ""
    return _alert_if(bool(found), f"{number(len(found), 'run')}{more}", "no run is unfinished")


def _journal_place(stores: _Stores) -> Finding:
    reason = stores.context.stores.journal.volatile_reason
    return _alert_if(reason is not None, printable(reason or ""), "its place survives a restart")


_CHECKS: Final = (
    _Check(
        "Kill switch", "critical", "Every node runs on Python alone.",
        "Resume all nodes when the cause is fixed: `vesper migrate resume --all`.", "/", _kill_switch,
    ),
    _Check(
        "Latched nodes", "critical", "Nodes stay on Python until a person resumes them.",
        "Find the cause on the page of the node, then resume it.", "/", _latches,
    ),
    _Check(
        "Unreadable nodes", "critical", "The state of a node cannot be read; it runs on Python.",
        "Restore the store, or run the node with the Vesper that wrote it.", "/", _unreadable,
    ),
    _Check(
        "Unfinished runs", "warning", "Runs were left by a process that ended, and no service recovers them.",
        "Start the service with recovery, or recover them on the page Journal.", "/journal", _unfinished,
    ),
    _Check(
        "Reports to the store", "warning", "No process has reported to the migration store for a day.",
        "Check that the service runs, and that it uses this store.", "/", _store_age,
    ),
    _Check(
        "Warnings of the store", "warning", "The migration store or its spool has a warning.",
        "Follow the text of the warning; `vesper status` shows it too.", "/", _store_warnings,
    ),
    _Check(
        "Place of the journal", "warning", "The journal may vanish with a restart.",
        "Name a lasting place as `dsn` under `[journal]`.", "/journal", _journal_place,
    ),
)  # fmt: skip
