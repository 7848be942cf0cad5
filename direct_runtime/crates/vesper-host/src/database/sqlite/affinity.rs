//! Columns of SQLite that would change what is put into them.
//!
//! A column that is declared NUMERIC, DECIMAL(10, 2), REAL, INTEGER or, of all names, STRING, turns a text that looks
//! like a number into a number: a decimal 0.10 becomes the float 0.1, and the text `007` the integer 7, without a word.
//! A write that would do so is refused. Only parameters that go straight into a column can be seen here; a value of an
//! expression is found when it is read (a float is no decimal).

use crate::database::statement::{Place, Target};
use crate::database::values::{Column, Values};
use crate::effect::Failure;

/// Reads the names and declared types of a table's columns, in order.
pub const COLUMNS: &str = "SELECT name, type FROM pragma_table_info(:table)";

/// Returns whether a value of the statement could be changed by a column, so that the columns must be known.
pub fn is_checked(target: &Target, values: &Values) -> bool {
    target
        .columns
        .iter()
        .any(|(name, _)| at_risk(values, name).is_some())
}

/// Fails where a column would not keep a decimal or a text of the values. `columns` has the rows of `COLUMNS`.
pub fn check(
    columns: &[(String, String)],
    target: &Target,
    values: &Values,
    refusal: &str,
) -> Result<(), Failure> {
    for (parameter, place) in &target.columns {
        let Some(value) = at_risk(values, parameter) else {
            continue;
        };
        let found = match place {
            Place::Name(name) => columns
                .iter()
                .find(|(each, _)| each.to_lowercase() == name.to_lowercase()),
            Place::Index(index) => columns.get(*index),
        };
        let Some((name, kind)) = found else { continue };
        if changes(affinity(kind), value) {
            let what = match value {
                Column::Decimal(_) => "a decimal",
                _ => "a text that looks like a number",
            };
            let text = format!(
                "column `{}` of `{}` is declared `{kind}`, and SQLite would keep {what} there as another number; \
                 declare the column TEXT",
                name.to_lowercase(),
                target.table
            );
            return Err(Failure::new(refusal, text));
        }
    }
    Ok(())
}

fn at_risk<'a>(values: &'a Values, name: &str) -> Option<&'a Column> {
    let found = values.iter().find(|(each, _)| &**each == name);
    found.map(|(_, value)| value).filter(|value| is_at_risk(value))
}

fn is_at_risk(value: &Column) -> bool {
    match value {
        Column::Decimal(_) => true,
        Column::Text(text) => looks_like_number(text),
        _ => false,
    }
}

/// Returns true for a text that SQLite reads as a number.
fn looks_like_number(text: &str) -> bool {
    let trimmed = text.trim_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let unsigned = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
    let (mantissa, exponent) = unsigned
        .split_once(['e', 'E'])
        .map_or((unsigned, None), |(m, e)| (m, Some(e)));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_exponent = |part: &str| {
        let digits = part.strip_prefix(['+', '-']).unwrap_or(part);
        !digits.is_empty() && is_digits(digits)
    };
    is_digits(whole)
        && is_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(is_exponent)
}

/// Affinity of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Affinity {
    Integer,
    Text,
    Blob,
    Real,
    Numeric,
}

/// Returns the affinity of a declared type by the rules of SQLite's documentation, in order.
fn affinity(declared: &str) -> Affinity {
    let name = declared.to_uppercase();
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    if has(&["INT"]) {
        Affinity::Integer
    } else if has(&["CHAR", "CLOB", "TEXT"]) {
        Affinity::Text
    } else if name.is_empty() || has(&["BLOB"]) {
        Affinity::Blob
    } else if has(&["REAL", "FLOA", "DOUB"]) {
        Affinity::Real
    } else {
        Affinity::Numeric
    }
}

fn changes(affinity: Affinity, value: &Column) -> bool {
    match (affinity, value) {
        (Affinity::Text | Affinity::Blob, _) => false,
        (Affinity::Integer | Affinity::Numeric, Column::Decimal(text)) => {
            // Kept: the one spelling of a whole number of 64 bits.
            text.parse::<i64>()
                .map_or(true, |number| number.to_string() != *text)
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::{Affinity, affinity, changes, looks_like_number};
    use crate::database::values::Column;

    #[test]
    fn knows_the_affinities_of_sqlite() {
        let cases = [
            ("INTEGER", Affinity::Integer),
            ("POINT", Affinity::Integer),
            ("VARCHAR(10)", Affinity::Text),
            ("", Affinity::Blob),
            ("double", Affinity::Real),
            ("DECIMAL(10, 2)", Affinity::Numeric),
            ("STRING", Affinity::Numeric),
        ];
        for (declared, expected) in cases {
            assert_eq!(affinity(declared), expected, "{declared}");
        }
    }

    #[test]
    fn knows_texts_that_look_like_numbers() {
        for text in ["007", " 1.5e3\n", "+.5", "1.", "-0"] {
            assert!(looks_like_number(text), "{text}");
        }
        for text in ["", ".", "1e", "1 2", "0x1", "1.2.3", "e5", "+-1"] {
            assert!(!looks_like_number(text), "{text}");
        }
    }

    #[test]
    fn keeps_whole_decimals_of_64_bits_only() {
        let decimal = |text: &str| Column::Decimal(text.to_owned());
        assert!(!changes(Affinity::Numeric, &decimal("-12")));
        assert!(!changes(Affinity::Integer, &decimal("9223372036854775807")));
        for text in ["5.00", "9223372036854775808", "-0.5"] {
            assert!(changes(Affinity::Numeric, &decimal(text)), "{text}");
        }
        assert!(changes(Affinity::Real, &decimal("5")));
    }
}
