"""The Host: checks capabilities, applies policies, performs effects and writes the journal.

No other component performs effects.
"""
