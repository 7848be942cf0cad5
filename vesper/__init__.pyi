"""The public names, for type checkers. At run time `__init__.py` loads each when it is first used."""

from vesper import testing as testing
from vesper.api.adopt import adopt as adopt
from vesper.api.caches import cache_stats as cache_stats
from vesper.api.error_info import ErrorInfo as ErrorInfo
from vesper.api.error_info import InputProblem as InputProblem
from vesper.api.errors import NodeError as NodeError
from vesper.api.errors import Stopped as Stopped
from vesper.api.errors import UnknownNode as UnknownNode
from vesper.api.execution import Execution as Execution
from vesper.api.explanation.entry import NotExplained as NotExplained
from vesper.api.explanation.model import Explanation as Explanation
from vesper.api.load import load as load
from vesper.api.node import Field as Field
from vesper.api.node import Node as Node
from vesper.api.outcome import Outcome as Outcome
from vesper.api.runs import RunHandle as RunHandle
from vesper.api.runs import RunNotEnded as RunNotEnded
from vesper.api.runs import run_handle as run_handle
from vesper.api.runs import signal as signal
from vesper.batch.errors import BatchError as BatchError
from vesper.effects.custom.performer import effect as effect
from vesper.effects.database.performer import joined as joined
from vesper.effects.hooks.registry import after_tool as after_tool
from vesper.effects.hooks.registry import before_tool as before_tool
from vesper.effects.performer import EffectFailed as EffectFailed
from vesper.effects.settings import ConfigError as ConfigError
from vesper.engines.engine import Limits as Limits
from vesper.host.budgets import budget as budget
from vesper.host.host import Host as Host
from vesper.host.in_doubt import InDoubt as InDoubt
from vesper.host.limits import ModelBusy as ModelBusy
from vesper.host.run_context import KeyReused as KeyReused
from vesper.host.run_context import KeyRunning as KeyRunning
from vesper.host.run_context import run_context as run_context
from vesper.host.waiting import RunWaits as RunWaits
from vesper.host.waiting_runs import NotWaiting as NotWaiting
from vesper.host.waiting_runs import WrongValue as WrongValue
from vesper.journal.journal import JournalError as JournalError
from vesper.kernels.raised import BadInput as BadInput
from vesper.kernels.raised import ContractBroken as ContractBroken
from vesper.kernels.raised import DeclaredError as DeclaredError
from vesper.kernels.raised import Raised as Raised
from vesper.migration.router.routes import Routes as Routes
from vesper.values.period import Period as Period
from vesper.values.vesper_error import VesperError as VesperError

__version__: str

__all__ = [
    "BadInput",
    "BatchError",
    "ConfigError",
    "ContractBroken",
    "DeclaredError",
    "EffectFailed",
    "ErrorInfo",
    "Execution",
    "Explanation",
    "Field",
    "Host",
    "InDoubt",
    "InputProblem",
    "JournalError",
    "KeyReused",
    "KeyRunning",
    "Limits",
    "ModelBusy",
    "Node",
    "NodeError",
    "NotExplained",
    "NotWaiting",
    "Outcome",
    "Period",
    "Raised",
    "Routes",
    "RunHandle",
    "RunNotEnded",
    "RunWaits",
    "Stopped",
    "UnknownNode",
    "VesperError",
    "WrongValue",
    "adopt",
    "after_tool",
    "before_tool",
    "budget",
    "cache_stats",
    "effect",
    "joined",
    "load",
    "run_context",
    "run_handle",
    "signal",
    "testing",
]
