use std::sync::Arc;

use vesper_ir::ErrorCode::{IndexOutOfRange, InvalidArgument, TooLarge};
use vesper_ir::{
    ArrayKernels, ErrorCode, Key, KeyKind, Map, MapKernels, Member, OwnedKey, Set, SetKernels, SortOrder,
    Value, ValueKernels,
};
use vesper_kernels::Native;

use crate::{all_shown, decimal, integers, quickly, shown, text};

fn plain(result: Result<Arc<[Value]>, ErrorCode>) -> Result<String, ErrorCode> {
    result.map(|items| all_shown(&items))
}

fn decimals(values: &[&str]) -> Vec<Value> {
    values.iter().map(|it| Value::Decimal(decimal(it))).collect()
}

fn set(values: &[i64]) -> Set {
    Native.array_to_set(&integers(values))
}

#[test]
fn positions_past_the_end_mean_the_end_and_negative_ones_are_refused() {
    let values = integers(&[1, 2, 3]);
    assert_eq!(
        plain(Native.array_take(&values, i64::MAX)).as_deref(),
        Ok("[1, 2, 3]")
    );
    assert_eq!(plain(Native.array_take(&values, i64::MIN)), Err(InvalidArgument));
    assert_eq!(plain(Native.array_drop(&values, i64::MAX)).as_deref(), Ok("[]"));
    assert_eq!(plain(Native.array_slice(&values, 2, 1)).as_deref(), Ok("[]"));
    assert_eq!(plain(Native.array_slice(&values, 0, -1)), Err(InvalidArgument));
    assert_eq!(plain(Native.array_slice(&values, 9, -1)), Err(InvalidArgument));
    assert!(Native.array_get(&values, i64::MIN).is_none());
    let replaced = Native.array_replace_at(&values, i64::MIN, &Value::Integer(0));
    assert_eq!(plain(replaced), Err(IndexOutOfRange));
    assert_eq!(
        plain(Native.array_chunks(&values, i64::MAX)).as_deref(),
        Ok("[[1, 2, 3]]")
    );
    assert_eq!(
        plain(Native.array_chunks(&values, i64::MIN)),
        Err(InvalidArgument)
    );
}

#[test]
fn sorting_is_stable_both_ways_for_every_ordered_type() {
    let sorted = |values: &[Value]| all_shown(&Native.array_sort(values, SortOrder::Ascending));
    let descending = |values: &[Value]| all_shown(&Native.array_sort(values, SortOrder::Descending));
    let values = decimals(&["1.0", "2", "1.00", "-1", "1", "2.0"]);
    assert_eq!(sorted(&values), "[-1, 1.0, 1.00, 1, 2, 2.0]");
    assert_eq!(descending(&values), "[2, 2.0, 1.0, 1.00, 1, -1]");
    assert_eq!(
        sorted(&decimals(&["1E+999", "1E-1000", "0", "-1E+999"])).len(),
        2 + 6 + 1 + 1_000 + 1_002 + 1_001
    );
    let texts = ["b", "\u{1f600}", "\u{fffd}", "", "ab", "a", "B"].map(text);
    assert_eq!(sorted(&texts), "[, B, a, ab, b, \u{fffd}, \u{1f600}]");
    assert_eq!(
        descending(&integers(&[1, i64::MIN, i64::MAX])),
        format!("[{}, 1, {}]", i64::MAX, i64::MIN)
    );
    let members = [2, 0, 1].map(|place| Value::Member(Member(place)));
    assert!(matches!(
        *Native.array_sort(&members, SortOrder::Descending),
        [
            Value::Member(Member(2)),
            Value::Member(Member(1)),
            Value::Member(Member(0))
        ]
    ));
    let booleans = [true, false].map(Value::Boolean);
    assert!(matches!(
        *Native.array_sort(&booleans, SortOrder::Ascending),
        [Value::Boolean(false), Value::Boolean(true)]
    ));
}

