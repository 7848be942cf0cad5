"""What a wheel and a source distribution of Vesper must hold, and must not."""

from __future__ import annotations

import re

WANTED_IN_WHEEL = (
    r"vesper/__init__\.py",
    r"vesper/__init__\.pyi",
    r"vesper/_direct\.pyi",
    r"vesper/py\.typed",
    r"vesper/cli/main\.py",
    r"vesper/language/vsp\.schema\.json",
    r"vesper/effects/http/packs/[\w-]+\.toml",
    r"vesper/effects/models/prices\.toml",
    r"vesper/mcp/author/guide\.md",
    r"vesper/lsp/features/reference\.json",
    r"vesper/dashboard/templates/[\w/]+\.html",
    r"vesper/dashboard/static/[\w/]+\.(css|js|svg)",
    r"vesper/dashboard/static/vendor/monaco/(LICENSE|[\w.]+)",
    r"vesper/kernel/v1/\w+_pb2\.pyi",
    # The templates of generated Python, as `make generate` puts them into the package.
    r"vesper/codegen/templates\.py",
    r"vesper-[\d.]+\.dist-info/METADATA",
    r"vesper-[\d.]+\.dist-info/entry_points\.txt",
    r"vesper-[\d.]+\.dist-info/licenses/LICENSE",
    r"vesper-[\d.]+\.dist-info/sboms/[\w-]+\.cyclonedx\.json",
)
WANTED_IN_SDIST = (
    r"pyproject\.toml",
    r"PKG-INFO",
    r"LICENSE",
    r"README\.md",
    r"vesper/__init__\.py",
    r"vesper/py\.typed",
    r"direct_runtime/Cargo\.toml",
    r"direct_runtime/Cargo\.lock",
    r"direct_runtime/crates/vesper-py/src/lib\.rs",
    r"direct_runtime/crates/vesper-ir/src/unicode/tables\.rs",
)
ELF_MACHINES = {"x86_64": 62, "aarch64": 183}
UNWANTED = r"(^|/)(tests|target|__pycache__|nodes|\.venv[^/]*|\.vesper|\.git|fuzz)(/|$)|\.py[co]$|\.vsp$"


def wheel_problems(names: list[str], tag: str) -> list[str]:
    """What is wrong with the files of a wheel for interpreters of this tag, such as `cp311`."""
    problems = _missing(names, WANTED_IN_WHEEL) + _unwanted(names)
    outside = [name for name in names if not re.match(r"vesper/|vesper-[\d.]+\.dist-info/", name)]
    problems += [f"{name} would be installed beside the package" for name in outside]
    extensions = [name for name in names if re.search(r"\.(so|pyd)$", name)]
    own = rf"vesper/_direct\.{tag.replace('cp3', 'cpython-3')}-[\w-]+\.so"
    if len(extensions) != 1 or not re.fullmatch(own, extensions[0]):
        problems.append(f"there should be one extension, for {tag}; there are: {', '.join(extensions) or 'none'}")
    return problems


def extension_problems(data: bytes, machine: str, platform: str) -> list[str]:
    """What is wrong with the extension of a wheel for this machine and a platform such as `manylinux_2_28`."""
    if data[:4] != b"\x7fELF":
        return ["the extension is no ELF file"]
    problems = []
    found = int.from_bytes(data[18:20], "little")
    if found != ELF_MACHINES[machine]:
        problems.append(f"the extension is for ELF machine {found}, not for {machine}")
    newest = tuple(map(int, platform.removeprefix("manylinux_").split("_")))
    needed = {(int(major), int(minor)) for major, minor in re.findall(rb"GLIBC_(\d+)\.(\d+)", data)}
    too_new = sorted(each for each in needed if each > newest)
    return problems + [f"the extension needs glibc {major}.{minor}, newer than {platform}" for major, minor in too_new]


def sdist_problems(names: list[str]) -> list[str]:
    """What is wrong with the files of a source distribution, whose first folder is left out here."""
    compiled = [f"{name} is compiled" for name in names if re.search(r"\.(so|pyd|whl)$", name)]
    # The tests of the crates go with the crates: cargo takes a package as a whole.
    own = [name for name in names if not re.match(r"direct_runtime/crates/[\w-]+/tests/", name)]
    return _missing(names, WANTED_IN_SDIST) + _unwanted(own) + compiled


def _missing(names: list[str], wanted: tuple[str, ...]) -> list[str]:
    return [f"nothing matches {each}" for each in wanted if not any(re.fullmatch(each, name) for name in names)]


def _unwanted(names: list[str]) -> list[str]:
    return [f"{name} does not belong there" for name in names if re.search(UNWANTED, name)]
