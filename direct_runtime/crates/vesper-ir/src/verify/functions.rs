//! Recursive functions: their names, their groups and how deep their calls get.

use std::collections::HashMap;
use std::sync::Arc;

use crate::Rejected;
use crate::limits::RECURSION_FRAMES;
use crate::node::{Function, LocalNumber, RawExpression, RawFunction};

use super::structure::operands;

/// Returns the indexes of functions by name.
pub(super) fn places(functions: &[RawFunction]) -> HashMap<Arc<str>, usize> {
    let names = functions.iter().map(|function| Arc::clone(&function.name));
    names.zip(0..).collect()
}

/// Returns the parameters of all functions, with the names of the functions.
pub(super) fn parameters(functions: &[RawFunction]) -> Vec<(Arc<str>, LocalNumber)> {
    let of_function = |function: &RawFunction| {
        let name = Arc::clone(&function.name);
        let numbers = function.params.iter().map(|(number, _)| *number);
        numbers
            .map(|number| (Arc::clone(&name), number))
            .collect::<Vec<_>>()
    };
    functions.iter().flat_map(of_function).collect()
}

/// Returns the verified functions.
pub(super) fn resolve(
    functions: Vec<RawFunction>,
    groups: &[u32],
    locals: &HashMap<LocalNumber, usize>,
) -> Vec<Function> {
    let functions = functions.into_iter().zip(groups);
    functions
        .map(|(function, group)| Function {
            params: function
                .params
                .iter()
                .filter_map(|(number, _)| locals.get(number).copied())
                .collect(),
            name: function.name,
            returns: function.returns,
            value: function.value,
            max_depth: function.max_depth,
            group: *group,
        })
        .collect()
}

/// Checks names and the number of active calls. Returns the group of each function.
pub(super) fn check(functions: &[RawFunction], expressions: &[RawExpression]) -> Result<Vec<u32>, Rejected> {
    let places = places(functions);
    if places.len() != functions.len() {
        return Err(Rejected("two functions have the same name".to_owned()));
    }
    let calls = calls(functions, expressions, &places);
    let closures: Vec<Vec<bool>> = (0..functions.len()).map(|start| closure(start, &calls)).collect();
    let reaches = |from: usize, to: usize| closures.get(from).is_some_and(|row| row.get(to) == Some(&true));
    let mut groups: Vec<u32> = Vec::with_capacity(functions.len());
    for place in 0..functions.len() {
        let first = (0..place).find(|other| reaches(place, *other) && reaches(*other, place));
        let group = first.and_then(|first| groups.get(first).copied());
        groups.push(group.unwrap_or_else(|| u32::try_from(place).unwrap_or(u32::MAX)));
    }
    let mut frames: HashMap<u32, u64> = HashMap::new();
    for ((function, group), called) in functions.iter().zip(&groups).zip(&calls) {
        let loops = called.iter().map(|(_, loops)| *loops).max().unwrap_or(0);
        let own = u64::from(function.max_depth) * (1 + loops);
        let deepest = frames.entry(*group).or_default();
        *deepest = own.max(*deepest);
    }
    let total: u64 = frames.values().sum();
    if total > RECURSION_FRAMES {
        return Err(Rejected(format!(
            "{total} calls of functions can be active at once; the limit is {RECURSION_FRAMES}"
        )));
    }
    Ok(groups)
}

/// Returns the functions that each function calls, with the number of `for` around each call.
fn calls(
    functions: &[RawFunction],
    expressions: &[RawExpression],
    places: &HashMap<Arc<str>, usize>,
) -> Vec<Vec<(usize, u64)>> {
    let of_function = |function: &RawFunction| {
        let mut found = Vec::new();
        let mut waiting = vec![(function.value, 0_u64)];
        while let Some((index, loops)) = waiting.pop() {
            let expression = usize::try_from(index)
                .ok()
                .and_then(|place| expressions.get(place));
            let Some(expression) = expression else { continue };
            if let RawExpression::Apply { function, .. } = expression {
                found.extend(places.get(function).map(|place| (*place, loops)));
            }
            let inside = loops + u64::from(matches!(expression, RawExpression::For { .. }));
            // `structure` rejects an operand that does not precede its user.
            let before = operands(expression)
                .into_iter()
                .filter(|operand| *operand < index);
            waiting.extend(before.map(|operand| (operand, inside)));
        }
        found
    };
    functions.iter().map(of_function).collect()
}

/// Returns for each function whether calls lead to it from another.
fn closure(start: usize, calls: &[Vec<(usize, u64)>]) -> Vec<bool> {
    let mut found = vec![false; calls.len()];
    let mut waiting = vec![start];
    while let Some(place) = waiting.pop() {
        for (called, _) in calls.get(place).into_iter().flatten() {
            if let Some(is_found) = found.get_mut(*called)
                && !*is_found
            {
                *is_found = true;
                waiting.push(*called);
            }
        }
    }
    found
}
