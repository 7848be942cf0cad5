"""`df.vesper.run("payment_decision")` for polars: importing this module registers the namespace."""

from __future__ import annotations

import polars as pl

from vesper.integrations.frames import Frame

pl.api.register_dataframe_namespace("vesper")(Frame)
