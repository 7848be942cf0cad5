"""Names of spans and their attributes, for live spans and for exported traces.

The names are promises of the founding document. No attribute holds a value of a run.
"""

from __future__ import annotations

EXECUTE = "sir.execute"
EFFECT = "sir.effect"
COMPARE = "sir.compare"
DIVERGENCE_EVENT = "divergence_detected"
_PATHS = {"python": "python", "interp": "direct", "jit": "direct"}


def path_of(engine: str) -> str:
    """Return the execution path of an engine; `auto` for a route that selects it inside the call."""
    return _PATHS.get(engine, engine)


def node_attributes(node_id: str, node_type: str, intent: str, semantic_hash: str) -> dict[str, str]:
    return {
        "sir.node_id": node_id,
        "sir.node_type": node_type,
        "sir.intent": intent,
        "sir.semantic_hash": semantic_hash,
    }


def end_attributes(
    engine: str, duration_ms: float, outcome: str, code: str | None, is_diverged: bool
) -> dict[str, str | float | bool]:
    """Return the attributes of an execution that are known at its end."""
    found: dict[str, str | float | bool] = {
        "sir.execution_path": path_of(engine),
        "sir.duration_ms": duration_ms,
        "sir.outcome": outcome,
    }
    if code is not None:
        found["sir.error"] = code
    if is_diverged:
        found["sir.divergence"] = True
    return found


def effect_attributes(
    node_id: str,
    step: str,
    effect: str,
    effect_class: str,
    attempts: int,
    code: str | None,
    usage: tuple[str, int, int, str] | None = None,
) -> dict[str, str | int]:
    """Return the attributes of an effect; `usage` is model, input and output tokens, and cost of all attempts."""
    found: dict[str, str | int] = {
        "sir.node_id": node_id,
        "sir.step": step,
        "sir.effect": effect,
        "sir.effect_class": effect_class,
        "sir.attempts": attempts,
    }
    if usage is not None:
        model, input_tokens, output_tokens, cost_usd = usage
        found |= {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": model,
            "gen_ai.usage.input_tokens": input_tokens,
            "gen_ai.usage.output_tokens": output_tokens,
            "sir.cost_usd": cost_usd,
        }
    if code is not None:
        found["sir.error"] = code
    return found
