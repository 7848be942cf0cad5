//! Shared code of the fuzz targets: random numbers, mutation of JSON text, sample values.

pub mod mutation;
pub mod sample;

/// Small generator of random numbers. Its output depends on the seed alone, so that a finding can be repeated.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Creates a generator from the bytes of an input.
    pub fn of(bytes: &[u8]) -> Self {
        let step = |state: u64, byte: &u8| (state ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        Self::new(bytes.iter().fold(0xcbf2_9ce4_8422_2325, step))
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number below the bound, which must not be 0.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the rest is smaller than the bound"
    )]
    pub fn below(&mut self, bound: usize) -> usize {
        ((self.next() >> 8) % bound as u64) as usize
    }

    /// Returns one of several items; there must be at least one.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}
