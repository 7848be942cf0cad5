"""Explain an engine's outcome: messages, places in the node, and problems with the inputs one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, final

from vesper.api.error_info import ErrorInfo, Explained, InputProblem
from vesper.api.input_conversion import Plain
from vesper.api.json_source import InputSource
from vesper.api.outcome import AnyOutcome, new_outcome
from vesper.api.problems import describe_problems
from vesper.compiler import Compiled
from vesper.engines import outcome as ended
from vesper.host.masking import SENSITIVE, is_sensitive, shown_outcome
from vesper.language.ir.nodes import Clause, Input, Node, Place
from vesper.values.model import Problem, printable, show

_LIMITS = {
    "timeout_seconds": "the node says it under `performance`; what had been done by then stands in the journal",
    "deadline": "the caller's time was over; what had been done by then stands in the journal",
    "memory_limit_mb": "the node says it under `performance`: inputs and answers were larger",
    "max_body": "what the node gives is larger than the journal takes; raise `max_body` of [journal], or give less",
    "cancelled": "its caller did not wait for it, and nothing had been changed yet",
}
"""Explanations of limits that are not in `vesper.Limits`."""


def outcome_of(
    compiled: Compiled, outcome: ended.Outcome, inputs: Mapping[str, Any], plain: Plain | None = None
) -> AnyOutcome:
    """Return the outcome for the caller. `inputs` are those that the engine received."""
    if isinstance(outcome, ended.Returned):
        return new_outcome(dict(outcome.value))
    if isinstance(outcome, ended.Failed) and plain is not None and plain.kinds:
        told = tuple(plain.caller_problem(each) for each in outcome.problems)
        outcome = ended.Failed(outcome.code, outcome.at, told)
    return new_outcome(None, error_info(compiled, outcome, inputs, None if plain is None else plain.source))


def error_info(
    compiled: Compiled, outcome: ended.Outcome, inputs: Mapping[str, object], source: InputSource = None
) -> ErrorInfo:
    """Return the reason for missing outputs. `inputs` are those that the engine received, `source` their JSON text."""
    if isinstance(outcome, ended.Failed) and outcome.at is None:
        inputs = snapshot(inputs)  # only these messages show inputs
    return ErrorInfo(KnownEnding(compiled, outcome, inputs, source))


@final
class KnownEnding:
    """An ending whose outcome is known."""

    __slots__ = ("_compiled", "_inputs", "_outcome", "_source")

    def __init__(
        self, compiled: Compiled, outcome: ended.Outcome, inputs: Mapping[str, object], source: InputSource = None
    ) -> None:
        self._compiled = compiled
        self._outcome = outcome
        self._inputs = inputs
        self._source = source

    @property
    def kind(self) -> str:
        return self._outcome.kind

    @property
    def code(self) -> str:
        match self._outcome:
            case ended.DeclaredError(values):
                return str(values["error_code"])
            case ended.ContractBroken(name) | ended.Failed(name) | ended.Denied(name) | ended.LimitHit(name):
                return str(name)
            case outcome:
                return outcome.kind

    @property
    def is_refusal(self) -> bool:
        return isinstance(self._outcome, ended.Failed) and self._outcome.at is None

    def explain(self) -> Explained:
        return explain(self._compiled, self._outcome, self._inputs, self._source)


@final
class FailedEnding:
    """The failure of a call that runs again when its place is read.

    The node is a function of its inputs, so a second execution fails in the same way.
    """

    __slots__ = ("_compiled", "_rerun", "code")
    kind = "failed"
    is_refusal = False

    def __init__(self, compiled: Compiled, code: str, rerun: Callable[[], ended.Outcome]) -> None:
        self._compiled = compiled
        self.code = code
        self._rerun = rerun

    def explain(self) -> Explained:
        return explain(self._compiled, self._rerun(), {})


def snapshot(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Copy lists and dicts, which a caller may change before a message is read."""
    return {name: _copy(each) if type(each) in (list, dict) else each for name, each in inputs.items()}


def _copy(given: Any, levels: int = 64) -> Any:
    if levels and type(given) is list:
        return [_copy(each, levels - 1) for each in given]
    if levels and type(given) is dict:
        return {key: _copy(each, levels - 1) for key, each in given.items()}
    return given


