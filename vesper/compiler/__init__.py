"""The pipeline from text to IR (`pipeline`), and the caches in front of it.

Names are imported on first use: a check that the cache answers must not import the parser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vesper.compiler.compiled import Compiled
    from vesper.compiler.pipeline import compile_bytes, compile_file, compile_source

__all__ = ["Compiled", "compile_bytes", "compile_file", "compile_source"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "Compiled":
        from vesper.compiler.compiled import Compiled

        return Compiled
    from vesper.compiler import pipeline

    return getattr(pipeline, name)
