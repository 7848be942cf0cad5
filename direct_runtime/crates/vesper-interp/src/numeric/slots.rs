//! The registers of a numeric form.

use crate::loops::Range;

/// The registers of a numeric form. A slot is named by a byte, and there are as many as bytes have values, so that no
/// access needs a check.
pub(super) struct Slots([u64; 256]);

impl Slots {
    #[inline]
    pub(super) fn new() -> Self {
        Self([0; 256])
    }

    #[inline]
    #[expect(clippy::indexing_slicing, reason = "there is a slot for every byte")]
    pub(super) fn get(&self, slot: u8) -> u64 {
        self.0[usize::from(slot)]
    }

    #[inline]
    #[expect(clippy::indexing_slicing, reason = "there is a slot for every byte")]
    pub(super) fn put(&mut self, slot: u8, bits: u64) {
        self.0[usize::from(slot)] = bits;
    }

    #[inline]
    pub(super) fn integer(&self, slot: u8) -> i64 {
        self.get(slot).cast_signed()
    }

    #[inline]
    pub(super) fn float(&self, slot: u8) -> f64 {
        f64::from_bits(self.get(slot))
    }

    #[inline]
    pub(super) fn boolean(&self, slot: u8) -> bool {
        self.get(slot) != 0
    }

    /// The range in the three slots from this one on.
    #[inline]
    pub(super) fn range(&self, slot: u8) -> Range {
        Range {
            next: self.integer(slot),
            step: self.integer(slot.wrapping_add(1)),
            left: self.get(slot.wrapping_add(2)),
        }
    }

    #[inline]
    pub(super) fn put_range(&mut self, slot: u8, range: Range) {
        self.put(slot, range.next.cast_unsigned());
        self.put(slot.wrapping_add(1), range.step.cast_unsigned());
        self.put(slot.wrapping_add(2), range.left);
    }

    /// The next integer of the range at a slot.
    #[inline]
    pub(super) fn take(&mut self, slot: u8) -> Option<i64> {
        let left = self.get(slot.wrapping_add(2)).checked_sub(1)?;
        self.put(slot.wrapping_add(2), left);
        let item = self.integer(slot);
        let step = self.integer(slot.wrapping_add(1));
        self.put(slot, item.wrapping_add(step).cast_unsigned());
        Some(item)
    }
}
