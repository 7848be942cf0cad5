"""`python -m vesper`."""

from vesper.cli.main import main

main()