def explain(
    compiled: Compiled, outcome: ended.Outcome, inputs: Mapping[str, object], source: InputSource = None
) -> Explained:
    """Return the explanation of an outcome without outputs; arguments as for `error_info`."""
    node = compiled.node
    match outcome:
        case ended.DeclaredError(values):
            code, text = str(values["error_code"]), values.get("message")
            message = f"{code}: {text}" if isinstance(text, str) and text else code
            return Explained(outcome.kind, code, message, dict(values), None, (), outcome)
        case ended.ContractBroken(phase, index, values):
            clause = dict(node.phases())[phase][index]
            where = _where(compiled, clause.holds.place)
            # Messages go into logs, so sensitive values are masked; the fields are for the caller.
            mentioned = ", ".join(f"{name} is {value}" for name, value in broken_values(compiled, outcome).items())
            because = f": {mentioned}" if mentioned else ""
            message = f"{where}: {phase} `{clause.text}` does not hold{because}"
            return Explained(outcome.kind, phase, message, dict(values), where, (), outcome)
        case ended.Failed(code, None, found):
            problems = shown_problems(node, found, inputs, source)
            lines = [f"the inputs do not fit {node.node_id}:", *(f"  {each}" for each in problems)]
            return Explained(outcome.kind, str(code), "\n".join(lines), {}, None, problems, outcome)
        case ended.Failed(code, int(at), _):
            place = node.expressions()[at].place
            where = _where(compiled, place)
            failed = shown_outcome(compiled, outcome)
            shown_code = failed.code if isinstance(failed, ended.Failed) else SENSITIVE
            # The reason may repeat arguments and answer of the request, which may be sensitive.
            because = f": {printable(outcome.why)}" if outcome.why and not is_sensitive(compiled) else ""
            message = f"{where}: {shown_code} in `{_text_at(compiled, place)}`{because}"
            return Explained(outcome.kind, str(code), message, {}, where, (), outcome)
        case ended.Denied(capability, why):
            message = f"denied: {node.node_id} may not use `{capability}`" + (f": {why}" if why else "")
            if "nothing in the configuration" in why:
                message += (
                    f'; in vesper.toml, write\n  [[grants]]\n  nodes = ["{node.node_id}"]\n  allow = ["{capability}"]'
                )
            return Explained(outcome.kind, capability, message, {}, None, (), outcome)
        case ended.LimitHit(limit):
            advice = _LIMITS.get(limit, "vesper.load(…, limits=vesper.Limits(…)) can give more")
            message = f"limit hit: {limit}; {advice}"
            return Explained(outcome.kind, limit, message, {}, None, (), outcome)
        case ended.EngineFault():
            fault = shown_outcome(compiled, outcome)
            message = fault.message if isinstance(fault, ended.EngineFault) else SENSITIVE
            text = f"engine fault: {message}; this is a bug in Vesper, not in your node"
            return Explained(outcome.kind, outcome.kind, text, {}, None, (), outcome)
        case ended.Returned() | ended.Failed():
            raise ValueError(f"{outcome} is no error")


def broken_values(compiled: Compiled, outcome: ended.ContractBroken, reveals: bool = False) -> Mapping[str, str]:
    """Return the values of a broken clause as texts, masked unless the caller `reveals` them."""
    masked = outcome if reveals else shown_outcome(compiled, outcome)
    assert isinstance(masked, ended.ContractBroken)
    shown = {name: SENSITIVE if value is SENSITIVE else show(value) for name, value in masked.values.items()}
    if SENSITIVE in shown.values():
        return shown
    clause = dict(compiled.node.phases())[outcome.phase][outcome.index]
    return with_element(compiled.node, clause, outcome.values, shown)


def shown_problems(
    node: Node, problems: Sequence[Problem], inputs: Mapping[str, object], source: InputSource = None
) -> tuple[InputProblem, ...]:
    """Return every problem with the inputs, without the given values of sensitive ones."""
    sensitive = [_shown_name(each, source) for each in node.inputs if each.name in node.grants.sensitive]
    return tuple(_mask_problem(each, sensitive) for each in describe_problems(node, problems, inputs, source))


def shown_ending(compiled: Compiled, outcome: ended.Outcome) -> ended.Outcome:
    """Return the outcome as messages may show it; outputs and declared errors are the caller's."""
    match outcome:
        case ended.Returned() | ended.DeclaredError():
            return outcome
        case ended.Failed(_, None, found):
            paths = (each.path for each in shown_problems(compiled.node, found, {}))
            told = tuple(replace(each, path=path) for each, path in zip(found, paths, strict=True))
            return replace(outcome, problems=told)
        case _:
            return shown_outcome(compiled, outcome)


def with_element(node: Node, clause: Clause, values: Mapping[str, Any], shown: Mapping[str, str]) -> Mapping[str, str]:
    """Replace a collection in the shown values by the element at which its quantifier fails."""
    if not any(isinstance(each, list | frozenset | dict) for each in values.values()):
        return shown
    from vesper.api.broken_element import broken_element

    found = broken_element(node, clause, values)
    if found is None:
        return shown
    return {found.path: show(found.value), **{name: text for name, text in shown.items() if name != found.root}}


def _shown_name(declared: Input, source: InputSource) -> str:
    """Return the name of an input in problems: JSON text and rows have the outside name."""
    return declared.name if source is None or declared.outside is None else printable(declared.outside)


def _mask_problem(problem: InputProblem, sensitive: Sequence[str]) -> InputProblem:
    """Mask the given values of a problem if its input is sensitive.

    Keys of maps and names of unknown fields are given values too, so the path ends before them.
    """
    path = problem.path
    is_hidden = any(path == name or path.startswith((f"{name}.", f"{name}[")) for name in sensitive)
    if not is_hidden or (path in sensitive and problem.got is None):
        return problem
    path = problem.path.partition("[")[0]
    said = f"expected {problem.expected}, got something else ({problem.kind.replace('_', ' ')})"
    if problem.kind == "unknown":
        path, said = path.rpartition(".")[0] or path, "has a field that is not declared"
    elif problem.kind == "missing":
        said = f"missing; expected {problem.expected}"
    return replace(problem, path=path, got=None if problem.got is None else SENSITIVE, message=said)


def _where(compiled: Compiled, place: Place) -> str:
    return f"{compiled.source.path}:{place.line}:{place.column}"


def _text_at(compiled: Compiled, place: Place) -> str:
    """Return the text of the node at this place, on one line."""
    source = compiled.source
    text = source.text[source.offset(place.line, place.column) : source.offset(place.end_line, place.end_column)]
    return " ".join(text.split())
