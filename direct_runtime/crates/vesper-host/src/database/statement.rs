//! SQL of a node in the form that a driver takes, with the facts that the checker of SQL reads from it.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;

use crate::database::session::Kind;
use crate::database::values::Values;
use crate::effect::Failure;

/// A part of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    /// The name of a parameter, without its colon.
    Parameter(Arc<str>),
}

/// Tables and functions of one statement, in small letters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// All tables, those that it writes among them.
    pub reads: HashSet<String>,
    pub writes: HashSet<String>,
    pub functions: HashSet<String>,
    /// Names that the statement gives to queries by WITH.
    pub local_names: HashSet<String>,
}

/// A column that a parameter goes straight into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Name(String),
    /// Its index, where the statement names no columns.
    Index(usize),
}

/// A table that a statement writes, and the parameters that go straight into its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub table: String,
    pub columns: Vec<(String, Place)>,
}

/// What the checker of SQL reads from a node's statement.
#[derive(Clone, Debug)]
pub struct Facts {
    pub pieces: Vec<Piece>,
    /// The first word, in capitals.
    pub verb: String,
    /// Why the statement cannot run here: it calls a function of the other dialect.
    pub foreign: Option<String>,
    /// For SQLite alone: what the statement may touch, or why that cannot be known.
    pub limits: Result<Limits, String>,
    /// For SQLite alone; None where the statement puts no values into columns.
    pub target: Option<Target>,
}

/// Names of SQLite that a statement may use without a capability.
#[derive(Clone, Debug, Default)]
pub struct PureNames {
    pub functions: HashSet<String>,
    /// Functions that are part of the syntax, such as `cast`.
    pub syntax: HashSet<String>,
}

/// The checker of SQL, which the language has.
pub trait SqlReader: Send + Sync {
    /// Reads a node's statement for a kind of database. The failure tells why it cannot be used.
    fn facts(&self, sql: &str, kind: Kind) -> Result<Facts, Failure>;

    /// Returns a sentence with names that are close to an unknown one.
    fn did_you_mean(&self, name: &str, known: &[&str]) -> Option<String>;
}

/// A statement that is ready for a driver.
#[derive(Debug)]
pub struct Statement {
    /// With its `:name` parameters, as SQLite takes it.
    pub text: Arc<str>,
    /// With `$1` for the first of `parameters`, as Postgres takes it.
    pub numbered: String,
    /// With `%(name)s` for parameters, as psycopg takes it.
    pub formatted: String,
    /// Names, in order.
    pub parameters: Vec<Arc<str>>,
    pub verb: String,
    /// None for a statement of Vesper, which nothing holds back.
    pub facts: Option<Facts>,
}

impl Statement {
    /// Creates a statement of Vesper: `:` stands in it before parameters only.
    pub fn own(sql: &str) -> Self {
        let mut pieces = Vec::new();
        for (place, part) in sql.split(':').enumerate() {
            let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            let end = part.find(|letter| !is_word(letter)).unwrap_or(part.len());
            let (name, rest) = if place == 0 {
                ("", part)
            } else {
                part.split_at(end)
            };
            if place > 0 {
                pieces.push(Piece::Parameter(Arc::from(name)));
            }
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Self::new(&pieces, String::new(), None)
    }

    /// Creates the statement of a node.
    pub fn of_node(mut facts: Facts) -> Self {
        let (pieces, verb) = (std::mem::take(&mut facts.pieces), facts.verb.clone());
        Self::new(&pieces, verb, Some(facts))
    }

    fn new(pieces: &[Piece], verb: String, facts: Option<Facts>) -> Self {
        let names = pieces.iter().filter_map(|piece| match piece {
            Piece::Parameter(name) => Some(Arc::clone(name)),
            Piece::Text(_) => None,
        });
        let parameters: Vec<Arc<str>> = names.collect::<BTreeSet<_>>().into_iter().collect();
        let (mut text, mut numbered, mut formatted) = (String::new(), String::new(), String::new());
        for piece in pieces {
            match piece {
                Piece::Text(part) => {
                    text.push_str(part);
                    numbered.push_str(part);
                    formatted.push_str(&part.replace('%', "%%"));
                }
                Piece::Parameter(name) => {
                    text.push(':');
                    text.push_str(name);
                    let place = parameters.binary_search(name).map_or(0, |place| place + 1);
                    let _ = write!(numbered, "${place}"); // Writing to a string cannot fail.
                    let _ = write!(formatted, "%({name})s");
                }
            }
        }
        Self {
            text: Arc::from(text),
            numbered,
            formatted,
            parameters,
            verb,
            facts,
        }
    }

    /// Fails unless the given values are exactly the parameters, and the dialect is that of the database.
    ///
    /// The checker of the node makes sure of it; a statement that was read in two ways must not run all the same: a
    /// condition that got lost would leave a parameter over.
    pub fn check(&self, values: &Values) -> Result<(), Failure> {
        if let Some(foreign) = self.facts.as_ref().and_then(|facts| facts.foreign.as_ref()) {
            return Err(Failure::new("unavailable", foreign.clone()));
        }
        let mut given: Vec<&str> = values.iter().map(|(name, _)| &**name).collect();
        given.sort_unstable();
        let missing = self
            .parameters
            .iter()
            .find(|name| given.binary_search(&&***name).is_err());
        let unused = given
            .iter()
            .find(|name| self.parameters.binary_search_by(|own| (**own).cmp(name)).is_err());
        let what = match (missing, unused) {
            (Some(missing), _) => format!("nothing gives `:{missing}` of its SQL"),
            (None, Some(unused)) => format!("its SQL has no parameter `:{unused}`"),
            (None, None) => return Ok(()),
        };
        Err(Failure::new(
            "unavailable",
            format!("{what}: the node was not checked, or is damaged"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Statement;
    use crate::database::values::Column;

    #[test]
    fn numbers_parameters_by_name() {
        let statement = Statement::own("UPDATE t SET b = :b, c = :b WHERE a = :a_1 AND d > 0");
        assert_eq!(
            &*statement.text,
            "UPDATE t SET b = :b, c = :b WHERE a = :a_1 AND d > 0"
        );
        assert_eq!(
            statement.numbered,
            "UPDATE t SET b = $2, c = $2 WHERE a = $1 AND d > 0"
        );
        assert_eq!(Statement::own("SELECT 5 % :b").formatted, "SELECT 5 %% %(b)s");
    }

    #[test]
    fn refuses_values_that_are_not_its_parameters() {
        let statement = Statement::own("SELECT :a, :b");
        let value = |name: &str| (Arc::from(name), Column::Null);
        assert!(statement.check(&vec![value("b"), value("a")]).is_ok());
        let message = |values| statement.check(&values).map_err(|failure| failure.message);
        let end = "the node was not checked, or is damaged";
        assert_eq!(
            message(vec![value("a")]),
            Err(format!("nothing gives `:b` of its SQL: {end}"))
        );
        let three = vec![value("a"), value("b"), value("x")];
        assert_eq!(
            message(three),
            Err(format!("its SQL has no parameter `:x`: {end}"))
        );
    }
}
