"""Problems of a request: status, description and remedy.

Pages show them; the API sends RFC 9457 problems.
"""

from __future__ import annotations

from vesper.values.vesper_error import VesperError


class Problem(VesperError):
    """A request that gets no page: the framework renders it."""

    status = 500
    title = "Something went wrong"

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy

    @property
    def sentence(self) -> str:
        """The description with a capital letter, unless it begins with a name such as `fee_v1:`."""
        is_word = self.what.partition(" ")[0].rstrip(",").isalpha()
        return f"{self.what[:1].upper() if is_word else self.what[:1]}{self.what[1:]}."


class BadRequest(Problem):
    """A parameter or a field has a wrong form."""

    status = 400
    title = "The request is wrong"


class NotLoggedIn(Problem):
    """The request has no accepted credentials."""

    status = 401
    title = "Login required"


class Forbidden(Problem):
    """The caller lacks a role, or the request may come from another site."""

    status = 403
    title = "Not allowed"


class NotFound(Problem):
    """The named thing does not exist."""

    status = 404
    title = "Not found"


class Refused(Problem):
    """An action does not apply to the present state."""

    status = 409
    title = "Refused"


class TooLarge(Problem):
    """The body exceeds the limit."""

    status = 413
    title = "The request is too large"


class TooMany(Problem):
    """A limit on logins, sessions or streams is reached."""

    status = 429
    title = "Too many requests"


class Unavailable(Problem):
    """A store cannot be read now, or does not exist yet."""

    status = 503
    title = "Not available"

    def __init__(self, what: str, why: str, remedy: str) -> None:
        super().__init__(f"{what}: {why}", remedy)
        self.why = why
