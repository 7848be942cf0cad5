//! Which slots will be read again, at each step.

use super::step::Step;

/// A set of slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SlotSet {
    low: u128,
    high: u128,
}

impl SlotSet {
    pub(super) fn of(slots: impl IntoIterator<Item = u8>) -> Self {
        let mut set = Self::default();
        for slot in slots {
            set.add(slot);
        }
        set
    }

    pub(super) fn add(&mut self, slot: u8) {
        if slot < 128 {
            self.low |= 1 << slot;
        } else {
            self.high |= 1 << (slot - 128);
        }
    }

    fn remove(&mut self, slot: u8) {
        if slot < 128 {
            self.low &= !(1 << slot);
        } else {
            self.high &= !(1 << (slot - 128));
        }
    }

    pub(super) fn has(self, slot: u8) -> bool {
        if slot < 128 {
            self.low & (1 << slot) != 0
        } else {
            self.high & (1 << (slot - 128)) != 0
        }
    }

    fn and_those_of(self, other: Self) -> Self {
        Self {
            low: self.low | other.low,
            high: self.high | other.high,
        }
    }

    pub(super) fn iter(self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(move |slot| self.has(*slot))
    }
}

/// The steps that may come after this one.
pub(super) fn successors(steps: &[Option<Step>], place: usize) -> (Option<usize>, Option<usize>) {
    let Some(step) = steps.get(place).copied().flatten() else {
        // Where a step was taken out, the one behind it comes next.
        return (Some(place + 1), None);
    };
    let to = step.jumps().then_some(usize::from(step.to));
    let behind = step.goes_on().then_some(place + 1);
    (to, behind)
}

/// For each step, the slots that are read before they are written, from the step on. `always` are in every set.
pub(super) fn live_before(steps: &[Option<Step>], always: SlotSet) -> Vec<SlotSet> {
    let mut before = vec![always; steps.len()];
    loop {
        let mut is_changed = false;
        for place in (0..steps.len()).rev() {
            let mut set = live_after(steps, &before, place, always);
            if let Some(step) = steps.get(place).copied().flatten() {
                for slot in step.writes() {
                    set.remove(slot);
                }
                for slot in step.reads() {
                    set.add(slot);
                }
            }
            let set = set.and_those_of(always);
            if let Some(known) = before.get_mut(place)
                && *known != set
            {
                *known = set;
                is_changed = true;
            }
        }
        // Sets only grow, and each round of this goes through one more loop in another: there are few.
        if !is_changed {
            return before;
        }
    }
}

/// The slots that are read before they are written, after a step.
pub(super) fn live_after(
    steps: &[Option<Step>],
    before: &[SlotSet],
    place: usize,
    always: SlotSet,
) -> SlotSet {
    let (to, behind) = successors(steps, place);
    let mut set = always;
    for next in [to, behind].into_iter().flatten() {
        set = set.and_those_of(before.get(next).copied().unwrap_or_default());
    }
    set
}
