"""Sets of edges, their places, the shares and the listing, and which programs are kept. No build is needed."""

from __future__ import annotations

import pytest

from tests.proofs.coverage.edges import Place, edges_of, members, place_of, short_name
from tests.proofs.coverage.keep import Candidate, choose, with_intent
from tests.proofs.coverage.report import EdgeMap, Unreachable, edge_set, ranges, read_unreachable
from tests.proofs.robustness.proof import PROOFS, ROOT, engine_hash, read_json

FIRST = Place("opt", "facts.rs", 10, 5, "Facts::hold")
SECOND = Place("opt", "facts.rs", 12, 9, "Facts::hold")
THIRD = Place("jit", "lower.rs", 7, 1, "Lower::fmt")
PLACES = [FIRST, None, SECOND, FIRST, THIRD]


def test_counters_become_sets() -> None:
    assert edges_of(b"\0\x01\0\xff") == 0b1010
    assert edges_of(b"") == 0
    assert members(0b1010) == [1, 3]
    assert members(0) == []
    assert edge_set([0, 9, 3]) == 1 | 8 | 512


def test_the_place_is_the_innermost_frame_of_our_crates() -> None:
    inlined = {"FileName": "library/core/src/option.rs", "Line": 3, "Column": 1, "FunctionName": "map"}
    ours = {
        "FileName": "direct_runtime/crates/vesper-opt/src/a/b.rs",
        "Line": 9,
        "Column": 4,
        "FunctionName": "vesper_opt::a::b::<impl vesper_opt::T>::run::h0123456789abcdef",
    }
    assert place_of([inlined, ours]) == Place("opt", "a/b.rs", 9, 4, "b::run")
    assert place_of([inlined]) is None
    assert place_of([{**ours, "Line": 0}]) is None
    assert place_of([{**ours, "FileName": "direct_runtime/crates/vesper-sandbox/src/lib.rs"}]) is None


@pytest.mark.parametrize(
    "function, short",
    [
        ("_$LT$vesper_ir..ops..Op$u20$as$u20$core..fmt..Debug$GT$::fmt", "Op::fmt"),
        ("vesper_jit::lower::Lower<T>::operand", "Lower::operand"),
        ("{closure#2}", "{closure#2}"),
    ],
)
def test_names_lose_their_type_arguments(function: str, short: str) -> None:
    assert short_name(function) == short


def test_copies_of_a_position_count_once() -> None:
    edges = EdgeMap(PLACES, [])
    assert edges.merge(0b00001) == edges.merge(0b01000) == 0b1
    assert edges.merge(0b00010) == 0
    assert edges.reached_by_crate(edges.merge(0b11111))["opt"] == 2


def test_unreachable_functions_count_in_one_share_only() -> None:
    edges = EdgeMap(PLACES, [Unreachable("jit", "*", "*fmt", "Debug"), Unreachable("opt", "gone.rs", "*", "old")])
    shares = edges.shares(edges.merge(0b00001))
    assert shares["all"] == {"edges": 3, "reachable": 2, "reached": 1, "share": 0.3333, "share_of_reachable": 0.5}
    assert edges.shares(edges.merge(0b10000))["jit"]["share_of_reachable"] == 1.0
    assert [each.file for each in edges.unused] == ["gone.rs"]


def test_the_listing_names_what_is_unreached() -> None:
    text = EdgeMap(PLACES, [Unreachable("jit", "*", "*fmt", "Debug")]).listing(0b1)
    assert "## opt: 1 edges unreached" in text
    assert "### opt/src/facts.rs: 1\n- `Facts::hold` 1 of 2: lines 12" in text
    assert "Lower::fmt" not in text
    assert ranges([3, 1, 2, 9, 2]) == "1-3, 9"


def test_programs_are_chosen_by_edges_for_their_size() -> None:
    small, large = Candidate("a_1_v1", "x", 1, 0b0110), Candidate("b_2_v1", "x" * 9, 2, 0b1111)
    same = Candidate("c_3_v1", "xx", 3, 0b0110)
    chosen = choose([large, same, small], known=0b0001)
    assert [(each.candidate.name, each.needed) for each in chosen] == [("a_1_v1", 0b0110), ("b_2_v1", 0b1000)]
    assert choose([small], known=0b0110) == []


def test_a_kept_program_says_what_it_reaches() -> None:
    text = with_intent("node_id: a_v1\nintent: old\nflow: []\n", {"b::g", "a::f"})
    assert text == 'node_id: a_v1\nintent: "Reach a::f, b::g"\nflow: []\n'


def test_the_list_of_unreachable_functions_names_files_that_exist() -> None:
    for entry in read_unreachable():
        sources = ROOT / "direct_runtime" / "crates" / f"vesper-{entry.crate}" / "src"
        assert list(sources.glob(entry.file if entry.file != "*" else "*.rs")), entry
        assert entry.reason, entry


def test_the_proof_says_of_what(capsys: pytest.CaptureFixture[str]) -> None:
    proof = read_json(PROOFS / "coverage.json")
    assert proof is not None, "docs/proofs/coverage.json is missing; see docs/proofs/README.md"
    assert set(proof["crates"]) == {"kernels", "interp", "opt", "jit", "ir", "arrow", "py", "all"}
    if proof["source_hash"] != engine_hash():
        with capsys.disabled():
            print("\ndocs/proofs/coverage.json is of another Rust engine; docs/proofs/README.md says what renews it")
