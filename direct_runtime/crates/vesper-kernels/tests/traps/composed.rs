//! Tests of equality of collections, of records, and of operations over whole arrays.

use std::sync::Arc;

use vesper_ir::ErrorCode::{
    DecimalOverflow, DuplicateKey, EmptyCollection, IntegerOverflow, InvalidArgument,
};
use vesper_ir::limits::TYPE_DEPTH;
use vesper_ir::{
    ArrayKernels, DecimalKernels, IntegerKernels, Key, Map, MapKernels, Member, OptionalKernels, OwnedKey,
    RecordKernels, Set, SetKernels, Value,
};
use vesper_kernels::Native;

use crate::{decimal, integers, quickly, shown, text};

fn decimals(values: &[&str]) -> Vec<Value> {
    values.iter().map(|it| Value::Decimal(decimal(it))).collect()
}

fn array(values: Vec<Value>) -> Value {
    Value::Array(values.into())
}

fn record(values: Vec<Value>) -> Value {
    Value::Record(values.into())
}

fn map(entries: Vec<(i64, Value)>) -> Map {
    let entries = entries
        .into_iter()
        .map(|(key, value)| (OwnedKey::Integer(key), value));
    Map::of_entries(entries.collect()).unwrap()
}

#[test]
fn equality_is_deep() {
    let nested = |number: &str| {
        let inner = record(vec![Value::Null, Value::Decimal(decimal(number)), text("x")]);
        let entries = Value::Map(Arc::new(map(vec![(1, inner)])));
        vec![
            array(vec![entries, Value::Map(Arc::new(map(vec![])))]),
            Value::Null,
        ]
    };
    assert!(Native.array_equal(&nested("1.0"), &nested("1.00")));
    assert!(!Native.array_not_equal(&nested("1.0"), &nested("1.00")));
    assert!(!Native.array_equal(&nested("1.0"), &nested("1.01")));
    assert!(Native.record_equal(&nested("1.0"), &nested("1.00")));
    assert!(Native.record_not_equal(&nested("1.0"), &nested("2")));
    // A null equals only a null, at every index.
    let (null, zero, nothing) = (Value::Null, Value::Integer(0), array(vec![]));
    assert!(!Native.array_equal(&[null.clone(), zero.clone()], &[zero.clone(), null.clone()]));
    assert!(!Native.array_equal(std::slice::from_ref(&null), &[nothing]));
    assert!(Native.optional_equal(None, None));
    assert!(!Native.optional_equal(Some(&zero), None));
    assert!(Native.optional_not_equal(None, Some(&zero)));
    assert!(Native.optional_equal(Some(&array(nested("1"))), Some(&array(nested("1.0")))));
    assert!(Native.optional_is_not_null(Some(&zero)));
    assert!(!Native.optional_is_not_null(None));
}

#[test]
fn lengths_keys_and_values_all_count() {
    assert!(!Native.array_equal(&integers(&[1, 2]), &integers(&[1, 2, 3])));
    assert!(!Native.array_equal(&integers(&[1]), &[]));
    let one = || map(vec![(1, text("a")), (2, text("b"))]);
    assert!(Native.map_equal(&one(), &map(vec![(2, text("b")), (1, text("a"))])));
    assert!(Native.map_not_equal(&one(), &map(vec![(1, text("a"))])));
    assert!(Native.map_not_equal(&one(), &map(vec![(1, text("a")), (2, text("B"))])));
    assert!(Native.map_not_equal(&one(), &map(vec![(1, text("a")), (3, text("b"))])));
    let set = |values: &[i64]| Native.array_to_set(&integers(values));
    assert!(Native.set_equal(&set(&[2, 1, 2]), &set(&[1, 2])));
    assert!(Native.set_not_equal(&set(&[1]), &set(&[1, 2])));
    assert!(Native.set_not_equal(&set(&[]), &set(&[1])));
    // An empty set has no fixed kind.
    assert!(Native.set_equal(&Set::default(), &set(&[])));
    assert!(Native.set_equal(&Set::default(), &Native.set_remove(&set(&[1]), Key::Integer(1))));
    let emptied = Native.map_remove(&map(vec![(1, text("a"))]), Key::Integer(1));
    assert!(Native.map_equal(&emptied, &map(vec![])));
}

