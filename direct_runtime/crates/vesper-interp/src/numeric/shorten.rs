//! Fewer steps that do the same: what follows a step at once and is all that needs it becomes one step with it.
//!
//! A step costs about as much to find as to do, so a loop is as fast as it is short. Besides, a branch between two short
//! computations, which a processor cannot foresee, becomes a choice between their results.

use super::Carried;
use super::live::{SlotSet, live_after, live_before};
use super::step::{
    ADDITIONS_OF_FLOATS, ADDITIONS_OF_INTEGERS, CHOICES, COMPARISONS, JUMPS_IF, JUMPS_UNLESS, Step, StepCode,
};

/// An arm of more steps stays a branch.
const MAX_ARM: usize = 4;

/// The steps, shortened. `always` are the slots that a form needs whatever its steps read; `free` are those of no use yet.
pub(super) fn shorten(
    steps: Vec<Option<Step>>,
    always: SlotSet,
    carried: &[Carried],
    mut free: impl Iterator<Item = u8>,
) -> Vec<Step> {
    let mut steps = steps;
    join_pairs(&mut steps, always);
    // Once more, for what is made of pairs.
    join_pairs(&mut steps, always);
    choose(&mut steps, always, &mut free);
    let is_kept = carried.iter().all(|own| own.kept != own.slot);
    let at_the_end = if is_kept {
        SlotSet::default()
    } else {
        SlotSet::of(carried.iter().map(|own| own.slot))
    };
    drop_moves(&mut steps, always, at_the_end);
    turn_over(&mut steps);
    join_moves(&mut steps);
    close_gaps(steps)
}

fn at(steps: &[Option<Step>], place: usize) -> Option<Step> {
    steps.get(place).copied().flatten()
}

fn put(steps: &mut [Option<Step>], place: usize, step: Option<Step>) {
    if let Some(own) = steps.get_mut(place) {
        *own = step;
    }
}

/// The place of the next step behind this one.
fn behind(steps: &[Option<Step>], place: usize) -> Option<usize> {
    let rest = steps.get(place + 1..)?;
    rest.iter().position(Option::is_some).map(|by| place + 1 + by)
}

/// For each place, how many jumps go there; one to where a step was taken out goes to the step behind it.
fn arrivals(steps: &[Option<Step>]) -> Vec<usize> {
    let mut found = vec![0; steps.len()];
    for step in steps.iter().flatten().filter(|step| step.jumps()) {
        let to = usize::from(step.to);
        let place = if at(steps, to).is_some() {
            Some(to)
        } else {
            behind(steps, to)
        };
        if let Some(count) = place.and_then(|place| found.get_mut(place)) {
            *count += 1;
        }
    }
    found
}

/// Two steps that follow each other become one, where the first result is for the second alone.
fn join_pairs(steps: &mut [Option<Step>], always: SlotSet) {
    let before = live_before(steps, always);
    let arrivals = arrivals(steps);
    let mut place = 0;
    while let Some(next) = behind(steps, place) {
        let pair = at(steps, place).zip(at(steps, next));
        let is_entered = arrivals.get(next).is_none_or(|count| *count > 0);
        if let Some((first, second)) = pair
            && !is_entered
            && let Some(joined) = joined(&first, &second)
            && (second.writes() == [first.out] || !live_after(steps, &before, next, always).has(first.out))
        {
            put(steps, place, None);
            put(steps, next, Some(joined));
        }
        place = next;
    }
}

/// The step that does two, if there is one; what the first gives is then nowhere.
fn joined(first: &Step, second: &Step) -> Option<Step> {
    let result = first.out;
    if let Some(place) = COMPARISONS.iter().position(|code| *code == first.code) {
        let code = match second.code {
            StepCode::JumpIfTrue if second.a == result => JUMPS_IF.get(place)?,
            StepCode::JumpIfFalse if second.a == result => JUMPS_UNLESS.get(place)?,
            _ => return None,
        };
        return Some(Step {
            code: *code,
            to: second.to,
            ..*first
        });
    }
    if let Some(code) = longer(first.code, second.code) {
        return joined_longer(code, first, second);
    }
    let is_left = second.a == result && second.b != result;
    let is_right = second.b == result && second.a != result;
    if !is_left && !is_right {
        return None;
    }
    let code = pair(first.code, second.code, is_left)?;
    let other = if is_left { second.b } else { second.a };
    let (b, c) = match code {
        StepCode::ToFloatMultiply | StepCode::ToFloatDivide => (other, 0),
        _ => (first.b, other),
    };
    Some(Step {
        code,
        out: second.out,
        a: first.a,
        b,
        c,
        ..*second
    })
}

