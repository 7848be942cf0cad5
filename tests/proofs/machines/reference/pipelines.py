"""Pipelines: stages whose routes, joins and edge limits name each other."""

from __future__ import annotations

from dataclasses import dataclass

from tests.proofs.machines.messages import orchestration_pb2
from tests.proofs.machines.reference.refusals import demand

MOST_STAGES = 1_000
MOST_ROUTES = 1_000
MOST_TARGETS = 100
MOST_BYTES = 200


@dataclass(frozen=True)
class Pipeline:
    """A configuration that was checked."""

    config: orchestration_pb2.PipelineConfig
    stages: dict[str, orchestration_pb2.AgentConfig]
    limits: dict[tuple[str, str], int]

    @property
    def entry(self) -> str:
        return self.config.agents[0].name


def check(config: orchestration_pb2.PipelineConfig) -> Pipeline:
    """Refuse a configuration with a fault."""
    demand(config.name != "", "a pipeline has a name")
    demand(1 <= len(config.agents) <= MOST_STAGES, "a pipeline has stages")
    stages = {stage.name: stage for stage in config.agents}
    demand(len(stages) == len(config.agents), "names of stages are distinct")
    for stage in config.agents:
        _check_stage(stage)
    for stage in config.agents:
        demand(not stage.on_error or stage.on_error in stages, "on_error names no stage")
        for rule in stage.routes:
            _check_rule(rule)
            named = [*rule.targets, *([rule.join] if rule.join else [])]
            demand(all(name in stages for name in named), "a route names no stage")
    limits = {(limit.to, getattr(limit, "from")): limit.max_traversals for limit in config.edge_limits}
    demand(len(limits) == len(config.edge_limits), "an edge has one limit")
    demand(all(to in stages and start in stages for to, start in limits), "a limit names no stage")
    demand(all(most >= 0 for most in limits.values()), "a limit is not negative")
    return Pipeline(config, stages, {(start, to): most for (to, start), most in limits.items()})


def _check_stage(stage: orchestration_pb2.AgentConfig) -> None:
    demand(1 <= len(stage.name.encode()) <= MOST_BYTES and "->" not in stage.name, "it is no name of a stage")
    demand(stage.agent != "" and stage.service != "", "a stage has an agent and a service")
    demand(len(stage.routes) <= MOST_ROUTES, "there are too many routes")
    demand(not stage.HasField("timeout_us") or stage.timeout_us >= 1, "a time limit is positive")


def _check_rule(rule: orchestration_pb2.RoutingRule) -> None:
    demand(len(set(rule.targets)) == len(rule.targets) <= MOST_TARGETS, "targets are distinct")
    demand((len(rule.targets) > 1) == (rule.join != ""), "several targets have a join")
    demand((rule.condition == "") == (rule.condition_ir == ""), "a condition has its IR")
