//! Rule `guards` along statements: branches, clauses, handlers and rounds.

use vesper_opt::Rule::Guards;

use crate::node::{check, optimised, rules};

#[test]
fn arms_know_their_tests_and_those_before() {
    check(
        &[Guards],
        "
        output result boolean
        output other boolean
        v = branch
        when integer.less(x, 3)
          = integer.less(x, 3)
        when integer.less(y, 3)
          inner = boolean.equal(integer.less(x, 3), integer.less(y, 3))
          = inner
        else
          other_inner = boolean.equal(integer.less(x, 3), integer.less(y, 3))
          = other_inner
        w = integer.less(x, 3)
        return result: v; other: w
        ",
        "
        v = branch
        when integer.less(x, 3)
          = true
        when integer.less(y, 3)
          inner = boolean.equal(false, true)
          = inner
        else
          other_inner = boolean.equal(false, false)
          = other_inner
        w = integer.less(x, 3)
        return result: v, other: w
        ",
    );
}

#[test]
fn arms_that_left_are_known_afterwards() {
    check(
        &[Guards],
        "
        output result boolean
        v = branch
        when integer.less(x, 3)
          return result: true
        when integer.less(y, 3)
          raise closed
        else
        return result: boolean.equal(integer.less(x, 3), integer.less(y, 3))
        ",
        "
        v = branch
        when integer.less(x, 3)
          return result: true
        when integer.less(y, 3)
          raise error_code: closed
        else
        return result: boolean.equal(false, false)
        ",
    );
    // One arm goes on.
    check(
        &[Guards],
        "
        output result boolean
        v = branch
        when integer.less(x, 3)
          return result: true
        when integer.less(y, 3)
          a = x
        else
        return result: boolean.equal(integer.less(x, 3), integer.less(y, 3))
        ",
        "
        v = branch
        when integer.less(x, 3)
          return result: true
        when integer.less(y, 3)
          a = x
        else
        return result: boolean.equal(integer.less(x, 3), integer.less(y, 3))
        ",
    );
    // A handler may have skipped the tests.
    check(
        &[Guards],
        "
        output result boolean
        v = branch
        when integer.less(x, 3)
          return result: true
        else
          a = integer.add(x, 1)
        on overflow
          q = x
        return result: integer.less(x, 3)
        ",
        "
        v = branch
        when integer.less(x, 3)
          return result: true
        else
          a = integer.add(x, 1)
        on overflow
          q = x
        return result: integer.less(x, 3)
        ",
    );
    // All arms and the rest leave.
    check(
        &[Guards],
        "
        output result boolean
        v = branch
        when integer.less(x, 3)
          return result: integer.less(x, 3)
        else
          return result: integer.less(x, 3)
        postcondition integer.less(x, 3)
        ",
        "
        v = branch
        when integer.less(x, 3)
          return result: true
        else
          return result: false
        postcondition 0: integer.less(x, 3)
        ",
    );
}

#[test]
fn required_conditions_hold_afterwards() {
    check(
        &[Guards],
        "
        output result boolean
        require integer.less(x, 3)
        return result: integer.less(x, 3)
        ",
        "
        require: integer.less(x, 3)
        return result: true
        ",
    );
    // In an arm, for this arm.
    check(
        &[Guards],
        "
        output result boolean
        v = branch
        when b
          require integer.less(x, 3)
          = integer.less(x, 3)
        else
          = integer.less(x, 3)
        return result: integer.less(x, 3)
        ",
        "
        v = branch
        when b
          require: integer.less(x, 3)
          = true
        else
          = integer.less(x, 3)
        return result: integer.less(x, 3)
        ",
    );
}

#[test]
fn clauses_after_a_straight_body_know_its_tests() {
    check(
        &[Guards],
        "
        require integer.less(x, 3)
        return result: x
        postcondition integer.less(x, 3)
        postcondition integer.less(x, 4)
        postcondition integer.less(x, 4)
        invariant integer.less(x, 3)
        invariant integer.less(x, 4)
        invariant integer.less(x, 5)
        invariant integer.less(x, 5)
        ",
        "
        require: integer.less(x, 3)
        return result: x
        postcondition 0: holds
        postcondition 1: integer.less(x, 4)
        postcondition 2: holds
        invariant 0: holds
        invariant 1: integer.less(x, 4)
        invariant 2: integer.less(x, 5)
        invariant 3: holds
        ",
    );
}

#[test]
fn a_declared_error_skips_the_rest() {
    check(
        &[Guards],
        "
        early = branch
        when b
          raise closed
        else
        require integer.less(x, 3)
        return result: x
        postcondition integer.less(x, 3)
        postcondition integer.less(x, 4)
        invariant integer.less(x, 3)
        invariant integer.less(x, 4)
        ",
        "
        early = branch
        when b
          raise error_code: closed
        else
        require: integer.less(x, 3)
        return result: x
        postcondition 0: holds
        postcondition 1: integer.less(x, 4)
        invariant 0: integer.less(x, 3)
        invariant 1: integer.less(x, 4)
        ",
    );
}

