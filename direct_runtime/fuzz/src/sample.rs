//! Small sample values of any type, common ones and those at limits.

use std::sync::Arc;

use vesper_ir::json::Object;
use vesper_ir::{Decimal, Json, Map, Member, OwnedKey, Set, Type, Value, time};

use crate::Random;

const DECIMALS: &[&str] = &[
    "0",
    "1",
    "-1",
    "0.00",
    "120.50",
    "-0.005",
    "99999999999999999999",
    "1e-60",
    "9e999",
    "0.1",
];
const TEXTS: &[&str] = &[
    "",
    "DE",
    "a b,c",
    "42",
    "-1.50",
    "\u{e9}\u{1f600}",
    "2024-02-29",
    "{\"a\":[1]}",
    "aaaaaaaaaaaaaaaaaaaa",
];
const INTEGERS: &[i64] = &[0, 1, -1, 2, 7, 40, 63, 64, 1_000, 10_000_000, i64::MAX, i64::MIN];
const FLOATS: &[f64] = &[
    0.0,
    -0.0,
    1.0,
    -1.5,
    1e300,
    5e-324,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    0.1,
];

/// Returns a random value of a type.
pub fn sample(ty: &Type, random: &mut Random) -> Value {
    match ty {
        Type::Boolean => Value::Boolean(random.below(2) == 0),
        Type::Integer => Value::Integer(*random.pick(INTEGERS)),
        Type::Decimal => Value::Decimal(decimal(random)),
        Type::Float => Value::Float(*random.pick(FLOATS)),
        Type::Bytes => Value::Bytes(Arc::from(&b"\x00\xffabc"[..random.below(6)])),
        Type::Timestamp => Value::Timestamp(*random.pick(&[
            0,
            -1,
            time::FIRST_TIMESTAMP,
            time::LAST_TIMESTAMP,
            1_700_000_000_000_000,
        ])),
        Type::Date => Value::Date(*random.pick(&[0, -1, time::FIRST_DATE, time::LAST_DATE, 19_782])),
        Type::Duration => Value::Duration(*random.pick(&[
            0,
            -1,
            time::LONGEST_DURATION,
            -time::LONGEST_DURATION,
            86_400_000_000,
        ])),
        Type::TimeOfDay => Value::TimeOfDay(*random.pick(&[0, 1, time::DAY - 1, 43_200_000_000])),
        Type::Period => Value::Period(*random.pick(&[0, 1, -1, time::MAX_MONTHS, -time::MAX_MONTHS])),
        Type::Json => Value::Json(Arc::new(json(random, 3))),
        Type::Text => Value::Text(Arc::from(*random.pick(TEXTS))),
        Type::Enum(of) => Value::Member(Member(
            u32::try_from(random.below(of.members().len())).unwrap_or(0),
        )),
        Type::Set(of) => {
            let keys = keys(of, random);
            let set = of
                .key_kind()
                .and_then(|kind| Set::from_keys(kind, keys.into_iter()));
            Value::Set(Arc::new(set.expect("the keys are distinct")))
        }
        Type::Array(of) => Value::Array((0..random.below(4)).map(|_| sample(of, random)).collect()),
        Type::Map(of) => {
            let entries = keys(&of.key, random)
                .into_iter()
                .map(|key| (key, sample(&of.value, random)))
                .collect();
            let map = of
                .key
                .key_kind()
                .and_then(|kind| Map::from_entries(kind, entries));
            Value::Map(Arc::new(map.expect("the keys are distinct")))
        }
        Type::Optional(_) if random.below(3) == 0 => Value::Null,
        Type::Optional(of) => sample(of, random),
        Type::Record(of) => Value::Record(
            of.fields()
                .iter()
                .map(|field| sample(&field.ty, random))
                .collect(),
        ),
    }
}

fn decimal(random: &mut Random) -> Decimal {
    Decimal::parse(random.pick::<&str>(DECIMALS)).unwrap_or_else(|_| Decimal::from(3))
}

/// Returns distinct keys of a type.
fn keys(of: &Type, random: &mut Random) -> Vec<OwnedKey> {
    let drawn = (0..random.below(4)).filter_map(|_| sample(of, random).to_key());
    let mut keys: Vec<OwnedKey> = drawn.collect();
    keys.sort();
    keys.dedup();
    keys
}

fn json(random: &mut Random, levels: usize) -> Json {
    match random.below(if levels == 0 { 4 } else { 7 }) {
        0 => Json::Null,
        1 => Json::Boolean(true),
        2 => Json::Number(decimal(random)),
        3 => Json::Text(Arc::from(*random.pick(TEXTS))),
        4 | 5 => Json::Array((0..random.below(4)).map(|_| json(random, levels - 1)).collect()),
        _ => {
            let entries = ["a", "b", "items"]
                .iter()
                .map(|key| (Arc::from(*key), json(random, levels - 1)));
            Object::new(entries.collect()).map_or(Json::Null, Json::Object)
        }
    }
}
