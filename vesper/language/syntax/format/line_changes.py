"""Changed lines between a text and its formatted form."""

from __future__ import annotations

LineChange = tuple[str, int, int, int, int]
"""As in `difflib.SequenceMatcher.get_opcodes`: `equal` or `replace`, and the lines of both texts."""


def line_changes(old: list[str], new: list[str]) -> list[LineChange]:
    """Return the lines that differ.

    Lines that are not blank correspond one to one, so no search is needed; `difflib` takes quadratic time.
    """
    found: list[LineChange] = []
    i = j = 0
    while i < len(old) or j < len(new):
        blank_old = i < len(old) and not old[i].strip()
        blank_new = j < len(new) and not new[j].strip()
        i_next = i + (i < len(old) and not (blank_new and not blank_old))
        j_next = j + (j < len(new) and not (blank_old and not blank_new))
        tag = "equal" if i_next > i and j_next > j and old[i] == new[j] else "replace"
        if found and found[-1][0] == tag:
            found[-1] = (tag, found[-1][1], i_next, found[-1][3], j_next)
        else:
            found.append((tag, i, i_next, j, j_next))
        i, j = i_next, j_next
    return found
