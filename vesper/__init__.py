"""Vesper: business logic written once, run on two engines that are shown to agree.

`vesper.load("payment_decision")` gives a node that is called like a function. Names are loaded when they are first
used, so that importing the package costs nothing.
"""

__version__ = "0.3.0"

_PLACES = {
    "BadInput": "vesper.kernels.raised",
    "BatchError": "vesper.batch.errors",
    "ConfigError": "vesper.effects.settings",
    "ContractBroken": "vesper.kernels.raised",
    "DeclaredError": "vesper.kernels.raised",
    "EffectFailed": "vesper.effects.performer",
    "ErrorInfo": "vesper.api.error_info",
    "Execution": "vesper.api.execution",
    "Explanation": "vesper.api.explanation.model",
    "Field": "vesper.api.node",
    "Host": "vesper.host.host",
    "InDoubt": "vesper.host.in_doubt",
    "InputProblem": "vesper.api.error_info",
    "JournalError": "vesper.journal.journal",
    "KeyReused": "vesper.host.run_context",
    "KeyRunning": "vesper.host.run_context",
    "Limits": "vesper.engines.engine",
    "ModelBusy": "vesper.host.limits",
    "Node": "vesper.api.node",
    "NodeError": "vesper.api.errors",
    "NotExplained": "vesper.api.explanation.entry",
    "NotWaiting": "vesper.host.waiting_runs",
    "Outcome": "vesper.api.outcome",
    "Period": "vesper.values.period",
    "Raised": "vesper.kernels.raised",
    "Routes": "vesper.migration.router.routes",
    "RunHandle": "vesper.api.runs",
    "RunNotEnded": "vesper.api.runs",
    "RunWaits": "vesper.host.waiting",
    "Stopped": "vesper.api.errors",
    "UnknownNode": "vesper.api.errors",
    "VesperError": "vesper.values.vesper_error",
    "WrongValue": "vesper.host.waiting_runs",
    "adopt": "vesper.api.adopt",
    "after_tool": "vesper.effects.hooks.registry",
    "before_tool": "vesper.effects.hooks.registry",
    "budget": "vesper.host.budgets",
    "cache_stats": "vesper.api.caches",
    "effect": "vesper.effects.custom.performer",
    "joined": "vesper.effects.database.performer",
    "load": "vesper.api.load",
    "run_context": "vesper.host.run_context",
    "run_handle": "vesper.api.runs",
    "signal": "vesper.api.runs",
}
"""Where each public name is; `__init__.pyi` lists the same for type checkers."""

__all__ = [*_PLACES, "testing"]  # noqa: PLE0604  # names of a table, loaded when they are first used


def __getattr__(name: str) -> object:
    import sys  # `importlib` loads `warnings`

    if name == "testing":  # a module: importing it sets the attribute
        __import__("vesper.testing")
        return sys.modules["vesper.testing"]
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    __import__(_PLACES[name])
    found = globals()[name] = getattr(sys.modules[_PLACES[name]], name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES, "testing"})
