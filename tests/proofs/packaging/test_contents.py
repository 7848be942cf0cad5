"""The lists of what belongs into a wheel; `make wheels` builds real ones."""

from __future__ import annotations

from tests.proofs.packaging.contents import sdist_problems, wheel_problems

WHEEL = [
    "vesper/__init__.py",
    "vesper/__init__.pyi",
    "vesper/_direct.pyi",
    "vesper/_direct.cpython-312-x86_64-linux-gnu.so",
    "vesper/py.typed",
    "vesper/cli/main.py",
    "vesper/codegen/templates.py",
    "vesper-0.3.0.dist-info/METADATA",
    "vesper-0.3.0.dist-info/entry_points.txt",
    "vesper-0.3.0.dist-info/licenses/LICENSE",
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
