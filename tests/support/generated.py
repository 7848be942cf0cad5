"""Cache of generated modules, so that a test process generates each IR once.

Canonical bytes contain all that a module is generated from: tests/unit/language/ir shows that they round-trip. Tests of
generation itself call `generate_module` directly.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from vesper.codegen.module import GeneratedModule, generate_module
from vesper.language.ir import nodes as ir
from vesper.language.ir.encode import encode

_KEPT = 1_000


class GeneratedOnce:
    """Replacement of `generate_module` for the reference engine."""

    def __init__(self) -> None:
        self._modules: OrderedDict[tuple[bytes, bool, bool], GeneratedModule] = OrderedDict()
        self._only_one = threading.Lock()

    def __call__(self, node: ir.Node, traced: bool = False, metered: bool = False) -> GeneratedModule:
        key = (encode(node), traced, metered)
        with self._only_one:
            found = self._modules.get(key)
            if found is not None:
                self._modules.move_to_end(key)
                return found
        found = generate_module(node, traced, metered)
        with self._only_one:
            self._modules[key] = found
            if len(self._modules) > _KEPT:
                self._modules.popitem(last=False)
        return found
