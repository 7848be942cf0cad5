"""The pytest plugin: runs the cases and properties of `.vsp` files as `vesper test` does.

Each case of a node is a test, and so are its properties. pytest loads this module in every project of an environment
with Vesper, so Vesper is imported only once a node was collected.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from datetime import datetime

    from _pytest._code.code import ExceptionInfo, TerminalRepr

    from vesper.compiler import Compiled
    from vesper.engines.engine import Engine, Program
    from vesper.engines.outcome import Outcome
    from vesper.language.check.cases import Case
    from vesper.testing import Stubs
    from vesper.testing.model import Script
    from vesper.verify.node_tests import NodeTester

SUFFIX = ".vsp"
PROPERTIES = "properties"
ENGINE_CHOICES = ("python", "interp", "jit", "both")
"""Names of the engines. Importing `vesper.engines.registry` would load engines in projects without nodes."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("vesper", "nodes of Vesper (.vsp files)")
    group.addoption("--vesper-engine", choices=ENGINE_CHOICES, help="engine that runs nodes (ini: vesper_engine)")
    group.addoption(
        "--vesper-max-examples",
        type=int,
        metavar="N",
        help="generated inputs for each node; 0 runs cases only (ini: vesper_max_examples)",
    )
    group.addoption("--vesper-seed", type=int, metavar="N", help="seed of the generated inputs (ini: vesper_seed)")
    parser.addini("vesper_collect", "collect .vsp files as tests", type="bool", default=True)
    parser.addini("vesper_engine", "engine that runs nodes: python, interp or both", default="python")
    parser.addini("vesper_max_examples", "generated inputs for each node", default="100")
    parser.addini("vesper_seed", "seed of the generated inputs", default="0")
    parser.addini("vesper_nodes", "folder of the nodes that the fixture vesper_node loads", default="nodes")


def pytest_configure(config: pytest.Config) -> None:
    """Reject invalid settings before collection, even without any node."""
    _engine_name(config)
    if _number(config, "max_examples") < 0:
        raise pytest.UsageError("vesper_max_examples must be 0 or more")
    _number(config, "seed")


def _engine_name(config: pytest.Config) -> str:
    name = str(config.getoption("vesper_engine") or config.getini("vesper_engine"))
    if name not in ENGINE_CHOICES:
        raise pytest.UsageError(f"vesper_engine: `{name}` is not one of {', '.join(ENGINE_CHOICES)}")
    return name


def _number(config: pytest.Config, setting: str) -> int:
    given = config.getoption(f"vesper_{setting}")
    if given is not None:
        return int(given)
    text = str(config.getini(f"vesper_{setting}"))
    try:
        return int(text)
    except ValueError:
        raise pytest.UsageError(f"vesper_{setting}: `{text}` is not a whole number") from None


def _engines(config: pytest.Config) -> dict[str, Engine]:
    from vesper.engines.registry import ENGINES, PAIR

    name = _engine_name(config)
    return dict(PAIR) if name == "both" else {name: ENGINES[name]}


# -- collection -----------------------------------------------------------------------------------


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix != SUFFIX or not parent.config.getini("vesper_collect"):
        return None
    return NodeFile.from_parent(parent, path=file_path)


class NodeTestFailed(Exception):
    """A test of a node failed; the message is shown without a traceback."""


class NodeFile(pytest.File):
    """A file with a node: its cases, then its properties. A node with errors is one failing test."""

    def collect(self) -> Iterator[pytest.Item]:
        from vesper.repository.locate import is_library_file

        if is_library_file(self.path):  # `vesper check` checks it; it has no cases
            return
        compiled, diagnostics = _compile(self.path)
        if compiled is None:
            yield CheckItem.from_parent(self, name="check", diagnostics=diagnostics)
            return
        from vesper.values.model import printable
        from vesper.verify.node_tests import NodeTester

        # Engines load the node with its first test, so that `--collect-only` and `-k` stay fast.
        tester = NodeTester(compiled, _engines(self.config))
        names: dict[str, int] = {}
        for case in compiled.cases:
            name = _unique_id(printable(case.name), names)
            yield CaseItem.from_parent(self, name=name, compiled=compiled, tester=tester, case=case)
        if _number(self.config, "max_examples"):
            yield PropertiesItem.from_parent(self, name=_unique_id(PROPERTIES, names), compiled=compiled, tester=tester)


