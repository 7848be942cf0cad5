"""Parts of a checked node as bytes.

They contain only classes that a node is made of, and are decoded only after the MAC of their entry was verified
(`vesper/cache/entries.py`).
"""

from __future__ import annotations

from _pickle import PicklingError, Unpickler, UnpicklingError, dumps  # the C part alone
from typing import Any

__all__ = ["PicklingError", "decode_part", "encode_part"]

_MODULES = frozenset(
    (
        "vesper.language.ir.lookup_tables",
        "vesper.language.ir.nodes",
        "vesper.language.ir.statements",
        "vesper.language.ir.tables",
        "vesper.language.ir.taint",
        "vesper.policies.budget",
        "vesper.values.types",
        "vesper.language.check.cases",
        "vesper.language.check.case_effects",
    )
)
_OTHERS = frozenset(
    (
        ("vesper.values.json_value", "Json"),
        ("decimal", "Decimal"),
        ("datetime", "date"),
        ("datetime", "datetime"),
        ("datetime", "timedelta"),
        ("datetime", "time"),
        ("vesper.values.period", "Period"),
        ("datetime", "timezone"),
        ("builtins", "frozenset"),
        ("builtins", "set"),
        ("types", "MappingProxyType"),
    )
)


def encode_part(value: object) -> bytes:
    data: bytes = dumps(value, 5)
    return data


def decode_part(data: bytes) -> Any:
    import io

    return _Reader(io.BytesIO(data)).load()


class _Reader(Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        # No dots: a name is a name in its module, and no path to its imports.
        if "." not in name and ((module, name) in _OTHERS or module in _MODULES):
            found = super().find_class(module, name)
            if getattr(found, "__module__", module) == module:
                return found
        raise UnpicklingError(f"{module}.{name} is no part of a node")
