from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.effects.http.helpers import Side
from tests.support.web import Web


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as server:
        yield server


@pytest.fixture
def side(web: Web) -> Iterator[Side]:
    made = Side(web)
    yield made
    made.close()