#[test]
fn the_deepest_values_are_compared() {
    let deep =
        |bottom: i64| (1..TYPE_DEPTH).fold(Value::Integer(bottom), |of, _| array(vec![of.clone(), of]));
    // Both items of each level share their parts. As a tree the value would be large, so the depth is small.
    let shallow = |bottom: i64| (1..12).fold(Value::Integer(bottom), |of, _| array(vec![of.clone(), of]));
    assert!(shallow(1).is_equal(&shallow(1)));
    quickly("the first difference", || assert!(!deep(1).is_equal(&deep(2))));
}

#[test]
fn pairs_and_entries_are_records_in_order() {
    let pairs = Native
        .array_zip(&integers(&[1, 2]), &[text("a"), Value::Null])
        .unwrap();
    let fields: Vec<String> = pairs
        .iter()
        .map(|pair| match pair {
            Value::Record(fields) => fields.iter().map(shown).collect::<Vec<_>>().join(" "),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(fields, ["1 a", "2 null"]);
    assert_eq!(Native.array_zip(&[], &[]).unwrap().len(), 0);
    assert_eq!(
        Native.array_zip(&[], &integers(&[1])).unwrap_err(),
        InvalidArgument
    );
    let places = Native.array_enumerate(&[text("a"), text("b")]);
    let expected = [(0, "a"), (1, "b")].map(|(place, it)| record(vec![Value::Integer(place), text(it)]));
    assert!(Native.array_equal(&places, &expected));
    // Round trip, independent of the order of the entries.
    let keyed = |members: [Member; 2]| members.map(|key| record(vec![Value::Member(key), Value::Null]));
    let made = Native.map_from_entries(&keyed([Member(2), Member(0)])).unwrap();
    let entries = Native.map_entries(&made);
    assert!(Native.array_equal(&entries, &keyed([Member(0), Member(2)])));
    assert!(Native.map_equal(&Native.map_from_entries(&entries).unwrap(), &made));
    let twice = [text("a"), text("b"), text("a")].map(|key| record(vec![key, Value::Null]));
    assert_eq!(Native.map_from_entries(&twice).unwrap_err(), DuplicateKey);
    assert!(Native.map_equal(&Native.map_from_entries(&[]).unwrap(), &map(vec![])));
}

#[test]
fn extremes_sums_and_averages() {
    let least = |values: &[Value]| Native.array_min(values).map(|value| shown(&value));
    let greatest = |values: &[Value]| Native.array_max(values).map(|value| shown(&value));
    let values = decimals(&["2", "1.0", "1.00", "2.0"]);
    assert_eq!(least(&values).as_deref(), Ok("1.0"));
    assert_eq!(greatest(&values).as_deref(), Ok("2"), "the first of equal ones");
    assert_eq!(least(&[]), Err(EmptyCollection));
    assert_eq!(greatest(&[]), Err(EmptyCollection));
    let texts = ["\u{ffff}", "\u{10000}", "a"].map(text);
    assert_eq!(greatest(&texts).as_deref(), Ok("\u{10000}"));
    assert_eq!(Native.array_count(&values), 4);

    assert_eq!(Native.integer_sum(&integers(&[i64::MAX, -1, 1])), Ok(i64::MAX));
    assert_eq!(
        Native.integer_sum(&integers(&[i64::MIN, -1, 1])),
        Err(IntegerOverflow)
    );
    let average = |values: &[i64]| Native.integer_avg(&integers(values)).map(|it| it.to_string());
    assert_eq!(
        average(&[i64::MIN, i64::MIN]).as_deref(),
        Ok("-9223372036854775808")
    );
    assert_eq!(average(&[i64::MAX, i64::MIN]).as_deref(), Ok("-0.5"));
    assert_eq!(average(&[1, -1]).as_deref(), Ok("0"));
    assert_eq!(average(&[]), Err(EmptyCollection));
    let sum = |values: &[&str]| Native.decimal_sum(&decimals(values)).map(|it| it.to_string());
    assert_eq!(sum(&["1.5", "-1.50"]).as_deref(), Ok("0.00"));
    assert_eq!(sum(&["9E+999", "9E+999", "-9E+999"]), Err(DecimalOverflow));
    let average = |values: &[&str]| Native.decimal_avg(&decimals(values)).map(|it| it.to_string());
    assert_eq!(average(&["9E+999", "9E+999", "-9E+999"]), Err(DecimalOverflow));
    assert_eq!(average(&["1.0", "2.00", "3"]).as_deref(), Ok("2.00"));
    assert_eq!(average(&[]), Err(EmptyCollection));
}
