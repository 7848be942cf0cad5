"""The CPython that a measurement runs on. A build without profile-guided optimisation is a third slower.

This file imports nothing of Vesper: any interpreter can run it, and prints one JSON object about itself.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import sysconfig
from dataclasses import asdict, dataclass

_PROFILE_FLAGS = ("-fprofile-use", "-fprofile-instr-use")


@dataclass(frozen=True)
class Interpreter:
    executable: str
    implementation: str
    version: str
    is_optimised: bool
    abi: str
    """Suffix of extension modules: `.cpython-311-x86_64-linux-gnu.so`."""
    has_venv: bool

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(int(part) for part in self.version.split(".")[:2])

    def described(self) -> str:
        kind = "a PGO build" if self.is_optimised else "not a PGO build: slower than usual builds of Python"
        return f"{self.implementation} {self.version}, {kind}"


def is_profiled(arguments: str, flags: str, base_prefix: str) -> bool:
    """Return whether these build settings make a PGO build.

    Distributions build with PGO without recording it.
    """
    return (
        "--enable-optimizations" in arguments
        or any(each in flags for each in _PROFILE_FLAGS)
        or base_prefix == "/usr"
    )  # fmt: skip


def this_interpreter() -> Interpreter:
    try:
        import ensurepip  # noqa: F401  # Debian has it in a package of its own
        import venv  # noqa: F401  # as above
    except ImportError:
        has_venv = False
    else:
        has_venv = True
    arguments = str(sysconfig.get_config_var("CONFIG_ARGS"))
    flags = " ".join(str(sysconfig.get_config_var(name)) for name in ("CONFIGURE_CFLAGS", "CFLAGS", "PY_CORE_CFLAGS"))
    implementation = platform.python_implementation()
    return Interpreter(
        sys.executable,
        implementation,
        platform.python_version(),
        implementation == "CPython" and is_profiled(arguments, flags, sys.base_prefix),
        str(sysconfig.get_config_var("EXT_SUFFIX")),
        has_venv,
    )


def interpreter_at(executable: str) -> Interpreter:
    """Run this file on another interpreter. Raises `OSError` or `ValueError` where that is no supported Python."""
    ran = subprocess.run([executable, "-I", __file__], capture_output=True, text=True, timeout=60, check=False)
    if ran.returncode:
        raise ValueError(f"{executable} is not Python 3.11 or newer: {ran.stderr.strip().splitlines()[-1:]}")
    return Interpreter(**json.loads(ran.stdout))


if __name__ == "__main__":
    print(json.dumps(asdict(this_interpreter())))
