"""Shrinking of a divergence in a thread, with its progress on a page of its own."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from vesper.dashboard.action import Done
from vesper.dashboard.page import Context
from vesper.dashboard.pages.divergences.stored import detail_address, find_divergence, unchanged_node
from vesper.dashboard.problem import BadRequest, NotFound, Refused
from vesper.dashboard.stores import Stores
from vesper.engines import registry
from vesper.engines.engine import EngineUnavailable
from vesper.migration.compare.comparator import Comparator
from vesper.migration.compare.shrinking import SECONDS
from vesper.migration.compare.tolerances import BadTolerance
from vesper.migration.stores.kept_divergences import StoredDivergence, is_sensitive, shrink_stored
from vesper.values.model import printable
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from collections.abc import Callable

    from vesper.migration.compare.shrinking import Shrunk

MAX_SECONDS = 120
"""Maximum time limit of a search; the command takes a longer one."""
MAX_RUNNING = 2
"""Maximum number of searches at once: they take processor time from the pages."""
_MAX_KEPT = 100
"""Maximum number of finished searches whose result is kept for their page."""
_LOG = logging.getLogger("vesper.dashboard")


@dataclass(frozen=True, slots=True)
class ShrinkProgress:
    """A search for the smallest case."""

    node: str
    fingerprint: str
    by: str
    started_us: int
    seconds: float
    """Time limit."""
    elapsed_seconds: float
    tries: int = 0
    size: int | None = None
    """Bytes of the smallest case so far."""
    is_running: bool = True
    result: str = ""
    """Summary of a finished search; empty where it failed."""
    problem: str = ""
    """Why it failed."""
    case: str = ""
    """The smallest case."""

    @property
    def share(self) -> float:
        """Elapsed share of the time limit."""
        return min(1.0, self.elapsed_seconds / self.seconds)


class ShrinkJobs:
    """The searches of one application."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[tuple[str, str], ShrinkProgress] = {}

    def start(self, progress: ShrinkProgress, work: Callable[[Callable[[int, int], None]], Shrunk]) -> None:
        """Run `work` in a thread. Raises `Refused` where too many run, or one for this divergence."""
        key = (progress.node, progress.fingerprint)
        with self._lock:
            running = [each for each, job in self._jobs.items() if job.is_running]
            if key in running:
                raise Refused("this divergence is being shrunk", "Wait for its result.")
            if len(running) >= MAX_RUNNING:
                raise Refused(f"{len(running)} divergences are being shrunk", "Wait until one of them ends.")
            self._jobs.pop(key, None)
            self._jobs[key] = progress
            for old in [each for each in self._jobs if each not in running and each != key][:-_MAX_KEPT]:
                del self._jobs[old]
        threading.Thread(target=self._run, args=(key, work), name=f"shrink {key[1]}", daemon=True).start()

    def read(self, node: str, fingerprint: str) -> ShrinkProgress | None:
        with self._lock:
            job = self._jobs.get((node, fingerprint))
        if job is None or not job.is_running:
            return job
        return replace(job, elapsed_seconds=_elapsed_seconds(job))

    def _run(self, key: tuple[str, str], work: Callable[[Callable[[int, int], None]], Shrunk]) -> None:
        try:
            small = work(lambda tries, size: self._update(key, tries=tries, size=size))
            result = f"{small.size_before:,} bytes shrunk to {small.size:,} in {small.tries:,} attempts"
            result += "" if small.is_finished else "; the time limit was reached, a smaller case may exist"
            self._update(key, is_running=False, result=result, tries=small.tries, size=small.size, case=small.case)
        except VesperError as problem:
            self._update(key, is_running=False, problem=printable(str(problem)))
        except Exception:  # noqa: BLE001  # a fault of an engine or of Vesper must end the job, not leave it running
            _LOG.exception("shrinking %s failed", key[1])
            self._update(key, is_running=False, problem="shrinking failed; the log of the dashboard has the reason")

    def _update(self, key: tuple[str, str], **changes: object) -> None:
        with self._lock:
            job = self._jobs[key]
            self._jobs[key] = replace(job, elapsed_seconds=_elapsed_seconds(job), **changes)  # type: ignore[arg-type]  # by name


_JOBS: WeakKeyDictionary[Stores, ShrinkJobs] = WeakKeyDictionary()
"""Searches by application; those of a closed one go with its stores."""
_JOBS_LOCK = threading.Lock()


def jobs_of(stores: Stores) -> ShrinkJobs:
    with _JOBS_LOCK:
        return _JOBS.setdefault(stores, ShrinkJobs())


def _elapsed_seconds(job: ShrinkProgress) -> float:
    return max(0.0, time.time() - job.started_us / 1e6)


def start_shrinking(context: Context, fields: Mapping[str, str]) -> Done:
    """Start to shrink the divergence of the address."""
    seconds = _seconds(fields.get("seconds", "").strip())
    opened, found, _ = find_divergence(context)
    divergence = found.divergence
    _check_shrinkable(found)
    _, compiled = unchanged_node(context, found)
    if is_sensitive(compiled):
        raise _sealed_refusal(found)
    try:
        programs = {name: engine.load(compiled) for name, engine in registry.PAIR.items()}
        comparator = Comparator(compiled, opened.migration.of(divergence.node).tolerances)
    except (EngineUnavailable, BadTolerance) as problem:
        raise Refused(printable(str(problem)), "`vesper doctor` and `vesper status` show the installation.") from None
    jobs_of(context.stores).start(
        ShrinkProgress(divergence.node, divergence.fingerprint, context.caller.name, context.now_us, seconds, 0.0),
        lambda report: shrink_stored(opened.store, found, divergence, programs, comparator, compiled, seconds, report),
    )
    return Done(f"Shrinking {divergence.fingerprint}", detail_address(found, "/shrink"))


def read_shrinking(context: Context) -> ShrinkProgress:
    found = jobs_of(context.stores).read(context.path["node"], context.path["fingerprint"])
    if found is None:
        raise NotFound(
            "this divergence was not shrunk since the dashboard was started",
            "Its page has the button, and the smallest case if there is one.",
        )
    return found


def _check_shrinkable(found: StoredDivergence) -> None:
    """Refuse a divergence that no page can shrink, and name the command that can."""
    divergence = found.divergence
    if divergence.kind == "noise":
        raise Refused("an engine differs from itself here, now and then: no case shows that again", "Close it.")
    function = next((name for name in divergence.engines if ":" in name), None)
    if function is not None:
        command = f"vesper divergences shrink {divergence.fingerprint} --against {printable(function)}"
        raise Refused(
            "shrinking calls the adopted function for every attempt, which a page does not",
            f"Where that is harmless: `{command}`.",
        )
    if all(each.inputs is None for each in divergence.exemplars):
        raise _sealed_refusal(found)


def _sealed_refusal(found: StoredDivergence) -> Refused:
    command = f"vesper divergences shrink {found.divergence.fingerprint} --reveal"
    return Refused("no inputs are stored with it: the node is sensitive, or they are too large", f"Use `{command}`.")


def _seconds(text: str) -> float:
    if not text:
        return SECONDS
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= MAX_SECONDS):
        raise BadRequest(f"`{printable(text[:20])}` is no time limit", f"Use seconds from 1 to {MAX_SECONDS}.")
    return float(text)
