//! Rights of a Postgres role that make a grant of one table worth less than it says.

use std::sync::LazyLock;

use crate::database::session::Rows;
use crate::database::statement::Statement;
use crate::database::values::Cell;
use crate::effect::Failure;

const ATTRIBUTES: [(&str, &str); 3] = [
    ("rolbypassrls", "ignores row-level security (BYPASSRLS)"),
    ("rolcreaterole", "can create roles (CREATEROLE)"),
    (
        "rolreplication",
        "can read the whole server by replication (REPLICATION)",
    ),
];
const SERVER_ROLES: [(&str, &str); 5] = [
    ("pg_read_server_files", "can read files of the server"),
    ("pg_write_server_files", "can write files of the server"),
    ("pg_execute_server_program", "can run programs on the server"),
    ("pg_read_all_data", "can read every table"),
    ("pg_write_all_data", "can write every table"),
];

/// Reads the rights of the session's role: its name, whether it is a superuser, attributes, and roles of the server.
pub(super) static ROLE: LazyLock<Statement> = LazyLock::new(|| {
    let attributes = ATTRIBUTES.map(|(name, _)| name).join(", ");
    let members =
        SERVER_ROLES.map(|(name, _)| format!("pg_has_role(current_user, '{name}', 'MEMBER') AS {name}"));
    Statement::own(&format!(
        "SELECT CAST(rolname AS text) AS role, rolsuper, {attributes}, {} FROM pg_roles WHERE rolname = current_user",
        members.join(", ")
    ))
});

/// Receiver of the row of `ROLE`: a sentence for each right that a node's statement never needs.
#[derive(Debug, Default)]
pub(super) struct RoleRisks {
    pub found: Vec<String>,
}

impl Rows for RoleRisks {
    fn take(&mut self, _columns: &[String], cells: Vec<Cell>) -> Result<(), Failure> {
        let mut cells = cells.into_iter();
        let role = match cells.next() {
            Some(Cell::Text(role)) => format!("the role `{role}`"),
            _ => "the role".to_owned(),
        };
        if cells.next() == Some(Cell::Boolean(true)) {
            self.found = vec![format!(
                "{role} is a superuser, which can read every table, file and secret of the server"
            )];
            return Ok(());
        }
        let rights = ATTRIBUTES.iter().chain(&SERVER_ROLES).zip(cells);
        let has = rights.filter(|(_, cell)| *cell == Cell::Boolean(true));
        self.found = has.map(|((_, what), _)| format!("{role} {what}")).collect();
        Ok(())
    }
}
