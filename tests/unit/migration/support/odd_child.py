"""A child process that misbehaves: `python -m tests.unit.migration.support.odd_child LIFE HOW`."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from vesper.migration.workers.child import HEADER
from vesper.migration.workers.serving import end_with_parent

_ANSWER = b'{"hello":true}'


_FAMILY: list[subprocess.Popen[bytes]] = []


def _say(text: bytes, number: int) -> None:
    rest = memoryview(HEADER.pack(len(text), number) + text)
    while rest:
        rest = rest[os.write(1, rest) :]


def main(life: str, how: str) -> None:
    end_with_parent(int(life))
    if how == "closes":
        os.close(0)
        time.sleep(0.5)
        return
    while header := os.read(0, HEADER.size):
        length, number = HEADER.unpack(header)
        os.read(0, length)
        match how:
            case "twice":
                os.write(1, (HEADER.pack(len(_ANSWER), number) + _ANSWER) * 2)
            case "long":
                os.write(1, HEADER.pack(100 << 20, number))
            case "garbage":
                _say(b"\xff{", number)
            case "deep":
                _say(b"[" * 100_000 + b"]" * 100_000, number)
            case "family" if _FAMILY:
                os._exit(3)
            case "family":
                _FAMILY.append(subprocess.Popen(["sleep", "600"]))  # which has its pipes as well
                _say(str(_FAMILY[0].pid).encode(), number)
            case "drips":
                os.write(1, HEADER.pack(1 << 20, number))
                while True:
                    os.write(1, b" ")
                    time.sleep(0.02)


if __name__ == "__main__":
    main(*sys.argv[1:])
