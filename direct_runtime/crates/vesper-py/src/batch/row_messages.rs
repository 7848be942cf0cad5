//! Messages of rows with an error.
//!
//! Python writes the message of the first rows of each kind. Such a message consists of fixed parts and of the values of
//! the row. Once the parts of one row have made exactly the message that Python writes for a row of other values, later
//! rows are composed of them without Python.

use std::collections::HashMap;
use std::sync::Arc;

use vesper_arrow::{Cell, Plan, RecordBatch, RowEnd, RowError, cell, json_text};
use vesper_interp::inputs::ProblemKind;
use vesper_interp::problems::Problems;
use vesper_interp::{Mention, Outcome, Phase};
use vesper_ir::{Node, Type, Value, float, time};

/// Maximum number of kinds that are remembered; rows of further kinds are explained by Python.
const MAX_KINDS: usize = 64;
/// Maximum number of messages that are remembered for a kind without fixed parts.
const MAX_MESSAGES: usize = 1_024;
/// Maximum length of a given value in a message. Python cuts longer ones.
const MAX_SHOWN: usize = 60;

/// The messages of one batch.
#[derive(Default)]
pub(super) struct RowMessages {
    kinds: Vec<(Kind, Learned)>,
    /// The kind of the last row, which usually is that of the next.
    last: usize,
}

/// What rows with the same fixed parts have in common.
#[derive(PartialEq, Eq)]
enum Kind {
    Failed(String, u32),
    LimitHit(Arc<str>),
    Broken(Phase, u32),
    /// The code of a declared error, and whether it has a message.
    Declared(Arc<str>, bool),
    /// Each problem, and whether its cell is null.
    Refused(Vec<(Vec<u8>, ProblemKind, bool)>),
}

/// The values of a row that occur in its message, in order.
type Slots = Vec<String>;

/// The message of a kind, as far as it is known.
struct Learned {
    first: RowError,
    /// Messages by the values of their rows, until the parts are verified.
    known: HashMap<Slots, String>,
    /// The texts around the values; a single one if the message shows none.
    parts: Vec<String>,
    trust: Trust,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// One row was explained.
    Candidate,
    /// A row of other values had the message that the parts make.
    Verified,
    /// The message consists of something else.
    Refuted,
}

/// A row that Python has to explain. It is remembered by [`RowMessages::learn`].
pub(super) struct Unexplained(Option<(Kind, Slots)>);

impl RowMessages {
    /// Returns the error of a row, if its kind is known.
    pub(super) fn explain(
        &mut self,
        node: &Node,
        plan: &Plan,
        given: &RecordBatch,
        row: usize,
        ended: &RowEnd,
    ) -> Result<RowError, Unexplained> {
        let Some((kind, slots)) = describe(node, plan, given, row, ended) else {
            return Err(Unexplained(None));
        };
        let is_kind = |found: &&(Kind, Learned)| found.0 == kind;
        let place = match self.kinds.get(self.last).filter(|known| is_kind(known)) {
            Some(_) => Some(self.last),
            None => self.kinds.iter().position(|known| is_kind(&known)),
        };
        let Some((_, learned)) = place.and_then(|place| self.kinds.get(place)) else {
            return Err(Unexplained(Some((kind, slots))));
        };
        self.last = place.unwrap_or_default();
        if learned.trust == Trust::Verified {
            Ok(learned.compose(&slots))
        } else if let Some(message) = learned.known.get(&slots) {
            Ok(learned.with(message.clone()))
        } else {
            Err(Unexplained(Some((kind, slots))))
        }
    }

