"""The process that drives the machines in Rust: it answers a batch of records as a whole."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from tests.proofs.machines.messages import ROOT

_U32 = struct.Struct("<I")
WORKSPACE = ROOT / "direct_runtime"
_FOLDERS = {"dev": "debug"}


def _target() -> Path:
    return Path(os.environ.get("CARGO_TARGET_DIR", WORKSPACE / "target"))


def _profile() -> str:
    """Return the profile that the kernel was built with last: its dependencies are built."""
    given = os.environ.get("KERNEL_PROFILE")
    built = {name: _target() / _FOLDERS.get(name, name) / "vesper-kernel" for name in ("release", "dev", "quick")}
    times = {name: path.stat().st_mtime for name, path in built.items() if path.exists()}
    return given or max(times, key=lambda name: times[name], default="release")


def build() -> Path:
    """Build the driver from `examples/drive.rs` of the crate, and return its path."""
    cargo = shutil.which("cargo")
    if cargo is None:
        raise SystemExit("error: no cargo: install Rust with rustup")
    command = [cargo, "build", "--quiet", "--locked", "--manifest-path", str(WORKSPACE / "Cargo.toml")]
    profile = _profile()
    command += ["--package", "vesper-kernel", "--example", "drive", "--profile", profile]
    subprocess.run(command, check=True)
    return _target() / _FOLDERS.get(profile, profile) / "examples" / "drive"


class Driver:
    """A running driver. `send` and `receive` alternate."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._input, self._output = cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout)

    def send(self, records: bytes) -> None:
        self._input.write(_U32.pack(len(records)) + records)
        self._input.flush()

    def receive(self) -> list[bytes]:
        """Return the observations of the batch that was sent."""
        text, place, found = self._read(_U32.unpack(self._read(4))[0]), 0, []
        while place < len(text):
            (size,) = _U32.unpack_from(text, place)
            found.append(text[place + 4 : place + 4 + size])
            place += 4 + size
        return found

    def _read(self, size: int) -> bytes:
        text = self._output.read(size)
        if len(text) < size:
            raise RuntimeError("the driver has ended: its standard error says why")
        return text


@contextmanager
def start(path: Path) -> Iterator[Driver]:
    process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield Driver(process)
    finally:
        cast(IO[bytes], process.stdin).close()
        process.kill()
        process.wait()
        cast(IO[bytes], process.stdout).close()
