"""Trials of a prover's results that share no code with it: many inputs against proofs, cases against refutations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from random import Random

from vesper.compiler import Compiled, compile_source
from vesper.engines.engine import Limits
from vesper.engines.outcome import ContractBroken, Failed, Outcome
from vesper.engines.registry import PAIR
from vesper.language.diagnostics.source import SourceFile
from vesper.proof.claims.model import CLAUSE, OPERATION, ClaimKey, NodeProof, Result, Verdict
from vesper.testing.case_insertion import add_case
from vesper.verify.inputs.generator import InputGenerator
from vesper.verify.inputs.responses import GeneratedResponses, TooManyRequests, run_case, run_with

DRAWN = 2_000
"""Inputs from the generator; the others combine their values anew, which costs a hundredth."""
_LIMITS = Limits(fuel=1_000_000)


def broken(outcome: Outcome) -> ClaimKey | None:
    """Return the claim that an outcome contradicts, if it is of a clause or an operation."""
    match outcome:
        case ContractBroken(phase, index, _):
            return CLAUSE, phase, index, ""
        case Failed(code, int(at), _):
            return OPERATION, "", at, str(getattr(code, "value", code))
        case _:
            return None


def inputs_of(compiled: Compiled, count: int, seed: int) -> Iterator[dict[str, object]]:
    """Yield inputs: some drawn, the rest with each value from another drawn one."""
    generator = InputGenerator(compiled.node, seed, examples=[each.inputs for each in compiled.cases])
    random = Random(seed)
    drawn = [generator.draw() for _ in range(min(count, DRAWN))]
    yield from drawn
    for _ in range(count - len(drawn)):
        first = random.choice(drawn)
        yield {name: random.choice(drawn).get(name, value) for name, value in first.items()}


def contradicted(compiled: Compiled, claims: Iterable[ClaimKey], count: int, seed: int) -> dict[ClaimKey, str]:
    """Run a node on many inputs; return the claims that one contradicts, with that input."""
    wanted, found = set(claims), dict[ClaimKey, str]()
    run = _runner(compiled, seed)
    for number, inputs in enumerate(inputs_of(compiled, count, seed)):
        outcome = run(inputs, number)
        key = None if outcome is None else broken(outcome)
        if key in wanted and key not in found:
            found[key] = repr(inputs)
    return found


def _runner(compiled: Compiled, seed: int) -> Callable[[dict[str, object], int], Outcome | None]:
    program = PAIR["interp"].load(compiled)
    responses = GeneratedResponses(compiled)

    def pure(inputs: dict[str, object], number: int) -> Outcome:
        return program.call(inputs, responses.now(f"{seed} {number}"), _LIMITS)

    def with_effects(inputs: dict[str, object], number: int) -> Outcome | None:
        answer = responses.responder(f"{seed} {number}", inputs)
        try:
            return run_with(program, inputs, responses.now(f"{seed} {number}"), answer, _LIMITS).outcome
        except TooManyRequests:
            return None

    return pure if compiled.node.is_pure() else with_effects


def is_shown(compiled: Compiled, result: Result) -> bool:
    """Return whether both engines contradict a claim on its witness, read back from the text of a case."""
    assert result.witness is not None
    if result.witness.case is None:
        return False
    text = add_case(compiled.source.text, result.witness.case.splitlines())
    again, bag = compile_source(SourceFile(compiled.source.path, text))
    assert again is not None, [str(each) for each in bag.sorted()]
    case = again.cases[-1]
    outcomes = [run_case(engine.load(again), case).outcome for engine in PAIR.values()]
    return all(broken(each) == result.claim.key for each in outcomes)


def proven_keys(proof: NodeProof) -> list[ClaimKey]:
    """Return the proven claims that an outcome can contradict."""
    return [each.claim.key for each in proof.of_kind(CLAUSE, OPERATION) if each.verdict is Verdict.PROVEN]


def with_negated_clause(compiled: Compiled, number: int) -> Compiled | None:
    """Return the node with one postcondition negated; None where its text stands elsewhere too."""
    text = compiled.node.postconditions[number].text
    source = compiled.source.text
    if source.count(text) != 1 or "\n" in text or any(each in text for each in "'\":#"):
        return None
    changed, _ = compile_source(SourceFile(compiled.source.path, source.replace(text, f"NOT ({text})")))
    return changed
