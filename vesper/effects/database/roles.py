"""Rights of a PostgreSQL role that make a grant of one table worth less than it says."""

from __future__ import annotations

from contextlib import closing

from vesper.effects.database.session import Session

_SERVER_ROLES = {
    "pg_read_server_files": "can read files of the server",
    "pg_write_server_files": "can write files of the server",
    "pg_execute_server_program": "can run programs on the server",
    "pg_read_all_data": "can read every table",
    "pg_write_all_data": "can write every table",
}
_ATTRIBUTES = {
    "rolbypassrls": "ignores row-level security (BYPASSRLS)",
    "rolcreaterole": "can create roles (CREATEROLE)",
    "rolreplication": "can read the whole server by replication (REPLICATION)",
}
_QUERY = (
    f"SELECT rolname::text AS role, rolsuper, {', '.join(_ATTRIBUTES)}, "  # noqa: S608  # constants
    + ", ".join(f"pg_has_role(current_user, '{name}', 'MEMBER') AS {name}" for name in _SERVER_ROLES)
    + " FROM pg_roles WHERE rolname = current_user"
)


def role_risks(session: Session) -> list[str]:
    """Return a sentence for each right of the session's role that a node's statement never needs."""
    columns, rows = session.rows(_QUERY, {}, 1)
    with closing(rows):
        found = dict(zip(columns, next(rows), strict=True))
    role = f"the role `{found['role']}`"
    if found["rolsuper"]:
        return [f"{role} is a superuser, which can read every table, file and secret of the server"]
    return [f"{role} {what}" for name, what in {**_ATTRIBUTES, **_SERVER_ROLES}.items() if found[name]]
