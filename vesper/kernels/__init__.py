"""Reference semantics in Python, one module per family, written from docs/spec. Generated code imports from here."""
