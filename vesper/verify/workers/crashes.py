"""Crashes: executions that ended their worker, or that the watchdog ended."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from itertools import takewhile

from vesper.values.model import show
from vesper.verify.workers.watch import Activity

MAX_DETAIL_LINES = 12
_OWN_FRAMES = "/verify/workers/"
_OUT_OF_MEMORY = ("memory allocation of", "MemoryError")
"""How Rust and Python report that the memory limit was hit."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a worker ended."""

    kind: str
    """`hang`, `memory`, `signal`, `exit` or `raised`."""
    text: str
    """The end of a sentence about the engine: `ends its process with SIGSEGV`."""


@dataclass(frozen=True, slots=True)
class Crash:
    """An engine that did not answer."""

    ending: Ending
    stage: str
    number: int
    """Number of the input; of a case its negative number."""
    engine: str
    """The engine or the way in; empty while inputs were drawn or a program was compiled."""
    inputs: dict[str, object] | None
    detail: str
    """End of the standard error, or traceback."""
    is_reduced: bool = False
    """True if the inputs are smaller than those that were drawn."""

    @property
    def subject(self) -> str:
        return f"`{self.engine}`" if self.engine else "Vesper"

    @property
    def place(self) -> str:
        """Activity of the worker at the crash, as the end of a sentence."""
        match self.stage:
            case "load":
                return "while it loads the node"
            case "case":
                return f"on case {-self.number}"
            case "draw":
                return f"while input {self.number} is drawn" if self.number else "while the program is drawn"
            case "compile":
                return "while the program is compiled"
            case "way":
                return f"at input {self.number} of a chunk"
            case "run":
                return f"on input {self.number}"
            case _:
                return "before it began"


def crash_lines(crash: Crash, seed: int) -> list[str]:
    """Return the lines below the title of a crash: the input, the seed that draws it, and the process's output."""
    lines = []
    if crash.inputs is not None:
        inputs = ", ".join(f"{name}={show(value)}" for name, value in crash.inputs.items())
        origin = "smallest that was found" if crash.is_reduced else "as drawn"
        lines.append(f"input:  {inputs}  ({origin}; {crash.place}, seed {seed})")
    else:
        lines.append(f"seed:   {seed}, {crash.place}")
    return [*lines, *(f"| {line}" for line in crash.detail.splitlines())]


def hang_ending(seconds: float) -> Ending:
    return Ending("hang", f"does not end within {seconds:.3g} s")


def memory_ending(mebibytes: int) -> Ending:
    return Ending("memory", f"needs more than {mebibytes:,} MiB of memory")


def ending_of_status(status: int, errors: str, mebibytes: int) -> Ending:
    """Return how a process ended by its wait status and standard error."""
    code = -status if status < 0 else status
    if status < 0:
        if code == signal.SIGABRT and any(each in errors for each in _OUT_OF_MEMORY):
            return memory_ending(mebibytes)
        return Ending("signal", f"ends its process with {signal_name(code)}")
    return Ending("exit", f"ends its process with exit code {code}")


def signal_name(number: int) -> str:
    return next((each.name for each in signal.Signals if each == number), f"signal {number}")


def ending_of_exception(error: BaseException, mebibytes: int) -> Ending:
    if isinstance(error, MemoryError):
        return memory_ending(mebibytes)
    first = str(error).partition("\n")[0][:200]
    return Ending("raised", f"raises {type(error).__name__}{': ' if first else ''}{first}")


def crash_of(ending: Ending, activity: Activity, errors: str) -> Crash:
    """Return the crash of a worker, from its activity and its error output."""
    lines = errors.strip().splitlines()
    if ending.kind == "raised":
        lines = lines[-MAX_DETAIL_LINES:]
    else:
        # A dump begins with the innermost frame; frames of the worker itself say nothing.
        lines = list(takewhile(lambda line: _OWN_FRAMES not in line, lines))[:MAX_DETAIL_LINES]
    return Crash(ending, activity.stage, activity.number, activity.engine, activity.inputs, "\n".join(lines))
