"""Tables generated from `schemas/`."""