    /// Remembers the explanation of a row.
    pub(super) fn learn(&mut self, node: &Node, ended: &RowEnd, row: Unexplained, explained: &RowError) {
        let Some((kind, slots)) = row.0 else {
            return;
        };
        let message = explained.message.clone();
        if let Some((_, learned)) = self.kinds.iter_mut().find(|known| known.0 == kind) {
            if learned.trust == Trust::Candidate {
                let is_same = learned.compose(&slots) == *explained;
                learned.trust = if is_same { Trust::Verified } else { Trust::Refuted };
            }
            if learned.known.len() < MAX_MESSAGES {
                learned.known.insert(slots, message);
            }
        } else if self.kinds.len() < MAX_KINDS {
            let learned = Learned {
                first: explained.clone(),
                parts: split(&message, &leads(node, ended), &slots),
                // A message without values is the same in every row.
                trust: if slots.is_empty() {
                    Trust::Verified
                } else {
                    kind.trust()
                },
                known: HashMap::from([(slots, message)]),
            };
            self.kinds.push((kind, learned));
        }
    }
}

impl Kind {
    /// Returns the trust in the parts of a first message.
    fn trust(&self) -> Trust {
        match self {
            // The message proposes the closest members, which depend on the given text.
            Self::Refused(problems) if problems.iter().any(|each| each.1 == ProblemKind::NotAMember) => {
                Trust::Refuted
            }
            _ => Trust::Candidate,
        }
    }
}

impl Learned {
    fn compose(&self, slots: &Slots) -> RowError {
        let mut values = slots.iter();
        let mut message = String::with_capacity(self.first.message.len() + MAX_SHOWN);
        for (place, part) in self.parts.iter().enumerate() {
            if place > 0 {
                message.push_str(values.next().map_or("", |value| value));
            }
            message.push_str(part);
        }
        self.with(message)
    }

    fn with(&self, message: String) -> RowError {
        RowError {
            kind: Arc::clone(&self.first.kind),
            code: Arc::clone(&self.first.code),
            place: self.first.place.clone(),
            message,
        }
    }
}

/// Splits a message at its values, or returns it whole if they are not there in order.
fn split(message: &str, leads: &[String], slots: &Slots) -> Vec<String> {
    let mut parts = Vec::with_capacity(slots.len() + 1);
    let mut rest = message;
    for (lead, value) in leads.iter().zip(slots) {
        let found = rest.find(&format!("{lead}{value}"));
        let before = found.and_then(|at| rest.split_at_checked(at + lead.len()));
        let Some((before, after)) = before else {
            return vec![message.to_owned()];
        };
        parts.push(before.to_owned());
        rest = after.get(value.len()..).unwrap_or_default();
    }
    parts.push(rest.to_owned());
    parts
}

/// Returns the texts before each value in the message of a row.
fn leads(node: &Node, ended: &RowEnd) -> Vec<String> {
    match ended {
        RowEnd::Otherwise(Outcome::ContractBroken { values, .. }) => {
            let names = values.iter().filter_map(|(mention, _)| resolve(node, *mention));
            names
                .map(|(name, _)| format!("{} is ", name.trim_start_matches('_')))
                .collect()
        }
        RowEnd::Otherwise(Outcome::DeclaredError(_)) => vec![": ".to_owned()],
        RowEnd::Refused(problems) => problems.iter().map(|_| "got ".to_owned()).collect(),
        _ => Vec::new(),
    }
}

/// Returns the kind and the values of a row, or `None` if only Python can write its message.
fn describe(
    node: &Node,
    plan: &Plan,
    given: &RecordBatch,
    row: usize,
    ended: &RowEnd,
) -> Option<(Kind, Slots)> {
    match ended {
        RowEnd::Otherwise(Outcome::Failed { code, expression }) => {
            Some((Kind::Failed(code.name().to_owned(), *expression), Slots::new()))
        }
        RowEnd::Otherwise(Outcome::LimitHit(limit)) => {
            Some((Kind::LimitHit(Arc::clone(limit)), Slots::new()))
        }
        RowEnd::Otherwise(Outcome::ContractBroken {
            phase,
            clause,
            values,
        }) => {
            let mut slots = Slots::with_capacity(values.len());
            for (mention, value) in values {
                let (_, ty) = resolve(node, *mention)?;
                slots.push(show(ty, value)?);
            }
            Some((Kind::Broken(*phase, *clause), slots))
        }
        RowEnd::Otherwise(Outcome::DeclaredError(values)) => declared(node, values),
        RowEnd::Refused(problems) => refused(plan, given, row, problems),
        RowEnd::Otherwise(_) | RowEnd::Misfit(..) | RowEnd::Panicked(_) => None,
    }
}

