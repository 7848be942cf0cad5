"""Patterns that are compiled when they are first used: compiling one takes as long as loading a module, and most
processes use few of them."""

from __future__ import annotations

from vesper.values.typed import TYPE_CHECKING, Any

__all__ = ["late"]

if TYPE_CHECKING:
    import re

    def late(pattern: str, flags: re.RegexFlag | int = 0) -> re.Pattern[str]: ...
else:

    class late:  # noqa: N801  # stands where `re.compile` would
        """A pattern; its methods are those of the compiled one, each looked up once."""

        def __init__(self, pattern: str, flags: int = 0) -> None:
            self._written = (pattern, flags)

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            import re  # which takes a while to load

            found = getattr(re.compile(*self._written), name)
            setattr(self, name, found)
            return found
