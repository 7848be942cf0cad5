"""Build the extension with a counter at every edge of our crates, beside a copy of the package.

Cargo passes the flags to the crates of the workspace only, so that Cranelift and PyO3 have no counters. Panics abort:
with unwinding, each call would add edges that only a panic reaches. Everything is below `.proofs/coverage`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.proofs.robustness.proof import ROOT, STATE

WORK = STATE / "coverage"
PACKAGE = WORK / "package"
LIBRARY = WORK / "libcounters.so"
CRATES = ("kernels", "interp", "opt", "jit", "ir", "arrow", "py")
FLAGS = (
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=3",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
)
PROFILE = {
    "inherits": '"release"',
    "opt-level": "1",
    "lto": "false",
    "codegen-units": "16",
    "panic": '"abort"',
    "strip": '"none"',
    "debug": '"line-tables-only"',
}
_WRAPPER = """\
#!/bin/sh
case " $* " in
    *" --crate-name _direct "*) exec "$@" {flags} -Clink-arg={library} -Clink-arg=-Wl,-rpath,{folder} ;;
    *" --crate-name vesper_"*) exec "$@" {flags} ;;
    *) exec "$@" ;;
esac
"""


def extension() -> Path:
    """Return the place of the instrumented extension."""
    return PACKAGE / "vesper" / f"_direct{sysconfig.get_config_var('EXT_SUFFIX')}"


def build() -> None:
    """Build the extension with counters, in a copy of the package."""
    WORK.mkdir(parents=True, exist_ok=True)
    source = Path(__file__).parent / "counters.c"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", str(LIBRARY), str(source)], check=True)
    wrapper = WORK / "rustc.sh"
    text = _WRAPPER.format(flags=" ".join(FLAGS), library=LIBRARY, folder=WORK)
    if not wrapper.is_file() or wrapper.read_text(encoding="utf-8") != text:
        wrapper.write_text(text, encoding="utf-8")
        wrapper.chmod(0o755)
    target = WORK / "target"
    command = ["cargo", "build", "--quiet", "--locked", "--profile", "coverage", "--package", "vesper-py"]
    command += ["--manifest-path", str(ROOT / "direct_runtime" / "Cargo.toml"), "--target-dir", str(target)]
    for name, value in PROFILE.items():
        command += ["--config", f"profile.coverage.{name}={value}"]
    environment = {
        **os.environ,
        "PYO3_BUILD_EXTENSION_MODULE": "1",
        "PYO3_PYTHON": sys.executable,
        "RUSTC_WORKSPACE_WRAPPER": str(wrapper),
    }
    subprocess.run(command, env=environment, check=True)
    shutil.rmtree(PACKAGE, ignore_errors=True)
    shutil.copytree(ROOT / "vesper", PACKAGE / "vesper", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    shutil.copy(target / "coverage" / "lib_direct.so", extension())


if __name__ == "__main__":
    build()
