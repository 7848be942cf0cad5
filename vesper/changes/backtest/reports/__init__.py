"""Reports of a backtest: values, text, JSON and an HTML page."""
