//! Rule `intervals` on the state of loops: guesses, their widening, and the number of rounds.

use vesper_opt::Rule::Intervals;

use crate::node::check;

/// The state of a loop is bounded by a round that stays within a guess, or by the number of rounds.
#[test]
fn states_of_loops_are_bounded() {
    // A round that stays within the guess.
    check(
        &[Intervals],
        "
        v = loop $0 over xs with $1 n: 3
          next $1 = if b then 7 else 5
        a = integer.less_or_equal(v.n, 7)
        u = integer.less(v.n, 7)
        w = integer.greater_or_equal(v.n, 3)
        q = integer.greater(v.n, 3)
        return result: v.n
        ",
        "
        v = loop over xs with n: 3
          next n = if b then 7 else 5
        a = true
        u = integer.less(v.n, 7)
        w = true
        q = integer.greater(v.n, 3)
        return result: v.n
        ",
    );
    // A known distance per round.
    check(
        &[Intervals],
        "
        v = loop $0 over xs max 10 with $1 n: 3; $2 m: 0; $3 k: 0
          next $1 = integer.add($1, 2)
          next $2 = integer.subtract(1, $2)
          next $3 = if b then integer.subtract($3, 4) else integer.add(1, $3)
        a = integer.less_or_equal(v.n, 23)
        u = integer.less(v.n, 23)
        w = integer.greater_or_equal(v.n, 3)
        q = integer.greater(v.n, 3)
        low = integer.greater_or_equal(v.k, -40)
        lower = integer.greater(v.k, -40)
        high = integer.less_or_equal(v.k, 10)
        higher = integer.less(v.k, 10)
        return result: v.m
        ",
        "
        v = loop over xs with n: 3, m: 0, k: 0
          next n = integer.add!($1, 2)
          next m = integer.subtract!(1, $2)
          next k = if b then integer.subtract!($3, 4) else integer.add!(1, $3)
        a = true
        u = integer.less(v.n, 23)
        w = true
        q = integer.greater(v.n, 3)
        low = true
        lower = integer.greater(v.k, -40)
        high = true
        higher = integer.less(v.k, 10)
        return result: v.m
        ",
    );
}

/// Two walks widen a guess to the range found; a third one gives up.
#[test]
fn guesses_are_widened_twice() {
    check(
        &[Intervals],
        "
        v = loop $0 over xs with $1 n: 0; $2 m: 0; $3 k: 0
          next $1 = $2
          next $2 = $3
          next $3 = 7
        a = integer.less_or_equal(v.k, 7)
        u = integer.less_or_equal(v.m, 7)
        w = integer.less_or_equal(v.n, 7)
        return result: 0
        ",
        "
        v = loop over xs with n: 0, m: 0, k: 0
          next n = $2
          next m = $3
          next k = 7
        a = true
        u = true
        w = integer.less_or_equal(v.n, 7)
        return result: 0
        ",
    );
}

#[test]
fn the_number_of_rounds_bounds_a_sum() {
    // The rounds together do not fit.
    check(
        &[Intervals],
        "
        v = loop $0 over xs max 10 with $1 n: 0
          next $1 = integer.add($1, 1000000000000000000)
        return result: v.n
        ",
        "
        v = loop over xs with n: 0
          next n = integer.add($1, 1000000000000000000)
        return result: v.n
        ",
    );
    check(
        &[Intervals],
        "
        v = loop $0 over xs max 9 with $1 n: 0
          next $1 = integer.add($1, 1000000000000000000)
        return result: v.n
        ",
        "
        v = loop over xs with n: 0
          next n = integer.add($1, 1000000000000000000)
        return result: v.n
        ",
    );
    check(
        &[Intervals],
        "
        v = loop $0 over xs max 8 with $1 n: 0
          next $1 = integer.add($1, 1000000000000000000)
        return result: v.n
        ",
        "
        v = loop over xs with n: 0
          next n = integer.add!($1, 1000000000000000000)
        return result: v.n
        ",
    );
}

#[test]
fn other_states_are_bounded_by_their_type() {
    // A product has no distance.
    check(
        &[Intervals],
        "
        v = loop $0 over xs max 9 with $1 n: 1
          next $1 = integer.multiply($1, 2)
        return result: integer.add(v.n, 1)
        ",
        "
        v = loop over xs with n: 1
          next n = integer.multiply($1, 2)
        return result: integer.add(v.n, 1)
        ",
    );
    // A state without a next value keeps its first one.
    check(
        &[Intervals],
        "
        v = loop $0 over xs max 9 with $1 n: 1; $2 m: 4
          next $1 = integer.add($1, $2)
        a = integer.equal(v.m, 5)
        u = integer.less_or_equal(v.n, 37)
        w = integer.less(v.n, 37)
        return result: v.n
        ",
        "
        v = loop over xs with n: 1, m: 4
          next n = integer.add!($1, $2)
        a = false
        u = true
        w = integer.less(v.n, 37)
        return result: v.n
        ",
    );
}

#[test]
fn conditions_of_a_round_do_not_outlive_it() {
    check(
        &[Intervals],
        "
        v = loop $0 over xs max 9 with $1 n: 0
          where integer.less($0, 5)
          while integer.less($1, 3)
          inner = integer.less($1, 4)
          collect integer.less($0, 5)
          next $1 = integer.add($1, 1)
          stop when integer.less($1, 3)
        a = integer.less_or_equal(v.n, 9)
        u = integer.less(v.n, 9)
        return result: v.n
        ",
        "
        v = loop over xs with n: 0
          where integer.less($0, 5)
          while integer.less($1, 3)
          inner = true
          collect true
          next n = integer.add!($1, 1)
          stop when integer.less($1, 3)
        a = true
        u = integer.less(v.n, 9)
        return result: v.n
        ",
    );
    check(
        &[Intervals],
        "
        v = loop $0 over xs max 9 with $1 n: 0
          next $1 = integer.add($1, 1)
        on overflow
          = {n: 100}
        a = integer.less(v.n, 50)
        return result: 0
        ",
        "
        v = loop over xs with n: 0
          next n = integer.add!($1, 1)
        on overflow
          = {100}
        a = integer.less(v.n, 50)
        return result: 0
        ",
    );
}
