//! Inputs drawn by type: mostly ordinary values, some at the edges.

use std::sync::Arc;

use vesper_interp::Program;
use vesper_ir::types::Type;
use vesper_ir::value::{Map, Member, Set};
use vesper_ir::{Decimal, Value};

/// A deterministic generator.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        // A linear congruential generator; its upper bits suffice here.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) ^ (self.0 >> 17)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()]
    }
}

/// Draws the inputs of a program.
pub(crate) fn inputs(program: &Program, random: &mut Random) -> Vec<Value> {
    let inputs = program.node().inputs.iter();
    inputs.map(|input| value(&input.ty, random, 0)).collect()
}

/// Returns ordinary inputs for measurements.
pub(crate) fn usual(program: &Program) -> Vec<Value> {
    let inputs = program.node().inputs.iter();
    inputs
        .map(|input| {
            let name = &*input.name;
            match (&input.ty, name) {
                (Type::Integer, "n") => Value::Integer(10_000),
                (Type::Integer, _) => Value::Integer(42),
                (Type::Decimal, "amount") => Value::Decimal(Decimal::new(25_050, 2).unwrap()),
                (Type::Decimal, _) => Value::Decimal(Decimal::new(500_000, 2).unwrap()),
                (Type::Text, _) => Value::Text(Arc::from("DE")),
                (Type::Array(of), _) => {
                    let Type::Record(_) = **of else {
                        panic!("items are records")
                    };
                    let line = |number: i64| {
                        let category =
                            ["food", "book", "toy", "tool", "other"][usize::try_from(number % 5).unwrap()];
                        Value::Record(Arc::from([
                            Value::Integer(number % 7 + 1),
                            Value::Decimal(Decimal::new(i128::from(999 + 137 * number), 2).unwrap()),
                            Value::Text(Arc::from(category)),
                        ]))
                    };
                    Value::Array((0..20).map(line).collect())
                }
                (ty, _) => value(ty, &mut Random(7), 0),
            }
        })
        .collect()
}

fn value(ty: &Type, random: &mut Random, depth: usize) -> Value {
    match ty {
        Type::Boolean => Value::Boolean(random.below(2) == 1),
        Type::TimeOfDay => Value::TimeOfDay(integer(random).rem_euclid(86_400_000_000)),
        Type::Period => Value::Period(random.pick(&[-13, -1, 0, 1, 12, 14])),
        Type::Integer => Value::Integer(integer(random)),
        Type::Decimal => decimal(random),
        Type::Float => Value::Float(match random.below(8) {
            0 => random.pick(&[
                f64::NAN,
                f64::INFINITY,
                f64::NEG_INFINITY,
                -0.0,
                0.0,
                f64::MAX,
                f64::MIN_POSITIVE,
            ]),
            #[expect(clippy::cast_precision_loss, reason = "any float will do")]
            _ => integer(random) as f64 / 8.0,
        }),
        Type::Text => Value::Text(Arc::from(random.pick(&[
            "",
            "DE",
            "RU",
            "food",
            "toy",
            "abc",
            "ä€😀",
            "12",
            "USD",
            "x y",
        ]))),
        Type::Bytes => Value::Bytes(Arc::from(random.pick(&[&b""[..], b"a", b"\xff\x00", b"abc"]))),
        Type::Timestamp => Value::Timestamp(
            i64::try_from(random.below(4_000_000_000)).unwrap() * 1_000_003 - 1_000_000_000_000,
        ),
        Type::Date => Value::Date(i32::try_from(random.below(60_000)).unwrap() - 20_000),
        Type::Duration => {
            Value::Duration(i64::try_from(random.below(1_000_000)).unwrap() * 977 - 300_000_000)
        }
        Type::Enum(of) => Value::Member(Member(
            u32::try_from(random.below(of.members().len() as u64)).unwrap(),
        )),
        Type::Optional(of) => match random.below(3) {
            0 => Value::Null,
            _ => value(of, random, depth),
        },
        Type::Array(of) => {
            let count = if depth == 0 {
                random.pick(&[0, 1, 2, 3, 7, 20])
            } else {
                random.below(3)
            };
            Value::Array((0..count).map(|_| value(of, random, depth + 1)).collect())
        }
        Type::Set(of) => {
            let keys: Vec<_> = (0..random.below(5))
                .filter_map(|_| value(of, random, depth + 1).to_key())
                .collect();
            let kind = keys
                .first()
                .map_or(vesper_ir::KeyKind::Boolean, vesper_ir::OwnedKey::kind);
            Value::Set(Arc::new(Set::from_keys(kind, keys.into_iter()).unwrap()))
        }
        Type::Map(of) => {
            let mut entries: Vec<(vesper_ir::OwnedKey, Value)> = Vec::new();
            for _ in 0..random.below(5) {
                let key = value(&of.key, random, depth + 1).to_key().unwrap();
                if entries.iter().all(|(own, _)| *own != key) {
                    entries.push((key, value(&of.value, random, depth + 1)));
                }
            }
            Value::Map(Arc::new(Map::of_entries(entries).unwrap()))
        }
        Type::Record(of) => Value::Record(
            of.fields()
                .iter()
                .map(|field| value(&field.ty, random, depth + 1))
                .collect(),
        ),
        Type::Json => Value::Json(Arc::new(vesper_ir::Json::Null)),
    }
}

fn integer(random: &mut Random) -> i64 {
    match random.below(10) {
        0 => random.pick(&[
            i64::MIN,
            i64::MAX,
            -1,
            0,
            1,
            i64::MIN + 1,
            i64::MAX - 1,
            1 << 32,
            -(1 << 31),
        ]),
        1 => random
            .next()
            .cast_signed()
            .wrapping_mul(random.next().cast_signed()),
        2 => -i64::try_from(random.below(200)).unwrap(),
        3..=6 => i64::try_from(random.below(20)).unwrap(),
        _ => i64::try_from(random.below(5_000)).unwrap(),
    }
}

fn decimal(random: &mut Random) -> Value {
    let coefficient = match random.below(12) {
        0 => i128::from(random.pick(&[i64::MAX, i64::MIN, i64::MAX / 10, 0, -1])),
        1 => i128::from(i64::MAX) * 1_000 + 7,
        2 => i128::MAX - i128::from(random.below(9)),
        3 => -i128::from(random.below(100_000)),
        _ => i128::from(random.below(2_000_000)),
    };
    let scale = random.pick(&[0, 0, 1, 2, 2, 2, 2, 3, 5, 18, 19, 30, 999]);
    Value::Decimal(Decimal::new(coefficient, scale).unwrap())
}
