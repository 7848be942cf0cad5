//! The plan of a batch: the mapping of columns to inputs, and the result columns.
//!
//! It is made once for a table, before any row is read.

use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use vesper_interp::Program;
use vesper_ir::{Node, Type, Value};

use crate::column_writer::{PRECISION, column_type};
use crate::scales::{Bound, of_column, of_outputs, of_value};

/// The form of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Typed columns, one for each input.
    Typed,
    /// Columns of texts that denote values of the input types; a null is an absent input.
    Spelled,
    /// One column of texts, each a JSON object with the inputs.
    Json,
}

/// The representation of output decimals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decimals {
    /// With the scale inferred from the node and the columns, or as texts without one.
    Inferred,
    Text,
    /// With these scales for these outputs, and inferred scales for all others.
    Scales(Vec<(String, u8)>),
}

/// Options of a batch.
#[derive(Clone, Debug)]
pub struct Options {
    pub form: Form,
    pub decimals: Decimals,
    /// Columns to copy into the result.
    pub keep: Vec<String>,
    pub error_column: String,
}

/// Reason why a table does not fit a node, reported to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Required inputs without a column.
    NoColumn(Vec<String>),
    /// Columns without an input that are not kept.
    NoInput(Vec<String>),
    /// A column to keep that does not exist.
    NothingToKeep(String),
    /// Two result columns with this name.
    Twice(String),
    /// An input of a type that no text of a CSV file denotes.
    NotSpelled(String, String),
    /// A column of another type where texts are required.
    NotText(String, String),
    /// A scale for an output that does not exist or has no decimals.
    NoDecimals(String),
    TooFine(String, u8),
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoColumn(names) => write!(
                formatter,
                "the table has no column for {}; each input without a default needs one",
                quote_names(names)
            ),
            Self::NoInput(names) => write!(
                formatter,
                "no input is called {}; leave the column out, or name it under `keep` to copy it into the answer",
                quote_names(names)
            ),
            Self::NothingToKeep(name) => {
                write!(formatter, "`keep` names `{name}`, which is not a column")
            }
            Self::Twice(name) => write!(
                formatter,
                "two columns of the answer would be called `{name}`; rename or leave out the one that is kept, or \
                 give the errors another name with `error_column`"
            ),
            Self::NotSpelled(name, ty) => write!(
                formatter,
                "`{name}` is of type {ty}, which no cell of a CSV file can hold; use JSON lines, Parquet or Arrow"
            ),
            Self::NotText(name, ty) => write!(formatter, "the column `{name}` holds {ty} instead of texts"),
            Self::NoDecimals(name) => write!(
                formatter,
                "`decimals` names `{name}`, which is no output with decimals"
            ),
            Self::TooFine(name, scale) => write!(
                formatter,
                "`decimals` gives `{name}` {scale} digits after the point, and a column has at most {PRECISION}"
            ),
        }
    }
}

