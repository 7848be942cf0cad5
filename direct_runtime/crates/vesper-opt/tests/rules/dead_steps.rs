//! Rule `dead_steps`.

use vesper_opt::Rule::{Common, Constants, DeadSteps, Guards, Intervals};

use crate::node::{check, optimised, rules};

#[test]
fn unread_steps_that_cannot_fail_are_removed() {
    check(
        &[DeadSteps],
        "
        unread = x
        read_by_unread = boolean.not(b)
        reads = boolean.not(read_by_unread)
        compared = integer.less(x, 1)
        field = p.n
        record = {n: x, r: d}
        array = [x]
        choice = if b then x else y
        joint = (b and c)
        either = (b or c)
        bound = (let $0 = x in $0)
        time = now
        fixed = ten
        return result: x
        ",
        "
        return result: x
        ",
    );
}

#[test]
fn unread_steps_that_may_fail_or_cost_fuel_stay() {
    let text = "
        sum = integer.add(x, 1)
        below = boolean.not(integer.less(integer.add(x, 1), 3))
        loop_value = (count $0 in xs : $0)
        text = text.concat(s, t)
        field = {n: integer.add(x, 1), r: d}.n
        array = [integer.add(x, 1)]
        condition = if integer.less(integer.quot(x, y), 1) then x else y
        then = if b then integer.quot(x, y) else y
        otherwise = if b then x else integer.quot(x, y)
        left = (integer.less(integer.quot(x, y), 1) and b)
        right = (b and integer.less(integer.quot(x, y), 1))
        left_or = (integer.less(integer.quot(x, y), 1) or b)
        right_or = (b or integer.less(integer.quot(x, y), 1))
        bound = (let $1 = integer.quot(x, y) in b)
        body = (let $2 = b in integer.quot(x, y))
        json = json.from_value<integer>(x)
        return result: x
        ";
    let listed = text
        .replace("from_value<integer>", "from_value")
        .replace("{n: integer.add(x, 1), r: d}", "{integer.add(x, 1), d}");
    check(&[DeadSteps], text, &listed);
}

#[test]
fn proven_sums_may_be_removed() {
    let text = "
        precondition integer.less(x, 9)
        unread = integer.subtract(x, 1)
        return result: x
        ";
    check(
        &[Intervals, DeadSteps],
        text,
        "
        precondition 0: integer.less(x, 9)
        unread = integer.subtract(x, 1)
        return result: x
        ",
    );
    check(
        &[Intervals, DeadSteps],
        "
        precondition (integer.less(x, 9) and integer.less(-9, x))
        unread = integer.subtract(x, 1)
        return result: x
        ",
        "
        precondition 0: (integer.less(x, 9) and integer.less(-9, x))
        return result: x
        ",
    );
}

#[test]
fn a_step_with_handlers_stays() {
    check(
        &[DeadSteps],
        "
        a = x
        on overflow
          = y
        return result: x
        ",
        "
        a = x
        on overflow
          = y
        return result: x
        ",
    );
}

/// Checks that the rule removes no step with a name that begins with `by_`.
#[track_caller]
fn keeps_all(text: &str) {
    let found = optimised(rules(&[DeadSteps]), text);
    for step in text.lines().map(str::trim).filter(|line| line.starts_with("by_")) {
        assert!(found.contains(step), "{step} is missing\n{found}");
    }
}

/// Each step is read at one place only, which its name tells.
#[test]
fn every_part_of_a_statement_reads() {
    let text = "
        by_step = x
        by_handler = x
        by_handler_body = x
        by_require = b
        by_when = b
        by_arm = x
        by_arm_body = x
        by_else = x
        by_else_body = x
        by_branch_handler = x
        by_over = xs
        by_where = b
        by_while = b
        by_state = x
        by_body = x
        by_collect = x
        by_next = x
        by_stop = b
        by_loop_handler = x
        by_key = s
        by_argument = s
        by_request_handler = x
        by_input = x
        by_call_handler = x
        by_raise = b
        by_return = x
        taken = by_step
        on overflow
          handled = by_handler_body
          = integer.add(handled, by_handler)
        require by_require
        branched = branch
        when by_when
          arm_step = by_arm_body
          = integer.add(by_arm, arm_step)
        else
          else_step = by_else_body
          = integer.add(by_else, else_step)
        on overflow
          = by_branch_handler
        rounds = loop $0 over by_over with $1 n: by_state
          where by_where
          while by_while
          body_step = by_body
          collect integer.add(body_step, by_collect)
          next $1 = by_next
          stop when by_stop
        on overflow
          after = by_loop_handler
          return result: after
        asked = request by_key; by_argument
        on timeout
          = by_request_handler
        twice = call x: by_input
        on any
          handled_call = by_call_handler
          return result: handled_call
        leaves = branch
        when b
          raise if by_raise then closed else late
        else
        return result: by_return
        ";
    keeps_all(text);
}

#[test]
fn every_part_of_an_expression_reads() {
    let text = "
        by_left = b
        by_right = b
        by_first = b
        by_second = b
        by_value = x
        by_bound = x
        by_item = x
        by_field = p
        by_record = x
        by_condition = b
        by_then = x
        by_otherwise = x
        by_source = xs
        by_initial = x
        by_filter = b
        by_map_key = s
        by_each = x
        joint = (by_left and by_right)
        on overflow
          = b
        either = (by_first or by_second)
        on overflow
          = b
        bound = (let $0 = by_bound in by_value)
        on overflow
          = x
        composed = {n: [by_item], f: by_field.n, r: by_record}
        on overflow
          = {n: [x], f: x, r: x}
        choice = if by_condition then by_then else by_otherwise
        on overflow
          = x
        items = (fold $1 $2 in by_source with by_initial where by_filter : by_each)
        on overflow
          = x
        entries = (map $3 $4 in m key by_map_key : $4)
        on too_large
          = m
        return result: x
        ";
    keeps_all(text);
}

#[test]
fn a_broken_clause_shows_all_its_references() {
    check(
        &[DeadSteps],
        "
        shown = x
        held = y
        gone = z
        require (integer.less(x, 1) or (false and integer.less(shown, 3)))
        require integer.less(if true then x else held, 3)
        require (true or integer.less(gone, 3))
        return result: x
        ",
        "
        shown = x
        held = y
        require: integer.less(x, 1)
        require: integer.less(x, 3)
        require: holds
        return result: x
        ",
    );
}

#[test]
fn parts_that_are_never_evaluated_read_nothing() {
    check(
        &[Constants, Guards, Common, DeadSteps],
        "
        unread = x
        read = y
        v = if integer.less(1, 2) then read else unread
        return result: v
        ",
        "
        read = y
        v = read
        return result: v
        ",
    );
}

#[test]
fn a_step_is_read_only_after_it() {
    check(
        &[DeadSteps],
        "
        v = branch
        when b
          one = x
          = one
        else
          two = x
          = y
        return result: v
        ",
        "
        v = branch
        when b
          one = x
          = one
        else
          = y
        return result: v
        ",
    );
}