fn declared(node: &Node, values: &[Value]) -> Option<(Kind, Slots)> {
    let (mut code, mut message) = (None, None);
    for (field, value) in node.errors.iter().zip(values) {
        match (&*field.name, &field.ty, value) {
            ("error_code", Type::Enum(of), Value::Member(member)) => code = of.name(*member),
            ("message", _, Value::Text(text)) => message = Some(text.to_string()),
            ("message", _, Value::Null) => {}
            ("message", ..) => return None,
            _ => {}
        }
    }
    let slots: Slots = message.filter(|text| !text.is_empty()).into_iter().collect();
    Some((Kind::Declared(Arc::clone(code?), !slots.is_empty()), slots))
}

/// Describes refused inputs whose problems are those of whole cells.
fn refused(plan: &Plan, given: &RecordBatch, row: usize, problems: &Problems) -> Option<(Kind, Slots)> {
    // A problem of a JSON text shows its place in the text.
    if json_text(plan, given, row).is_some() {
        return None;
    }
    let (mut kinds, mut slots) = (Vec::new(), Slots::new());
    for problem in problems.iter() {
        let name = std::str::from_utf8(&problem.path).ok()?;
        let cell = cell(given.column_by_name(name)?, row);
        kinds.push((problem.path.clone(), problem.kind, matches!(cell, Cell::Null)));
        slots.push(show_cell(&cell)?);
    }
    Some((Kind::Refused(kinds), slots))
}

fn resolve(node: &Node, mention: Mention) -> Option<(&str, &Type)> {
    Some(match mention {
        Mention::Input(place) => node.inputs.get(place).map(|input| (&*input.name, &input.ty))?,
        Mention::Constant(place) => node.constants.get(place).map(|each| (&*each.name, &each.ty))?,
        Mention::Step(place) => {
            let step = node.steps.get(place)?;
            (&*step.name, step.ty.as_ref()?)
        }
        Mention::Error(place) => node.errors.get(place).map(|field| (&*field.name, &field.ty))?,
        Mention::Output(place) => node
            .outputs
            .get(place)
            .map(|output| (&*output.name, &output.ty))?,
    })
}

/// Returns a value as messages show it, or `None` for a value with parts or a text that needs escapes.
fn show(ty: &Type, value: &Value) -> Option<String> {
    Some(match (ty, value) {
        (_, Value::Null) => "null".to_owned(),
        (Type::Optional(of), value) => show(of, value)?,
        (_, Value::Boolean(value)) => value.to_string(),
        (_, Value::Integer(value)) => value.to_string(),
        (_, Value::Decimal(value)) => value.to_string(),
        (_, Value::Float(value)) => float::text(*value),
        (_, Value::Text(value)) => quoted(value)?,
        (Type::Enum(of), Value::Member(member)) => quoted(of.name(*member)?)?,
        (_, Value::Date(value)) => time::date_text(*value),
        (_, Value::Timestamp(value)) => time::timestamp_text(*value),
        (_, Value::Duration(value)) => time::duration_text(*value),
        (_, Value::TimeOfDay(value)) => time::time_text(*value),
        (_, Value::Period(value)) => time::period_text(*value),
        _ => return None,
    })
}

/// Returns type and value of a cell as messages show a given object.
fn show_cell(cell: &Cell<'_>) -> Option<String> {
    let shown = match cell {
        Cell::Null => "null".to_owned(),
        Cell::Boolean(value) => format!("bool {value}"),
        Cell::Integer(value) => format!("int {value}"),
        Cell::Decimal(Ok(value)) => format!("Decimal {value}"),
        Cell::Float(value) => format!("float {}", float::text(*value)),
        Cell::Text(text) => format!("str {}", quoted(text)?),
        _ => return None,
    };
    (shown.len() <= MAX_SHOWN).then_some(shown)
}

/// Returns a text in quotes, or `None` if Python has to decide which characters are printable.
fn quoted(text: &str) -> Option<String> {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    is_plain.then(|| format!("\"{text}\""))
}
