"""Git as a reader: commits and files of a repository, without running anything that its settings name."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

from vesper.storage.trust import distrust

GIT_SECONDS: Final = 10.0


def distrust_repository(project: Path) -> str | None:
    """Return why git must not run here: the settings of a repository name commands. None if trusted."""
    found = next((each for each in (project, *project.parents) if (each / ".git").exists()), None)
    reason = None if found is None else distrust(found / ".git" / "config")
    return None if reason is None else reason.partition("\n")[0]


def run_git(project: Path, *arguments: str, given: bytes | None = None) -> bytes | None:
    """Return the output of git; None where there is no git, no repository or no such object."""
    # A missing object is not fetched: transports run commands that the settings of the repository name.
    no_fetch = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": ""}  # the second for older versions
    environment = {**os.environ, **no_fetch, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    command = ["git", "-C", str(project), "-c", "core.quotePath=false", "-c", "log.showSignature=false", *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, check=False, timeout=GIT_SECONDS, env=environment, input=given or b""
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def git_text(project: Path, *arguments: str) -> str | None:
    """Return the output of git as text; None as `run_git` does."""
    found = run_git(project, *arguments)
    return None if found is None else found.decode("utf-8", "replace")
