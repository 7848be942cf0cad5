"""Random pipelines of a few stages: routes, forks that nest, failure stages, edge limits; one in eight has a fault."""

from __future__ import annotations

import random

from tests.proofs.machines.messages import orchestration_pb2
from tests.proofs.machines.reference.limits import SECOND_US

STAGES = ("read", "law", "price", "merge", "send")
SERVICES = ("agents", "agents", "agents", "models")
_FAULTS = 19


def _rule(chance: random.Random, names: list[str]) -> orchestration_pb2.RoutingRule:
    rule = orchestration_pb2.RoutingRule()
    kind = chance.choice(("one", "one", "one", "fork", "fork", "fork", "end"))
    if kind == "one":
        rule.targets.append(chance.choice(names))
    elif kind == "fork" and len(names) > 1:
        rule.targets.extend(chance.sample(names, chance.randint(2, min(3, len(names)))))
        rule.join = names[-1] if chance.random() < 0.75 else chance.choice(names)
    if chance.random() < 0.3:
        rule.condition, rule.condition_ir = "x", "{}"
    return rule


def some_pipeline(chance: random.Random) -> orchestration_pb2.PipelineConfig:
    names = list(STAGES[: chance.choice((1, 2, 3, 3, 4, 4, 4, 5))])
    config = orchestration_pb2.PipelineConfig(name="review")
    for name in names:
        stage = config.agents.add(name=name, agent=f"{name}_v1", service=chance.choice(SERVICES))
        stage.routes.extend(_rule(chance, names) for _ in range(chance.choice((0, 1, 2, 2, 3))))
        if chance.random() < 0.5:
            stage.on_error = chance.choice(names)
        if chance.random() < 0.3:
            stage.timeout_us = chance.choice((1, SECOND_US, 40 * SECOND_US))
        if chance.random() < 0.2:
            stage.settings["tone"] = "kind"
    for start in names:
        for to in names:
            if chance.random() < 0.15:
                _limit(config, start, to, chance.choice((0, 1, 2)))
    return config


def _limit(config: orchestration_pb2.PipelineConfig, start: str, to: str, most: int) -> None:
    limit = config.edge_limits.add(to=to, max_traversals=most)
    setattr(limit, "from", start)


def some_faulty_pipeline(chance: random.Random, fault: int) -> orchestration_pb2.PipelineConfig:
    """Return a pipeline with one fault."""
    config = some_pipeline(chance)
    stage = config.agents[chance.randrange(len(config.agents))]
    rule = stage.routes.add(targets=[stage.name])
    if fault < 8:
        _break_stage(config, stage, fault)
    elif fault == 8:
        rule.targets.append(stage.name)
        rule.join = stage.name
    elif fault == 9:
        rule.join = stage.name
    elif fault == 10:
        rule.targets[:] = ["read", "nowhere"]
        rule.join = "read"
    elif fault == 11:
        config.agents.add(name="other", agent="other_v1", service="agents")
        rule.targets[:] = ["read", "other"]
    elif fault == 12:
        rule.condition, rule.condition_ir = "x", ""
    elif fault == 13:
        rule.condition, rule.condition_ir = "", "{}"
    elif fault == 14:
        _limit(config, "read", "nowhere", 1)
    elif fault == 15:
        _limit(config, "nowhere", "read", 1)
    elif fault == 16:
        del config.edge_limits[:]
        _limit(config, "read", "read", -1)
    elif fault == 17:
        del config.edge_limits[:]
        _limit(config, "read", "read", 1)
        _limit(config, "read", "read", 2)
    else:
        rule.targets[:] = ["read", stage.name + "x"]
        rule.join = "nowhere"
    return config


def _break_stage(config: orchestration_pb2.PipelineConfig, stage: orchestration_pb2.AgentConfig, fault: int) -> None:
    if fault == 0:
        config.name = ""
    elif fault == 1:
        del config.agents[:]
    elif fault == 2:
        config.agents.add(name=stage.name, agent="again_v1", service="agents")
    elif fault == 3:
        stage.agent = ""
    elif fault == 4:
        stage.service = ""
    elif fault == 5:
        stage.timeout_us = 0
    elif fault == 6:
        stage.on_error = "nowhere"
    else:
        config.agents.add(name="a->b", agent="x_v1", service="agents")


def nested_pipeline() -> orchestration_pb2.PipelineConfig:
    """Return a pipeline whose branches fork again, with the join of the outer fork or with their own."""
    config = orchestration_pb2.PipelineConfig(name="nested")
    routes: tuple[tuple[str, list[str], str], ...] = (
        ("read", ["law", "price"], "merge"),
        ("law", ["price", "send"], "merge"),
        ("price", ["merge"], ""),
        ("send", ["merge"], ""),
        ("merge", [], ""),
    )
    for name, targets, join in routes:
        stage = config.agents.add(name=name, agent=f"{name}_v1", service="agents")
        stage.routes.add(targets=targets, join=join)
    config.agents[2].routes.add(targets=["law", "send"], join="send")
    config.agents[3].routes.add()
    return config


_POOL = random.Random(20_261_119)
SOUND = [some_pipeline(_POOL) for _ in range(400)] + [nested_pipeline()] * 30
FAULTY = [some_faulty_pipeline(_POOL, number % _FAULTS) for number in range(3 * _FAULTS)]
"""Drawn once: a sequence takes its pipelines from these."""
