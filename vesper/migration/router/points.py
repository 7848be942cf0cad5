"""The points of a node's paths, for a file that is still of the epoch.

Points are numbered by epoch, so the source of another epoch does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence

from vesper.compiler import Compiled
from vesper.config.migration import Tolerance
from vesper.engines.direct_engine import DirectProgram
from vesper.engines.engine import EngineUnavailable
from vesper.engines.path import Point
from vesper.engines.registry import ENGINES
from vesper.migration.compare.comparator import Comparator
from vesper.migration.compare.tolerances import BadTolerance
from vesper.migration.router.epoch import epoch_of
from vesper.values.vesper_error import VesperError


class PointsUnavailable(VesperError):
    """The file's node has no points for the paths of the epoch. The message contains the reason."""


def points_of_epoch(compiled: Compiled, file: str, epoch: str, tolerances: Sequence[Tolerance]) -> Sequence[Point]:
    """Return the points of a node whose file is still of this epoch. Raises `PointsUnavailable`."""
    try:
        if epoch_of(compiled, Comparator(compiled, tolerances).version) != epoch:
            differs = "its text, its tolerances, the installed engine, or a leading function differs"
            raise PointsUnavailable(f"{file} is of another epoch ({differs})")
        program = ENGINES["interp"].load(compiled)
    except (EngineUnavailable, BadTolerance) as problem:
        raise PointsUnavailable(str(problem)) from None
    assert isinstance(program, DirectProgram)
    return program.points()
