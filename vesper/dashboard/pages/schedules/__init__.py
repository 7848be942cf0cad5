"""Schedules: due times, last runs and pauses of scheduled jobs; run now, pause, resume."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vesper.api.load import load
from vesper.dashboard.action import Action, Context, Done, Refused, Role
from vesper.dashboard.page import NotFound, Page, filled
from vesper.dashboard.pages.journal.actions import open_host
from vesper.dashboard.stores import Topic, require_trusted
from vesper.host.run_context import RunContext
from vesper.journal.audit import audit_change
from vesper.language.work_bindings import schedule_of
from vesper.schedules.overview import ScheduleLine, declared_schedules, overview
from vesper.schedules.rows import UnknownSchedule, pause, resume
from vesper.schedules.schedules import begin_run
from vesper.schedules.timetable import Timetable
from vesper.values.model import printable

_TIMES = 5


@dataclass(frozen=True, slots=True)
class SchedulesView:
    """All schedules, by node."""

    lines: tuple[ScheduleLine, ...]


@dataclass(frozen=True, slots=True)
class ScheduleView:
    """One schedule with its next due times."""

    line: ScheduleLine
    times_us: tuple[int, ...]
    """Empty where no file declares the job."""


def read_schedules(context: Context) -> SchedulesView:
    """Read the schedules of the journal and of the folder of nodes."""
    folder = context.stores.nodes.folder
    declared = declared_schedules(folder) if folder.is_dir() else {}
    return SchedulesView(tuple(overview(context.stores.journal, context.now_us, declared)))


def read_schedule(context: Context) -> ScheduleView:
    """Read the schedule of the path. Raises `NotFound`."""
    node, folder = context.path["node"], context.stores.nodes.folder
    declared = declared_schedules(folder) if folder.is_dir() else {}
    lines = [each for each in overview(context.stores.journal, context.now_us, declared) if each.node_id == node]
    if not lines:
        raise NotFound(f"`{printable(node[:80])}` has no schedule", "The page Schedules lists all of them.")
    times: list[int] = []
    if node in declared:
        table = Timetable(node, declared[node])
        for _ in range(_TIMES):
            times.append(table.next_after(times[-1] if times else context.now_us))
    return ScheduleView(lines[0], tuple(times))


def run_now(context: Context, fields: Mapping[str, str]) -> Done:
    """Begin a run of the job beside its schedule."""
    node = context.path["node"]
    compiled, _ = context.stores.nodes.compiled(node)
    field = None if compiled is None else schedule_of(compiled)
    if compiled is None or field is None:
        raise Refused(
            f"the file of {printable(node)} has errors or no schedule", "Correct it: `vesper check` says how."
        )
    require_trusted(compiled)
    by = context.caller.name
    with open_host(context, "use the file that the nodes run with") as host:
        loaded = load(context.stores.nodes.path(node), host=host)
        execution = begin_run(host, loaded, field, context.now_us, RunContext(actor=by))
        audit_change(host.journal, "schedule_run", execution, node, by, why=fields["reason"])
    return Done(f"{execution} is queued: a service or `vesper work` performs it.", _location(context))


def pause_schedule(context: Context, fields: Mapping[str, str]) -> Done:
    """Begin no run of the job until it is resumed."""
    node = read_schedule(context).line.node_id
    pause(context.stores.journal, node, context.caller.name, fields["reason"])
    return Done(f"{node} is paused.", _location(context))


def resume_schedule(context: Context, fields: Mapping[str, str]) -> Done:
    """End the pause of a job."""
    node = context.path["node"]
    try:
        resume(context.stores.journal, node, context.caller.name, fields["reason"])
    except UnknownSchedule as problem:
        raise Refused(printable(str(problem)), "Nothing was changed.") from None
    return Done(f"{node} runs again from its next due time on.", _location(context))


def _location(context: Context) -> str:
    return filled("/workload/schedules/{node}", context.path)


PAGES = (
    Page(
        name="schedules",
        path="/workload/schedules",
        title="Schedules",
        read=read_schedules,
        template="schedules/list.html",
        summary="Scheduled jobs with their next due time, last run, missed and skipped times.",
        topics=frozenset({Topic.JOURNAL, Topic.FILES}),
    ),
    Page(
        name="schedule",
        path="/workload/schedules/{node}",
        title="Schedule of {node}",
        read=read_schedule,
        template="schedules/schedule.html",
        summary="One scheduled job with its policies and next due times.",
    ),
)

ACTIONS = (
    Action(
        name="run_schedule",
        path="/workload/schedules/{node}/run",
        role=Role.OPERATOR,
        perform=run_now,
        summary="Queues a run beside the schedule. A service or `vesper work` performs it, with its effects.",
    ),
    Action(
        name="pause_schedule",
        path="/workload/schedules/{node}/pause",
        role=Role.OPERATOR,
        perform=pause_schedule,
        summary="Begins no run in any process until it is resumed. Due times of the pause never run.",
    ),
    Action(
        name="resume_schedule",
        path="/workload/schedules/{node}/resume",
        role=Role.OPERATOR,
        perform=resume_schedule,
        summary="The job runs again, from its next due time on.",
    ),
)
