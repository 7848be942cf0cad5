"""Stepping: a recorded run on both engines, forwards and backwards, changed, compared, and fixed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from vesper.dashboard.action import Action, Done, Refused, Role
from vesper.dashboard.page import Context, Page, Parameter, filled
from vesper.dashboard.pages.executions.run import find_trace
from vesper.dashboard.pages.stepping.session import COMMANDS, SteppingRefused, SteppingSession
from vesper.dashboard.pages.stepping.sessions import sessions_of
from vesper.dashboard.pages.stepping.view import Stepping, view_of
from vesper.engines.engine import EngineUnavailable
from vesper.trace.model import TraceError
from vesper.values.vesper_error import VesperError


def _read(context: Context) -> Stepping:
    """Return the caller's session of a run: that of the address, or the newest."""
    trace = find_trace(context)
    sessions = sessions_of(context.stores)
    key = context.text("session") or sessions.latest(context, trace.trace_id)
    if key is None:
        return Stepping(trace.trace_id, trace.node_id, trace.is_sensitive, None)
    with sessions.use(context, key) as found:
        return view_of(found)


def _start(context: Context, _fields: Mapping[str, str]) -> Done:
    trace = find_trace(context)
    try:
        found = sessions_of(context.stores).begin(context, trace)
    except (SteppingRefused, TraceError, EngineUnavailable) as problem:
        raise Refused(str(problem), "Step through it in a terminal.") from None
    return Done("", _address(found))


def _address(session: SteppingSession) -> str:
    path = filled("/executions/{execution}/step", {"execution": session.trace.trace_id})
    return f"{path}?session={session.key}"


def _performer(
    work: Callable[[Context, SteppingSession, Mapping[str, str]], None],
) -> Callable[[Context, Mapping[str, str]], Done]:
    """Return the action of a session; a rejected change becomes its message, and changes nothing."""

    def perform(context: Context, fields: Mapping[str, str]) -> Done:
        with sessions_of(context.stores).use(context, context.path["session"]) as session:
            try:
                work(context, session, fields)
            except (VesperError, EngineUnavailable) as problem:
                session.messages = tuple(str(problem).splitlines())
            return Done("", _address(session))

    return perform


def _move(_context: Context, session: SteppingSession, fields: Mapping[str, str]) -> None:
    session.run(f"{fields.get('command', '')} {fields.get('text', '')}".strip())


def _change(_context: Context, session: SteppingSession, fields: Mapping[str, str]) -> None:
    session.change(fields.get("target", ""), fields.get("change", ""))


def _end(context: Context, _fields: Mapping[str, str]) -> Done:
    key = context.path["session"]
    with sessions_of(context.stores).use(context, key) as session:
        execution = session.trace.trace_id
    sessions_of(context.stores).end(context, key)
    return Done("The stepping session has ended.", filled("/executions/{execution}", {"execution": execution}))


PAGES: tuple[Page[Any], ...] = (
    Page(
        "stepping",
        "/executions/{execution}/step",
        "Step {execution}",
        _read,
        "stepping/page.html",
        "A recorded run on both engines, at one position, with the caller's changes. Nothing is performed.",
        parameters=(Parameter("session", "text", "Key of a session; by default the caller's newest of the run."),),
    ),
)
ACTIONS: tuple[Action, ...] = (
    Action("step_start", "/executions/{execution}/step", Role.VIEWER, _start, "Starts a stepping session.", False),
    Action(
        "step_move", "/stepping/{session}/move", Role.VIEWER, _performer(_move),
        f"Runs `command` with `text`, as the prompt of `vesper debug` does: {', '.join(COMMANDS)}.", False,
    ),
    Action(
        "step_change", "/stepping/{session}/change", Role.VIEWER, _performer(_change),
        "Changes a step or an input (`target`) as `change` says, and runs on. Nothing is performed.", False,
    ),
    Action(
        "step_respond", "/stepping/{session}/respond", Role.VIEWER,
        _performer(lambda _, session, fields: session.respond(fields.get("change", ""))),
        "Answers a request of the changed run that the record has no answer for, and runs on.", False,
    ),
    Action(
        "step_reset", "/stepping/{session}/reset", Role.VIEWER, _performer(lambda _, session, __: session.reset()),
        "Drops all changes.", False,
    ),
    Action(
        "step_patch", "/stepping/{session}/patch", Role.VIEWER, _performer(lambda _, session, __: session.propose()),
        "Proposes the changes of the node's text as a patch. No file is written.", False,
    ),
    Action("step_end", "/stepping/{session}/end", Role.VIEWER, _end, "Ends the session.", False),
)  # fmt: skip
