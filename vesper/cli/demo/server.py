"""The server of the demo: the supervisor of `vesper serve` on a free port, with workers of the demo.

    python -m vesper.cli.demo.server healthy|faulty

Prints its port, and ends when standard input does, so that it never outlives the demo.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from vesper.observe.logs import configure
from vesper.serve.control import Options
from vesper.serve.supervisor import Supervisor, bind, shared_metrics

WORKERS = 2


def main() -> None:
    configure("text")
    listener = bind("127.0.0.1", 0)
    port = listener.getsockname()[1]
    threading.Thread(target=_end_with_input, daemon=True).start()
    command = (sys.executable, "-P", "-m", "vesper.cli.demo.worker", sys.argv[1])
    with listener, shared_metrics(None):
        sys.exit(Supervisor(listener, Options(), WORKERS, lambda _: _report(port), command=command).run())


def _report(port: int) -> None:
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()


def _end_with_input() -> None:
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
