"""A session over the Debug Adapter Protocol: one thread per engine, a scope for differences.

Takes and returns messages; `dap/wire.py` and `vesper/cli/debug/dap_server.py` carry them. Engines only advance while a
request is handled, so nothing runs concurrently. An invalid request gets a failed response and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from vesper.debug.breakpoints import BadBreakpoint, Breakpoint, Kind, check_engines, parse_breakpoint, step_names
from vesper.debug.dap.messages import CAPABILITIES, FILTERS, REFUSALS, THREADS, Message, Refused, names_trace
from vesper.debug.dap.variables import Variables, scopes_of, source_of
from vesper.debug.responses import Live, Unanswered, plain_path
from vesper.debug.session import Move, Session, StopReason, called_by
from vesper.debug.side import Side
from vesper.debug.start import Subject
from vesper.debug.stops import Position, Stop
from vesper.debug.view import divergence_lines, location, outcome_rows
from vesper.engines.outcome import Returned
from vesper.host.prepared import Ran
from vesper.trace.expressions import BadExpression, Expressions
from vesper.values.model import show
from vesper.values.types import Type

_LEVELS = 1000
"""Frames per thread. A frame id is the thread's number times this, plus its depth."""
_LAUNCH = "launch"
"""The source of the breakpoints in the launch arguments."""


