"""The reference semantics in Python, one file a family, written from docs/spec. Generated code imports from here."""
