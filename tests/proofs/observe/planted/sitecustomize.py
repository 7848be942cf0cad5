"""Plants a direct engine that lies into every process of a service: it follows, and each outcome of it differs."""

from tests.unit.migration.support.routed import Misbehaving, lying
from vesper.compiler import Compiled
from vesper.migration.router.routes import Routes


def _lying(_: Routes, compiled: Compiled) -> Misbehaving:
    found = Misbehaving(compiled)
    found.does = lying
    return found


Routes._direct = _lying  # type: ignore[method-assign,assignment]  # the fault
