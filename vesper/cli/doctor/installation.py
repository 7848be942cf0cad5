"""The installation: facts for a bug report, and checks that need no configuration."""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import vesper
from vesper.cli.doctor.finding import Finding
from vesper.cli.output.terminal import columns, has_colours

_NODE = """\
node_id: doctor_v1
type: function
intent: Compare the engines on a small node
inputs:
  amount: decimal
outputs:
  success:
    fee: decimal
flow:
  - step: fee
    operation: compute
    value: round(amount * 0.029 + 0.30, 2)
  - operation: return
    success: [fee]
"""
_CPU_FEATURES = ("sse4_2", "avx", "avx2", "avx512f", "bmi2", "aes", "asimd", "crc32", "sve")
_REQUIREMENT = re.compile(r"([A-Za-z0-9_.-]+).*?(?:;.*extra *== *['\"]([^'\"]+)['\"].*)?")
_EARLIEST = datetime(2025, 1, 1, tzinfo=UTC).timestamp()


# -- facts ----------------------------------------------------------------------------------------


def facts() -> dict[str, str]:
    """Return the facts of a bug report by name.

    Of settings of the environment only the names are included, which hold no secrets.
    """
    installed = extras()
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}, {platform.python_compiler()}",
        "platform": f"{platform.platform()}, {' '.join(filter(None, platform.libc_ver())) or 'libc unknown'}",
        "processor": _processor(),
        "engine": _engine(),
        "packages": ", ".join(installed.pop("")),
        **{f"[{name}]": ", ".join(packages) for name, packages in installed.items()},
        "cache": _cache(),
        "terminal": _terminal(),
        "environment": ", ".join(sorted(each for each in os.environ if each.startswith("VESPER_"))) or "none set",
    }


def extras() -> dict[str, list[str]]:
    """Return the packages of each extra with their versions; those without an extra have the name ""."""
    found: dict[str, list[str]] = {"": []}
    try:
        listed = requires("vesper") or []
    except PackageNotFoundError:
        return {"": ["the package is not installed: it is imported from its source folder"]}
    for each in listed:
        match = _REQUIREMENT.fullmatch(each)
        if match is None or match[1].lower() == "vesper":
            continue
        try:
            shown = f"{match[1]} {version(match[1])}"
        except PackageNotFoundError:
            shown = f"{match[1]} missing"
        found.setdefault(match[2] or "", []).append(shown)
    return found


