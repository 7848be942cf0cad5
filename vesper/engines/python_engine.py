"""The reference engine: generates Python from the IR, loads it, and turns what it raises into outcomes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from decimal import DecimalException
from types import CodeType, TracebackType
from typing import Any, cast

from vesper.codegen.module import GeneratedModule, generate_module
from vesper.compiler import Compiled
from vesper.engines.engine import Done, EngineUnavailable, PureExecution
from vesper.engines.outcome import ContractBroken, EngineFault, Failed, Outcome, Returned
from vesper.ir.nodes import Node
from vesper.kernels import raised
from vesper.spec.errors import ErrorCode
from vesper.spec.inputs import accept_inputs
from vesper.spec.types import JSON, mentions
from vesper.spec.values import Value, plain


class PythonEngine:
    name = "python"

    def load(self, compiled: Compiled) -> PythonProgram:
        if not _has_code_positions():
            raise EngineUnavailable(
                "Python runs without code positions (PYTHONNODEBUGRANGES or -X no_debug_ranges); "
                "the python engine needs them to say where a node fails"
            )
        return PythonProgram(compiled.node, compiled.semantic_hash)


def _has_code_positions() -> bool:
    """True unless Python was told to drop the columns of code."""
    return all(column is not None for _, _, column, _ in list(compile("a + b", "", "eval").co_positions())[1:])


class _LoadedFunction:
    """One form of the generated function, plain or traced."""

    def __init__(self, node: Node, traced: bool) -> None:
        self.module: GeneratedModule = generate_module(node, traced)
        self.filename = f"<vesper {node.node_id}{' traced' if traced else ''}>"
        self._lines = self.module.text.splitlines()
        namespace: dict[str, Any] = {"__name__": f"vesper.generated.{node.node_id}"}
        # The text was built as a tree and checked against the allow-list of forms; see codegen/vocabulary.py.
        exec(compile(self.module.text, self.filename, "exec"), namespace)  # noqa: S102
        self.function: Callable[..., Mapping[str, Value]] = namespace[self.module.function]

    def arguments(self, values: Mapping[str, Value]) -> dict[str, Value]:
        return dict(zip(self.module.parameters, values.values(), strict=True))

    def site(self, traceback: TracebackType | None) -> int | None:
        """The IR expression that was being evaluated when this was raised."""
        found = None
        while traceback is not None:
            code = traceback.tb_frame.f_code
            if code.co_filename == self.filename:
                found = self._site_in(code, traceback.tb_lasti)
            traceback = traceback.tb_next
        return found

    def _site_in(self, code: CodeType, instruction: int) -> int | None:
        for offset, position in enumerate(code.co_positions()):
            if offset * 2 == instruction:
                line, end_line, column, end_column = position
                if line is None or end_line is None or column is None or end_column is None:
                    return None
                start, end = self._characters(line, column), self._characters(end_line, end_column)
                return self.module.sites.get((line, start, end_line, end))
        return None

    def _characters(self, line: int, column: int) -> int:
        """Python counts columns in bytes of UTF-8, the map in characters."""
        return len(self._lines[line - 1].encode("utf-8")[:column].decode("utf-8"))


class PythonProgram:
    """A node as generated Python. The traced form is made when it is first asked for."""

    def __init__(self, node: Node, semantic_hash: str) -> None:
        self._node = node
        self.semantic_hash = semantic_hash
        self._declared = [(each.name, each.type, each.default) for each in node.inputs]
        self._has_json = any(mentions(each.type, JSON) for each in (*node.inputs, *node.constants, *node.expressions()))
        self._plain = _LoadedFunction(node, traced=False)
        self._traced: _LoadedFunction | None = None

    def call(self, inputs: Mapping[str, object]) -> Outcome:
        return self._run(self._plain, inputs, {})

    def start(self, inputs: Mapping[str, object]) -> PureExecution:
        return PureExecution(lambda: self._observe(inputs))

    def _observe(self, inputs: Mapping[str, object]) -> Done:
        if self._traced is None:
            self._traced = _LoadedFunction(self._node, traced=True)
        marks: list[tuple[int, Value]] = []

        def mark(index: int, value: Value) -> Value:
            marks.append((index, plain(value) if self._has_json else value))
            return value

        outcome = self._run(self._traced, inputs, {"mark": mark})
        return Done(outcome, tuple(marks))

    def _run(self, loaded: _LoadedFunction, inputs: Mapping[str, object], extra: dict[str, Any]) -> Outcome:
        values, problems = accept_inputs(self._declared, inputs)
        if problems:
            return Failed(ErrorCode.BAD_INPUT, None, tuple(problems))
        try:
            returned = loaded.function(**loaded.arguments(values), **extra)
            return Returned(self._outside(returned))
        except raised.ContractBroken as broken:
            # Generated code gives values in their Python form; a record there is a TypedDict, which mypy keeps apart.
            return ContractBroken(broken.phase, broken.index, self._outside(cast(dict[str, Value], broken.values)))
        except raised.Raised as error:
            return self._failed(loaded, error.code)
        except DecimalException:
            # The exact context traps every lost digit; that is how a bare operator overflows.
            return self._failed(loaded, ErrorCode.DECIMAL_OVERFLOW)
        except Exception as error:  # noqa: BLE001  # generated code raises nothing else: whatever it is, it is our fault
            return EngineFault(f"{type(error).__name__}: {error}")

    def _outside(self, values: Mapping[str, Value]) -> Mapping[str, Value]:
        """Values as a caller sees them: a json is plain objects outside an execution."""
        return {name: plain(value) for name, value in values.items()} if self._has_json else values

    def _failed(self, loaded: _LoadedFunction, code: ErrorCode) -> Outcome:
        at = loaded.site(sys.exc_info()[2])
        if at is None:
            return EngineFault(f"{code.value} was raised where generated code cannot fail")
        return Failed(code, at)
