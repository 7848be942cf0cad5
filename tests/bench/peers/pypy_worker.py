"""Times `by_hand` under the interpreter that runs this file, for `pypy`: a line in, a line out.

It imports nothing of Vesper and nothing newer than Python 3.9. A line is the name of a function and how many seconds
to call it; the inputs came on the first line.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from decimal import Decimal
from typing import Any

import by_hand  # type: ignore[import-not-found]  # it lies beside this file, which is run as it is


def exact(value: Any) -> Any:
    """Texts that stand for decimals are written with a mark."""
    if isinstance(value, dict):
        return {name: exact(each) for name, each in value.items()}
    if isinstance(value, list):
        return [exact(each) for each in value]
    return Decimal(value[1:]) if isinstance(value, str) and value.startswith("=") else value


def seconds_a_call(function: Any, inputs: Any, seconds: float) -> float:
    calls, begun = 0, time.perf_counter()
    while True:
        for each in inputs:
            function(each)
        calls += len(inputs)
        taken = time.perf_counter() - begun
        if taken >= seconds:
            return taken / calls


def main() -> None:
    given = exact(json.loads(sys.stdin.readline()))
    answers = {name: [repr(getattr(by_hand, name)(each)) for each in inputs] for name, inputs in given.items()}
    print(json.dumps({"version": platform.python_version(), "answers": answers}), flush=True)
    for line in sys.stdin:
        name, seconds = line.split()
        print(seconds_a_call(getattr(by_hand, name), given[name], float(seconds)), flush=True)


if __name__ == "__main__":
    main()
