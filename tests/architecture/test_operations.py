"""Every declared operation is known everywhere, and no others are."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import yaml

from vesper import _direct
from vesper.language.ir.nodes import FOR_KINDS
from vesper.values.generated.operations import FORMS, IMPLEMENTED, OPERATIONS

ROOT = Path(__file__).parents[2]


def declared(status: str | None = None) -> dict[str, int]:
    """Return declared operations by full name with their number of examples, from the TOML files."""
    found = {}
    for path in sorted((ROOT / "schemas" / "ops").glob("*.toml")):
        for family, operations in tomllib.loads(path.read_text(encoding="utf-8"))["op"].items():
            for name, entry in operations.items():
                if status in (None, entry.get("status", "implemented")):
                    found[f"{family}.{name}"] = len(entry["examples"])
    return found


def test_generated_files_are_fresh() -> None:
    run = subprocess.run(
        [sys.executable, "schemas/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_checker_knows_every_operation() -> None:
    assert set(OPERATIONS) == set(declared())


def test_the_checker_knows_which_operations_exist_and_which_are_only_specified() -> None:
    assert set(IMPLEMENTED) == set(declared("implemented")) - set(FORMS)
    assert {name for name, spec in OPERATIONS.items() if spec.status == "specified"} == set(declared("specified"))


def test_forms_are_the_operations_with_a_function_among_their_parameters() -> None:
    assert set(FORMS) == {name for name, spec in OPERATIONS.items() if any("fn(" in text for _, text in spec.params)}
    assert {spec.form for spec in FORMS.values()} <= set(FOR_KINDS)


def test_the_direct_engine_knows_every_operation() -> None:
    assert sorted(_direct.operation_names()) == sorted(set(declared("implemented")) - set(FORMS))


def test_every_example_of_an_implemented_operation_is_a_conformance_case() -> None:
    cases: dict[str, int] = {}
    for path in (ROOT / "tests" / "conformance" / "generated").glob("*.yaml"):
        for case in yaml.safe_load(path.read_text(encoding="utf-8")) or ():
            op = case["id"].rpartition(".")[0]
            cases[op] = cases.get(op, 0) + 1
    # No example could have a table; tests/unit/kernels/test_lookup_kernels.py compares the engines.
    wanted = {op: count for op, count in declared("implemented").items() if not op.startswith("lookup.")}
    assert set(cases) == set(wanted)
    # An example of a generic operation waits if no engine has its type yet.
    assert all(1 <= cases[op] <= wanted[op] for op in wanted)
