//! Finds matches without going back: all ways to go on are followed at once, in order of preference.
//!
//! At every position each instruction is visited at most once, whichever way leads there: the most preferred one came
//! first. So a search takes at most instructions × (code points + 1) steps, and finds what a backtracking search would.

use std::ops::Range;
use std::str::Chars;

use vesper_ir::pattern::{Instruction, Pattern, Program};

/// Where a group that took no part begins and ends.
const NOWHERE: usize = usize::MAX;

/// A search of one text for one pattern; what it allocates serves one match after the other.
pub(super) struct Searcher<'a> {
    program: &'a Program,
    text: &'a str,
    now: Threads,
    then: Threads,
    /// What is still to be followed at one position; the last is followed first.
    open: Vec<Open>,
    /// The positions noted on the way that is being followed.
    noted: Vec<usize>,
    /// The positions of the best match so far: start and end of the whole, then of each group.
    found: Vec<usize>,
}

/// Where the ways stand that have got as far as one position: each at an instruction, the most preferred first.
struct Threads {
    order: Vec<u32>,
    /// For each instruction its place in `order`, where that place names the instruction.
    places: Vec<u32>,
    /// For each instruction the positions noted on the way to it.
    noted: Vec<usize>,
    /// How many of them there are for each.
    slots: usize,
}

enum Open {
    At(u32),
    /// The note to put back once everything behind it has been followed.
    Note(usize, usize),
}

/// A position between two code points, in bytes, and its neighbours.
#[derive(Clone, Copy)]
struct Position {
    at: usize,
    before: Option<char>,
    after: Option<char>,
}

impl Threads {
    fn new(instructions: usize, slots: usize) -> Self {
        Self {
            order: Vec::with_capacity(instructions),
            places: vec![0; instructions],
            noted: vec![NOWHERE; instructions * slots],
            slots,
        }
    }

    /// True when no way led to the instruction before; from now on one has.
    fn add(&mut self, instruction: u32) -> bool {
        let Some(place) = self.places.get_mut(instruction as usize) else {
            return false;
        };
        if self.order.get(*place as usize) == Some(&instruction) {
            return false;
        }
        // As many as there are instructions, which fits.
        *place = u32::try_from(self.order.len()).unwrap_or(u32::MAX);
        self.order.push(instruction);
        true
    }

    fn remember(&mut self, instruction: u32, noted: &[usize]) {
        let start = instruction as usize * self.slots;
        if let Some(own) = self.noted.get_mut(start..start + self.slots) {
            own.copy_from_slice(noted);
        }
    }

    fn recall(&self, instruction: u32, noted: &mut [usize]) {
        let start = instruction as usize * self.slots;
        if let Some(own) = self.noted.get(start..start + self.slots) {
            noted.copy_from_slice(own);
        }
    }
}

impl Position {
    /// The first position from this one on where the code point that comes after it is not of these, or the end.
    fn skip(mut self, rest: &mut Chars<'_>, is_skipped: impl Fn(char) -> bool) -> Self {
        while self.after.is_some_and(&is_skipped)
            && let Some(next) = self.next(rest)
        {
            self = next;
        }
        self
    }

    /// The position behind the code point that comes after this one.
    fn next(self, rest: &mut Chars<'_>) -> Option<Self> {
        let char = self.after?;
        Some(Self {
            at: self.at + char.len_utf8(),
            before: Some(char),
            after: rest.next(),
        })
    }
}

impl<'a> Searcher<'a> {
    /// With no slots it is only known whether there is a match, with two the whole match, with two more for each group
    /// the groups.
    pub(super) fn new(pattern: &'a Pattern, text: &'a str, slots: usize) -> Self {
        let program = pattern.program();
        let instructions = program.instructions.len();
        Self {
            program,
            text,
            now: Threads::new(instructions, slots),
            then: Threads::new(instructions, slots),
            open: Vec::new(),
            noted: vec![NOWHERE; slots],
            found: vec![NOWHERE; slots],
        }
    }

    /// What a group of the match that was found matched, the whole being 0; nothing where it took no part.
    pub(super) fn group(&self, number: usize) -> Option<Range<usize>> {
        let start = *self.found.get(2 * number)?;
        let end = *self.found.get(2 * number + 1)?;
        (start != NOWHERE && end != NOWHERE).then_some(start..end)
    }

