"""Every RPC of a real kernel by a client that knows it by reflection: good and bad arguments, and their codes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from emit.kernel import rpcs
from tests.integration.kernel_reflection.cases import TEXT, cases_of
from tests.integration.kernel_reflection.mutations import refused
from tests.integration.kernel_reflection.world import PACKAGE, World
from tests.support.nodes import ROOT
from tests.support.work.reflected import VERSIONS, Json, Reflected, Result

NAMES = [name.rpartition(".")[2] for name in cases_of("v1")]
_CODE = re.compile(r"\b[A-Z]+(?:_[A-Z]+)+\b|\bABORTED\b|\bUNAVAILABLE\b|\bINTERNAL\b|\bUNIMPLEMENTED\b|\bCANCELLED\b")


def whole_name(kernel: Reflected, name: str) -> str:
    (found,) = (each for each in kernel.methods if each.endswith(f".{name}"))
    return found


def call(kernel: Reflected, name: str, request: Json) -> Result:
    return kernel.call(name, request, limit=1)


def send(world: World, name: str, code: str, request: Json) -> Result:
    """Call an RPC; one that is refused has changed nothing."""
    before = world.sequence()
    result = call(world.kernel, name, request)
    assert result.code == code, f"{name} {request}: {result}"
    if code not in ("OK", "ABORTED", "DEADLINE_EXCEEDED"):
        assert result.message
        assert world.sequence() == before, f"{name} {request}"
    return result


def test_reflection_knows_every_rpc(kernel: Reflected, version: str) -> None:
    assert set(kernel.methods) == set(cases_of(version))
    by_service = [name.partition("/")[0] for name in kernel.methods if name.startswith(PACKAGE)]
    assert {each: by_service.count(each) for each in set(by_service)} == {
        f"{PACKAGE}.KernelService": 20,
        f"{PACKAGE}.EngineService": 6,
        f"{PACKAGE}.OrchestrationService": 6,
        f"{PACKAGE}.CommBusService": 6,
        f"{PACKAGE}.InterruptService": 5,
        f"{PACKAGE}.RegistryService": 11,
    }


@pytest.mark.parametrize("name", NAMES)
def test_an_rpc_answers_with_the_documented_code(kernel: Reflected, world: World, version: str, name: str) -> None:
    rpc = whole_name(kernel, name)
    for case in cases_of(version)[rpc]:
        result = send(world, rpc, case.code, case.make(world))
        for member, value in case.members.items():
            found = result.answers[0][member]
            assert found if value is TEXT else found == value


@pytest.mark.parametrize("version", ["v1"], indirect=True)
@pytest.mark.parametrize("name", [each for each in NAMES if not each.startswith(("Health/", "ServerReflection/"))])
def test_a_request_with_one_wrong_member_is_refused(kernel: Reflected, world: World, version: str, name: str) -> None:
    rpc = whole_name(kernel, name)
    good = cases_of(version)[rpc][0].make(world)
    for member, code, request in refused(kernel.methods[rpc].input_type, good):
        result = send(world, rpc, code, request)
        assert result.message.strip(), member
    assert call(kernel, rpc, good).code == "OK"


@pytest.mark.parametrize("version_of_cases", VERSIONS)
def test_the_codes_of_the_cases_are_documented(version_of_cases: str) -> None:
    """A code stands in the table of the specification, or in the comment of the RPC."""
    general = set(_CODE.findall(_section("Status codes")))
    assert {"INVALID_ARGUMENT", "NOT_FOUND", "UNAVAILABLE", "OUT_OF_RANGE"} <= general
    comments = dict(_comments())
    for rpc, cases in cases_of(version_of_cases).items():
        own = set(_CODE.findall(comments.get(rpc.removeprefix(f"{PACKAGE}."), "")))
        for case in cases:
            assert case.code in {"OK"} | (general - SPECIFIC) | own, f"{rpc} answers {case.code}"


SPECIFIC = {"UNAVAILABLE", "RESOURCE_EXHAUSTED", "OUT_OF_RANGE", "DEADLINE_EXCEEDED"}
"""Codes that the kernel as a whole may answer with; where an RPC has a reason of its own, its comment says so."""


def _section(title: str) -> str:
    text = (ROOT / "docs" / "spec" / "kernel.md").read_text(encoding="utf-8")
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def _comments() -> Iterator[tuple[str, str]]:
    for each in rpcs():
        yield f"{each.service}/{each.name}", each.doc
