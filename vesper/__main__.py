"""`python -m vesper`."""

import os
import sys

# Python searches the working folder first, where another user may have put a module. The package itself is found.
if not sys.flags.safe_path and sys.path and sys.path[0] in ("", os.getcwd()):  # noqa: PTH109  # nothing is imported yet
    del sys.path[0]

from vesper.cli.main import main

main()
