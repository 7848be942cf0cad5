"""Alerts: the rules that Vesper ships, with their state according to the stores or the metrics."""

from __future__ import annotations

from dataclasses import dataclass

from vesper.dashboard.page import Context, Page
from vesper.dashboard.pages.alerts.state import Alert, AlertState, read_alerts
from vesper.dashboard.stores import Topic


@dataclass(frozen=True, slots=True)
class Alerts:
    """All alerts, what needs a person first."""

    firing: int
    known: tuple[Alert, ...]
    """Alerts with a state: firing ones, unknown ones, quiet ones."""
    left_to_prometheus: tuple[Alert, ...]
    """Rules over a time that only Prometheus keeps."""
    rules: str
    """The file of the rules."""


def read(context: Context) -> Alerts:
    """Read the state of all alerts."""
    alerts = read_alerts(context)
    known = sorted((each for each in alerts if each.state is not AlertState.PROMETHEUS), key=lambda each: each.order)
    return Alerts(
        sum(each.state is AlertState.FIRING for each in known),
        tuple(known),
        tuple(each for each in alerts if each.state is AlertState.PROMETHEUS),
        "dashboards/prometheus/alerts.yml",
    )


PAGES = (
    Page(
        name="alerts",
        path="/alerts",
        title="Alerts",
        read=read,
        template="alerts/list.html",
        summary="Alert rules with their present state, what to do, and where.",
        topics=frozenset({Topic.JOURNAL, Topic.MIGRATION}),
        menu="Alerts",
    ),
)
