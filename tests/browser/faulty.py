"""`vesper` with the planted fault of the sample project: python -m tests.browser.faulty COMMAND …"""

from __future__ import annotations

from tests.browser.estate import planted_fault
from vesper.cli.main import main

if __name__ == "__main__":
    with planted_fault():
        main()