fn quote_names(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

/// Source of the values of an input.
#[derive(Clone, Debug)]
pub(crate) enum InputSource {
    Column(usize),
    /// No column; every row has the default, or null.
    Same(Value),
}

/// The combination of a table and a node.
#[derive(Debug)]
pub struct Plan {
    pub(crate) form: Form,
    /// One for each input, in declared order; none for JSON lines.
    pub(crate) inputs: Vec<InputSource>,
    /// Position of the column of JSON texts.
    pub(crate) texts: usize,
    pub(crate) kept: Vec<usize>,
    /// The scale of the decimals of each output; `None` for texts.
    pub(crate) scales: Vec<Option<u8>>,
    pub(crate) schema: SchemaRef,
}

impl Plan {
    /// Combines a node with the columns of a table.
    pub fn new(program: &Program, table: &Schema, options: &Options) -> Result<Self, Refusal> {
        let node = program.node();
        let kept = options
            .keep
            .iter()
            .map(|name| {
                let found = table.fields().iter().position(|field| field.name() == name);
                found.ok_or_else(|| Refusal::NothingToKeep(name.clone()))
            })
            .collect::<Result<Vec<usize>, Refusal>>()?;
        let mut inputs = Vec::new();
        let mut bounds = Vec::new();
        let mut texts = 0;
        if options.form == Form::Json {
            texts = json_column(table, &kept)?;
            bounds = node.inputs.iter().map(|input| unbounded(&input.ty)).collect();
        } else {
            (inputs, bounds) = columns(program, table, options, &kept, bounds)?;
        }
        let scales = scales(program, &bounds, &options.decimals)?;
        let mut fields: Vec<Field> = Vec::new();
        for place in &kept {
            fields.extend(table.fields().get(*place).map(|field| field.as_ref().clone()));
        }
        for (place, (output, scale)) in node.outputs.iter().zip(&scales).enumerate() {
            // Nullable for rows that end with an error.
            fields.push(Field::new(
                node.output_key(place),
                column_type(&output.ty, *scale),
                true,
            ));
        }
        fields.push(Field::new(
            &options.error_column,
            DataType::Struct(error_fields()),
            true,
        ));
        for (place, field) in fields.iter().enumerate() {
            let others = fields.iter().skip(place + 1);
            if others.into_iter().any(|other| other.name() == field.name()) {
                return Err(Refusal::Twice(field.name().clone()));
            }
        }
        Ok(Self {
            form: options.form,
            inputs,
            texts,
            kept,
            scales,
            schema: Arc::new(Schema::new(fields)),
        })
    }

    /// Returns the schema of the result: the kept columns, the outputs and the errors.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

fn unbounded(ty: &Type) -> Bound {
    of_column(ty, &DataType::Utf8)
}

fn json_column(table: &Schema, kept: &[usize]) -> Result<usize, Refusal> {
    let mut others = table
        .fields()
        .iter()
        .enumerate()
        .filter(|(place, _)| !kept.contains(place));
    match (others.next(), others.next()) {
        (Some((place, field)), None) => match field.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Ok(place),
            other => Err(Refusal::NotText(field.name().clone(), other.to_string())),
        },
        (None, _) => Err(Refusal::NoColumn(vec!["the JSON texts".to_owned()])),
        (Some(_), Some((_, field))) => Err(Refusal::NoInput(vec![field.name().clone()])),
    }
}

type Columns = (Vec<InputSource>, Vec<Bound>);

fn columns(
    program: &Program,
    table: &Schema,
    options: &Options,
    kept: &[usize],
    mut bounds: Vec<Bound>,
) -> Result<Columns, Refusal> {
    let node = program.node();
    let declared = &node.inputs;
    let has_column = |place: usize| {
        table
            .fields()
            .iter()
            .any(|field| field.name() == node.input_key(place))
    };
    let is_unknown = |(place, field): &(usize, &Arc<Field>)| {
        !kept.contains(place) && !(0..declared.len()).any(|input| node.input_key(input) == field.name())
    };
    let unknown = table.fields().iter().enumerate().filter(is_unknown);
    let unknown: Vec<String> = unknown.map(|(_, field)| field.name().clone()).collect();
    if !unknown.is_empty() {
        return Err(Refusal::NoInput(unknown));
    }
    let mut inputs = Vec::with_capacity(declared.len());
    let mut missing = Vec::new();
    for (own, input) in declared.iter().enumerate() {
        let key = node.input_key(own);
        let found = table
            .fields()
            .iter()
            .enumerate()
            .find(|(_, field)| field.name() == key);
        let flagged = (node.outside_inputs.as_ref()).and_then(|outside| outside.flagged(own));
        if let (None, Some(flagged)) = (found, flagged) {
            bounds.push(unbounded(&input.ty));
            inputs.push(InputSource::Same(Value::Boolean(!has_column(flagged))));
            continue;
        }
        match (found, &input.default, &input.ty) {
            (Some((place, field)), _, ty) => {
                if options.form == Form::Spelled {
                    refuse_parts(key, ty)?;
                    bounds.push(unbounded(ty));
                } else {
                    let bound = of_column(ty, field.data_type());
                    bounds.push(bound.max(input.default.as_ref().map_or(bound, of_value)));
                }
                inputs.push(InputSource::Column(place));
            }
            (None, Some(default), _) => {
                bounds.push(of_value(default));
                inputs.push(InputSource::Same(default.clone()));
            }
            (None, None, Type::Optional(_)) => {
                bounds.push(of_value(&Value::Null));
                inputs.push(InputSource::Same(Value::Null));
            }
            (None, None, _) => missing.push(key.to_owned()),
        }
    }
    if missing.is_empty() {
        Ok((inputs, bounds))
    } else {
        Err(Refusal::NoColumn(missing))
    }
}

/// Returns the value of a flag in a row of texts, in which an empty cell is an input that is not given. `None` for
/// other inputs and tables. `is_empty` tells this of an input in the row.
pub(crate) fn flag_of_texts(
    node: &Node,
    form: Form,
    own: usize,
    is_empty: impl Fn(usize) -> bool,
) -> Option<Value> {
    if form != Form::Spelled {
        return None;
    }
    let flagged = node.outside_inputs.as_ref()?.flagged(own)?;
    Some(Value::Boolean(is_empty(flagged)))
}

fn refuse_parts(name: &str, ty: &Type) -> Result<(), Refusal> {
    match ty {
        Type::Optional(of) => refuse_parts(name, of),
        Type::Array(_) | Type::Set(_) | Type::Map(_) | Type::Record(_) => {
            Err(Refusal::NotSpelled(name.to_owned(), ty.to_string()))
        }
        _ => Ok(()),
    }
}

fn scales(program: &Program, inputs: &[Bound], requested: &Decimals) -> Result<Vec<Option<u8>>, Refusal> {
    let outputs = &program.node().outputs;
    let found = of_outputs(program.node(), inputs).into_iter().map(Bound::scale);
    let mut scales: Vec<Option<u8>> = found.collect();
    match requested {
        Decimals::Inferred => {}
        Decimals::Text => scales.fill(None),
        Decimals::Scales(requested) => {
            for (name, scale) in requested {
                if *scale > PRECISION {
                    return Err(Refusal::TooFine(name.clone(), *scale));
                }
                let place = (0..outputs.len()).find(|place| program.node().output_key(*place) == name);
                match place.and_then(|place| outputs.get(place).zip(scales.get_mut(place))) {
                    Some((output, place)) if crate::scales::has_decimals(&output.ty) => *place = Some(*scale),
                    _ => return Err(Refusal::NoDecimals(name.clone())),
                }
            }
        }
    }
    Ok(scales)
}

/// Returns the fields of the error column.
pub(crate) fn error_fields() -> Fields {
    // Nullable, because some libraries read the fields of an error that is null.
    Fields::from(vec![
        Field::new("kind", DataType::Utf8, true),
        Field::new("code", DataType::Utf8, true),
        Field::new("where", DataType::Utf8, true),
        Field::new("message", DataType::Utf8, true),
    ])
}
