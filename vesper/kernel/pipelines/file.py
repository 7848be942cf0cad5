"""Files of pipelines: stages with their node and service, routes, limits of edges, a quota.

    pipeline: support
    stages:
      triage: {node: ticket_triage_v1, service: support, routes: [{when: …, to: refund}, {to: reply}]}
      …

The first stage is the entry. Conditions are expressions of nodes; each is compiled to the IR of a pure node, with its
errors at its own place in the file.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from vesper.compiler.reading import MAX_BYTES
from vesper.config.moments import parse_duration
from vesper.kernel import v1
from vesper.kernel.pipelines.condition import compile_condition
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import CheckingStopped, DiagnosticBag
from vesper.language.diagnostics.source import SourceFile
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.syntax.fields import Fields, expect_mapping, expect_scalar, report_wrong_kind
from vesper.language.syntax.shape import Shape
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_tree import Scalar, Sequence, Tree
from vesper.storage.file_access import read_regular
from vesper.values.vesper_error import VesperError

INPUTS_SETTING = "inputs"
"""The setting of a stage with the sources of its inputs, as JSON, for the worker."""
_FILE = Shape("a pipeline", ("pipeline", "stages"), ("edge_limits", "quota"))
_STAGE = Shape("a stage", ("node", "service"), ("inputs", "routes", "on_error", "timeout"))
_ROUTE = Shape("a route", (), ("when", "to", "join"))
_LIMIT = Shape("a limit of an edge", ("from", "to", "max"), ())
_QUOTAS = ("llm_calls", "tool_calls", "agent_hops", "iterations", "tokens_in", "tokens_out")
_QUOTA = Shape("a quota", (), (*_QUOTAS, "timeout"))
_SOURCE = re.compile(r"(inputs|outputs|metadata)((?:\.[A-Za-z_]\w*)+)")
_MAX_COUNT = 1 << 53


class PipelineRefused(VesperError):
    """The file is no pipeline; `bag` has its errors with their places."""

    def __init__(self, bag: DiagnosticBag) -> None:
        found = bag.sorted()
        super().__init__(f"{bag.source.path}: {found[0].headline}" if found else f"{bag.source.path} is no pipeline")
        self.bag = bag


@dataclass(frozen=True, slots=True)
class PipelineFile:
    """A pipeline that was read."""

    config: v1.PipelineConfig
    quota: v1.Quota | None
    """The quota of its processes; None is that of the kernel."""


def read_pipeline(path: Path) -> PipelineFile:
    """Read a file. Raises `PipelineRefused`, and `OSError` for a file that cannot be read."""
    try:
        text = read_regular(path, MAX_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        bag = DiagnosticBag(SourceFile(path.as_posix(), ""))
        bag.error(Code.UNREADABLE_FILE, bag.source.character(0), reason=f"byte {error.start} is not UTF-8")
        raise PipelineRefused(bag) from None
    return read_pipeline_text(SourceFile(path.as_posix(), text.removeprefix("\ufeff").replace("\r\n", "\n")))


def read_pipeline_text(source: SourceFile) -> PipelineFile:
    """Read the text of a file. Raises `PipelineRefused`."""
    bag = DiagnosticBag(source)
    found = None
    try:
        tree = read_yaml(bag)
        root = None if tree is None else expect_mapping(tree, "a pipeline", bag)
        found = None if root is None else _Reader(bag).read(Fields(root, _FILE, bag))
    except CheckingStopped:
        pass  # the bag has the most errors that are shown
    if found is None or bag.has_errors:
        raise PipelineRefused(bag)
    return found


class _Reader:
    def __init__(self, bag: DiagnosticBag) -> None:
        self._bag = bag
        self._stages: list[str] = []

    def read(self, fields: Fields) -> PipelineFile:
        name, stages = fields.scalar("pipeline"), fields.mapping("stages")
        entries = () if stages is None else stages.entries
        self._stages = [key.text for key, _ in entries]
        if stages is not None and not entries:
            report_wrong_kind(stages, "stages", "at least one stage", self._bag)
        config = v1.PipelineConfig(
            name="" if name is None else name.text,
            agents=[self._stage(key, tree) for key, tree in entries],
            edge_limits=self._limits(fields),
        )
        quota = fields.mapping("quota")
        return PipelineFile(config, None if quota is None else self._quota(Fields(quota, _QUOTA, self._bag)))

    def _stage(self, key: Scalar, tree: Tree) -> v1.AgentConfig:
        stage = v1.AgentConfig(name=key.text)
        mapping = expect_mapping(tree, key.text, self._bag)
        if mapping is None:
            return stage
        fields = Fields(mapping, _STAGE, self._bag)
        stage.agent, stage.service = self._text(fields, "node"), self._text(fields, "service")
        sources = fields.mapping("inputs")
        if sources is not None:
            found = {name.text: self._source(name, each) for name, each in sources.entries}
            stage.settings[INPUTS_SETTING] = json.dumps(found, sort_keys=True)
        stage.routes.extend(self._route(each) for each in self._items(fields, "routes"))
        stage.on_error = self._target(fields.scalar("on_error"))
        timeout = fields.scalar("timeout")
        if timeout is not None:
            stage.timeout_us = self._duration_us(timeout, "timeout")
        return stage

    def _source(self, name: Scalar, tree: Tree) -> str:
        scalar = expect_scalar(tree, name.text, self._bag)
        if scalar is None:
            return ""
        found = _SOURCE.fullmatch(scalar.text)
        if found is None:
            expected = "`inputs.NAME`, `outputs.STAGE.FIELD` or `metadata.NAME`"
            self._bag.error(Code.WRONG_KIND, scalar.span, key=name.text, expected=expected, found=f"`{scalar.text}`")
        elif found[1] == "outputs":
            self._known(Scalar(found[2].split(".")[1], "", scalar.span))
        return scalar.text

    def _route(self, tree: Tree) -> v1.RoutingRule:
        mapping = expect_mapping(tree, "a route", self._bag)
        if mapping is None:
            return v1.RoutingRule()
        fields = Fields(mapping, _ROUTE, self._bag)
        when, to = fields.scalar("when"), fields.get("to")
        targets = to.items if isinstance(to, Sequence) else () if to is None else (to,)
        rule = v1.RoutingRule(
            targets=[self._target(expect_scalar(each, "to", self._bag)) for each in targets],
            join=self._target(fields.scalar("join")),
        )
        if len(targets) > 1 and not rule.join and fields.get("join") is None:
            help_ = "`join` names the stage at which the branches meet"
            self._bag.error(Code.MISSING_KEY, fields.span, where="a route with several targets", key="join", help=help_)
        if when is not None:
            rule.condition, rule.condition_ir = when.text, compile_condition(when, self._bag)
        return rule

    def _limits(self, fields: Fields) -> list[v1.EdgeLimit]:
        found = []
        for tree in self._items(fields, "edge_limits"):
            mapping = expect_mapping(tree, "edge_limits", self._bag)
            if mapping is not None:
                each = Fields(mapping, _LIMIT, self._bag)
                ends = {name: self._target(each.scalar(name)) for name in ("from", "to")}
                found.append(v1.EdgeLimit(**ends, max_traversals=self._count(each, "max")))
        return found

    def _quota(self, fields: Fields) -> v1.Quota:
        found = v1.Quota(**{f"max_{name}": self._count(fields, name) for name in _QUOTAS if fields.get(name)})
        timeout = fields.scalar("timeout")
        if timeout is not None:
            found.timeout_us = self._duration_us(timeout, "timeout")
        return found

    # -- scalars ----------------------------------------------------------------------------------

    def _items(self, fields: Fields, name: str) -> tuple[Tree, ...]:
        found = fields.sequence(name)
        return () if found is None else found.items

    def _text(self, fields: Fields, name: str) -> str:
        found = fields.scalar(name)
        return "" if found is None else found.text

    def _target(self, scalar: Scalar | None) -> str:
        """Return the name of a stage; an absent one is empty."""
        if scalar is None:
            return ""
        self._known(scalar)
        return scalar.text

    def _known(self, scalar: Scalar) -> None:
        if scalar.text not in self._stages:
            help_ = did_you_mean(scalar.text, self._stages)
            self._bag.error(Code.UNKNOWN_NAME, scalar.span, kinds="no stage", name=scalar.text, help=help_)

    def _count(self, fields: Fields, name: str) -> int:
        scalar = fields.scalar(name)
        if scalar is None:
            return 0
        if not re.fullmatch(r"\d{1,16}", scalar.text) or int(scalar.text) > _MAX_COUNT:
            self._wrong(scalar, name, "a whole number from 0")
            return 0
        return int(scalar.text)

    def _duration_us(self, scalar: Scalar, name: str) -> int:
        seconds = parse_duration(scalar.text)
        if seconds is None:
            self._wrong(scalar, name, "a duration such as `30s`")
            return 0
        return round(seconds * 1_000_000)

    def _wrong(self, scalar: Scalar, name: str, expected: str) -> None:
        self._bag.error(Code.WRONG_KIND, scalar.span, key=name, expected=expected, found=f"`{scalar.text}`")