#[test]
fn equality_is_that_of_the_type() {
    let values = decimals(&["1.00", "2", "1.0", "2.000", "1"]);
    assert_eq!(all_shown(&Native.array_distinct(&values)), "[1.00, 2]");
    let found = Native.array_index_of(&values, &Value::Decimal(decimal("2.0")));
    assert_eq!(found.as_ref().map(shown).as_deref(), Some("1"));

    let array = |items: &[&str]| Value::Array(Arc::from(decimals(items)));
    let nested = [
        array(&["1.0"]),
        array(&[]),
        array(&["1.00"]),
        array(&["1", "2"]),
        array(&[]),
    ];
    assert_eq!(all_shown(&Native.array_distinct(&nested)), "[[1.0], [], [1, 2]]");
    let optional = [Value::Null, Value::Integer(1), Value::Null, Value::Integer(1)];
    assert_eq!(all_shown(&Native.array_distinct(&optional)), "[null, 1]");
    let sets = [&[2, 1][..], &[], &[1, 2], &[1]].map(|items| Value::Set(Arc::new(set(items))));
    assert_eq!(Native.array_distinct(&sets).len(), 3);
}

#[test]
fn ranges_do_not_overflow() {
    assert_eq!(
        plain(Native.array_range(i64::MIN, i64::MAX, i64::MAX))
            .unwrap()
            .matches(',')
            .count(),
        2
    );
    assert_eq!(
        plain(Native.array_range(i64::MAX, i64::MIN, i64::MIN)).unwrap(),
        format!("[{}, -1]", i64::MAX)
    );
    assert_eq!(plain(Native.array_range(i64::MIN, i64::MAX, 1)), Err(TooLarge));
    assert_eq!(plain(Native.array_range(0, i64::MIN, 0)), Err(InvalidArgument));
    assert_eq!(plain(Native.array_range(0, 0, -1)).as_deref(), Ok("[]"));
    assert_eq!(Native.array_range(0, 1_000_000, 1).unwrap().len(), 1_000_000);
    assert_eq!(Native.array_range(0, -1_000_001, -1).err(), Some(TooLarge));
    assert_eq!(Native.array_range(0, 1_999_999, 2).unwrap().len(), 1_000_000);
    assert_eq!(Native.array_range(0, 2_000_001, 2).err(), Some(TooLarge));
}

#[test]
fn sizes_at_the_limit() {
    let full = vec![Value::Integer(7); 1_000_000];
    let one = integers(&[1]);
    assert_eq!(Native.array_append(&full, &Value::Null).err(), Some(TooLarge));
    assert_eq!(
        Native
            .array_append(full.split_first().unwrap().1, &Value::Null)
            .unwrap()
            .len(),
        1_000_000
    );
    assert_eq!(Native.array_concat(&full, &one).err(), Some(TooLarge));
    assert_eq!(Native.array_concat(&full, &[]).unwrap().len(), 1_000_000);
    assert_eq!(Native.array_chunks(&full, 1).unwrap().len(), 1_000_000);

    let evens: Vec<i64> = (0..1_000_000).map(|it| it * 2).collect();
    let evens = set(&evens);
    assert_eq!(Native.set_put(&evens, Key::Integer(1)).err(), Some(TooLarge));
    assert_eq!(Native.set_put(&evens, Key::Integer(2)).unwrap().len(), 1_000_000);
    assert_eq!(Native.set_union(&evens, &set(&[1])).err(), Some(TooLarge));
    assert_eq!(Native.set_union(&evens, &set(&[2])).unwrap().len(), 1_000_000);

    let entries = (0..1_000_000)
        .map(|it| (OwnedKey::Integer(it), Value::Null))
        .collect();
    let map = Map::from_entries(KeyKind::Integer, entries).unwrap();
    assert_eq!(
        Native.map_put(&map, Key::Integer(-1), &Value::Null).err(),
        Some(TooLarge)
    );
    assert!(Native.map_put(&map, Key::Integer(1), &Value::Integer(1)).is_ok());
    let other = Map::from_entries(KeyKind::Integer, vec![(OwnedKey::Integer(-1), Value::Null)]).unwrap();
    assert_eq!(Native.map_merge(&map, &other).err(), Some(TooLarge));
}