class Adapter:
    def __init__(
        self,
        launch: Callable[[Mapping[str, Any]], Subject],
        open_world: Callable[[Subject, Mapping[str, Any]], Live | None] = lambda *_: None,
    ) -> None:
        """Create an adapter.

        `launch` returns the subject of a launch request, or raises `Refused`. `open_world` returns the performer of
        real effects if the arguments request it.
        """
        self._launch = launch
        self._open_world = open_world
        self._world: Live | None = None
        self._subject: Subject | None = None
        self._sessions: list[Session] = []
        self._out: list[Message] = []
        self._seq = 0
        self._variables = Variables()
        self._points: dict[str, dict[int, str]] = {"function": {}, "exception": {}, _LAUNCH: {}}
        """Texts of all verified breakpoints, by their source and their place in its list."""
        self._moved = Move(StopReason.START)
        self._stops_on_entry = True
        self._is_one_based = True
        """Whether the client counts lines from 1, the protocol's default."""
        self.is_over = False

    # -- messages ---------------------------------------------------------------------------------

    def handle(self, request: Message) -> list[Message]:
        """Return the response to a request, followed by its events."""
        self._out = []
        if request.get("type") != "request":
            return []
        command = str(request.get("command", ""))
        method = getattr(self, f"_on_{_to_snake_case(command)}", None)
        arguments = request.get("arguments")
        try:
            if method is None:
                raise Refused(f"`{command}` is not supported")
            body = method(arguments if isinstance(arguments, dict) else {})
        except REFUSALS as problem:
            told = f"{problem.args[0]!r} is missing" if isinstance(problem, KeyError) else str(problem)
            error = {"id": 1, "format": told.replace("{", "(").replace("}", ")"), "showUser": True}
            self._respond(request, False, {"error": error}, told.partition("\n")[0])
            return self._out
        # A response precedes the events that it causes.
        events, self._out = self._out, []
        self._respond(request, True, body)
        self._out += events
        return self._out

    def _respond(self, request: Message, success: bool, body: Message | None, message: str | None = None) -> None:
        response: Message = {
            "type": "response",
            "request_seq": request.get("seq", 0),
            "success": success,
            "command": request.get("command", ""),
        }
        if body is not None:
            response["body"] = body
        if message is not None:
            response["message"] = message
        self._send(response)

    def _event(self, name: str, body: Message | None = None) -> None:
        self._send({"type": "event", "event": name, **({} if body is None else {"body": body})})

    def _send(self, message: Message) -> None:
        self._out.append(message)

    def number(self, messages: list[Message]) -> Iterator[Message]:
        """Yield the messages with their sequence numbers."""
        for message in messages:
            self._seq += 1
            yield {"seq": self._seq, **message}

    # -- beginning and end ------------------------------------------------------------------------

    def _on_initialize(self, arguments: Message) -> Message:
        self._is_one_based = arguments.get("linesStartAt1", True) is not False
        return dict(CAPABILITIES)

    def _on_launch(self, arguments: Message) -> None:
        subject = self._launch(arguments)
        points = [str(each) for each in arguments.get("breakOn", [])]
        expressions = Expressions(subject.compiled, subject.loader)
        for text in points:
            check_engines(parse_breakpoint(text, subject.compiled, expressions), len(subject.engines))
        # The old session closes only after the new arguments proved valid.
        self.close()
        self._sessions = []
        self._world = self._open_world(subject, arguments)
        session = subject.session(self._world)
        for text in points:
            session.add_breakpoint(text)
        self._subject, self._sessions = subject, [session]
        self._points[_LAUNCH] = dict(enumerate(points))
        self._stops_on_entry = arguments.get("stopOnEntry", True) is not False
        self._event("initialized")

    def _on_attach(self, arguments: Message) -> None:
        if not names_trace(arguments):
            raise Refused("attach needs `trace`: the id of a recorded run; `launch` starts a new one")
        self._on_launch(arguments)

    def _on_configuration_done(self, _: Message) -> None:
        self._check_launched()
        if self._stops_on_entry:
            self._report_stop("entry", "at the first statement")
        else:
            self._move(lambda session: session.resume(from_start=True))

    def _on_disconnect(self, _: Message) -> None:
        self.close()
        self.is_over = True

    def close(self) -> Ran | None:
        """End a real run with its outcome, or cancel it if it did not reach its end."""
        world, self._world = self._world, None
        if world is None:
            return None
        return world.finish(self._sessions[0].leader.outcome if self._sessions else None)

    def _on_terminate(self, _: Message) -> None:
        self._event("terminated")

    # -- breakpoints ------------------------------------------------------------------------------

    def _on_set_breakpoints(self, arguments: Message) -> Message:
        wanted = arguments.get("breakpoints", [])
        path = str(arguments.get("source", {}).get("path") or arguments.get("source", {}).get("name") or "")
        name = Path(path).name
        texts = []
        for each in wanted:
            line = int(each["line"]) + (0 if self._is_one_based else 1)
            texts.append(_add_condition(f"{name}:{line}", each.get("condition")))
        return self._set(f"source {path}", texts)  # each file has its own breakpoints

    def _on_set_function_breakpoints(self, arguments: Message) -> Message:
        texts = []
        for each in arguments.get("breakpoints", []):
            name = str(each["name"]).strip()
            is_step = name in self._step_names()
            texts.append(_add_condition(f"step:{name}" if is_step else name, each.get("condition")))
        return self._set("function", texts)

    def _on_set_exception_breakpoints(self, arguments: Message) -> Message:
        texts = [str(each) for each in arguments.get("filters", [])]
        for each in arguments.get("filterOptions", []):
            texts.append(_add_condition(str(each["filterId"]), each.get("condition")))
        for text in texts:
            if text.partition(" if ")[0] not in FILTERS:
                raise Refused(f"there is no filter `{text}`; the filters are {', '.join(FILTERS)}")
        return self._set("exception", texts)

    def _step_names(self) -> set[str]:
        return set(step_names(self._session.compiled))

    def _set(self, who: str, texts: list[str]) -> Message:
        """Replace all breakpoints of one source. An invalid one is unverified, with the reason."""
        self._check_launched()
        session = self._sessions[0]
        self._points.setdefault(who, {})
        answered: list[Message] = []
        kept: dict[int, str] = {}
        for number, text in enumerate(texts):
            found: Message = {"id": self._id(who, number), "verified": True}
            try:
                point = session.add_breakpoint(text)
                kept[number] = text
                if point.kind is Kind.LINE:
                    found["line"] = self._line(point.line)
            except (BadBreakpoint, BadExpression) as problem:
                found |= {"verified": False, "message": str(problem)}
            answered.append(found)
        self._points[who] = kept
        self._set_points()
        return {"breakpoints": answered}

    def _id(self, who: str, number: int) -> int:
        """Return a stable id of a breakpoint, independent of files added later."""
        return [*self._points].index(who) * _LEVELS + number + 1

    def _set_points(self) -> None:
        root = self._sessions[0]
        root.breakpoints.clear()
        for texts in self._points.values():
            for text in texts.values():
                root.add_breakpoint(text)

    # -- moving -----------------------------------------------------------------------------------

    @property
    def _session(self) -> Session:
        self._check_launched()
        return self._sessions[-1]

    def _check_launched(self) -> None:
        if not self._sessions:
            raise Refused("no session: send `launch` first")

    def _on_continue(self, _: Message) -> Message:
        if self._session.is_at_end and len(self._sessions) == 1:
            self._event("terminated")
            self._event("exited", {"exitCode": 0})
        else:
            self._resume()
        return {"allThreadsContinued": True}

    def _on_next(self, _: Message) -> None:
        self._move(lambda session: session.next())

    def _on_step_in(self, _: Message) -> None:
        inner = self._session.into() if called_by(self._session.stop_of(self._session.leader)) else None
        if inner is not None:
            self._sessions.append(inner)
            self._report_stop("step", f"into {inner.compiled.node.node_id}")
        else:
            self._move(lambda session: session.step())

    def _on_step_out(self, _: Message) -> None:
        if len(self._sessions) > 1:
            self._sessions.pop()
            self._move(lambda session: session.step())
        else:
            self._move(lambda session: session.out())

    def _on_step_back(self, _: Message) -> None:
        self._move(lambda session: session.back())

    def _on_reverse_continue(self, _: Message) -> None:
        del self._sessions[1:]
        self._move(lambda session: session.reverse())

    def _resume(self) -> None:
        """Run to the next breakpoint; step out of called nodes without breakpoints."""
        while len(self._sessions) > 1:
            moved = self._session.resume()
            if moved.breakpoints:
                self._sessions += moved.inside
                self._report_move(moved)
                return
            self._sessions.pop()
            self._session.leave_call()
        self._move(lambda session: session.resume())

    def _on_pause(self, _: Message) -> None:
        self._check_launched()
        self._report_stop("pause", "the execution is paused between requests")

    def _move(self, move: Callable[[Session], Move]) -> None:
        if self._session.is_at_end and len(self._sessions) > 1:
            self._sessions.pop()
        try:
            self._moved = move(self._session)
        except Unanswered as problem:
            told = f"{problem.why}\n  add it to the launch arguments: `answers` or `failures`, by step\n"
            self._event("output", {"category": "important", "output": told})
            self._report_stop("pause", f"`{problem.request.path}` is waiting for an answer")
            return
        self._sessions += self._moved.inside
        self._report_move(self._moved)

    def _report_move(self, moved: Move) -> None:
        self._moved = moved
        points = moved.breakpoints
        if any(each.kind in (Kind.CONTRACT, Kind.DIVERGENCE) for each in points):
            self._report_stop("exception", self._describe_points(points), points)
        elif points:
            self._report_stop("breakpoint", self._describe_points(points), points)
        else:
            reason = {StopReason.END: "the execution has ended", StopReason.START: "at the start"}.get(
                self._moved.why, ""
            )
            self._report_stop("step", reason)

    def _describe_points(self, points: tuple[Breakpoint, ...]) -> str:
        if any(each.kind is Kind.DIVERGENCE for each in points):
            return "\n".join(divergence_lines(self._session))
        return ", ".join(each.text for each in points)

    def _report_stop(self, reason: str, text: str, points: tuple[Breakpoint, ...] = ()) -> None:
        self._variables.clear()
        body: Message = {"reason": reason, "threadId": 1, "allThreadsStopped": True}
        if text:
            body |= {"description": text.partition("\n")[0], "text": text}
        hit = [
            self._id(who, number)
            for who, texts in self._points.items()
            for number, each in texts.items()
            if who != _LAUNCH and each in {point.text for point in points}  # the client knows no ids of `breakOn`
        ]
        if hit:
            body["hitBreakpointIds"] = hit
        self._event("stopped", body)

    def _on_exception_info(self, _: Message) -> Message:
        points = self._moved.breakpoints
        if not points:
            raise Refused("the last stop was no contract violation or divergence")
        kind = points[0].kind.value
        return {"exceptionId": kind, "description": self._describe_points(points), "breakMode": "always"}

    # -- inspection -----------------------------------------------------------------------------------

    def _on_threads(self, _: Message) -> Message:
        sides = self._sessions[0].sides if self._sessions else ()
        return {
            "threads": [
                {"id": number, "name": THREADS.get(side.name, side.name)} for number, side in enumerate(sides, 1)
            ]
        }

    def _side(self, thread: int, session: Session) -> Side:
        if not 1 <= thread <= len(session.sides):
            raise Refused(f"no thread {thread}")
        return session.sides[thread - 1]

    def _frame(self, frame: int) -> tuple[Session, Side, int]:
        thread, level = divmod(frame, _LEVELS)
        if not 0 <= level < len(self._sessions):
            raise Refused(f"no frame {frame}")
        session = self._sessions[len(self._sessions) - 1 - level]
        return session, self._side(thread, session), thread

    def _on_stack_trace(self, arguments: Message) -> Message:
        thread = int(arguments["threadId"])
        self._side(thread, self._session)
        frames = []
        for level, session in enumerate(reversed(self._sessions)):
            stop = session.stop_of(self._side(thread, session))
            frames.append(
                {
                    "id": thread * _LEVELS + level,
                    "name": f"{session.compiled.node.node_id}: {location(stop)}",
                    "source": source_of(session, level + 1),
                    "line": self._line(stop.line),
                    "column": 1 if self._is_one_based else 0,
                }
            )
        first = int(arguments.get("startFrame") or 0)
        count = int(arguments.get("levels") or len(frames))
        return {"stackFrames": frames[first : first + count], "totalFrames": len(frames)}

    def _line(self, line: int) -> int:
        return line if self._is_one_based else line - 1

    def _on_source(self, arguments: Message) -> Message:
        reference = int(arguments.get("sourceReference") or arguments.get("source", {}).get("sourceReference") or 0)
        if not 1 <= reference <= len(self._sessions):
            raise Refused(f"no source {reference}")
        session = self._sessions[len(self._sessions) - reference]
        return {"content": session.compiled.source.text, "mimeType": "text/yaml"}

    def _on_scopes(self, arguments: Message) -> Message:
        session, side, _ = self._frame(int(arguments["frameId"]))
        stop = session.stop_of(side)
        scopes: list[Message] = []
        for name, hint, entries in scopes_of(session, stop):
            if entries or name == "Inputs":
                expensive = {"expensive": False}
                reference = self._variables.reference(name, entries)
                scope = {"name": name, "variablesReference": reference, **expensive, "namedVariables": len(entries)}
                scopes.append(scope | ({"presentationHint": hint} if hint else {}))
        return {"scopes": scopes}

    def _on_variables(self, arguments: Message) -> Message:
        return {"variables": self._variables.list_variables(int(arguments["variablesReference"]))}

    def _on_evaluate(self, arguments: Message) -> Message:
        text = str(arguments["expression"])
        session, side, _ = self._frame(int(arguments.get("frameId") or _LEVELS))
        outcomes = session.evaluate(text)
        texts = {
            name: show(each.value["value"]) if isinstance(each, Returned) else outcome_rows(each)[""]
            for name, each in outcomes.items()
        }
        own = outcomes[side.name]
        others = [f"{THREADS.get(name, name)}: {each}" for name, each in texts.items() if each != texts[side.name]]
        result = texts[side.name] + (f"   ≠ {', '.join(others)}" if others else "")
        value = own.value["value"] if isinstance(own, Returned) else None
        shown = self._variables.variable("evaluated", text, value)
        return {"result": result, "variablesReference": shown["variablesReference"]}

    # -- changing ---------------------------------------------------------------------------------

    def _on_set_variable(self, arguments: Message) -> Message:
        """Restart the execution with another input or another answer.

        The session returns to the same stop if the execution still reaches it. Other answers stay; nothing is
        performed.
        """
        reference, name, text = int(arguments["variablesReference"]), str(arguments["name"]), str(arguments["value"])
        scope = self._variables.scope_of(reference)
        if scope not in ("Inputs", "Steps") or len(self._sessions) > 1:
            raise Refused("only inputs of the node and answers to its requests can be changed")
        assert self._subject is not None
        if self._world is not None:
            raise Refused("effects were performed: their inputs can no longer be changed")
        session = self._session
        stop = session.stop_of(session.leader)
        type_, path = self._find_changeable(scope, name, session, stop)
        question = session.expressions.parse(text, stop.names, type_, "value")
        outcome = question.ask(session.leader.engine, stop.names)
        if not isinstance(outcome, Returned):
            raise Refused(f"`{text}` has no value: {outcome_rows(outcome)['']}")
        value = outcome.value["value"]
        subject = self._subject
        changed = subject.with_input(name, value) if path is None else subject.with_answer(path, value)
        begun = changed.session()
        _advance_to(begun, stop.path, session.position)
        self._subject, self._sessions = changed, [begun]
        self._set_points()
        self._report_stop("step", f"restarted with {name}: {show(value)}")
        return {"value": show(value), "variablesReference": 0}

    def _find_changeable(self, scope: str, name: str, session: Session, stop: Stop) -> tuple[Type, str | None]:
        """Return the type of a changeable variable, and the request path if it is a step."""
        assert self._subject is not None
        node = self._subject.compiled.node
        if scope == "Inputs":
            declared = next((each for each in node.inputs if each.name == name), None)
            if declared is None:
                raise Refused(f"{node.node_id} has no input `{name}`")
            return declared.type, None
        asked = [path for path in session.book.given if plain_path(path).partition("[")[0] == name]
        found = next((each for (kind, _), each in stop.names.items() if kind == "step" and each.name == name), None)
        if not asked or found is None:
            raise Refused(f"`{name}` is computed: change the values that it is computed from")
        return found.type, asked[-1]


def _advance_to(session: Session, path: str, position: Position) -> None:
    """Move to the stop with this path, or to the nearest reachable position."""
    while session.stop_of(session.leader).path != path and not session.is_at_end:
        session.step()
    if session.stop_of(session.leader).path != path:
        session.goto(Position(position.stop))


def _add_condition(place: str, condition: object) -> str:
    return f"{place} if {condition}" if isinstance(condition, str) and condition.strip() else place


def _to_snake_case(command: str) -> str:
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in command)
