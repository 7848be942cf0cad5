"""Changes of the journal by a person: the outcome of a step in doubt, and recovery."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from vesper.config.code_folder import search_code_folder
from vesper.dashboard.action import Context, Done, Refused
from vesper.dashboard.page import BadRequest, filled
from vesper.dashboard.pages.journal.overview import MAX_RECOVERED
from vesper.dashboard.pages.journal.run import find_run
from vesper.effects.settings import ConfigError
from vesper.host.finishing import check_can_finish, outcome_text, quiet_host, recover_all, resume_execution
from vesper.host.host import Host
from vesper.host.recovery.resolving import StatedOutcome, left_out_text, resolve
from vesper.journal.audit import audit_change
from vesper.journal.journal import JournalError, NotTaken
from vesper.values.model import printable

_LOOK_AGAIN = "Nothing was changed. Load the page of the run again: another person or process may have been faster."


def resolve_happened(context: Context, fields: Mapping[str, str]) -> Done:
    """Record that the effect was performed, with the result of the form; then finish the run."""
    return _resolve(context, fields, StatedOutcome(result=_field(fields, "result")))


def resolve_failed(context: Context, fields: Mapping[str, str]) -> Done:
    """Record that the effect failed with the code of the form; then finish the run."""
    return _resolve(context, fields, StatedOutcome(failed=_field(fields, "code").strip()))


def resolve_undone(context: Context, fields: Mapping[str, str]) -> Done:
    """Record that the effect was not performed; then perform it and finish the run."""
    return _resolve(context, fields, StatedOutcome())


def _resolve(context: Context, fields: Mapping[str, str], given: StatedOutcome) -> Done:
    step, by = _field(fields, "step"), context.caller.name
    location = filled("/journal/{execution}", context.path)
    recorded = find_run(context)
    with open_host(context, "use `vesper journal resolve --later`") as host:
        done = resolve(host, recorded, step, given, by, fields["reason"], finishes=True)
        said = f"Resolved {printable(done.path)}: {done.outcome}. "
        said += f"{left_out_text(done.dropped, done.path)}. " if done.dropped else ""
        try:
            finished = resume_execution(host, recorded.summary, context.stores.config.recovery.engine)
        except NotTaken as reason:
            return Done(f"{said}Another process continues the run: {reason}", location)
        except (JournalError, ConfigError) as problem:
            later = "`vesper journal recover` tries again"
            return Done(f"{said}The run could not be finished here: {printable(str(problem))}; {later}.", location)
    if finished.is_waiting:
        return Done(f"{said}{printable(finished.why)}.", location)
    if finished.outcome is None:
        return Done(f"{said}It cannot continue: {printable(finished.why)}", location)
    return Done(f"{said}The run ended: {outcome_text(finished.outcome)}.", location)


def recover(context: Context, fields: Mapping[str, str]) -> Done:
    """Finish the oldest runs that a process left."""
    with open_host(context, "use the file that the nodes run with") as host:
        left = host.journal.unfinished(MAX_RECOVERED)
        if not left:
            raise Refused("no run is unfinished", "Another process may have recovered them: load the page again.")
        audit_change(
            host.journal, "journal_recover", "", "", context.caller.name, executions=len(left), why=fields["reason"]
        )
        counts = Counter(
            "ended" if each.is_ended else each.text.partition(":")[0]
            for each in recover_all(host, left, context.stores.config.recovery.engine)
        )
    return Done("Recovery: " + ", ".join(f"{count} {text}" for text, count in counts.most_common()) + ".", "/journal")


@contextmanager
def open_host(context: Context, otherwise: str) -> Iterator[Host]:
    """Open the Host that finishes runs. A problem before anything is written is a refusal."""
    config = context.stores.config
    try:
        check_can_finish(config, otherwise)
        search_code_folder(config)
        with quiet_host(config, finishes=True) as host:
            yield host
    except (JournalError, ConfigError) as problem:
        raise Refused(printable(str(problem)), _LOOK_AGAIN) from None


def _field(fields: Mapping[str, str], name: str) -> str:
    found = fields.get(name)
    if found is None:
        raise BadRequest(f"the field `{name}` is missing", "Use the form of the run's page.")
    return found