def _compile(path: Path) -> tuple[Compiled | None, str]:
    """Return the node, or its diagnostics with a path relative to the current folder."""
    from vesper.compiler import compile_file
    from vesper.language.diagnostics.render.full import render_full

    shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    compiled, bag = compile_file(shown)
    return compiled, "\n\n".join(render_full(bag.source, each) for each in bag.sorted())


def _unique_id(name: str, names: dict[str, int]) -> str:
    """Return a unique test id that is equal in all processes of xdist: `name`, `name#2`, …"""
    names[name] = names.get(name, 0) + 1
    return name if names[name] == 1 else f"{name}#{names[name]}"


# -- tests ----------------------------------------------------------------------------------------


class NodeItem(pytest.Item):
    """A test of a node. Its failures describe the node, without a Python traceback."""

    line = 1

    def repr_failure(self, excinfo: ExceptionInfo[BaseException], style: Any = None) -> str | TerminalRepr:
        if isinstance(excinfo.value, NodeTestFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        return self.path, self.line - 1, f"{self.path.stem}: {self.name}"


class CheckItem(NodeItem):
    def __init__(self, *, diagnostics: str, **rest: Any) -> None:
        super().__init__(**rest)
        self._diagnostics = diagnostics

    def runtest(self) -> None:
        raise NodeTestFailed(f"the node has errors, so none of its tests ran\n\n{self._diagnostics}")


class CaseItem(NodeItem):
    def __init__(self, *, compiled: Compiled, tester: NodeTester, case: Case, **rest: Any) -> None:
        super().__init__(**rest)
        self._compiled, self._tester, self._case = compiled, tester, case
        self.line = case.line

    def runtest(self) -> None:
        from vesper.cli.test.failure_text import case_failure_text

        with _report_unavailable_engine():
            result = self._tester.run_case(self._case)
        if not result.passed:
            raise NodeTestFailed(case_failure_text(self._compiled, result))


class PropertiesItem(NodeItem):
    def __init__(self, *, compiled: Compiled, tester: NodeTester, **rest: Any) -> None:
        super().__init__(**rest)
        self._compiled, self._tester = compiled, tester

    def runtest(self) -> None:
        from vesper.cli.test.failure_text import claim_failure_text, notes, property_failure_text

        seed = _number(self.config, "seed")
        with _report_unavailable_engine():
            max_examples = _number(self.config, "max_examples")
            report = self._tester.run_properties(max_examples, seed)
            claims = self._tester.run_claims(max_examples, seed)
        lines = "\n".join(f"note: {note}" for note in notes(self._compiled, report))
        if lines:
            self.add_report_section("call", "vesper", lines)
        texts = [property_failure_text(self._compiled, each, seed) for each in report.failures]
        texts += [claim_failure_text(self._compiled, each, seed) for each in claims if not each.passed]
        if texts:
            raise NodeTestFailed("\n\n".join(texts))


@contextmanager
def _report_unavailable_engine() -> Iterator[None]:
    from vesper.engines.engine import EngineUnavailable

    try:
        yield
    except EngineUnavailable as problem:
        raise NodeTestFailed(f"error: the engine is not available: {problem}") from None


# -- the fixtures ---------------------------------------------------------------------------------


class NodeUnderTest:
    """A node in a test: `node(amount="5.00")` returns outputs, `node.outcome({...})` any outcome."""

    def __init__(self, compiled: Compiled, programs: Mapping[str, Program]) -> None:
        self._compiled = compiled
        self._programs = programs

    def __repr__(self) -> str:
        return f"<node {self.node_id}>"

    @property
    def node_id(self) -> str:
        return self._compiled.node.node_id

    def outcome(self, inputs: Mapping[str, object], now: datetime | None = None) -> Outcome:
        """Return the outcome on these inputs; several engines must agree.

        `now` is the start time, by default noon of 15 November 2026 UTC, as in cases.
        """
        __tracebackhide__ = True
        from vesper.cli.output.outcomes import one_line
        from vesper.engines.compare import same_outcome
        from vesper.verify.inputs.responses import NOON

        outcomes = {name: each.call(dict(inputs), now or NOON) for name, each in self._programs.items()}
        first, *others = outcomes.values()
        if not all(same_outcome(first, other) for other in others):
            lines = "\n".join(f"  {name}  {one_line(self._compiled.node, each)}" for name, each in outcomes.items())
            raise NodeTestFailed(f"error: the engines diverge on {self.node_id}; this is a bug in Vesper\n{lines}")
        return first

    def __call__(self, **inputs: object) -> dict[str, Any]:
        """Return the outputs; any other outcome raises `NodeTestFailed`."""
        __tracebackhide__ = True
        from vesper.cli.output.outcomes import outcome_lines
        from vesper.engines.outcome import Returned

        outcome = self.outcome(inputs)
        if not isinstance(outcome, Returned):
            lines = outcome_lines(self._compiled, outcome, inputs, reveals=True)
            raise NodeTestFailed(f"{self.node_id} did not return: {outcome.kind.replace('_', ' ')}\n{lines}")
        return dict(outcome.value)


@pytest.fixture(scope="session")
def vesper_node(pytestconfig: pytest.Config) -> Callable[[str], NodeUnderTest]:
    """Load a node by id, by name (newest version) or by path: `vesper_node("payment_decision")`.

    Nodes are found in the folder of the ini option `vesper_nodes`, by default `nodes`.
    """
    loaded: dict[str, NodeUnderTest] = {}

    def load(wanted: str) -> NodeUnderTest:
        if wanted not in loaded:
            loaded[wanted] = _load(wanted, pytestconfig)
        return loaded[wanted]

    return load


def _load(wanted: str, config: pytest.Config) -> NodeUnderTest:
    from vesper.repository.locate import NodeNotFound, locate

    try:
        path = locate(wanted, config.rootpath / str(config.getini("vesper_nodes")))
    except NodeNotFound as problem:
        raise NodeTestFailed(f"vesper_node({wanted!r}): {problem}") from None
    compiled, diagnostics = _compile(path)
    if compiled is None:
        raise NodeTestFailed(f"vesper_node({wanted!r}): the node has errors\n\n{diagnostics}")
    if not compiled.node.is_pure():
        raise NodeTestFailed(
            f"vesper_node({wanted!r}): the node has effects, which this fixture does not perform; load it with "
            "`vesper.load(…, host=vesper_stubs)`, and answer its requests with the fixture vesper_stubs"
        )
    with _report_unavailable_engine():
        return NodeUnderTest(compiled, {name: each.load(compiled) for name, each in _engines(config).items()})


_PASSED = pytest.StashKey[bool]()
"""Whether the body of a test with the fixture below passed."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "call" and "vesper_stubs" in getattr(item, "fixturenames", ()):
        item.stash[_PASSED] = report.passed
    return report


@pytest.fixture
def vesper_stubs(request: pytest.FixtureRequest) -> Iterator[Stubs]:
    """A Host with answers from the test: `vesper_stubs.answer("charge", {...})`.

    Load nodes with `vesper.load("shop", host=vesper_stubs)`. After a test that passed, every answer must have been used
    (`assert_all_used`).
    """
    __tracebackhide__ = True
    from vesper.testing import Stubs

    with Stubs() as host:
        yield host
        if request.node.stash.get(_PASSED, False):
            host.assert_all_used()


@pytest.fixture
def vesper_model(vesper_stubs: Stubs) -> Callable[..., Script]:
    """Script the answers of models on `vesper_stubs`: `script = vesper_model([model.text("Yes.")])`."""
    from vesper.testing.model import Script

    return lambda replies, *, model=None, step=None: Script(vesper_stubs, replies, model=model, step=step, depth=2)
