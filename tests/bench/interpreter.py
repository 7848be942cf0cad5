"""Which CPython something is measured on: one without profile-guided optimisation runs Python a third slower."""

from __future__ import annotations

import subprocess
import sys
import sysconfig


def is_optimised() -> bool:
    """Whether this CPython is a PGO build. Distributions build those without saying so in the configuration."""
    return "--enable-optimizations" in str(sysconfig.get_config_var("CONFIG_ARGS")) or sys.base_prefix == "/usr"


def description() -> str:
    kind = "a PGO build" if is_optimised() else "not a PGO build: Python runs slower here than where it matters"
    return f"CPython {sys.version.split()[0]}, {kind}"


def description_of(python: str) -> str:
    """The same of another interpreter, which runs this file."""
    return subprocess.run([python, __file__], check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    print(description())
