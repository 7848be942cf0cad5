"""`vesper debug --dap`: the Debug Adapter Protocol on standard input and output, or on a port of this machine."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import click

from vesper.cli.engine_names import DIRECT, FIRST_TIER, engine_label
from vesper.cli.exits import FINE, WRONG_INPUT
from vesper.compiler import compile_file
from vesper.compiler.load_cache import distrust_node
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
from vesper.values.json_forms import input_of_json
from vesper.values.json_mistake import JsonMistake
from vesper.values.model import ValueProblem
from vesper.values.strict_json import forms_of_json

_LAUNCH_ARGUMENTS = {
    "node", "nodes", "inputs", "case", "trace", "comparative", "engine", "breakOn", "stopOnEntry", "answers",
    "failures", "config", "reveal", "live",
}  # fmt: skip
_EDITOR_ARGUMENTS = {
    "name",
    "type",
    "request",
    "debugServer",
    "noDebug",
    "port",
    "cwd",
    "env",
    "args",
    "console",
    "restart",
}


def serve(node: str | None, root: Path, port: int | None, live: bool = False, config: Path | None = None) -> int:
    """Serve the client on standard input and output, or one client after the other on a port until interrupted."""

    def answer(reading: BinaryIO, writing: BinaryIO) -> int:
        with ExitStack() as stack:
            return converse(Adapter(launcher(node, root, live), worlds(stack, live, config)), reading, writing)

    return _serve(answer, port)


def worlds(stack: ExitStack, live: bool, config: Path | None) -> Callable[[Subject, Mapping[str, Any]], Live | None]:
    """Return a factory of live worlds for launches with `live`. The stack closes the Host."""

    def open_world(subject: Subject, arguments: Mapping[str, Any]) -> Live | None:
        if not _is_live(arguments, live):
            return None
        if names_trace(arguments):
            raise Refused("`live` performs effects, and `trace` has recorded answers: omit one of them")
        from vesper.cli.run.hosted import host_or_exit

        named = arguments.get("config")
        try:
            host = stack.enter_context(host_or_exit(config if named is None else Path(str(named))))
            return Live(host, subject.compiled, subject.engines[0].name, subject.inputs, subject.now, subject.manual)
        except click.ClickException as problem:
            raise Refused(problem.message) from None

    return open_world


def _serve(answer: Callable[[BinaryIO, BinaryIO], int], port: int | None) -> int:
    if port is None:
        if sys.stdin is None or sys.stdout is None:
            raise click.ClickException("--dap uses standard input and output, which are closed: use --port")
        return answer(sys.stdin.buffer, sys.stdout.buffer)
    try:
        listening = socket.create_server(("127.0.0.1", port))
    except OSError as problem:
        why = os.strerror(problem.errno or 0)
        raise click.ClickException(f"port {port} of 127.0.0.1: {why}; choose another --port") from None
    with listening as server, suppress(KeyboardInterrupt):
        click.echo(f"listening on 127.0.0.1:{server.getsockname()[1]}", err=True)
        while True:
            with (
                accept_client(server) as connection,
                suppress(BrokenPipeError, ConnectionResetError),  # at the last flush
                connection.makefile("rb") as reading,
                connection.makefile("wb") as writing,
            ):
                answer(reading, writing)
    return FINE


def accept_client(server: socket.socket) -> socket.socket:
    connection, _ = server.accept()
    # A response and the `stopped` event after it are two small writes. With Nagle's algorithm the second would wait
    # 40 ms for the acknowledgement of the first, at every step.
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def converse(adapter: Adapter, reading: BinaryIO, writing: BinaryIO) -> int:
    try:
        while not adapter.is_over:
            message = read_message(reading)
            if message is None:
                click.echo(_closing_text(adapter), err=True)
                return FINE
            for answer in adapter.number(adapter.handle(message)):
                write_message(writing, answer)
    except WireError as problem:
        click.echo(f"error: {problem}", err=True)
        return WRONG_INPUT
    except (BrokenPipeError, ConnectionResetError):
        click.echo(_closing_text(adapter), err=True)
    finally:
        adapter.close()
    return FINE


def _closing_text(adapter: Adapter) -> str:
    ran = adapter.close()
    if ran is None:
        return "the client disconnected; no effect was performed"
    ended = outcome_rows(ran.outcome)[""]
    return f"the client disconnected; execution {ran.execution} was performed, and ended: {ended}"


def _is_live(arguments: Mapping[str, Any], live: bool) -> bool:
    return arguments.get("live", live) is True


def launcher(node: str | None, root: Path, live: bool = False) -> Callable[[Mapping[str, Any]], Subject]:
    """Return a function from launch arguments to a subject; the command line has the defaults."""

    def launch(arguments: Mapping[str, Any]) -> Subject:
        for given in arguments:  # editors add arguments of their own, so only likely misspellings are refused
            hint = (
                None
                if given in _LAUNCH_ARGUMENTS | _EDITOR_ARGUMENTS
                else did_you_mean(given, sorted(_LAUNCH_ARGUMENTS))
            )
            if hint is not None:
                raise Refused(f"unknown argument `{given}`; {hint}")
        engines: list[Engine] = list(PAIR.values())
        if arguments.get("comparative", True) is False or "engine" in arguments:
            name = str(arguments.get("engine", REFERENCE))
            tier = FIRST_TIER if name == DIRECT else name
            if tier not in PAIR:
                raise Refused(f"unknown engine `{name}`; the engines are {', '.join(map(engine_label, PAIR))}")
            engines = [PAIR[tier]]
        if names_trace(arguments):
            return _trace_subject(arguments, engines)
        wanted = arguments.get("node", node)
        if wanted is None:
            raise Refused('launch needs `node`: "node": "payment_handler"')
        folder = Path(str(arguments.get("nodes", root)))
        return _node_subject(str(wanted), folder, arguments, engines, _is_live(arguments, live))

    return launch


def _node_subject(
    wanted: str, root: Path, arguments: Mapping[str, Any], engines: list[Engine], is_live: bool
) -> Subject:
    try:
        path = locate(wanted, root)
        compiled, bag = compile_file(path)
        if compiled is None:
            raise Refused("\n\n".join(render_full(bag.source, each) for each in bag.sorted()))
        if (reason := distrust_node(compiled)) is not None:
            raise Refused(reason)
        case = None if is_live and "case" not in arguments else case_of(compiled, arguments.get("case"))
    except (NodeNotFound, NoSuchCase) as problem:
        raise Refused(str(problem)) from None
    types = {each.name: each.type for each in compiled.node.inputs}
    given: dict[str, object] = {}
    for name, form in dict(arguments.get("inputs") or {}).items():
        if name not in types:
            raise Refused(f"{compiled.node.node_id} has no input `{name}`; its inputs are {', '.join(types)}")
        try:
            given[name] = input_of_json(types[name], _read_exactly(form))
        except (ValueError, ValueProblem) as problem:
            raise Refused(f"the input `{name}` is {types[name]}: {problem}") from None
    if is_live:
        return _check_live(subject_for_real(compiled, engines, case, given, datetime.now(UTC)), arguments)
    subject = subject_of_case(compiled, engines, case, given, None)
    _add_answers(subject.manual, arguments)
    return subject


def _check_live(subject: Subject, arguments: Mapping[str, Any]) -> Subject:
    """Refuse a live subject with given answers or unfit inputs, before anything is journalled."""
    if arguments.get("answers") or arguments.get("failures"):
        raise Refused("`live` performs effects, and the journal records their answers: omit `answers` and `failures`")
    problems = ", ".join(f"{each.path}: {each.kind.value}" for each in unfit_inputs(subject))
    if problems:
        problem = f"the inputs do not fit {subject.compiled.node.node_id}: {problems}"
        raise Refused(f"{problem}; `live` does not use the first case: give `inputs` or `case`")
    return subject


def _read_exactly(form: object) -> object:
    """Read JSON as the language does: a number with a point is a decimal, never a float."""
    try:
        return forms_of_json(json.dumps(form))
    except JsonMistake as problem:
        raise ValueError(str(problem)) from None


def _add_answers(said: ManualAnswers, arguments: Mapping[str, Any]) -> None:
    try:
        for step, value in dict(arguments.get("answers") or {}).items():
            said.set_answer(step, json.dumps(value))
        for step, code in dict(arguments.get("failures") or {}).items():
            said.fail(step, str(code))
    except ValueError as problem:
        raise Refused(str(problem)) from None


def _trace_subject(arguments: Mapping[str, Any], engines: list[Engine]) -> Subject:
    from vesper.cli.debug.recorded_run import find_trace

    config = arguments.get("config")
    try:
        found = find_trace(
            str(arguments["trace"]), None if config is None else Path(str(config)), arguments.get("reveal") is True
        )
    except click.ClickException as problem:
        raise Refused(problem.message.replace("--reveal", '`"reveal": true`')) from None
    return subject_of_trace(found, engines)
