"""The Host: the only one who performs effects. It checks the capability, applies the policies, performs, and writes
the journal."""
