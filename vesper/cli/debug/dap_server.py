"""`vesper debug --dap`: the Debug Adapter Protocol on standard input and output, or on a port of this machine."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import click

from vesper.cli.exits import FINE, WRONG_INPUT
from vesper.compiler import compile_file
from vesper.debug.dap.adapter import Adapter
from vesper.debug.dap.messages import Refused, names_trace
from vesper.debug.dap.wire import WireError, read_message, write_message
from vesper.debug.responses import Live, ManualAnswers
from vesper.debug.start import (
    NoSuchCase,
    Subject,
    case_of,
    subject_for_real,
    subject_of_case,
    subject_of_trace,
    unfit_inputs,
)
from vesper.debug.view import outcome_rows
from vesper.engines.engine import Engine
from vesper.engines.registry import PAIR, REFERENCE
from vesper.language.diagnostics.render.full import render_full
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.repository.locate import NodeNotFound, locate
from vesper.values.json_forms import forms_of_json, input_of_json
from vesper.values.json_mistake import JsonMistake
from vesper.values.model import ValueProblem

_KNOWN = {
    "node", "nodes", "inputs", "case", "trace", "comparative", "engine", "breakOn", "stopOnEntry", "answers",
    "failures", "config", "reveal", "live",
}  # fmt: skip
_OF_EDITORS = {"name", "type", "request", "debugServer", "noDebug", "port", "cwd", "env", "args", "console", "restart"}


def serve(node: str | None, root: Path, port: int | None, live: bool = False, config: Path | None = None) -> int:
    """Until the client goes. One client, one session: an editor starts another server for the next."""
    with ExitStack() as stack:
        return _serve(Adapter(launcher(node, root, live), worlds(stack, live, config)), port)


def worlds(stack: ExitStack, live: bool, config: Path | None) -> Callable[[Subject, Mapping[str, Any]], Live | None]:
    """Who performs effects, where `--live` or the launch asks for it; otherwise nobody. The stack closes its Host."""

    def open_world(subject: Subject, arguments: Mapping[str, Any]) -> Live | None:
        if not _is_live(arguments, live):
            return None
        if names_trace(arguments):
            raise Refused("`live` performs effects, and a recorded run has its answers: leave one of them away")
        from vesper.cli.run.hosted import host_or_exit

        named = arguments.get("config")
        try:
            host = stack.enter_context(host_or_exit(config if named is None else Path(str(named))))
            return Live(host, subject.compiled, subject.engines[0].name, subject.inputs, subject.now)
        except click.ClickException as problem:
            raise Refused(problem.message) from None

    return open_world


def _serve(adapter: Adapter, port: int | None) -> int:
    if port is None:
        if sys.stdin is None or sys.stdout is None:
            raise click.ClickException("--dap speaks on standard input and output, and they are closed: use --port")
        return converse(adapter, sys.stdin.buffer, sys.stdout.buffer)
    try:
        listening = socket.create_server(("127.0.0.1", port))
    except OSError as problem:
        why = os.strerror(problem.errno or 0)
        raise click.ClickException(f"port {port} of 127.0.0.1: {why}; choose another --port") from None
    with listening as server:
        click.echo(f"listening on 127.0.0.1:{server.getsockname()[1]}", err=True)
        with accepted(server) as connection, connection.makefile("rb") as reading, connection.makefile("wb") as writing:
            return converse(adapter, reading, writing)


def accepted(server: socket.socket) -> socket.socket:
    connection, _ = server.accept()
    # A response and the `stopped` behind it are two small writes: without this the second waits 40 ms for the client's
    # acknowledgement of the first, at every step.
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def converse(adapter: Adapter, reading: BinaryIO, writing: BinaryIO) -> int:
    try:
        while not adapter.is_over:
            message = read_message(reading)
            if message is None:
                click.echo(_gone(adapter), err=True)
                return FINE
            for answer in adapter.number(adapter.handle(message)):
                write_message(writing, answer)
    except WireError as problem:
        click.echo(f"error: {problem}", err=True)
        return WRONG_INPUT
    except (BrokenPipeError, ConnectionResetError):
        click.echo(_gone(adapter), err=True)
    finally:
        adapter.close()
    return FINE


def _gone(adapter: Adapter) -> str:
    ran = adapter.close()
    if ran is None:
        return "the client has gone; nothing was performed"
    ended = outcome_rows(ran.outcome)[""]
    return f"the client has gone; execution {ran.execution} was performed for real, and ended: {ended}"


def _is_live(arguments: Mapping[str, Any], live: bool) -> bool:
    return arguments.get("live", live) is True


def launcher(node: str | None, root: Path, live: bool = False) -> Callable[[Mapping[str, Any]], Subject]:
    """What makes a subject of the arguments of a launch request; the command line gives what they leave out."""

    def launch(arguments: Mapping[str, Any]) -> Subject:
        for given in arguments:  # editors add words of their own, so only one that was meant for us is refused
            hint = None if given in _KNOWN | _OF_EDITORS else did_you_mean(given, sorted(_KNOWN))
            if hint is not None:
                raise Refused(f"there is no argument `{given}`; {hint}")
        engines: list[Engine] = list(PAIR.values())
        if arguments.get("comparative", True) is False or "engine" in arguments:
            name = str(arguments.get("engine", REFERENCE))
            if name not in PAIR:
                raise Refused(f"there is no engine `{name}`; the engines are {', '.join(PAIR)}")
            engines = [PAIR[name]]
        if names_trace(arguments):
            return _of_trace(arguments, engines)
        wanted = arguments.get("node", node)
        if wanted is None:
            raise Refused('launch needs `node`: "node": "payment_handler"')
        folder = Path(str(arguments.get("nodes", root)))
        return _of_node(str(wanted), folder, arguments, engines, _is_live(arguments, live))

    return launch


def _of_node(wanted: str, root: Path, arguments: Mapping[str, Any], engines: list[Engine], is_live: bool) -> Subject:
    try:
        path = locate(wanted, root)
        compiled, bag = compile_file(path)
        if compiled is None:
            raise Refused("\n\n".join(render_full(bag.source, each) for each in bag.sorted()))
        case = None if is_live and "case" not in arguments else case_of(compiled, arguments.get("case"))
    except (NodeNotFound, NoSuchCase) as problem:
        raise Refused(str(problem)) from None
    types = {each.name: each.type for each in compiled.node.inputs}
    given: dict[str, object] = {}
    for name, form in dict(arguments.get("inputs") or {}).items():
        if name not in types:
            raise Refused(f"{compiled.node.node_id} has no input `{name}`; its inputs are {', '.join(types)}")
        try:
            given[name] = input_of_json(types[name], _exact(form))
        except (ValueError, ValueProblem) as problem:
            raise Refused(f"the input `{name}` is {types[name]}: {problem}") from None
    if is_live:
        return _for_real(subject_for_real(compiled, engines, case, given, datetime.now(UTC)), arguments)
    subject = subject_of_case(compiled, engines, case, given, None)
    _say(subject.manual, arguments)
    return subject


def _for_real(subject: Subject, arguments: Mapping[str, Any]) -> Subject:
    """The same, refused before anything is journalled where it could not be begun, or would not replay."""
    if arguments.get("answers") or arguments.get("failures"):
        raise Refused("with `live` the world answers, as the journal says: leave `answers` and `failures` away")
    problems = ", ".join(f"{each.path}: {each.kind.value}" for each in unfit_inputs(subject))
    if problems:
        told = f"the inputs do not fit {subject.compiled.node.node_id}: {problems}"
        raise Refused(f"{told}; `live` takes nothing from the first case: give `inputs` or `case`")
    return subject


def _exact(form: object) -> object:
    """JSON as the language reads it: a number with a point is a decimal, and never a float."""
    try:
        return forms_of_json(json.dumps(form))
    except JsonMistake as problem:
        raise ValueError(str(problem)) from None


def _say(said: ManualAnswers, arguments: Mapping[str, Any]) -> None:
    try:
        for step, value in dict(arguments.get("answers") or {}).items():
            said.set_answer(step, json.dumps(value))
        for step, code in dict(arguments.get("failures") or {}).items():
            said.fail(step, str(code))
    except ValueError as problem:
        raise Refused(str(problem)) from None


def _of_trace(arguments: Mapping[str, Any], engines: list[Engine]) -> Subject:
    from vesper.cli.debug.recorded_run import find_trace

    config = arguments.get("config")
    try:
        found = find_trace(
            str(arguments["trace"]), None if config is None else Path(str(config)), arguments.get("reveal") is True
        )
    except click.ClickException as problem:
        raise Refused(problem.message.replace("--reveal", '`"reveal": true`')) from None
    return subject_of_trace(found, engines)
