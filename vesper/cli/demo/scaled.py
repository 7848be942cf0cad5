"""Thresholds of the demo, in which a minute of traffic replaces weeks.

Only processes of the demo call `scale_thresholds`; the thresholds of a service are fixed.
"""

from __future__ import annotations

from fractions import Fraction

from vesper.migration.control.modes import THRESHOLDS, Mode

SCALED = {
    Mode.CANARY_DIRECT: Fraction(95, 100),
    Mode.DUAL_VERIFY: Fraction(965, 1000),
    Mode.DIRECT_ONLY: Fraction(975, 1000),
}
"""422 runs suffice. From 500 on, timings of both engines count too, and a busy machine may hold the node back."""
REAL = dict(THRESHOLDS)


def scale_thresholds() -> None:
    """Lower the thresholds of this process."""
    THRESHOLDS.update(SCALED)
