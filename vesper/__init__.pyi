"""The public names, for type checkers. At run time `__init__.py` loads each when it is first used."""

from vesper.api.errors import HostMissing as HostMissing
from vesper.api.errors import NodeError as NodeError
from vesper.api.errors import Stopped as Stopped
from vesper.api.errors import UnknownNode as UnknownNode
from vesper.api.execution import Execution as Execution
from vesper.api.load import load as load
from vesper.api.node import Field as Field
from vesper.api.node import Node as Node
from vesper.api.outcome import ErrorInfo as ErrorInfo
from vesper.api.outcome import InputProblem as InputProblem
from vesper.api.outcome import Outcome as Outcome
from vesper.engines.engine import Limits as Limits
from vesper.kernels.raised import BadInput as BadInput
from vesper.kernels.raised import ContractBroken as ContractBroken
from vesper.kernels.raised import DeclaredError as DeclaredError
from vesper.kernels.raised import Raised as Raised
from vesper.spec.vesper_error import VesperError as VesperError

__version__: str
