"""`df.vesper.run("payment_decision")` for pandas: importing this module registers the accessor."""

from __future__ import annotations

import pandas as pd

from vesper.integrations.frames import Frame

pd.api.extensions.register_dataframe_accessor("vesper")(Frame)
