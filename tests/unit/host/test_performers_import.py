"""The first requests of a process: one thread loads the module of databases while another asks whether it is loaded."""

from __future__ import annotations

import subprocess
import sys

from tests.support.console import ROOT

_PROGRAM = """
import sys, threading, time
from vesper.host.performers import loaded_databases

assert loaded_databases() is None
has_begun = threading.Event()

class SlowImport:
    def find_spec(self, name, path=None, target=None):
        if "vesper.effects.database.performer" in sys.modules and not has_begun.is_set():
            has_begun.set()
            time.sleep(0.3)

sys.meta_path.insert(0, SlowImport())
thread = threading.Thread(target=lambda: __import__("vesper.effects.database.performer"))
thread.start()
assert has_begun.wait(60)
found = loaded_databases()
print(found is not None and found.joined_names())
thread.join()
"""


def test_a_module_that_is_being_loaded_is_awaited() -> None:
    command = [sys.executable, "-c", _PROGRAM]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ("frozenset()\n", "")