#[test]
fn an_early_return_skips_the_rest() {
    check(
        &[Guards],
        "
        early = branch
        when b
          return result: y
        else
        require integer.less(x, 3)
        return result: x
        postcondition integer.less(x, 3)
        postcondition integer.less(x, 4)
        invariant integer.less(x, 3)
        invariant integer.less(x, 4)
        ",
        "
        early = branch
        when b
          return result: y
        else
        require: integer.less(x, 3)
        return result: x
        postcondition 0: integer.less(x, 3)
        postcondition 1: integer.less(x, 4)
        invariant 0: integer.less(x, 3)
        invariant 1: integer.less(x, 4)
        ",
    );
    // In a loop, in an else and in a handler.
    for early in [
        "early = branch\nwhen b\nelse\n  return result: y\n",
        "early = loop $0 over xs with $1 n: 0\n  inner = branch\n  when b\n    return result: y\n  else\n  next $1 = 1\n",
        "early = integer.add(x, y)\non overflow\n  return result: y\n",
        "early = branch\nwhen b\n  a = integer.add(x, y)\n  on overflow\n    return result: y\nelse\n",
    ] {
        let text = format!(
            "{early}require integer.less(x, 3)\nreturn result: x\npostcondition integer.less(x, 3)\n"
        );
        let found = optimised(rules(&[Guards]), &text);
        assert!(found.contains("postcondition 0: integer.less(x, 3)"), "{found}");
    }
}

#[test]
fn handled_statements_hide_their_tests() {
    check(
        &[Guards],
        "
        output result boolean
        a = if integer.less(x, 3) then integer.add(x, 1) else 0
        v = loop $0 over xs with $1 n: 0
          require integer.less(x, 3)
          next $1 = integer.add($1, 1)
        on overflow
          = {n: if integer.less(x, 3) then 1 else 2}
        return result: integer.less(x, 3)
        ",
        "
        a = if integer.less(x, 3) then integer.add(x, 1) else 0
        v = loop over xs with n: 0
          require: integer.less(x, 3)
          next n = integer.add($1, 1)
        on overflow
          = {if integer.less(x, 3) then 1 else 2}
        return result: integer.less(x, 3)
        ",
    );
}

#[test]
fn rounds_know_their_conditions_until_the_state_changes() {
    check(
        &[Guards],
        "
        output result boolean
        v = loop $0 over xs with $1 n: 0; $2 is: false
          where integer.less($0, 3)
          while integer.less($1, 4)
          inner = boolean.equal(integer.less($0, 3), integer.less($1, 4))
          collect integer.less($1, 4)
          next $1 = if integer.less($1, 4) then 1 else 2
          next $2 = boolean.equal(integer.less($0, 3), inner)
          stop when boolean.equal(integer.less($0, 3), integer.less($1, 4))
        return result: integer.less(x, 3)
        ",
        "
        v = loop over xs with n: 0, is: false
          before (%0 = boolean.equal(true, true))
          where integer.less($0, 3)
          while integer.less($1, 4)
          inner = %0
          collect true
          next n = 1
          next is = boolean.equal(true, inner)
          stop when boolean.equal(true, integer.less($1, 4))
        return result: integer.less(x, 3)
        ",
    );
    check(
        &[Guards],
        "
        v = loop max 5 with $0 n: 0
          while integer.less(x, 4)
          next $0 = if integer.less(x, 4) then 1 else 2
          stop when integer.less(x, 4)
        return result: if integer.less(x, 4) then 1 else 2
        ",
        "
        v = loop with n: 0
          while integer.less(x, 4)
          next n = 1
          stop when true
        return result: if integer.less(x, 4) then 1 else 2
        ",
    );
}

#[test]
fn steps_and_locals_are_their_values() {
    check(
        &[Guards],
        "
        output result boolean
        a = x
        v = (let $0 = a in integer.less($0, 3))
        require integer.less(x, 3)
        return result: boolean.equal(integer.less(a, 3), (let $1 = x in integer.less($1, 3)))
        ",
        "
        a = x
        v = (let $0 = a in integer.less($0, 3))
        require: integer.less(x, 3)
        return result: boolean.equal(true, true)
        ",
    );
    // With handlers, a step may have another value.
    check(
        &[Guards],
        "
        output result boolean
        a = x
        on overflow
          = y
        require integer.less(x, 3)
        return result: integer.less(a, 3)
        ",
        "
        a = x
        on overflow
          = y
        require: integer.less(x, 3)
        return result: integer.less(a, 3)
        ",
    );
}

#[test]
fn outputs_are_the_returned_values_after_a_straight_body() {
    check(
        &[Guards],
        "
        require integer.less(x, 3)
        return result: x
        postcondition integer.less(output.result, 3)
        invariant integer.less(output.result, 3)
        ",
        "
        require: integer.less(x, 3)
        return result: x
        postcondition 0: holds
        invariant 0: holds
        ",
    );
    check(
        &[Guards],
        "
        early = branch
        when b
          return result: y
        else
        return result: x
        precondition integer.less(x, 3)
        postcondition integer.less(output.result, 3)
        ",
        "
        precondition 0: integer.less(x, 3)
        early = branch
        when b
          return result: y
        else
        return result: x
        postcondition 0: integer.less(output.result, 3)
        ",
    );
}