/// The code for a pair and what follows it.
fn longer(first: StepCode, second: StepCode) -> Option<StepCode> {
    #[allow(clippy::enum_glob_use, reason = "these names mean nothing else here")]
    use StepCode::*;
    Some(match (first, second) {
        (MultiplyAddI, AndI) => MultiplyAddAndI,
        (MultiplyAddI, RemI) => MultiplyAddRemI,
        (MultiplyAddI, ModI) => MultiplyAddModI,
        (MultiplyAddF, MultiplyAddF) => MultiplyAddMultiplyAddF,
        (MultiplyAddF, MultiplySubtractF) => MultiplyAddMultiplySubtractF,
        (MultiplySubtractF, MultiplyAddF) => MultiplySubtractMultiplyAddF,
        (MultiplySubtractF, MultiplySubtractF) => MultiplySubtractMultiplySubtractF,
        _ => return None,
    })
}

fn joined_longer(code: StepCode, first: &Step, second: &Step) -> Option<Step> {
    let result = first.out;
    // What the result is multiplied by, or met with; those are the same both ways round, a remainder is not.
    let other = match (second.a == result, second.b == result) {
        (true, false) => second.b,
        (false, true) if !matches!(second.code, StepCode::RemI | StepCode::ModI) => second.a,
        _ => return None,
    };
    let is_of_floats = matches!(second.code, StepCode::MultiplyAddF | StepCode::MultiplySubtractF);
    if is_of_floats && second.c == result {
        return None;
    }
    Some(Step {
        code,
        out: second.out,
        d: other,
        e: second.c,
        ..*first
    })
}

/// The code for two; `is_left` where the first result is the left argument of the second.
fn pair(first: StepCode, second: StepCode, is_left: bool) -> Option<StepCode> {
    #[allow(clippy::enum_glob_use, reason = "these names mean nothing else here")]
    use StepCode::*;
    // Addition, multiplication and the bits of integers are the same both ways round.
    Some(match (first, second, is_left) {
        (AddI, AddI, _) => AddAddI,
        (AddI, SubtractI, true) => AddSubtractI,
        (AddI, SubtractI, false) => AddFromI,
        (AddI, MultiplyI, _) => AddMultiplyI,
        (AddI, AndI, _) => AddAndI,
        (AddI, RemI, true) => AddRemI,
        (AddI, ModI, true) => AddModI,
        (SubtractI, AddI, _) => SubtractAddI,
        (SubtractI, SubtractI, true) => SubtractSubtractI,
        (SubtractI, SubtractI, false) => SubtractFromI,
        (SubtractI, MultiplyI, _) => SubtractMultiplyI,
        (MultiplyI, AddI, _) => MultiplyAddI,
        (MultiplyI, SubtractI, true) => MultiplySubtractI,
        (MultiplyI, SubtractI, false) => MultiplyFromI,
        (MultiplyI, MultiplyI, _) => MultiplyMultiplyI,
        (MultiplyI, AndI, _) => MultiplyAndI,
        (MultiplyI, RemI, true) => MultiplyRemI,
        (MultiplyI, ModI, true) => MultiplyModI,
        (ToFloat, MultiplyF, _) => ToFloatMultiply,
        (ToFloat, DivideF, true) => ToFloatDivide,
        (AddF, AddF, _) => AddAddF,
        (AddF, SubtractF, true) => AddSubtractF,
        (AddF, SubtractF, false) => AddFromF,
        (AddF, MultiplyF, _) => AddMultiplyF,
        (SubtractF, AddF, _) => SubtractAddF,
        (SubtractF, SubtractF, true) => SubtractSubtractF,
        (SubtractF, SubtractF, false) => SubtractFromF,
        (SubtractF, MultiplyF, _) => SubtractMultiplyF,
        (MultiplyF, AddF, _) => MultiplyAddF,
        (MultiplyF, SubtractF, true) => MultiplySubtractF,
        (MultiplyF, SubtractF, false) => MultiplyFromF,
        (MultiplyF, MultiplyF, _) => MultiplyMultiplyF,
        _ => return None,
    })
}

