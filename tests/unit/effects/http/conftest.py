from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.web import Web
from tests.unit.effects.http.helpers import Side


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as server:
        yield server


@pytest.fixture
def side(web: Web) -> Iterator[Side]:
    made = Side(web)
    yield made
    made.close()
