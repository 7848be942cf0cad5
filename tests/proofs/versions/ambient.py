"""Settings of the host that must not matter: what a process sets in itself when it is told to.

`VESPER_TEST_AMBIENT` in the environment names them; the rest (locale, zone, hash seed, flags) is set by whoever starts
the process.
"""

from __future__ import annotations

import decimal
import locale
import os
import time

VARIABLE = "VESPER_TEST_AMBIENT"
NAMES = ("decimal-context", "locale")


def apply_ambient() -> None:
    """Make this process as odd as the environment says; raises where that cannot be done."""
    for name in os.environ.get(VARIABLE, "").split():
        match name:
            case "decimal-context":
                odd = decimal.Context(prec=3, rounding=decimal.ROUND_UP, Emin=-5, Emax=5, capitals=0, clamp=1, traps=[])
                # New threads begin with a copy of the default one.
                decimal.DefaultContext.prec, decimal.DefaultContext.rounding = 3, decimal.ROUND_UP
                decimal.setcontext(odd)
            case "locale":
                locale.setlocale(locale.LC_ALL, "")
            case _:
                raise ValueError(f"{VARIABLE}: {name} is none of {', '.join(NAMES)}")
    time.tzset()


def state() -> str:
    """What of it is in force, to see that a setting was not lost on the way."""
    context = decimal.getcontext()
    return f"prec={context.prec} {context.rounding} {locale.setlocale(locale.LC_ALL, None)} {'/'.join(time.tzname)}"
