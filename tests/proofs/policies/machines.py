"""`make proof-policies`, second part: a million drawn stories on the machines of Rust and on the reference in Python.

A story is a list of events at one gate, at a state in memory with a few names, or of the failed attempts at one effect.
The next moment is often one that the reference state names, or the one before or after it; rules change within a story.
Decisions must have equal records. What is done is kept under `.proofs/`; the same command continues where it was
stopped. A whole run writes `docs/proofs/policies.json`; one of fewer stories only prints.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.policies.reference import breaker, concurrency, gate, rate_limit, retry, tokens  # noqa: E402
from tests.proofs.policies.reference.memory_state import CLOCK_STEP_US, MemoryPolicyState, Token  # noqa: E402
from tests.proofs.robustness.proof import STATE, hash_of, read_json, write_json, write_proof  # noqa: E402
from vesper._direct import LimitToken, PolicyGate, RetryMachine, SharedLimits  # noqa: E402
from vesper.journal.typed_json import encode_text  # noqa: E402
from vesper.policies.retry import LONGEST_DELAY_US, Rule  # noqa: E402
from vesper.policies.settings import MAX_US, PolicyError  # noqa: E402

NAME = "policies"
REFERENCE = ROOT / "tests" / "proofs" / "policies" / "reference"
STORIES = 1_000_000
CHUNK = 5_000
SEED = 20_261_117
SECOND = 1_000_000
NOW = 1_790_000_000_000_000
_GAPS = (0, 0, 1, 999, 2_000, 20_000, 300_000, 1_100_000, 10 * SECOND)
_CODES = ("timeout", "unavailable", "overloaded", "http_500", "http_503", "http_429", "http_599", "http_600", "denied")
_TOKENS = (0, 1, 1, 2, 3, 40, 100, 999_999_937)
_Policy = dict[str, int | str | tuple[str, ...]]


class Difference(Exception):
    """The two gave different decisions."""


def some_rule(chance: random.Random) -> gate.Rule:
    """Draw the policies of a gate: any of the three, with small numbers that meet and sometimes the largest."""
    times = (1, 50, 1_000, 400_000, 3 * SECOND, MAX_US)
    limit = chance.choice((1, 2, 3, 7, 11, 12, 999_999_937))
    kinds = chance.choice(("s", "r", "p", "sr", "sp", "rp", "srp", "srp", "t", "tp", "st", "stp"))
    held = chance.choice((1, 5, 100, 999_999_937))
    pace = rate_limit.Rule(
        limit, chance.choice((7, 50, 1_000, SECOND, 60 * SECOND, MAX_US)), chance.choice((1, 1, min(2, limit), limit))
    )
    return gate.Rule(
        breaker.Rule(chance.randint(1, 3), chance.choice(times), chance.choice(times)) if "s" in kinds else None,
        concurrency.Rule(chance.randint(1, 3)) if "r" in kinds else None,
        pace if "p" in kinds else None,
        tokens.Rule(held, chance.choice((7, 1_000, SECOND, 60 * SECOND)), chance.choice((1, min(3, held), held)))
        if "t" in kinds
        else None,
        chance.choice((None, None, 1, 100, SECOND, MAX_US)),
    )


def some_rules(chance: random.Random) -> list[gate.Rule]:
    """Draw the rules of a story: often one, and several where a node was deployed anew."""
    return [some_rule(chance) for _ in range(chance.choice((1, 1, 1, 2, 3)))]


def policy_of(rule: gate.Rule) -> _Policy:
    """Return the rule as the IR would hold it."""
    found: _Policy = {}
    if rule.breaker is not None:
        found |= {"breaker_failures": rule.breaker.failures, "breaker_within_us": rule.breaker.within_us}
        found["breaker_open_us"] = rule.breaker.open_us
    if rule.concurrency is not None:
        found["concurrency"] = rule.concurrency.limit
    if rule.rate is not None:
        found |= {"rate_limit": rule.rate.limit, "rate_per_us": rule.rate.per_us, "rate_burst": rule.rate.burst}
    if rule.tokens is not None:
        found |= {"token_limit": rule.tokens.limit, "token_per_us": rule.tokens.per_us}
        found["token_burst"] = rule.tokens.burst
    if rule.attempt_us is not None:
        found["timeout_us"] = rule.attempt_us
    return found


def moments(state: gate.State) -> Iterator[int]:
    """Return moments at which something changes by itself."""
    if state.breaker is not None:
        match state.breaker.phase:
            case breaker.Closed(since_us, failures):
                yield from (at_us + state.breaker.rule.within_us for at_us, _ in failures)
                yield since_us
            case breaker.Open(until_us) | breaker.HalfOpen(_, until_us):
                yield until_us
    if state.concurrency is not None:
        yield from (until_us for until_us, _ in state.concurrency.inside)
        yield from (until_us for _, until_us in state.concurrency.queue)
        yield from (until_us - concurrency.PATIENCE_US for _, until_us in state.concurrency.queue)
    if state.tokens is not None:
        yield state.tokens.full_us
        yield from (until_us for until_us, _, _ in state.tokens.holds)
        yield from (until_us - concurrency.PATIENCE_US for _, until_us in state.tokens.queue)
    if state.rate is not None:
        rule = state.rate.rule
        yield state.rate.arrival // rule.limit
        yield (state.rate.arrival - (rule.burst - 1) * rule.per_us) // rule.limit


def next_moment(chance: random.Random, state: gate.State, now_us: int) -> int:
    """Draw the time of the next event: at or beside a moment of the state, or after a gap."""
    if chance.random() < 0.5:
        named = [each for each in moments(state) if now_us < each + 1 < now_us + 400 * SECOND]
        if named:
            return max(now_us, chance.choice(named) + chance.choice((-1, 0, 0, 1)))
    return now_us + chance.choice(_GAPS)


def gate_story(chance: random.Random, kinds: Counter[str]) -> None:
    """Step one gate of each kind through the same events."""
    rules = some_rules(chance)
    state, native = gate.State(), PolicyGate()
    admitted: dict[str, int] = {}
    now_us = NOW
    for _ in range(chance.randint(3, 24)):
        now_us = next_moment(chance, state, now_us)
        rule = chance.choice(rules)
        policy, asker = policy_of(rule), f"w{chance.randrange(6)}"
        what = chance.choice(("ask", "ask", "ask", "failed", "failed", "answered", "abandoned"))
        decided: gate.Decided
        if what == "ask":
            lease_us = rule.lease_us(chance.choice((None, 0, 1_500, 150_000, 10**9)))
            before_us = now_us + chance.choice((0, 1, 1_500, 2_000, 4_001, 150_000, 10**9))
            most = chance.choice(_TOKENS)
            part, decided = gate.ask(state.under(rule), gate.Ask(asker, lease_us, before_us, most), now_us)
            found = native.ask(policy, asker, lease_us, before_us, now_us, most)
            if isinstance(decided, gate.Admitted):
                admitted[asker] = now_us
        else:
            at_us = admitted.get(asker, now_us - chance.choice(_GAPS))
            is_failure = None if what == "abandoned" else what == "failed"
            used = chance.choice((None, *_TOKENS))
            event = gate.Abandoned(asker) if is_failure is None else gate.Ended(asker, at_us, is_failure, used)
            part, decided = gate.leave(state.under(rule), event, now_us)
            found = native.leave(policy, asker, at_us, is_failure, now_us, used)
        state = state.with_part(part)
        record = decided.to_record()
        compare(encode_text(record), found, what, policy, now_us)
        kinds[f"{record['decision']} {record.get('by', '') or record.get('breaker', '')}".strip()] += 1
        idle_us = now_us + chance.choice(_GAPS)
        compare(str(gate.is_idle(state, idle_us)), str(native.is_idle(idle_us)), "is_idle", policy, idle_us)


def retry_story(chance: random.Random, kinds: Counter[str]) -> None:
    """Fail the attempts at one effect until both give up."""
    policy: _Policy = {"attempts": chance.choice((1, 2, 3, 5, 100))}
    if chance.random() < 0.4:
        policy["retry_on"] = tuple(chance.sample((*_CODES, "any", "http_error", "http_4xx"), chance.randint(1, 3)))
    if chance.random() < 0.8:
        policy["backoff_us"] = chance.choice((1, 7, 1_000, SECOND, 7_200 * SECOND, MAX_US))
    if chance.random() < 0.5:
        policy["backoff_factor"] = chance.choice((1, 2, 3, 10, 100))
    if chance.random() < 0.5:
        policy["backoff_max_us"] = chance.choice((1, 1_000, SECOND, MAX_US))
    if chance.random() < 0.6:
        policy["jitter"] = chance.choice(("none", "full", "full"))
    effect_class = chance.choice(("read", "keyed", "probe", "idempotent", "read", "keyed", "unsafe"))
    now_us, rest = NOW, chance.choice((0.0, 0.0, 0.2, 1.0))
    deadline_us = chance.choice((None, None, None, now_us, now_us + 1, now_us + SECOND, now_us + 10**10))
    state = retry.State(Rule.of(policy, effect_class), deadline_us)
    native = RetryMachine(policy, effect_class, deadline_us)
    for _ in range(110):
        code = chance.choice(_CODES) if chance.random() < rest else chance.choice(("timeout", "unavailable"))
        draw = chance.choice((0, 1, retry.DRAWS - 1, chance.randrange(retry.DRAWS)))
        asked_us = chance.choice((*[None] * 40, *[0, 1, SECOND] * 5, LONGEST_DELAY_US, LONGEST_DELAY_US + 1))
        state, decided = retry.step(state, retry.Failed(code, draw, asked_us), now_us)
        compare(encode_text(decided.to_record()), native.failed(code, draw, asked_us, now_us), "retry", policy, now_us)
        kinds[f"{decided.decision} {decided.reason if isinstance(decided, retry.GiveUp) else ''}".strip()] += 1
        if isinstance(decided, retry.GiveUp):
            return
        now_us += chance.choice((0, decided.delay_us))


def memory_story(chance: random.Random, kinds: Counter[str]) -> None:
    """Use one state in memory of each kind, with more names than it has room for and a clock that steps back."""
    size = chance.choice((1, 3, 20, 20, 20))
    state, native = MemoryPolicyState(size), SharedLimits("memory:", "", True, max_names=size)
    held: list[tuple[Token, LimitToken]] = []
    names, rules = [f"n{number}" for number in range(chance.choice((1, 4)))], some_rules(chance)
    now_us = NOW
    for _ in range(chance.randint(3, 24)):
        if chance.random() < 0.15:
            now_us += chance.choice((-1, -SECOND, -CLOCK_STEP_US, -CLOCK_STEP_US - 1))
        else:
            entry = state._entries.get(chance.choice(names))
            now_us = next_moment(chance, gate.State() if entry is None else entry.state, now_us)
        if held and chance.random() < 0.4:
            one, other = held.pop(chance.randrange(len(held)))
            if chance.random() < 0.3:
                state.abandon(one, now_us)
                native.abandon(other, now_us)
                continue
            code = chance.choice((None, *_CODES))
            used = chance.choice((None, *_TOKENS))
            changes = (
                state.release(one, code, now_us, tokens=used).breaker,
                native.release(other, code, now_us, tokens=used),
            )
            compare(*changes, f"release {code}", {}, now_us)
            kinds[f"memory released {changes[0]}"] += 1
            continue
        name, policy = chance.choice(names), policy_of(chance.choice(rules))
        deadline_us = chance.choice((None, None, None, now_us - 1, now_us, now_us + 1_500, now_us + 10**9))
        waiting = held.pop(chance.randrange(len(held))) if held and chance.random() < 0.3 else None
        before, native_before = waiting or (None, None)
        demand: dict[str, Any] = {
            "tokens": chance.choice(_TOKENS),
            "patience_us": chance.choice((None, None, 0, 5_000)),
        }
        try:
            admission = state.acquire(name, policy, now_us, deadline_us, before, **demand)
        except Exception as error:  # noqa: BLE001  # whatever the reference refuses must be refused alike
            text = str(error)
            try:
                native.acquire(name, policy, now_us, deadline_us, native_before, **demand)
            except (ValueError, OverflowError) as refused:
                compare(text, str(refused), "refusal", policy, now_us)
                kinds["memory refused"] += 1
                continue
            raise Difference(f"refused by one: {text}") from None
        (kind, by, at_us, wait_us), token = native.acquire(name, policy, now_us, deadline_us, native_before, **demand)
        record: dict[str, Any] = dict(admission.decision.to_record())
        moment = {"admitted": "at_us", "waiting": "until_us", "rejected": "retry_at_us"}[kind]
        told = {"decision": kind, moment: at_us, "wait_us": wait_us} | ({"by": by} if by else {})
        compare(encode_text(record), encode_text(told), "acquire", policy, now_us)
        kinds[f"memory {kind} {by}".strip()] += 1
        if admission.token is not None and token is not None:
            held.append((admission.token, token))
            if admission.token.store == "memory":
                compare(str(admission.token.admitted_us), str(token.admitted_us), "admitted_us", policy, now_us)


_BAD: tuple[Any, ...] = (0, -1, 10**9 + 1, 10**15 + 1, "x", "none", ("timeout",), (), 1, 2, 10_001, 101)
_KEYS = (
    *("attempts", "retry_on", "backoff_us", "backoff_factor", "backoff_max_us", "jitter", "breaker_failures"),
    *("breaker_within_us", "breaker_open_us", "concurrency", "rate_limit", "rate_per_us", "rate_burst", "timeout_us"),
    *("token_limit", "token_per_us", "token_burst"),
)


def settings_story(chance: random.Random, kinds: Counter[str]) -> None:
    """Read a policy of any settings: both refuse it with the same message, or none does."""
    policy: _Policy = {key: chance.choice(_BAD) for key in chance.sample(_KEYS, chance.randint(1, 5))}
    for what, one, other in (
        ("gate", lambda: gate.Rule.of(policy), lambda: PolicyGate().ask(policy, "w", 1, NOW + 1, NOW)),
        ("retry", lambda: Rule.of(policy, "read"), lambda: RetryMachine(policy, "read")),
    ):
        compare(refusal(one), refusal(other), what, policy, NOW)
        kinds[f"{what} settings {'accepted' if refusal(one) == '' else 'refused'}"] += 1


def refusal(read: Any) -> str:
    try:
        read()
    except (PolicyError, ValueError) as error:
        return str(error)
    return ""


def compare(reference: str, found: str, what: str, policy: _Policy, now_us: int) -> None:
    if reference != found:
        raise Difference(f"{what} at {now_us} under {policy}: {found}, and the reference gives {reference}")


_STORIES = (gate_story, gate_story, gate_story, gate_story, retry_story, retry_story, memory_story, settings_story)


def tell(number: int, kinds: Counter[str]) -> None:
    """Run the story of a number on both."""
    chance = random.Random(SEED + number)
    _STORIES[number % len(_STORIES)](chance, kinds)


def source_hash() -> str:
    """Changes with every change of the machines, of their reference, and of the stories."""
    machines = ROOT / "direct_runtime" / "crates" / "vesper-host" / "src" / "policy"
    sources = [path for path in machines.glob("*.rs") if path.stem != "redis_state"]
    return hash_of([*sources, *REFERENCE.rglob("*.py"), Path(__file__)])


def campaign(stories: int) -> int:
    file = STATE / f"{NAME}.json"
    state: dict[str, Any] = read_json(file) or {}
    sources = source_hash()
    if state.get("source_hash") != sources:
        state = {"source_hash": sources, "stories": 0, "decisions": {}, "differences": [], "elapsed_seconds": 0.0}
    kinds: Counter[str] = Counter(state["decisions"])
    while state["stories"] < stories:
        begun = time.monotonic()
        for number in range(state["stories"], min(stories, state["stories"] + CHUNK)):
            try:
                tell(number, kinds)
            except Difference as difference:
                state["differences"].append({"story": number, "what": str(difference)[:1000]})
        state["stories"] = min(stories, state["stories"] + CHUNK)
        state["elapsed_seconds"] += time.monotonic() - begun
        state["decisions"] = dict(kinds)
        write_json(file, state)
        if sys.stderr.isatty():
            print(f"\r{state['stories']} of {stories} stories", end="", file=sys.stderr, flush=True)
    proof = {
        "source_hash": sources,
        "seed": SEED,
        "stories": state["stories"],
        "decisions": sum(kinds.values()),
        "differences": len(state["differences"]),
        "by_decision": dict(sorted(kinds.items())),
        "elapsed_seconds": round(state["elapsed_seconds"], 1),
    }
    print(json.dumps(proof, indent=2))
    for each in state["differences"][:10]:
        print(each, file=sys.stderr)
    if stories >= STORIES and not state["differences"]:
        write_proof(NAME, proof)
    return 1 if state["differences"] else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stories", type=int, default=STORIES)
    sys.exit(campaign(parser.parse_args().stories))


if __name__ == "__main__":
    main()
