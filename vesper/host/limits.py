"""The limits of a run, and the limits that runs share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import ref

from vesper._direct import Journal as NativeJournal
from vesper._direct import SharedBudgets, SharedLimits
from vesper.config.settings import PolicySettings
from vesper.effects.settings import ConfigError
from vesper.engines.engine import DEFAULT_LIMITS, Limits, limits_of_node
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from vesper._direct import ModelCatalog
    from vesper.effects.models.settings import ModelSettings
    from vesper.host.host import Host
from vesper.journal.journal import Journal


def open_limits(settings: PolicySettings) -> SharedLimits:
    """Open the limits that runs share. Raises `ConfigError` for an invalid address."""
    try:
        return SharedLimits(settings.url, settings.prefix, settings.on_store_failure == "local")
    except ValueError:
        raise _address_error("policies.url") from None


def open_budgets(settings: PolicySettings, journal: Journal) -> SharedBudgets:
    """Open the count of budgets. Raises `ConfigError` for an invalid address.

    It is in the Redis of the limits, or else in the database of the journal.
    """
    place = settings.budgets or ("journal" if settings.url == "memory:" else settings.url)
    if place == "journal":
        if isinstance(journal, NativeJournal):
            return SharedBudgets("", "", journal)
        place = "memory:"  # a journal of the application has no database
    try:
        return SharedBudgets(place, settings.prefix)
    except ValueError:
        raise _address_error("policies.budgets") from None


def budgets_of(host: ref[Host]) -> SharedBudgets:
    """Return the budgets of a Host, without a reference that keeps the Host alive."""
    found = host()
    assert found is not None, "performers end with their Host"
    return found.budgets


def _address_error(setting: str) -> ConfigError:
    expected = "`redis://HOST:PORT/NUMBER`, `rediss://…` or `unix://…`, with options that there are,"
    return ConfigError(setting, f"this is no address of Redis: {expected} is expected")


def limits_of_run(limits: Limits | None, policy: Mapping[str, object], left: float | None = None) -> Limits:
    """Return the limits of a run. An execution may compute no longer than the run and its caller allow."""
    found = limits_of_node(limits, policy) or DEFAULT_LIMITS
    if left is None:
        return found
    return replace(found, seconds=left if found.seconds is None else min(left, found.seconds))


class ModelBusy(VesperError):
    """A model of the node makes requests wait, and its `strategy` refuses calls meanwhile. No run was begun."""

    def __init__(self, node_id: str, model: str, seconds: float) -> None:
        super().__init__(
            f"{node_id} is not run now: the limits of the model `{model}` make requests wait, and its strategy is "
            f"`backpressure`; call again in {seconds:.3g} s"
        )
        self.model = model
        self.retry_after = seconds
        """Seconds before which another call is of no use."""


class ModelAdmission:
    """Decides whether a run that may request models begins now, by the limits of the models."""

    def __init__(
        self, settings: Mapping[str, ModelSettings], limits: SharedLimits, catalog: Callable[[], ModelCatalog]
    ) -> None:
        self._limits = limits
        self._catalog = catalog
        self._models = frozenset(
            name
            for name, each in settings.items()
            if each.limits is not None and each.limits.strategy == "backpressure"
        )

    def check(self, node_id: str, targets: frozenset[tuple[str, str]], now_us: int | None) -> None:
        """Raise `ModelBusy` where a model of the node makes requests wait."""
        for effect, target in targets:
            if effect == "model_call" and target in self._models:
                wait_us = self._limits.pressure_us(self._catalog(), target, now_us)
                if wait_us > 0:
                    raise ModelBusy(node_id, target, wait_us / 1_000_000)
