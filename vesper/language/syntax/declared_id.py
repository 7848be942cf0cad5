"""The id that a text declares, read from the first events of its YAML.

A file with errors has an id too, so that it can be found and named. Its errors are reported elsewhere.
"""

from __future__ import annotations

import yaml

from vesper.language.diagnostics.source import Span
from vesper.language.syntax.yaml_tree import MAX_DEPTH, MAX_VALUES


def declared_id(text: str) -> tuple[str, Span] | None:
    """Return the value of the top-level key `node_id` and its span. Returns None where it cannot be read."""
    depth = seen = 0
    key: str | None = None
    try:
        parser = yaml.CSafeLoader(text)
        while (event := parser.get_event()) is not None and depth <= MAX_DEPTH and seen <= 2 * MAX_VALUES:
            seen += 1
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth == 1 and not isinstance(event, yaml.MappingStartEvent):
                    return None
                is_part = depth == 2  # a collection used as a key or value
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
                is_part = False
            else:
                is_part = depth == 1
            if not is_part:
                continue
            if key is None:
                key = event.value if isinstance(event, yaml.ScalarEvent) else ""
            elif key == "node_id" and isinstance(event, yaml.ScalarEvent):
                assert event.start_mark is not None
                assert event.end_mark is not None
                return event.value, Span(event.start_mark.index, event.end_mark.index)
            else:
                key = None
    except (yaml.YAMLError, UnicodeEncodeError):
        return None
    return None
