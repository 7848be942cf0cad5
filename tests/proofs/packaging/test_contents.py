"""The lists of what belongs into a wheel; `make wheels` builds real ones."""

from __future__ import annotations

import re
from pathlib import Path

from tests.proofs.packaging.contents import WANTED_IN_WHEEL, extension_problems, sdist_problems, wheel_problems
from tests.proofs.packaging.wheels import build_options

PACKAGE = Path(__file__).parents[3] / "vesper"

WHEEL = [
    "vesper/__init__.py",
    "vesper/__init__.pyi",
    "vesper/_direct.pyi",
    "vesper/_direct.cpython-312-x86_64-linux-gnu.so",
    "vesper/py.typed",
    "vesper/cli/main.py",
    "vesper/language/vsp.schema.json",
    "vesper/lsp/features/reference.json",
    "vesper/dashboard/templates/base.html",
    "vesper/dashboard/static/vesper.css",
    "vesper/dashboard/static/vendor/monaco/LICENSE",
    "vesper/codegen/templates.py",
    "vesper/effects/http/packs/stripe.toml",
    "vesper/effects/models/prices.toml",
    "vesper/mcp/author/guide.md",
    "vesper/kernel/v1/kernel_pb2.pyi",
    "vesper-0.3.0.dist-info/METADATA",
    "vesper-0.3.0.dist-info/entry_points.txt",
    "vesper-0.3.0.dist-info/licenses/LICENSE",
    "vesper-0.3.0.dist-info/sboms/vesper-py.cyclonedx.json",
]
SDIST = [
    "pyproject.toml",
    "PKG-INFO",
    "LICENSE",
    "README.md",
    "vesper/__init__.py",
    "vesper/py.typed",
    "direct_runtime/Cargo.toml",
    "direct_runtime/Cargo.lock",
    "direct_runtime/crates/vesper-py/src/lib.rs",
    "direct_runtime/crates/vesper-ir/src/unicode/tables.rs",
    "direct_runtime/crates/vesper-ir/tests/verify.rs",
]


def test_a_good_wheel_has_no_problems() -> None:
    assert wheel_problems(WHEEL, "cp312") == []


def test_every_file_of_the_list_is_asked_for() -> None:
    for name in WHEEL:
        assert wheel_problems([each for each in WHEEL if each != name], "cp312"), name
    for name in SDIST[:-1]:
        assert sdist_problems([each for each in SDIST if each != name]), name


def test_what_does_not_belong_into_a_wheel_is_found() -> None:
    for name in (
        "tests/conftest.py",
        "vesper/language/check/__pycache__/a.pyc",
        "vesper/a.pyc",
        "nodes/a_v1.vsp",
        "top.py",
    ):
        assert wheel_problems([*WHEEL, name], "cp312"), name
    second = "vesper/_direct.cpython-311-x86_64-linux-gnu.so"
    (problem,) = wheel_problems([*WHEEL, second], "cp312")
    assert second in problem
    assert wheel_problems(WHEEL, "cp313") == [
        "there should be one extension, for cp313; there are: vesper/_direct.cpython-312-x86_64-linux-gnu.so"
    ]


def test_a_source_distribution_has_sources_only() -> None:
    assert sdist_problems(SDIST) == []
    for name in (
        "vesper/_direct.cpython-311-x86_64-linux-gnu.so",
        "tests/a.py",
        "direct_runtime/target/a",
        "dist/a.whl",
    ):
        assert sdist_problems([*SDIST, name]), name


def test_data_that_commands_read_is_asked_for() -> None:
    """Files of the package that are no Python modules; a module that a wheel lacks fails at its import.

    The kernel's program is built beside the package, and is in no wheel.
    """
    program = PACKAGE / "kernel" / "bin"
    data = [each for each in PACKAGE.rglob("*") if each.is_file() and each.suffix not in (".py", ".pyc", ".so")]
    data = [each for each in data if each.parent != program]
    names = [each.relative_to(PACKAGE.parent).as_posix() for each in data]
    assert "vesper/py.typed" in names
    assert [name for name in names if not any(re.fullmatch(each, name) for each in WANTED_IN_WHEEL)] == []


def test_modules_read_only_data_that_is_in_the_package() -> None:
    """Names beside `__file__` or of package resources exist below `vesper/`."""
    read = re.compile(r"""(?:Path\(__file__\)[^\n"']*|files\("vesper[^\n]*?joinpath\()["']([^"'{}]+\.\w+)["']""")
    found = {(path, name) for path in PACKAGE.rglob("*.py") for name in read.findall(path.read_text(encoding="utf-8"))}
    assert any(name == "__init__.pyi" for _, name in found)
    assert [(path.name, name) for path, name in found if not list(PACKAGE.rglob(Path(name).name))] == []


def elf(machine: int, *versions: str) -> bytes:
    return b"\x7fELF".ljust(18, b"\0") + machine.to_bytes(2, "little") + " ".join(versions).encode()


def test_an_extension_is_for_the_machine_and_the_oldest_glibc_of_its_tag() -> None:
    good = elf(62, "GLIBC_2.2.5", "GLIBC_2.28", "GCC_3.0")
    assert extension_problems(good, "x86_64", "manylinux_2_28") == []
    assert extension_problems(good, "aarch64", "manylinux_2_28") == [
        "the extension is for ELF machine 62, not for aarch64"
    ]
    assert extension_problems(elf(183, "GLIBC_2.34"), "aarch64", "manylinux_2_28") == [
        "the extension needs glibc 2.34, newer than manylinux_2_28"
    ]
    assert extension_problems(b"MZ", "x86_64", "manylinux_2_28") == ["the extension is no ELF file"]


def test_wheels_of_both_machines_are_linked_by_zig() -> None:
    for machine in ("x86_64", "aarch64"):
        options = build_options(machine, "python3.12")
        assert "--zig" in options
        assert f"{machine}-unknown-linux-gnu" in options
        assert options[options.index("--compatibility") + 1] == "manylinux_2_28"
