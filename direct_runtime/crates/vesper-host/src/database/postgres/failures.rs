//! The meaning of errors of Postgres, by their SQLSTATE. Details are left out: they repeat values.

use std::time::Duration;

use super::connection::Problem;
use crate::database::session::{Purpose, SessionError};
use crate::effect::Failure;
use crate::postgres::session::Problem as Report;

/// Time by which the server may be late in stopping a statement before the connection is cut.
pub(super) const GRACE: Duration = Duration::from_secs(1);

/// Conditions of the classes 22 and 23, in words.
const CONDITIONS: [(&str, &str); 75] = [
    ("22000", "data exception"),
    ("22001", "string data right truncation"),
    ("22002", "null value no indicator parameter"),
    ("22003", "numeric value out of range"),
    ("22004", "null value not allowed"),
    ("22005", "error in assignment"),
    ("22007", "invalid datetime format"),
    ("22008", "datetime field overflow"),
    ("22009", "invalid time zone displacement value"),
    ("2200B", "escape character conflict"),
    ("2200C", "invalid use of escape character"),
    ("2200D", "invalid escape octet"),
    ("2200F", "zero length character string"),
    ("2200G", "most specific type mismatch"),
    ("2200H", "sequence generator limit exceeded"),
    ("2200L", "not an xml document"),
    ("2200M", "invalid xml document"),
    ("2200N", "invalid xml content"),
    ("2200S", "invalid xml comment"),
    ("2200T", "invalid xml processing instruction"),
    ("22010", "invalid indicator parameter value"),
    ("22011", "substring error"),
    ("22012", "division by zero"),
    ("22013", "invalid preceding or following size"),
    ("22014", "invalid argument for ntile function"),
    ("22015", "interval field overflow"),
    ("22016", "invalid argument for nth value function"),
    ("22018", "invalid character value for cast"),
    ("22019", "invalid escape character"),
    ("2201B", "invalid regular expression"),
    ("2201E", "invalid argument for logarithm"),
    ("2201F", "invalid argument for power function"),
    ("2201G", "invalid argument for width bucket function"),
    ("2201W", "invalid row count in limit clause"),
    ("2201X", "invalid row count in result offset clause"),
    ("22021", "character not in repertoire"),
    ("22022", "indicator overflow"),
    ("22023", "invalid parameter value"),
    ("22024", "unterminated c string"),
    ("22025", "invalid escape sequence"),
    ("22026", "string data length mismatch"),
    ("22027", "trim error"),
    ("2202E", "array subscript error"),
    ("2202G", "invalid tablesample repeat"),
    ("2202H", "invalid tablesample argument"),
    ("22030", "duplicate json object key value"),
    ("22031", "invalid argument for sql json datetime function"),
    ("22032", "invalid json text"),
    ("22033", "invalid sql json subscript"),
    ("22034", "more than one sql json item"),
    ("22035", "no sql json item"),
    ("22036", "non numeric sql json item"),
    ("22037", "non unique keys in a json object"),
    ("22038", "singleton sql json item required"),
    ("22039", "sql json array not found"),
    ("2203A", "sql json member not found"),
    ("2203B", "sql json number not found"),
    ("2203C", "sql json object not found"),
    ("2203D", "too many json array elements"),
    ("2203E", "too many json object members"),
    ("2203F", "sql json scalar required"),
    ("2203G", "sql json item cannot be cast to target type"),
    ("22P01", "floating point exception"),
    ("22P02", "invalid text representation"),
    ("22P03", "invalid binary representation"),
    ("22P04", "bad copy file format"),
    ("22P05", "untranslatable character"),
    ("22P06", "nonstandard use of escape character"),
    ("23000", "integrity constraint violation"),
    ("23001", "restrict violation"),
    ("23502", "not null violation"),
    ("23503", "foreign key violation"),
    ("23505", "unique violation"),
    ("23514", "check violation"),
    ("23P01", "exclusion violation"),
];

/// Returns the meaning of a problem.
pub(super) fn failure(problem: Problem, purpose: &Purpose, database: &str, is_commit: bool) -> SessionError {
    let error = match problem {
        Problem::Silent => {
            let doing = format!("`{database}` did not answer: this");
            let failure = purpose.deadline.failure(&doing);
            return SessionError::Failed(Failure {
                may_have_happened: is_commit,
                ..failure
            });
        }
        Problem::Ended(text) => return lost(&text, database, is_commit),
        Problem::Driver(error) => error,
    };
    let Some(report) = error.as_db_error() else {
        return lost(&Report::from(error).report(), database, is_commit);
    };
    let report = ServerReport {
        state: report.code().code(),
        message: report.message(),
        constraint: report.constraint(),
        column: report.column(),
        table: report.table(),
    };
    report.failure(purpose, database, is_commit)
}

fn lost(why: &str, database: &str, is_commit: bool) -> SessionError {
    SessionError::Failed(Failure {
        may_have_happened: is_commit,
        ..Failure::new(
            "unavailable",
            format!("`{database}`: the connection was lost: {why}"),
        )
    })
}

/// Report of a server about an error.
#[derive(Clone, Copy, Debug)]
pub struct ServerReport<'a> {
    /// The SQLSTATE.
    pub state: &'a str,
    pub message: &'a str,
    pub constraint: Option<&'a str>,
    pub column: Option<&'a str>,
    pub table: Option<&'a str>,
}

impl ServerReport<'_> {
    /// Returns the meaning of the error.
    pub fn failure(&self, purpose: &Purpose, database: &str, is_commit: bool) -> SessionError {
        let text = format!("`{database}`: {}", self.text());
        let class = self.state.get(..2).unwrap_or_default();
        SessionError::Failed(match class {
            // A constraint, a value that does not fit, or a trigger that refuses.
            "22" | "23" | "P0" => Failure::new(purpose.refusal, text),
            "40" => Failure::new(
                "unavailable",
                format!("{text}; it was rolled back and may be tried again"),
            ),
            // Otherwise somebody else stopped it.
            "57" if self.state == "57014" && purpose.deadline.left() < GRACE => purpose
                .deadline
                .failure(&format!("the statement on `{database}`")),
            _ if self.state == "42P01" => {
                return SessionError::MissingTable(Failure::new("unavailable", text));
            }
            _ => Failure {
                may_have_happened: is_commit && matches!(class, "57" | "08" | "XX" | "58"),
                ..Failure::new("unavailable", text)
            },
        })
    }

    /// Returns the message of the server, without values.
    fn text(&self) -> String {
        let condition = |other: &str| {
            let known = CONDITIONS.iter().find(|(code, _)| *code == self.state);
            known.map_or_else(|| other.to_owned(), |(_, words)| (*words).to_owned())
        };
        match self.state.get(..2) {
            Some("23") => {
                let constraint = self.constraint.or(self.column).unwrap_or("None");
                let table = self.table.unwrap_or("None");
                format!(
                    "{}: constraint `{constraint}` of `{table}`",
                    condition("integrity error")
                )
            }
            Some("22") => {
                let column = self
                    .column
                    .map_or_else(String::new, |name| format!(" in column `{name}`"));
                format!(
                    "the database refuses a value: {}{column}",
                    condition("data error")
                )
            }
            _ => self.message.to_owned(),
        }
    }
}