def _processor() -> str:
    """Return the architecture, the number of processors and the features that the engine can use."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    line = re.search(r"^(?:flags|Features)\s*:(.*)$", text, flags=re.MULTILINE)
    flags = set(line[1].split()) if line else set()
    features = " ".join(each for each in _CPU_FEATURES if each in flags)
    return f"{platform.machine()}, {os.cpu_count()} processors, {features or 'features unknown'}"


def _engine() -> str:
    try:
        from vesper.engines.direct_engine import build, code_stats, decimal_access
    except ImportError as error:
        return f"missing: {error}"
    code = "with machine code" if code_stats() is not None else "without machine code"
    return f"build {build()[:12]}, {code}, decimals by {decimal_access()}"


def _cache() -> str:
    from vesper.api.caches import cache_stats

    stats = cache_stats()["l2"]
    numbers = [f"{name.replace('_', ' ')} {value:,}" for name, value in stats.items() if isinstance(value, int)]
    return ", ".join(numbers) or str(stats.get("why_not", "empty"))


def _terminal() -> str:
    kind = os.environ.get("TERM", "no TERM") if sys.stdout.isatty() else "no terminal"
    colours = "colours" if has_colours(sys.stdout) else "no colours"
    return f"{kind}, {columns()} columns, {colours}, {sys.stdout.encoding}"


# -- checks ---------------------------------------------------------------------------------------


def check_installation() -> Iterator[Finding]:
    """Yield a finding for each part of the installation; parts that work have the level `ok`."""
    yield from _check_engines()
    yield _check_version()
    yield _check_cache()
    yield _check_clock()
    yield from _check_packages()
    yield _check_terminal()


def _check_engines() -> Iterator[Finding]:
    from vesper.compiler import compile_source
    from vesper.engines.registry import NAMES, engine_named
    from vesper.language.diagnostics.source import SourceFile

    try:
        engines = {name: engine_named(name) for name in NAMES}
    except ImportError as error:
        remedy = f"install a wheel for {platform.python_implementation()} {platform.python_version()} on "
        remedy += f"{platform.machine()}, or run `make build` in a source folder"
        yield Finding("error", "engine", f"the extension vesper._direct does not load: {error}", remedy)
        return
    yield Finding("ok", "engine", _engine())
    compiled, _ = compile_source(SourceFile("doctor_v1.vsp", _NODE))
    assert compiled is not None
    outcomes = {name: str(engine.load(compiled).call({"amount": 10})) for name, engine in engines.items()}
    if len(set(outcomes.values())) == 1:
        yield Finding("ok", "engines", f"{', '.join(outcomes)} agree on a small node")
    else:
        text = "; ".join(f"{name}: {outcome}" for name, outcome in outcomes.items())
        remedy = "reinstall Vesper; if they still differ, report it with the output of `vesper --version -v`"
        yield Finding("error", "engines", f"they disagree on a small node: {text}", remedy)


def _check_version() -> Finding:
    try:
        installed = version("vesper")
    except PackageNotFoundError:
        installed = vesper.__version__  # a source folder on the path
    if installed == vesper.__version__:
        return Finding("ok", "version", f"vesper {installed}")
    text = f"the package is {vesper.__version__} and its metadata are of {installed}"
    return Finding("error", "version", text, "reinstall Vesper into a fresh environment")


def _check_cache() -> Finding:
    from vesper.cache.entries import open_entries
    from vesper.cache.folder import NoCache, folder_name

    try:
        open_entries()
        with tempfile.TemporaryFile(dir=folder_name()):
            return Finding("ok", "cache", "the folder is private and writable")
    except NoCache as why:
        text, _, remedy = str(why).partition("; ")
        return Finding("ok" if why.is_meant else "warning", "cache", f"nodes are not cached: {text}", remedy)
    except OSError as error:
        remedy = "set VESPER_CACHE to a folder that you can write to"
        return Finding("warning", "cache", f"{folder_name()}: {error.strerror}", remedy)


def _check_clock() -> Finding:
    now = time.time()
    built = max(_EARLIEST, Path(vesper.__file__).stat().st_mtime)
    shown = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M UTC")
    if now < built - 86_400:
        text = f"the clock shows {shown}, earlier than the files of Vesper"
        return Finding("warning", "clock", text, "set the clock, for example by NTP: journals and leases rely on it")
    return Finding("ok", "clock", shown)


def _check_packages() -> Iterator[Finding]:
    for extra, packages in extras().items():
        missing = [each.removesuffix(" missing") for each in packages if each.endswith(" missing")]
        # The packages themselves: the public index has an unrelated `vesper`.
        remedy = f"pip install {' '.join(map(repr, _required(missing, extra)))}"
        if not extra and missing:
            yield Finding("error", "packages", f"{', '.join(missing)} missing", remedy)
        elif missing:
            yield Finding("ok", f"[{extra}]", f"not installed: {', '.join(missing)}", f"{remedy}, if you need it")
        else:
            yield Finding("ok", f"[{extra}]" if extra else "packages", ", ".join(packages))


def _required(names: Sequence[str], extra: str) -> list[str]:
    """Return the requirements of these packages, with their versions."""
    matches = (_REQUIREMENT.fullmatch(each) for each in requires("vesper") or [])
    wanted = [each for each in matches if each is not None and each[1] in names and (each[2] or "") == extra]
    return [each[0].partition(";")[0].strip() for each in wanted]


def _check_terminal() -> Finding:
    if (sys.stdout.encoding or "").lower().replace("-", "") == "utf8":
        return Finding("ok", "terminal", _terminal())
    return Finding("warning", "terminal", f"its encoding is {sys.stdout.encoding}", "set PYTHONUTF8=1, or LANG=C.UTF-8")