#[test]
fn hostile_arrays_take_time_in_proportion() {
    let full: Arc<[Value]> = vec![Value::Integer(7); 1_000_000].into();
    quickly("a million millions", || {
        let nested = vec![Value::Array(Arc::clone(&full)); 1_000_000];
        assert_eq!(Native.array_flatten(&nested).err(), Some(TooLarge));
    });
    quickly("one long item, again and again", || {
        let long = [text(&"a".repeat(1_000_000)), Value::Array(Arc::clone(&full))];
        for long in long {
            assert_eq!(Native.array_distinct(&vec![long; 100_000]).len(), 1);
        }
    });
    quickly("a million different items", || {
        let values: Vec<Value> = (0..1_000_000_i64)
            .map(|it| Value::Integer(it.wrapping_mul(7_919)))
            .collect();
        assert_eq!(Native.array_distinct(&values).len(), 1_000_000);
    });
    quickly("small and large numbers beside each other", || {
        let pair = decimals(&["1E-1000", "1", "1E+999", "7E-999"]);
        let values: Vec<Value> = pair.iter().cycle().take(200_000).cloned().collect();
        assert_eq!(Native.array_distinct(&values).len(), 4);
        assert_eq!(Native.array_sort(&values, SortOrder::Descending).len(), 200_000);
    });
}

#[test]
fn empty_sets_are_equal_regardless_of_origin() {
    let none = Native.array_to_set(&[]);
    let empty = Set::from_keys(KeyKind::Text, std::iter::empty()).unwrap();
    assert!(none == empty);
    let some = Native.set_put(&empty, Key::Text("a")).unwrap();
    assert!(Native.set_put(&none, Key::Text("a")).unwrap() == some);
    assert!(Native.set_union(&none, &some).unwrap() == some);
    assert!(Native.set_union(&some, &none).unwrap() == some);
    assert!(
        Native.set_intersection(&some, &none).is_empty() && Native.set_intersection(&none, &some).is_empty()
    );
    assert!(Native.set_difference(&some, &none) == some && Native.set_difference(&none, &some).is_empty());
    assert!(Native.set_is_subset(&none, &some) && !Native.set_is_subset(&some, &none));
    assert!(Native.set_is_disjoint(&none, &some) && Native.set_is_disjoint(&none, &none));
    assert!(Native.set_remove(&some, Key::Text("a")) == none);
}

#[test]
fn maps_and_sets_stay_in_order() {
    let entries = vec![
        (OwnedKey::Integer(5), Value::Integer(50)),
        (OwnedKey::Integer(-5), Value::Integer(-50)),
    ];
    let map = Map::from_entries(KeyKind::Integer, entries).unwrap();
    let map = Native.map_put(&map, Key::Integer(0), &Value::Integer(1)).unwrap();
    let map = Native
        .map_put(&map, Key::Integer(9), &Value::Integer(90))
        .unwrap();
    let map = Native
        .map_put(&map, Key::Integer(5), &Value::Integer(55))
        .unwrap();
    assert_eq!(all_shown(&Native.map_keys(&map)), "[-5, 0, 5, 9]");
    assert_eq!(all_shown(&Native.map_values(&map)), "[-50, 1, 55, 90]");
    let other = Native.map_put(
        &Native.map_remove(&map, Key::Integer(5)),
        Key::Integer(7),
        &Value::Null,
    );
    let other = Native
        .map_put(&other.unwrap(), Key::Integer(0), &Value::Integer(2))
        .unwrap();
    let merged = Native.map_merge(&map, &other).unwrap();
    assert_eq!(all_shown(&Native.map_keys(&merged)), "[-5, 0, 5, 7, 9]");
    assert_eq!(all_shown(&Native.map_values(&merged)), "[-50, 2, 55, null, 90]");
    assert_eq!(
        all_shown(&Native.set_to_array(&set(&[3, -1, 3, i64::MIN]))),
        format!("[{}, -1, 3]", i64::MIN)
    );
    let booleans = Native.array_to_set(&[true, false, true].map(Value::Boolean));
    assert_eq!(Native.set_to_array(&booleans).len(), 2);
}

#[test]
fn of_equal_values_the_left_one_is_kept() {
    let [one, other] = ["1.0", "1.00"].map(|it| Value::Decimal(decimal(it)));
    assert_eq!(shown(&Native.value_min(&one, &other)), "1.0");
    assert_eq!(shown(&Native.value_max(&one, &other)), "1.0");
    assert_eq!(shown(&Native.value_max(&other, &one)), "1.00");
    assert_eq!(shown(&Native.value_clamp(&one, &other, &other).unwrap()), "1.0");
    let low = Value::Integer(2);
    assert_eq!(
        Native.value_clamp(&low, &Value::Integer(3), &low).err(),
        Some(InvalidArgument)
    );
}
