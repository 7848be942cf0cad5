"""`make check-dependencies`: licences, bans and sources of all crates by deny.toml, and a bill of materials.

The rules are those of `cargo deny`, which the workflow runs as well; it takes minutes to compile, and this takes a
second. The bill of materials is CycloneDX 1.6, from Cargo.lock and requirements.lock.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
WORKSPACE = ROOT / "direct_runtime"
BILL = ROOT / "dist" / "sbom.cdx.json"
_REGISTRY = "registry+"
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;\\]+)", re.MULTILINE)
_TOKEN = re.compile(r"\(|\)|[A-Za-z0-9.+-]+(?: WITH [A-Za-z0-9.-]+)?")


def is_allowed(expression: str, allowed: set[str]) -> bool:
    """Return True where an SPDX expression can be met with allowed licences. `/` is an old form of OR."""
    tokens = _TOKEN.findall(expression.replace("/", " OR "))
    words = {"OR": "or", "AND": "and", "(": "(", ")": ")"}
    return bool(eval(" ".join(words.get(each, str(each in allowed)) for each in tokens), {"__builtins__": {}}))


def problems_of(packages: list[dict[str, Any]], rules: dict[str, Any]) -> list[str]:
    """Return what deny.toml forbids, a line each."""
    allowed = set(rules["licenses"]["allow"])
    banned = {each["name"] for each in rules["bans"]["deny"]}
    registries = {each["source"] for each in packages if str(each["source"]).startswith(_REGISTRY)}
    found = [f"crates come from several registries: {', '.join(sorted(registries))}"] if len(registries) > 1 else []
    for each in packages:
        name, source = f"{each['name']} {each['version']}", each["source"]
        if source is None:  # a crate of the workspace
            found += [f"{name}: {need['name']} has no version" for need in each["dependencies"] if _is_wildcard(need)]
            continue
        if not source.startswith(_REGISTRY):
            found.append(f"{name}: its source is {source}, not the registry")
        if each["name"] in banned:
            found.append(f"{name}: banned")
        if each["license"] is None or not is_allowed(each["license"], allowed):
            found.append(f"{name}: licence {each['license']} is not allowed")
    return found


def _is_wildcard(need: dict[str, Any]) -> bool:
    return need["req"] == "*" and "path" not in need


def bill_of(packages: list[dict[str, Any]], requirements: str, version: str) -> dict[str, Any]:
    """Return the bill of materials of a release."""
    crates = [
        {"type": "library", "name": each["name"], "version": each["version"], "licenses": [_license(each["license"])],
         "purl": f"pkg:cargo/{each['name']}@{each['version']}"}
        for each in packages if each["source"] is not None
    ]  # fmt: skip
    wheels = [
        {"type": "library", "name": name, "version": pinned, "purl": f"pkg:pypi/{name.lower()}@{pinned}"}
        for name, pinned in _PINNED.findall(requirements)
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "library", "name": "vesper", "version": version}},
        "components": sorted((*crates, *wheels), key=lambda each: str(each["purl"])),
    }


def _license(expression: str | None) -> dict[str, str]:
    return {"expression": (expression or "NOASSERTION").replace("/", " OR ")}


def read_packages() -> list[dict[str, Any]]:
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--format-version", "1", "--locked"]
    found = subprocess.run(command, cwd=WORKSPACE, check=True, capture_output=True, text=True).stdout
    packages: list[dict[str, Any]] = json.loads(found)["packages"]
    return packages


def main() -> int:
    packages = read_packages()
    rules = tomllib.loads((WORKSPACE / "deny.toml").read_text(encoding="utf-8"))
    found = problems_of(packages, rules)
    for each in found:
        print(f"error: {each}", file=sys.stderr)
    version = tomllib.loads((WORKSPACE / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
    bill = bill_of(packages, (ROOT / "requirements.lock").read_text(encoding="utf-8"), version)
    BILL.parent.mkdir(exist_ok=True)
    BILL.write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")
    crates = sum(each["source"] is not None for each in packages)
    print(f"{crates} crates checked; {len(bill['components'])} components in {BILL.relative_to(ROOT)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