/// The two arms of a branch by a comparison, each the places of its steps.
struct Branch {
    jump: usize,
    then: Vec<usize>,
    /// The jump over the second arm.
    over: usize,
    otherwise: Vec<usize>,
    end: usize,
}

/// Branches between two short computations of one result become a choice. Both are computed then; one that fails where it
/// would not have been asked for leaves the round to the bytecode, which does not ask for it.
fn choose(steps: &mut [Option<Step>], always: SlotSet, free: &mut impl Iterator<Item = u8>) {
    // From the end, so that a branch within an arm is a choice before the arm is looked at.
    for place in (0..steps.len()).rev() {
        let Some(branch) = branch_at(steps, place) else {
            continue;
        };
        if let Some(chosen) = chosen(steps, &branch, always, free) {
            let places = [branch.jump, branch.over]
                .into_iter()
                .chain(branch.then)
                .chain(branch.otherwise);
            let mut places: Vec<usize> = places.collect();
            places.sort_unstable();
            // There are fewer than before: the two jumps are one choice.
            let mut chosen = chosen.into_iter();
            for place in places {
                put(steps, place, chosen.next());
            }
        }
    }
}

fn branch_at(steps: &[Option<Step>], jump: usize) -> Option<Branch> {
    let decides = at(steps, jump).filter(|step| step.compared_jump().is_some())?;
    let present = |place: usize| {
        if at(steps, place).is_some() {
            Some(place)
        } else {
            behind(steps, place)
        }
    };
    let second = present(usize::from(decides.to)).filter(|second| *second > jump)?;
    let arm = |start: usize, end: usize| -> Option<Vec<usize>> {
        let places: Vec<usize> = (start..end).filter(|place| at(steps, *place).is_some()).collect();
        let is_short = (1..=MAX_ARM).contains(&places.len());
        let is_cheap = places
            .iter()
            .all(|place| at(steps, *place).is_some_and(|step| step.is_cheap()));
        (is_short && is_cheap).then_some(places)
    };
    let over = (jump + 1..second)
        .rev()
        .find(|place| at(steps, *place).is_some())?;
    let over_step = at(steps, over).filter(|step| step.code == StepCode::Jump)?;
    let end = present(usize::from(over_step.to)).filter(|end| *end > second)?;
    let then = arm(jump + 1, over)?;
    let otherwise = arm(second, end)?;
    // Nobody else comes into it.
    let arrivals = arrivals(steps);
    let is_alone = (jump + 1..end).all(|place| {
        let expected = usize::from(place == second);
        arrivals.get(place).is_some_and(|count| *count == expected)
    });
    is_alone.then_some(Branch {
        jump,
        then,
        over,
        otherwise,
        end,
    })
}

/// The steps of both arms, each with a result of its own, and the choice between these.
fn chosen(
    steps: &[Option<Step>],
    branch: &Branch,
    always: SlotSet,
    free: &mut impl Iterator<Item = u8>,
) -> Option<Vec<Step>> {
    let of =
        |places: &[usize]| -> Vec<Step> { places.iter().filter_map(|place| at(steps, *place)).collect() };
    let decides = at(steps, branch.jump)?;
    let (comparison, is_if) = decides.compared_jump()?;
    let (then, otherwise) = (of(&branch.then), of(&branch.otherwise));
    let (last_then, inner_then) = then.split_last()?;
    let (last_otherwise, inner_otherwise) = otherwise.split_last()?;
    if last_then.out != last_otherwise.out {
        return None;
    }
    // What is computed on the way must be of no use to anybody else, in any order of the two arms.
    let after = *live_before(steps, always).get(branch.end)?;
    let on_the_way = |inner: &[Step]| SlotSet::of(inner.iter().flat_map(Step::writes));
    let (of_then, of_otherwise) = (on_the_way(inner_then), on_the_way(inner_otherwise));
    let mut inner = of_then.iter().chain(of_otherwise.iter());
    if inner.any(|slot| (after.has(slot) && slot != last_then.out) || always.has(slot)) {
        return None;
    }
    let reads_of_then = |slot: u8| otherwise.iter().any(|step| step.reads().contains(&slot));
    if of_then
        .iter()
        .any(|slot| slot == decides.a || slot == decides.b || reads_of_then(slot))
        || of_otherwise
            .iter()
            .any(|slot| slot == decides.a || slot == decides.b)
    {
        return None;
    }
    let mut steps = Vec::new();
    // The result of an arm that only moves one is there already, unless the other arm writes there.
    let mut add = |inner: &[Step], last: &Step, others: SlotSet| -> Option<u8> {
        steps.extend_from_slice(inner);
        if last.code == StepCode::Move && !others.has(last.a) {
            return Some(last.a);
        }
        let out = free.next()?;
        steps.push(Step { out, ..*last });
        Some(out)
    };
    if let Some(sum) = conditional_sum(&decides, inner_then, last_then, inner_otherwise, last_otherwise) {
        return Some(vec![sum]);
    }
    let c = add(inner_then, last_then, of_otherwise)?;
    let d = add(inner_otherwise, last_otherwise, SlotSet::default())?;
    // A jump that is made where the comparison holds goes to the second arm.
    let (c, d) = if is_if { (d, c) } else { (c, d) };
    steps.push(Step {
        code: *CHOICES.get(comparison)?,
        out: last_then.out,
        c,
        d,
        to: 0,
        ..decides
    });
    Some(steps)
}

