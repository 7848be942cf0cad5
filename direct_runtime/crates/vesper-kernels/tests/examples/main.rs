//! Test that runs every example of every declared operation. The table is generated from schemas/ops.
#![allow(
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use std::sync::Arc;

use vesper_ir::decode::decode_type;
use vesper_ir::pattern::Pattern;
use vesper_ir::{
    CallError, Decimal, ErrorCode, MAX_ARITY, Map, Op, Set, Type, Value, base64, dispatch, json, time,
};
use vesper_kernels::Native;

mod table;

/// Example of an operation, with values as in the declaration.
pub(crate) struct Example {
    op: Op,
    of: &'static [&'static str],
    args: &'static [Given],
    expected: Expected,
}

#[derive(Debug)]
#[allow(dead_code, reason = "not every declaration has an example of every form")]
pub(crate) enum Given {
    Boolean(bool),
    Integer(i64),
    Float(&'static str),
    Null,
    Text(&'static str),
    List(&'static [Given]),
    Fields(&'static [(&'static str, Given)]),
}

pub(crate) enum Expected {
    Returns(Given),
    Raises(ErrorCode),
}

fn value(ty: &Type, given: &Given) -> Value {
    match (ty, given) {
        (Type::Boolean, Given::Boolean(value)) => Value::Boolean(*value),
        (Type::Integer, Given::Integer(value)) => Value::Integer(*value),
        (Type::Decimal, Given::Text(text)) => Value::Decimal(Decimal::parse(text).unwrap()),
        // Python spelling: `nan`, `-inf`, `1e-05`.
        (Type::Float, Given::Float(text)) => Value::Float(text.parse().unwrap()),
        (Type::Text, Given::Text(text)) => Value::Text(Arc::from(*text)),
        (Type::Bytes, Given::Text(text)) => Value::Bytes(Arc::from(base64::parse(text).unwrap())),
        (Type::Timestamp, Given::Text(text)) => Value::Timestamp(time::parse_timestamp(text).unwrap()),
        (Type::Date, Given::Text(text)) => Value::Date(time::parse_date(text).unwrap()),
        (Type::Duration, Given::Text(text)) => Value::Duration(time::parse_duration(text).unwrap()),
        (Type::TimeOfDay, Given::Text(text)) => Value::TimeOfDay(time::parse_time(text).unwrap()),
        (Type::Period, Given::Text(text)) => Value::Period(time::parse_period(text).unwrap()),
        (Type::Json, Given::Text(text)) => Value::Json(Arc::new(json::parse(text).unwrap())),
        (Type::Enum(of), Given::Text(text)) => Value::Member(of.member(text).unwrap()),
        (Type::Set(of), Given::List(items)) => {
            let members = items.iter().map(|item| value(of, item).to_key().unwrap());
            Value::Set(Arc::new(Set::from_keys(of.key_kind().unwrap(), members).unwrap()))
        }
        (Type::Array(of), Given::List(items)) => {
            Value::Array(items.iter().map(|item| value(of, item)).collect())
        }
        (Type::Map(of), Given::List(items)) => {
            let entries = items.iter().map(|entry| match entry {
                Given::List([key, item]) => (value(&of.key, key).to_key().unwrap(), value(&of.value, item)),
                other => panic!("{other:?} is not an entry"),
            });
            let entries = entries.collect();
            Value::Map(Arc::new(
                Map::from_entries(of.key.key_kind().unwrap(), entries).unwrap(),
            ))
        }
        (Type::Record(of), Given::Fields(fields)) => {
            assert_eq!(of.fields().len(), fields.len(), "{fields:?} is not a {ty}");
            let fields = of.fields().iter().zip(*fields).map(|(field, (name, given))| {
                assert_eq!(*field.name, **name);
                value(&field.ty, given)
            });
            Value::Record(fields.collect())
        }
        (Type::Optional(_), Given::Null) => Value::Null,
        (Type::Optional(of), given) => value(of, given),
        _ => panic!("{given:?} is not a {ty}"),
    }
}

/// Compares a result with an example. JSON numbers are compared by value.
fn is_as_shown(result: &Value, expected: &Value) -> bool {
    match (result, expected) {
        (Value::Json(result), Value::Json(expected)) => result.is_equal(expected),
        _ => result.is_identical(expected),
    }
}

#[test]
fn every_example_holds() {
    for example in table::EXAMPLES {
        let signature = example.op.signature();
        let of: Vec<Type> = example.of.iter().map(|json| decode_type(json).unwrap()).collect();
        let params = signature
            .params
            .iter()
            .map(|(_, pattern)| pattern.instantiate(&of).unwrap());
        let args = params.zip(example.args).enumerate();
        let args: Vec<Value> = args
            .map(|(place, (ty, given))| match given {
                Given::Text(text) if signature.literals.contains(&place) => {
                    Value::Pattern(Arc::new(Pattern::new(text).unwrap()))
                }
                given => value(&ty, given),
            })
            .collect();
        let named = signature.named.iter().map(|place| match &of[*place] {
            Type::Enum(of) => Value::Array(of.members().iter().cloned().map(Value::Text).collect()),
            other => panic!("{other} is not an enum"),
        });
        let typed = signature
            .typed
            .iter()
            .map(|place| Value::Type(of[*place].clone()));
        let args: Vec<Value> = args.into_iter().chain(named).chain(typed).collect();
        let mut slots = [&args[0]; MAX_ARITY];
        for (slot, arg) in slots.iter_mut().zip(&args) {
            *slot = arg;
        }
        let result = dispatch(&Native, example.op, &slots);
        let name = example.op.name();
        match (&example.expected, result) {
            (Expected::Returns(expected), Ok(result)) => {
                let expected = value(&signature.returns.instantiate(&of).unwrap(), expected);
                assert!(
                    is_as_shown(&result, &expected),
                    "{name}{:?}: {result:?}, not {expected:?}",
                    example.args
                );
            }
            (Expected::Raises(expected), Err(CallError::Failed(code))) => {
                assert_eq!(code, *expected, "{name}{:?}", example.args);
                assert!(
                    signature.raises.contains(&code),
                    "{name} does not declare {code:?}"
                );
            }
            (_, result) => panic!("{name}{:?}: {result:?}", example.args),
        }
    }
}

#[test]
fn every_operation_has_an_example_and_a_name_of_its_own() {
    for op in Op::ALL {
        assert!(
            // No example could have a table.
            op.name().starts_with("lookup.") || table::EXAMPLES.iter().any(|example| example.op == *op),
            "{op:?} has no example"
        );
        assert_eq!(Op::from_name(op.name()), Some(*op));
    }
    assert_eq!(Op::from_name("integer.divide_by_magic"), None);
}

#[test]
fn mistyped_arguments_are_a_fault_and_not_a_panic() {
    let wrong = Value::Boolean(true);
    // Families whose operations take a boolean.
    let takes_it = |op: &&Op| {
        ["boolean.", "optional.", "value.", "table."]
            .iter()
            .any(|family| op.name().starts_with(family))
    };
    for op in Op::ALL.iter().filter(|op| !takes_it(op)) {
        assert!(
            matches!(
                dispatch(&Native, *op, &[&wrong; MAX_ARITY]),
                Err(CallError::Mistyped(_))
            ),
            "{op:?}"
        );
    }
}