    /// Looks for the first match that starts at this position, in bytes, or after it.
    pub(super) fn search(&mut self, from: usize) -> bool {
        let starts = self.program.starts;
        let (Some(passed), Some(rest)) = (self.text.get(..from), self.text.get(from..)) else {
            return false;
        };
        let mut rest = rest.chars();
        let mut here = Position {
            at: from,
            before: passed.chars().next_back(),
            after: rest.next(),
        };
        let mut is_found = false;
        self.now.order.clear();
        loop {
            let may_start = !is_found && (!starts.is_anchored || here.before.is_none());
            if self.now.order.is_empty() {
                if !may_start {
                    return is_found;
                }
                if !starts.is_anchored {
                    here = here.skip(&mut rest, |char| !starts.admits(char));
                }
                if here.after.is_none() && !starts.anywhere {
                    return is_found;
                }
            }
            if may_start {
                // Behind all others: a match that starts further left is preferred.
                self.noted.fill(NOWHERE);
                if let Some(start) = self.noted.first_mut() {
                    *start = here.at;
                }
                follow(
                    self.program,
                    &mut self.now,
                    &mut self.open,
                    &mut self.noted,
                    0,
                    here,
                );
            }
            let next = here.next(&mut rest);
            is_found |= self.advance(here, next);
            let Some(next) = next else {
                return is_found;
            };
            if is_found && self.found.is_empty() {
                return true;
            }
            std::mem::swap(&mut self.now, &mut self.then);
            here = next;
        }
    }

    /// Takes the code point at a position on every way that can; true when one has come to the end of the pattern. The
    /// ways behind that one are given up: it is preferred to all of them.
    fn advance(&mut self, here: Position, next: Option<Position>) -> bool {
        self.then.order.clear();
        let mut number = 0;
        while let Some(place) = self.now.order.get(number).copied() {
            number += 1;
            let takes = match self.program.instructions.get(place as usize) {
                Some(Instruction::Char(char)) => here.after == Some(*char),
                Some(Instruction::Class(class)) => {
                    match (here.after, self.program.classes.get(*class as usize)) {
                        (Some(char), Some(class)) => class.contains(char),
                        _ => false,
                    }
                }
                Some(Instruction::Match) => {
                    self.now.recall(place, &mut self.found);
                    if let Some(end) = self.found.get_mut(1) {
                        *end = here.at;
                    }
                    return true;
                }
                _ => false,
            };
            if let (true, Some(next)) = (takes, next) {
                self.now.recall(place, &mut self.noted);
                follow(
                    self.program,
                    &mut self.then,
                    &mut self.open,
                    &mut self.noted,
                    place + 1,
                    next,
                );
            }
        }
        false
    }
}

/// Follows a way up to the instructions that take a code point, and puts those in the list.
fn follow(
    program: &Program,
    threads: &mut Threads,
    open: &mut Vec<Open>,
    noted: &mut [usize],
    start: u32,
    here: Position,
) {
    open.push(Open::At(start));
    while let Some(next) = open.pop() {
        let mut place = match next {
            Open::At(place) => place,
            Open::Note(slot, position) => {
                if let Some(note) = noted.get_mut(slot) {
                    *note = position;
                }
                continue;
            }
        };
        while threads.add(place) {
            match program.instructions.get(place as usize) {
                Some(Instruction::Jump(to)) => place = *to,
                Some(Instruction::Split { first, second }) => {
                    open.push(Open::At(*second));
                    place = *first;
                }
                Some(Instruction::Anchor(anchor)) if anchor.holds(here.before, here.after) => place += 1,
                Some(Instruction::Save(slot)) => {
                    let slot = *slot as usize;
                    if let Some(note) = noted.get_mut(slot) {
                        open.push(Open::Note(slot, *note));
                        *note = here.at;
                    }
                    place += 1;
                }
                Some(Instruction::Char(_) | Instruction::Class(_) | Instruction::Match) => {
                    threads.remember(place, noted);
                    break;
                }
                Some(Instruction::Anchor(_)) | None => break,
            }
        }
    }
}