/// `IF a THEN c + d ELSE c`, as one step.
fn conditional_sum(
    decides: &Step,
    inner_then: &[Step],
    last_then: &Step,
    inner_otherwise: &[Step],
    last_otherwise: &Step,
) -> Option<Step> {
    let (comparison, is_if) = decides.compared_jump()?;
    let is_short = inner_then.is_empty() && inner_otherwise.is_empty();
    let codes = match last_then.code {
        StepCode::AddI => &ADDITIONS_OF_INTEGERS,
        StepCode::AddF => &ADDITIONS_OF_FLOATS,
        _ => return None,
    };
    // The jump is made where there is nothing to add.
    if !is_short || is_if || last_otherwise.code != StepCode::Move {
        return None;
    }
    let c = last_otherwise.a;
    let d = match (last_then.a == c, last_then.b == c) {
        (true, _) => last_then.b,
        (false, true) => last_then.a,
        (false, false) => return None,
    };
    Some(Step {
        code: *codes.get(comparison)?,
        out: last_then.out,
        c,
        d,
        to: 0,
        ..*decides
    })
}

/// A result that is only moved on is computed where it goes. `at_the_end` are slots that must not be written before the
/// last step that may leave the round.
fn drop_moves(steps: &mut [Option<Step>], always: SlotSet, at_the_end: SlotSet) {
    let arrivals = arrivals(steps);
    // The steps before this one that are done whenever it is, the nearest first.
    let straight_before = |steps: &[Option<Step>], place: usize| -> Vec<usize> {
        let mut found = Vec::new();
        for earlier in (0..place).rev() {
            let later_is_entered = arrivals.get(earlier + 1).is_none_or(|count| *count > 0);
            if later_is_entered {
                break;
            }
            if let Some(step) = at(steps, earlier) {
                if step.jumps() || !step.goes_on() {
                    break;
                }
                found.push(earlier);
            }
        }
        found
    };
    // What is changed here changes none of these sets behind the place that is looked at.
    let before = live_before(steps, always);
    for place in 0..steps.len() {
        let Some(mover) = at(steps, place).filter(|step| step.code == StepCode::Move) else {
            continue;
        };
        if live_after(steps, &before, place, always).has(mover.a) {
            continue;
        }
        // Between what computes it and the move, nobody may ask for either of the two slots.
        let mut is_late = true;
        let mut is_written = false;
        for earlier in straight_before(steps, place) {
            let Some(step) = at(steps, earlier) else { continue };
            if step.writes() == [mover.a] {
                if step.code == StepCode::Move && !is_written_between(steps, earlier, place, step.a) {
                    // Moved twice: once is enough.
                    put(steps, place, Some(Step { a: step.a, ..mover }));
                    put(steps, earlier, None);
                } else if !step.may_undo()
                    && step
                        .reads()
                        .iter()
                        .all(|slot| !is_written_between(steps, earlier, place, *slot))
                {
                    // What cannot fail may as well be computed here.
                    put(
                        steps,
                        place,
                        Some(Step {
                            out: mover.out,
                            ..step
                        }),
                    );
                    put(steps, earlier, None);
                } else if is_late && !is_written {
                    let to_its_end = Step {
                        out: mover.out,
                        ..step
                    };
                    put(steps, earlier, Some(to_its_end));
                    put(steps, place, None);
                }
                break;
            }
            let touched = |slot: u8| step.reads().contains(&slot) || step.writes().contains(&slot);
            if touched(mover.a) || step.writes().contains(&mover.a) {
                break;
            }
            is_written |= touched(mover.out);
            is_late &= !(step.may_undo() && at_the_end.has(mover.out));
        }
    }
}

