"""`vesper serve` with stub workers: python stub_server.py WORKERS GRACE. Prints its port once they are ready."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from vesper.serve.control import Options
from vesper.serve.supervisor import Supervisor, bind
from vesper.values.vesper_error import VesperError

logging.basicConfig(level=logging.INFO, format="%(message)s")
listener = bind("127.0.0.1", 0)
port = listener.getsockname()[1]
command = (sys.executable, str(Path(__file__).with_name("stub_worker.py")))
try:
    supervisor = Supervisor(
        listener,
        Options(grace=float(sys.argv[2])),
        int(sys.argv[1]),
        lambda _: print(port, flush=True),
        command=command,
    )
    sys.exit(supervisor.run())
except VesperError as problem:
    sys.exit(f"error: {problem}")
