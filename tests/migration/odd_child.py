"""A process that does not answer as it should: `python -m tests.migration.odd_child LIFE HOW`."""

from __future__ import annotations

import os
import sys
import time

from vesper.migration.apart.child import HEADER
from vesper.migration.apart.serving import live_as_long_as

_ANSWER = b'{"hello":true}'


def main(life: str, how: str) -> None:
    live_as_long_as(int(life))
    while header := os.read(0, HEADER.size):
        length, number = HEADER.unpack(header)
        os.read(0, length)
        match how:
            case "twice":
                os.write(1, (HEADER.pack(len(_ANSWER), number) + _ANSWER) * 2)
            case "drips":
                os.write(1, HEADER.pack(1 << 20, number))
                while True:
                    os.write(1, b" ")
                    time.sleep(0.02)


if __name__ == "__main__":
    main(*sys.argv[1:])