fn is_written_between(steps: &[Option<Step>], from: usize, to: usize, slot: u8) -> bool {
    let between = steps.get(from + 1..to).unwrap_or(&[]);
    between.iter().flatten().any(|step| step.writes().contains(&slot))
}

/// The jump back to the head becomes the head itself, which then goes on behind the first one.
fn turn_over(steps: &mut [Option<Step>]) {
    let Some(head) = at(steps, 0) else { return };
    let (again, round_again) = match head.code {
        StepCode::HeadNext => (StepCode::AgainNext, StepCode::RoundAgainNext),
        StepCode::HeadNextItem => (StepCode::AgainNextItem, StepCode::RoundAgainNextItem),
        _ => return,
    };
    let arrivals = arrivals(steps);
    for place in 1..steps.len() {
        let Some(jump) = at(steps, place) else { continue };
        if jump.code != StepCode::Jump || jump.to != 0 {
            continue;
        }
        // Where the loop is done the head goes to `head.to`, and this goes to the step behind it: that has to be the same.
        let Some(round) = (0..place).rev().find(|place| at(steps, *place).is_some()) else {
            continue;
        };
        let is_entered = (round + 1..=place).any(|place| arrivals.get(place).is_none_or(|count| *count > 0));
        let is_round = at(steps, round).is_some_and(|step| step.code == StepCode::Round) && !is_entered;
        let leaves = behind(steps, place).is_some_and(|next| reaches(steps, next, usize::from(head.to)));
        if !leaves {
            continue;
        }
        let mut step = Step {
            code: again,
            to: 1,
            ..head
        };
        if is_round && let Some(counted) = at(steps, round) {
            step.code = round_again;
            step.b = counted.a;
            put(steps, round, None);
        }
        put(steps, place, Some(step));
    }
}

/// True where going on at a step comes to another one with nothing but jumps on the way.
fn reaches(steps: &[Option<Step>], from: usize, to: usize) -> bool {
    let mut place = from;
    for _ in 0..4 {
        if place == to {
            return true;
        }
        match at(steps, place) {
            Some(step) if step.code == StepCode::Jump => place = usize::from(step.to),
            Some(_) => return false,
            None => place += 1,
        }
    }
    false
}

/// Two moves that follow each other become one step.
fn join_moves(steps: &mut [Option<Step>]) {
    let arrivals = arrivals(steps);
    let mut place = 0;
    while let Some(next) = behind(steps, place) {
        let is_entered = (place + 1..=next).any(|place| arrivals.get(place).is_none_or(|count| *count > 0));
        if let Some((first, second)) = at(steps, place).zip(at(steps, next))
            && first.code == StepCode::Move
            && second.code == StepCode::Move
            && !is_entered
        {
            put(steps, place, None);
            let both = Step {
                code: StepCode::MoveTwo,
                b: second.out,
                c: second.a,
                ..first
            };
            put(steps, next, Some(both));
        }
        place = next;
    }
}

/// The steps without the places where some were taken out.
fn close_gaps(steps: Vec<Option<Step>>) -> Vec<Step> {
    let mut places = Vec::with_capacity(steps.len());
    let mut count = 0_u16;
    for step in &steps {
        places.push(count);
        count = count.saturating_add(u16::from(step.is_some()));
    }
    let moved = |step: Step| {
        let to = if step.jumps() {
            places.get(usize::from(step.to)).copied().unwrap_or(count)
        } else {
            step.to
        };
        Step { to, ..step }
    };
    steps.into_iter().flatten().map(moved).collect()
}
