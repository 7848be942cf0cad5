"""Adoption: a node runs in the shadow of an existing function, gathers evidence, and takes over.

The function is called as before, with the callers' arguments, and its result or exception is theirs, until the node has
enough evidence. From then on outputs come from the node. An outcome without outputs (an error, a refusal) still comes
from the function, because its callers handle its exceptions.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from vesper.compiler import Compiled
from vesper.engines.engine import Done, Execution, Limits, Observer, PureExecution
from vesper.engines.outcome import Failed, Outcome, Returned
from vesper.migration.compare.comparator import Comparator, Same, Verdict
from vesper.migration.compare.noise import follow_with_check
from vesper.migration.compare.paths import path_name
from vesper.migration.compare.reports import Agreement, Difference, Fault, Lost, Report
from vesper.migration.compare.transcript import Transcript
from vesper.migration.control.modes import Mode
from vesper.migration.router.context import Chooser, RoutingContext
from vesper.migration.shadow.guarded_direct import Broke, DirectSide
from vesper.migration.shadow.recorded_program import transcript_of
from vesper.migration.shadow.shadow_run import follow_transcript
from vesper.values.problem import Problem, ProblemKind
from vesper.values.types import OptionalOf
from vesper.values.vesper_error import VesperError
from vesper.verify.differential.against import Answers, answers_of

_log = logging.getLogger("vesper.migration")


class CannotAdopt(VesperError, ValueError):
    """The node cannot take over from the function; the message contains the reason."""


def check_adoptable(compiled: Compiled) -> None:
    """Refuse nodes with effects, which would be performed besides those of the function."""
    node = compiled.node
    if not node.is_pure():
        raise CannotAdopt(
            f"{node.node_id} asks for effects, and the function performs its own: both would happen. Adopt the part "
            "that decides, as a node without effects"
        )
    if node.type != "function":
        raise CannotAdopt(f"{node.node_id} may ask for the time at which it starts, which a function is not told")


def check_function(function: Callable[..., object], compiled: Compiled) -> None:
    """Refuse functions that can never be compared with the node.

    A function without a signature is accepted.
    """
    node, name = compiled.node.node_id, getattr(function, "__name__", repr(function))
    if not callable(function):
        raise CannotAdopt(f"{name} cannot be called: name the function that {node} is to stand behind")
    if inspect.iscoroutinefunction(function):
        raise CannotAdopt(
            f"{name} is a coroutine function: it gives back what is to be awaited, and no outputs of {node}. Adopt the "
            "function in it that decides"
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise CannotAdopt(
            f"{name} is a generator function: it gives back what is to be iterated, and no outputs of {node}. Adopt "
            "the function in it that decides"
        )
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return
    inputs = [each.name for each in compiled.node.inputs]
    takes = {each.name for each in parameters}
    if not any(each.kind is each.VAR_KEYWORD for each in parameters):
        required = [
            each
            for each in compiled.node.inputs
            if each.default is None and not isinstance(each.type, OptionalOf) and each.name not in compiled.node.flagged
        ]
        _refuse(name, "does not take", [each.name for each in required if each.name not in takes], node, inputs)
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    needed = [each.name for each in parameters if each.kind not in kinds and each.default is each.empty]
    _refuse(name, "cannot be called without", [each for each in needed if each not in inputs], node, inputs)


def _refuse(function: str, what: str, names: Sequence[str], node: str, inputs: Sequence[str]) -> None:
    if names:
        listed, expected = (", ".join(f"`{each}`" for each in some) for some in (names, inputs))
        raise CannotAdopt(
            f"{function} {what} {listed}, and {node} takes {expected}: the two are given the same, by the names of the "
            "function's parameters. Put a function around it that has these"
        )


def function_name(function: Callable[..., object]) -> str:
    """Return the identity of the function for the epoch: its name and source hash.

    A function without source has its name alone. Another source is another function, and starts a new epoch.
    """
    name = f"{getattr(function, '__module__', '?')}:{getattr(function, '__qualname__', repr(type(function)))}"
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):
        text = ""
    return f"{name}#{hashlib.sha256(text.encode()).hexdigest()[:16]}"


class FunctionCall:
    """One call of the function, with its result or exception for the caller."""

    def __init__(self, function: Callable[..., Any], answers: Answers) -> None:
        self._function = function
        self._answers = answers
        self.result: Any = None
        self.error: BaseException | None = None

    def __call__(self, inputs: Mapping[str, object]) -> Outcome:
        try:
            self.result = self._function(**inputs)
        except Exception as error:  # noqa: BLE001  # any exception of the function belongs to its caller
            self.error = error
            return Failed(type(error).__name__, None)
        try:
            read = self._answers.read(self.result) if isinstance(self.result, Mapping) else None
        except Exception:  # noqa: BLE001  # an unreadable result still belongs to the caller
            read = None
        if not isinstance(read, Returned):
            return Failed("no_outputs", None)
        other = self._answers.other_form(self.result, read)
        return read if other is None else Failed(other.code, None, (Problem(other.where, ProblemKind.WRONG_TYPE),))


class FunctionProgram:
    """The function in the place of an engine, to repeat stored executions.

    Each call gets a copy of the inputs, which the function may modify.
    """

    def __init__(self, function: Callable[..., Any], compiled: Compiled) -> None:
        self._function = function
        self._answers = answers_of(compiled.node)
        self.semantic_hash = compiled.semantic_hash

    def call(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        return FunctionCall(self._function, self._answers)(copy.deepcopy(dict(inputs)))

    def start(
        self,
        inputs: Mapping[str, object],
        now: datetime | None = None,
        limits: Limits | None = None,
        observe: Observer | None = None,
        is_traced: bool = True,
    ) -> Execution:
        return PureExecution(lambda: Done(self.call(inputs), (), is_observed=False))


class FunctionComparator(Comparator):
    """A comparator of outputs. Two outcomes without outputs are equal."""

    def compare_outcomes(self, leader: Outcome, follower: Outcome) -> Verdict:
        if isinstance(leader, Returned) and isinstance(follower, Returned):
            return super().compare_outcomes(leader, follower)
        if isinstance(leader, Failed) and leader.problems and isinstance(follower, Returned):
            return Difference("outcome", leader.problems[0].path, _describe(leader), _describe(follower))
        if isinstance(leader, Returned) or isinstance(follower, Returned):
            return Difference("outcome", "whether there is an answer", _describe(leader), _describe(follower))
        return Same()


def _describe(outcome: Outcome) -> str:
    return f"failed {outcome.code}" if isinstance(outcome, Failed) else outcome.kind


class AdoptedProgram:
    """A node behind a function, which is called as before."""

    def __init__(self, context: RoutingContext) -> None:
        self._context = context
        self.live = context.live
        self.chooser = Chooser(context)

    def call(self, function: FunctionCall, inputs: Mapping[str, object]) -> Returned | None:
        """Return the node's outputs; None where the function was called and its result is returned."""
        mode = self.live.local.mode
        if mode is Mode.DIRECT_ONLY and not self.chooser.is_sampled():
            return self._run_node_first(function, inputs)
        is_followed = self.chooser.is_followed(mode)
        given = transcript_of(inputs, None, (), Returned({})) if is_followed else None
        self.live.served(mode, "python")
        begun = time.perf_counter_ns()
        outcome = function(inputs)
        took_ns = time.perf_counter_ns() - begun
        if given is not None:
            self._run_logged(lambda: self._put(given, outcome, took_ns))
        return None

    def _put(self, given: Transcript | Lost, outcome: Outcome, took_ns: int) -> None:
        if isinstance(given, Lost):
            self.live.report(given)
            return
        transcript = replace(given, outcome=outcome)
        following = self._context.following(lambda: self._follow(transcript, took_ns), transcript)
        self._context.followers.put(following)

    def _run_logged(self, work: Callable[[], None]) -> None:
        """Run `work` and log its errors, which must not reach the function's caller."""
        try:
            work()
        except Exception as error:  # noqa: BLE001  # see the docstring
            name = self._context.compiled.node.node_id
            _log.error("%s: what the function came to could not be compared: %s", name, type(error).__name__)

    def _run_node_first(self, function: FunctionCall, inputs: Mapping[str, object]) -> Returned | None:
        """Return the node's outputs if their path is trusted. Otherwise call the function, compare, and return None."""
        mode = self.live.local.mode
        given = transcript_of(inputs, None, (), Returned({}))
        side = DirectSide(
            self._context.direct, self._context.keyed.key, inputs, None, None, self._context.rules.deadline,
            is_sensitive=self._context.is_sensitive,
        )  # fmt: skip
        step = side.call()
        outcome = step.outcome if isinstance(step, Done) else None
        if isinstance(outcome, Returned) and self.live.trusts(path_name(side.points, (), outcome)):
            self.live.served(mode, "direct")
            return outcome
        self.live.served(mode, "python")
        begun = time.perf_counter_ns()
        answer = function(inputs)
        took_ns = time.perf_counter_ns() - begun
        self._run_logged(lambda: self._compare(step, given, answer, took_ns))
        return None

    def _compare(self, step: Done | Broke, given: Transcript | Lost, answer: Outcome, took_ns: int) -> None:
        report: Report | None
        if isinstance(step, Broke):
            # The caller has waited for the engine once, so that it does not run again. If all workers were busy it did
            # not run, and there is no report.
            transcript = None if isinstance(given, Lost) else replace(given, outcome=answer)
            report = Fault(step.what, transcript) if step.is_fault else None
        else:
            report = given if isinstance(given, Lost) else self._follow(replace(given, outcome=answer), took_ns)
        if report is not None:
            self.live.report(report)

    def _follow(self, transcript: Transcript, python_ns: int) -> Report | None:
        """Return the report of a shadow run.

        Noise checks repeat the node, never the function, which may have effects.
        """
        context = self._context
        report = follow_with_check(
            lambda: follow_transcript(
                context.direct,
                transcript,
                context.comparator,
                context.keyed.key,
                deadline=context.rules.deadline,
                is_plain=True,
                is_sensitive=context.is_sensitive,
            ),
            transcript,
        )
        return replace(report, python_ns=python_ns) if isinstance(report, Agreement) else report
