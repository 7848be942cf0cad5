"""The comparative debugger: both engines advanced side by side, forwards and backwards, without performing anything."""
