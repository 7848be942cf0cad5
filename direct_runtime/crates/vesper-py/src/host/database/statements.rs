//! The checker of SQL, which is Python's: asked once for each statement of a process.

use std::collections::HashSet;
use std::sync::Arc;

use pyo3::prelude::*;
use vesper_host::database::{Facts, Kind, Limits, Piece, Place, SqlReader, Target};
use vesper_host::effect::Failure;

use crate::host::performer::failure_of;

/// Functions of `vesper.effects.database.statements`.
pub(super) struct PythonSqlReader {
    pub(super) read_sql: Py<PyAny>,
    pub(super) did_you_mean: Py<PyAny>,
}

/// Reads, writes, functions and local names.
type NamesOfPython = (HashSet<String>, HashSet<String>, HashSet<String>, HashSet<String>);
type TargetOfPython = (String, Vec<(String, NameOrIndex)>);

#[derive(FromPyObject)]
enum NameOrIndex {
    Name(String),
    Index(usize),
}

#[derive(FromPyObject)]
enum NamesOrRefusal {
    Refused(String),
    Names(NamesOfPython),
}

#[derive(FromPyObject)]
struct FactsOfPython {
    /// Parts of the text, each with whether it is a parameter.
    pieces: Vec<(bool, String)>,
    verb: String,
    foreign: Option<String>,
    limits: NamesOrRefusal,
    target: Option<TargetOfPython>,
}

impl SqlReader for PythonSqlReader {
    fn facts(&self, sql: &str, kind: Kind) -> Result<Facts, Failure> {
        Python::attach(|py| {
            let found = self.read_sql.call1(py, (sql, kind.name()));
            let found = found.and_then(|found| found.bind(py).extract::<FactsOfPython>());
            found.map(facts).map_err(|error| failure_of(py, error))
        })
    }

    fn did_you_mean(&self, name: &str, known: &[&str]) -> Option<String> {
        Python::attach(|py| {
            let found = self.did_you_mean.call1(py, (name, known.to_vec()));
            found
                .and_then(|found| found.extract(py))
                .unwrap_or_else(|error: PyErr| {
                    error.write_unraisable(py, None);
                    None
                })
        })
    }
}

fn facts(found: FactsOfPython) -> Facts {
    let pieces = found.pieces.into_iter().map(|(is_parameter, text)| {
        if is_parameter {
            Piece::Parameter(Arc::from(text))
        } else {
            Piece::Text(text)
        }
    });
    let limits = match found.limits {
        NamesOrRefusal::Refused(why) => Err(why),
        NamesOrRefusal::Names((reads, writes, functions, local_names)) => Ok(Limits {
            reads,
            writes,
            functions,
            local_names,
        }),
    };
    let target = found.target.map(|(table, columns)| Target {
        table,
        columns: columns
            .into_iter()
            .map(|(parameter, place)| (parameter, place.into()))
            .collect(),
    });
    Facts {
        pieces: pieces.collect(),
        verb: found.verb,
        foreign: found.foreign,
        limits,
        target,
    }
}

impl From<NameOrIndex> for Place {
    fn from(place: NameOrIndex) -> Self {
        match place {
            NameOrIndex::Name(name) => Self::Name(name),
            NameOrIndex::Index(index) => Self::Index(index),
        }
    }
}
