"""The controller of a node's mode: the pure function `step(state, event, now)`.

A node rises one mode at a time, where the Wilson bound and the e-process both reach the threshold of the next mode and
nothing blocks. It falls at once. A divergence returns its path to being compared, and the node to the highest mode that
the evidence including the divergence still supports. An effect that differs, an engine fault, or runs that never end
put the node into `python_only`, latched until a person releases it. A fall restarts the evidence at the next attempt,
which needs more (`evalue`); a pin does not.

A path without enough evidence is compared before its direct outcome is returned, in every mode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from vesper.migration.control import cusum
from vesper.migration.control.modes import DEFAULT, LADDER, LATCHING, PATH_THRESHOLD, THRESHOLDS, Mode, Reason, is_legal
from vesper.migration.control.state import (
    CONTROLLER,
    LOST_RUNS,
    MAX_NOISE,
    MAX_OPEN,
    MAX_PIN_US,
    Agreed,
    Changed,
    Close,
    Closed,
    Decision,
    Demote,
    Diverged,
    EngineFaulted,
    Enumerated,
    Event,
    Forget,
    Forgotten,
    Generated,
    Kill,
    Latch,
    Latched,
    NodeState,
    NoiseFound,
    Noisy,
    PathDemoted,
    PathProven,
    PathState,
    Pin,
    PinEnded,
    PinSet,
    PinTo,
    Promote,
    Refused,
    Released,
    Resume,
    RunLost,
    Seen,
    Timed,
    Unknown,
    Unpin,
)
from vesper.migration.statistics import latency, wilson
from vesper.migration.statistics.confidence import clean_runs_needed, supports
from vesper.migration.statistics.evalue import EProcess
from vesper.migration.statistics.evidence import MAX_ENUMERATED, MAX_PATHS, is_too_unknown

StepResult = tuple[NodeState, tuple[Decision, ...]]
_NEW_PATH = PathState()
_NO_LATENCY = latency.LatencyState()
_NO_RATE = cusum.RateState()


def step(state: NodeState, event: Event, now_us: int) -> StepResult:
    """Return the state after an event, and the decisions in order of effect."""
    decisions: tuple[Decision, ...] = ()
    if state.pin is not None and now_us >= state.pin.until_us:
        state, decisions = _unpin(state, CONTROLLER, "the time of the pin is over", now_us)
    state, decided = _apply(state, event, now_us)
    decisions += decided
    if not any(isinstance(each, Changed) for each in decisions):
        state, decided = _promote_on_evidence(state, now_us)
        decisions += decided
    return state, decisions


def add_times(state: NodeState, times: Sequence[Timed]) -> tuple[NodeState, int]:
    """Return the state after the leading times, and their number.

    These are all before the first that decides anything. The result equals that of `step` on each, at a fraction of the
    cost: there is one event per request.
    """
    after, count = latency.add_times(state.latency, [(each.python_ns, each.direct_ns) for each in times])
    return replace(state, latency=after) if count else state, count


# Queries on a state.


def is_proven(state: NodeState, path: str) -> bool:
    """Return True where the evidence of the path lets a direct outcome leave uncompared."""
    if state.is_complete:
        return not state.open
    seen = state.paths.get(path)
    return seen is not None and seen.open == 0 and _is_enough(seen)


def has_line(before: NodeState, decision: Decision) -> bool:
    """Return True where the history gets a line for a decision made in the state `before`.

    A refusal changed nothing and gets none. The demotion of a path gets one where the path had evidence, where it is
    its first, and for every divergence that is not open yet. An open divergence demotes its path again and again, and
    further lines would repeat it.
    """
    match decision:
        case Refused():
            return False
        case PathDemoted(path, fingerprint):
            is_first = before.paths.get(path, _NEW_PATH).attempt == 1
            return is_first or fingerprint not in before.open or is_proven(before, path)
        case _:
            return True


@dataclass(frozen=True, slots=True)
class Missing:
    """An unmet condition for the next mode, such as `7,412 more distinct runs that agree`."""

    what: str
    count: int | None = None

    def __str__(self) -> str:
        if self.count is None:
            return self.what
        what = self.what
        if self.count == 1:
            for many, one in _SINGULARS.items():
                what = what.replace(many, one)
        return f"{self.count:,} {what}"


_SINGULARS = {"divergences": "divergence", "runs that agree": "run that agrees", "places": "place"}
"""Plural forms in the text of `Missing`, with their singular."""


def missing_conditions(state: NodeState) -> tuple[Missing, ...]:
    """Return all conditions for the next mode that are not met.

    The result is empty where the node would rise, and in the highest mode.
    """
    after = _next_mode(state.mode)
    if after is None:
        return ()
    found = list(_list_blocks(state))
    if after in THRESHOLDS and not _supports_mode(state, after):
        needed = clean_runs_needed(THRESHOLDS[after], state.divergences, state.attempt)
        found.append(Missing("more distinct runs that agree", needed - state.clean))
    if after in state.settings.approvals:
        found.append(Missing(f"the approval of a person for {after.value}"))
    return tuple(found)


def runs_until_change(state: NodeState, path: str, within: int) -> int | None:
    """Return the number of distinct clean runs on a path after which a decision follows.

    Returns None where none follows within `within` runs.
    """
    if state.mode is Mode.PYTHON_ONLY or (path not in state.paths and len(state.paths) >= MAX_PATHS):
        return None
    points = []
    seen = state.paths.get(path, _NEW_PATH)
    if not state.is_complete and not seen.open and not _is_enough(seen) and _is_enough(_add_runs(seen, within)):
        points.append(_runs_needed_on_path(seen) - seen.clean - seen.generated)
    after = _next_mode(state.mode)
    if after in THRESHOLDS and after not in state.settings.approvals:
        later = replace(state, clean=state.clean + within, compared=state.compared + within)
        if not _list_blocks(later) and _supports_mode(later, after):
            needed = state.unknown * 999 - state.compared
            if not state.is_complete:
                needed = max(
                    needed, clean_runs_needed(THRESHOLDS[after], state.divergences, state.attempt) - state.clean
                )
            points.append(max(1, needed))
    return min(points, default=None)


def evidence_of(state: NodeState, *modes: Mode) -> Seen:
    """Return the evidence of the state as a decision records it."""
    runs = state.clean + state.divergences
    threshold = max((THRESHOLDS[mode] for mode in modes if mode in THRESHOLDS), default=None)
    log_e = None if threshold is None else EProcess.from_counts(threshold, runs, state.divergences).log()
    return Seen(
        state.clean,
        state.divergences,
        state.compared,
        state.unknown,
        state.attempt,
        state.is_complete,
        wilson.lower_bound(runs, state.divergences),
        log_e,
    )


# Effects of each event.


def _apply(state: NodeState, event: Event, now_us: int) -> StepResult:
    match event:
        case Agreed():
            return _add_agreement(state, event)
        case Generated(path, distinct):
            return _fill_path(state, path, generated=distinct)
        case Enumerated():
            return _add_enumeration(state, event)
        case Diverged():
            return _add_divergence(state, event, now_us)
        case Unknown(count):
            return replace(state, unknown=state.unknown + count), ()
        case EngineFaulted(what):
            return _latch(state, Latch(Reason.ENGINE_FAULT, CONTROLLER, what, now_us))
        case RunLost(execution):
            return _add_lost_run(state, execution, now_us)
        case Noisy():
            return _add_noise(state, event)
        case Timed():
            return _add_time(state, event, now_us)
        case Close():
            return _close(state, event)
        case Promote(who, why):
            return _promote(state, event, who, why, now_us)
        case Demote():
            return _demote(state, event, now_us)
        case PinTo():
            return _pin(state, event, now_us)
        case Unpin(who, why):
            if state.pin is None:
                return state, (Refused(event, "there is no pin"),)
            return _unpin(state, who, why, now_us)
        case Kill(who, why):
            return _latch(state, Latch(Reason.KILL, who, why, now_us))
        case Resume(who, why):
            return _resume(state, event, who, why, now_us)
        case Forget(who, why):
            return _delete_evidence(state, who, why, now_us)
        case _:
            return state, ()


def _add_agreement(state: NodeState, event: Agreed) -> StepResult:
    distinct = event.distinct
    on_path = event.distinct if event.on_path is None else event.on_path
    if state.mode is Mode.PYTHON_ONLY or (event.path not in state.paths and len(state.paths) >= MAX_PATHS):
        distinct = on_path = 0  # reported after the latch, or on a path beyond the maximum
    after = replace(
        state,
        clean=state.clean + distinct,
        compared=state.compared + event.compared,
        rate=cusum.add_agreements(state.rate, state.mode, event.compared),
    )
    return _fill_path(after, event.path, clean=on_path)


def _fill_path(state: NodeState, path: str, clean: int = 0, generated: int = 0) -> StepResult:
    if state.mode is Mode.PYTHON_ONLY or not clean + generated:
        return state, ()
    before = state.paths.get(path)
    if before is None:
        if len(state.paths) >= MAX_PATHS:
            return state, ()
        before = _NEW_PATH
    now = replace(before, clean=before.clean + clean, generated=before.generated + generated)
    after = replace(state, paths={**state.paths, path: now})
    if is_proven(after, path) and not is_proven(state, path):
        return after, (PathProven(path, now.clean, now.generated, now.attempt),)
    return after, ()


def _add_enumeration(state: NodeState, event: Enumerated) -> StepResult:
    if not 1 <= event.inputs <= MAX_ENUMERATED:
        return state, (Refused(event, f"a domain of 1 to {MAX_ENUMERATED:,} inputs is complete evidence"),)
    if state.mode is Mode.PYTHON_ONLY:
        return state, (Refused(event, "the node is in python_only; evidence is gathered once it is out of it"),)
    if state.open:
        return state, (Refused(event, f"{len(state.open)} divergences are open; close them and enumerate again"),)
    return replace(state, is_complete=True), ()


def _add_divergence(state: NodeState, event: Diverged, now_us: int) -> StepResult:
    paths, opened = _demote_path(state, event)
    is_news = event.fingerprint not in state.open or _has_evidence(state.paths.get(event.path))
    state = replace(
        state,
        clean=max(0, state.clean - event.was_clean),
        divergences=state.divergences + 1,
        compared=state.compared + 1,
        is_complete=False,
        paths=paths,
        open=opened,
        rate=cusum.add_divergence(state.rate, state.mode),
    )
    decisions: tuple[Decision, ...] = ()
    if event.path in paths and is_news:
        decisions = (PathDemoted(event.path, event.fingerprint, paths[event.path].attempt),)
    if event.is_effect:
        latch = Latch(Reason.EFFECT_MISMATCH, CONTROLLER, f"the effects differ: {event.fingerprint}", now_us)
        return _prepend(decisions, _latch(state, latch))
    if event.fingerprint not in opened:
        why = f"more than {MAX_OPEN:,} different divergences are open"
        return _prepend(decisions, _latch(state, Latch(Reason.TOO_MANY_DIVERGENCES, CONTROLLER, why, now_us)))
    if state.mode.level <= DEFAULT.level:
        return state, decisions
    if cusum.is_alarm(state.rate):
        why = f"divergences come at {cusum.RATE_MULTIPLE} times the rate that {state.mode.value} allows, or faster"
        return _prepend(decisions, _fall(state, DEFAULT, Reason.RATE, CONTROLLER, why, now_us))
    carried = next(
        mode for mode in reversed(LADDER[: state.mode.level + 1]) if mode is DEFAULT or _supports_mode(state, mode)
    )
    if carried is state.mode:
        return state, decisions
    why = f"the evidence does not carry {state.mode.value} with the divergence {event.fingerprint} in it"
    return _prepend(decisions, _fall(state, carried, Reason.DIVERGENCE, CONTROLLER, why, now_us))


def _has_evidence(path: PathState | None) -> bool:
    """Return True where a divergence takes evidence from the path.

    An engine that is wrong on every request then gets one record, and does not fill the history.
    """
    return path is None or path.clean + path.generated > 0


def _demote_path(state: NodeState, event: Diverged) -> tuple[Mapping[str, PathState], Mapping[str, str]]:
    """Return the paths and the open fingerprints after a divergence. A full map of open ones is unchanged."""
    is_new = event.fingerprint not in state.open
    is_kept = not is_new or len(state.open) < MAX_OPEN
    opened = {**state.open, event.fingerprint: event.path} if is_new and is_kept else state.open
    before = state.paths.get(event.path)
    if before is None:
        if len(state.paths) >= MAX_PATHS:
            return state.paths, opened
        before = _NEW_PATH
    now = PathState(attempt=before.attempt + 1, open=before.open + (is_new and is_kept))
    return {**state.paths, event.path: now}, opened


def _add_lost_run(state: NodeState, execution: str, now_us: int) -> StepResult:
    if execution in state.lost:
        return state, ()
    lost = (*state.lost, execution)
    if len(lost) < LOST_RUNS:
        return replace(state, lost=lost), ()
    why = f"runs began under the direct engine and never ended: {', '.join(lost)}"
    return _latch(replace(state, lost=lost), Latch(Reason.LOST_RUNS, CONTROLLER, why, now_us))


def _add_time(state: NodeState, event: Timed, now_us: int) -> StepResult:
    before = state.latency
    state = replace(state, latency=latency.add_time(before, event.python_ns, event.direct_ns))
    if not latency.is_alarm(state.latency):
        return state, ()
    for after in (Mode.DUAL_VERIFY, Mode.SHADOW_DIRECT):
        if is_legal(state.mode, after, Reason.LATENCY):
            why = (
                f"the direct engine was slower than Python in {latency.BAD_ROUNDS} rounds of {latency.ROUND_SIZE} runs"
            )
            why += f"; in the last one {latency.describe_round(before, event.python_ns, event.direct_ns)}"
            fallen, decisions = _fall(state, after, Reason.LATENCY, CONTROLLER, why, now_us)
            # The last round was bad. Without that, the node would rise with the next agreements and fall again.
            return replace(fallen, latency=latency.LatencyState(bad_rounds=1)), decisions
    return (
        state,
        (),
    )  # no caller waits for the direct engine here; promotion is blocked until a good round


def _add_noise(state: NodeState, event: Noisy) -> StepResult:
    """List a place where an engine differs from itself, which blocks every promotion."""
    if event.fingerprint in state.noise or len(state.noise) >= MAX_NOISE:
        return state, ()
    after = replace(state, noise={**state.noise, event.fingerprint: event.where})
    return after, (NoiseFound(event.fingerprint, event.where),)


def _close(state: NodeState, event: Close) -> StepResult:
    if event.fingerprint in state.noise:
        noise = {name: where for name, where in state.noise.items() if name != event.fingerprint}
        return replace(state, noise=noise), (Closed(event.fingerprint, "", event.who, event.why),)
    path = state.open.get(event.fingerprint)
    if path is None:
        return state, (Refused(event, f"there is no open divergence {event.fingerprint!r}"),)
    left = {name: where for name, where in state.open.items() if name != event.fingerprint}
    paths = dict(state.paths)
    if path in paths:
        paths[path] = replace(paths[path], open=paths[path].open - 1)
    after = replace(state, open=left, paths=paths)
    decisions: tuple[Decision, ...] = (Closed(event.fingerprint, path, event.who, event.why),)
    if is_proven(after, path) and not is_proven(state, path) and path in paths:
        now = paths[path]
        decisions += (PathProven(path, now.clean, now.generated, now.attempt),)
    return after, decisions


# Orders of people.


def _promote(state: NodeState, event: Promote, who: str, why: str, now_us: int) -> StepResult:
    after = _next_mode(state.mode)
    if after not in THRESHOLDS:
        reason = "there is no higher mode" if after is None else "the node comes out of python_only by resume or unpin"
        return state, (Refused(event, reason),)
    lacking = [each for each in missing_conditions(state) if not each.what.startswith("the approval")]
    if lacking:
        return state, (Refused(event, f"{after.value} lacks {'; '.join(map(str, lacking))}"),)
    return _change_mode(state, after, Reason.PERSON, who, why, now_us)


def _demote(state: NodeState, event: Demote, now_us: int) -> StepResult:
    if state.mode is Mode.PYTHON_ONLY:
        return state, (Refused(event, "the node is in python_only, and there is no lower mode"),)
    if event.mode is Mode.PYTHON_ONLY:
        return state, (Refused(event, "to stop the direct engine, pin the node to python_only or kill it"),)
    if event.mode.level >= state.mode.level:
        return state, (Refused(event, f"the node is in {state.mode.value}, and {event.mode.value} is not lower"),)
    return _fall(state, event.mode, Reason.PERSON, event.who, event.why, now_us)


def _pin(state: NodeState, event: PinTo, now_us: int) -> StepResult:
    if event.mode.level > state.mode.level:
        why = f"a pin holds a node down; {event.mode.value} is higher than {state.mode.value}, and needs evidence"
        return state, (Refused(event, why),)
    if not now_us < event.until_us <= now_us + MAX_PIN_US:
        return state, (Refused(event, "a pin ends in the future, within 366 days"),)
    pin = Pin(event.mode, event.until_us, event.who, event.why)
    state = replace(state, pin=pin)
    if event.mode is state.mode:
        return state, (PinSet(pin),)
    return _prepend((PinSet(pin),), _change_mode(state, event.mode, Reason.PIN, event.who, event.why, now_us))


def _unpin(state: NodeState, who: str, why: str, now_us: int) -> StepResult:
    assert state.pin is not None
    ended = (PinEnded(state.pin, who, why),)
    state = replace(state, pin=None)
    if state.mode is not Mode.PYTHON_ONLY or state.latches:
        return state, ended
    return _prepend(ended, _change_mode(state, DEFAULT, Reason.UNPINNED, who, why, now_us))


def _resume(state: NodeState, event: Resume, who: str, why: str, now_us: int) -> StepResult:
    if not state.latches:
        return state, (Refused(event, "there is no latch to release"),)
    released = (Released(state.latches, who, why),)
    state = replace(state, latches=())
    if state.pin is not None and state.pin.mode is Mode.PYTHON_ONLY:
        return state, released
    return _prepend(released, _change_mode(state, DEFAULT, Reason.RESUME, who, why, now_us))


def _delete_evidence(state: NodeState, who: str, why: str, now_us: int) -> StepResult:
    """Restart the evidence of an old definition in `shadow_direct` at most.

    Paths that ever failed keep their attempts.
    """
    gone = (Forgotten(who, why, state.attempt + 1, evidence_of(state, state.mode, state.mode)),)
    failed = {name for name, each in state.paths.items() if each.attempt > 1 or each.open}
    if state.mode.level > DEFAULT.level:
        after, decisions = _prepend(gone, _fall(state, DEFAULT, Reason.PERSON, who, why, now_us))
    else:
        after, decisions = _restart_evidence(state), gone
    return replace(after, paths={name: each for name, each in after.paths.items() if name in failed}), decisions


# Changes of mode.


def _promote_on_evidence(state: NodeState, now_us: int) -> StepResult:
    after = _next_mode(state.mode)
    if (
        after not in THRESHOLDS
        or after in state.settings.approvals
        or _list_blocks(state)
        or not _supports_mode(state, after)
    ):
        return state, ()
    why = f"the evidence carries {after.value}"
    return _change_mode(state, after, Reason.EVIDENCE, CONTROLLER, why, now_us)


def _latch(state: NodeState, latch: Latch) -> StepResult:
    assert latch.reason in LATCHING
    if any(each.reason is latch.reason for each in state.latches):
        return state, ()
    state = replace(state, latches=(*state.latches, latch))
    if state.mode is Mode.PYTHON_ONLY:
        return _restart_evidence(state), (Latched(latch),)
    fallen = _fall(state, Mode.PYTHON_ONLY, latch.reason, latch.who, latch.why, latch.at_us)
    return _prepend((Latched(latch),), fallen)


def _fall(state: NodeState, after: Mode, reason: Reason, who: str, why: str, now_us: int) -> StepResult:
    """Lower the mode and restart the evidence."""
    state_after, (changed,) = _change_mode(state, after, reason, who, why, now_us)
    assert isinstance(changed, Changed)
    state_after = _restart_evidence(state_after)
    return state_after, (replace(changed, attempt=state_after.attempt),)


def _restart_evidence(state: NodeState) -> NodeState:
    """Return the state with empty evidence at the next attempt. Open divergences stay open."""
    return replace(
        state,
        attempt=state.attempt + 1,
        clean=0,
        divergences=0,
        compared=0,
        unknown=0,
        is_complete=False,
        paths={name: PathState(attempt=each.attempt + 1, open=each.open) for name, each in state.paths.items()},
        lost=(),
        rate=_NO_RATE,
        latency=_NO_LATENCY,
    )


def _change_mode(state: NodeState, after: Mode, reason: Reason, who: str, why: str, now_us: int) -> StepResult:
    before = state.mode
    if not is_legal(before, after, reason):
        raise AssertionError(f"no {reason.value} leads from {before.value} to {after.value}")
    record = Changed(before, after, reason, who, why, now_us, state.attempt, evidence_of(state, before, after))
    return replace(state, mode=after), (record,)


_TOO_UNKNOWN = Missing("fewer comparisons that come to nothing: over 0.1 % do")


def _list_blocks(state: NodeState) -> tuple[Missing, ...]:
    """Return all that blocks a promotion, whatever the evidence."""
    found = []
    if state.latches:
        found.append(Missing("the release of its latch by a person"))
    if state.pin is not None:
        found.append(Missing("the end of its pin"))
    if state.open:
        found.append(Missing("open divergences to be closed", len(state.open)))
    if state.noise:
        found.append(Missing("places to be closed in which an engine differs from itself", len(state.noise)))
    if is_too_unknown(state.compared, state.unknown):
        found.append(_TOO_UNKNOWN)
    if state.latency.bad_rounds:
        found.append(Missing("a round in which the direct engine is not slower than Python"))
    return tuple(found)


def _supports_mode(state: NodeState, mode: Mode) -> bool:
    if state.is_complete:
        return True
    threshold = THRESHOLDS[mode]
    runs = state.clean + state.divergences
    if not wilson.is_at_least(runs, state.divergences, threshold):
        return False
    if state.divergences > _MAX_TABULATED_DIVERGENCES:
        return supports(threshold, state.clean, state.divergences, state.attempt)
    return state.clean >= clean_runs_needed(threshold, state.divergences, state.attempt)


_MAX_TABULATED_DIVERGENCES = 100
"""Maximum number of divergences for which the needed runs are looked up; the decision is the same, and faster."""


def _runs_needed_on_path(path: PathState) -> int:
    """Return the clean runs that a path needs. Its divergences restart its evidence, so it contains none."""
    return clean_runs_needed(PATH_THRESHOLD, 0, path.attempt)


def _is_enough(path: PathState) -> bool:
    runs = path.clean + path.generated
    return wilson.is_at_least(runs, 0, PATH_THRESHOLD) and runs >= _runs_needed_on_path(path)


def _add_runs(path: PathState, runs: int) -> PathState:
    return replace(path, clean=path.clean + runs)


def _next_mode(mode: Mode) -> Mode | None:
    return LADDER[mode.level + 1] if mode.level + 1 < len(LADDER) else None


def _prepend(first: tuple[Decision, ...], then: StepResult) -> StepResult:
    return then[0], first + then[1]
