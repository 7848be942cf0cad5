//! `SipHash-2-4` over pieces of at most sixteen bytes, given as numbers.
//!
//! Values are short and usually in registers, so nothing is buffered in memory: bytes that do not fill a word are
//! held in one, and inlined code keeps the whole state in registers.

use super::FingerprintKey;

#[derive(Clone, Debug)]
pub(super) struct Sip {
    state: [u64; 4],
    /// The bytes that do not fill a word yet, lowest first; zero above them.
    held: u64,
    /// The total number of bytes.
    length: u64,
}

/// At most sixteen bytes, lowest first; zero above them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) low: u64,
    pub(super) high: u64,
    pub(super) length: u64,
}

impl Piece {
    #[inline]
    pub(super) fn new(bytes: u128, length: u64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "the lower half and the upper one")]
        Self {
            low: bytes as u64,
            high: (bytes >> 64) as u64,
            length,
        }
    }

    /// Splits off the first eight bytes, or all if there are fewer.
    #[inline]
    pub(super) fn first_of(bytes: &[u8]) -> (Self, &[u8]) {
        let (low, length, behind): (_, _, &[u8]) = match bytes.split_first_chunk::<8>() {
            Some((eight, behind)) => (u64::from_le_bytes(*eight), 8, behind),
            None => (below_eight(bytes), bytes.len() as u64, &[]),
        };
        let piece = Self { low, high: 0, length };
        (piece, behind)
    }
}

/// Packs fewer than eight bytes into a number from overlapping first and last chunks.
#[inline]
fn below_eight(bytes: &[u8]) -> u64 {
    let length = bytes.len();
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return u64::from(first) | u64::from(last) << (8 * (length - 4));
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last()) {
        return u64::from(u16::from_le_bytes(*first)) | u64::from(*last) << (8 * (length - 1));
    }
    bytes.first().copied().map_or(0, u64::from)
}

impl Sip {
    #[inline]
    pub(super) fn new(key: &FingerprintKey) -> Self {
        let Piece { low, high, .. } = Piece::new(u128::from_le_bytes(*key), 16);
        Self {
            state: [
                low ^ 0x736f_6d65_7073_6575,
                high ^ 0x646f_7261_6e64_6f6d,
                low ^ 0x6c79_6765_6e65_7261,
                high ^ 0x7465_6462_7974_6573,
            ],
            held: 0,
            length: 0,
        }
    }

    #[inline]
    pub(super) fn put(&mut self, piece: Piece) {
        let Piece { low, high, length } = piece;
        let held = self.length % 8;
        let shift = 8 * held;
        // Two shifts: with no held bytes the result is zero, and no single shift reaches 64 bits.
        let left_of = |word: u64| word >> 1 >> (63 - shift);
        let first = self.held | low << shift;
        let second = left_of(low) | high << shift;
        self.length = self.length.wrapping_add(length);
        self.held = first;
        if held + length >= 8 {
            self.word(first);
            self.held = second;
            if held + length >= 16 {
                self.word(second);
                self.held = left_of(high);
            }
        }
    }

    #[inline]
    pub(super) fn bytes(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let piece;
            (piece, bytes) = Piece::first_of(bytes);
            self.put(piece);
        }
    }

    #[inline]
    pub(super) fn finish(&self) -> u64 {
        let mut sip = self.clone();
        sip.word(self.held | self.length << 56);
        sip.state[2] ^= 0xff;
        for _ in 0..4 {
            sip.round();
        }
        sip.state.iter().fold(0, |sum, part| sum ^ part)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the state stays in registers")]
    fn word(&mut self, word: u64) {
        self.state[3] ^= word;
        self.round();
        self.round();
        self.state[0] ^= word;
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the state stays in registers")]
    fn round(&mut self) {
        let [mut a, mut b, mut c, mut d] = self.state;
        a = a.wrapping_add(b);
        b = b.rotate_left(13) ^ a;
        a = a.rotate_left(32);
        c = c.wrapping_add(d);
        d = d.rotate_left(16) ^ c;
        a = a.wrapping_add(d);
        d = d.rotate_left(21) ^ a;
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        c = c.rotate_left(32);
        self.state = [a, b, c, d];
    }
}

#[cfg(test)]
mod tests {
    use std::hash::Hasher;

    use siphasher::sip::SipHasher24;

    use super::*;

    const KEY: FingerprintKey = *b"sixteen of them.";

    fn known(bytes: &[u8]) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&KEY);
        hasher.write(bytes);
        hasher.finish()
    }

    /// Returns bytes that are not zero and differ from their neighbours.
    fn some(length: usize) -> Vec<u8> {
        (0_u8..=250)
            .cycle()
            .map(|number| number.wrapping_mul(167) | 1)
            .take(length)
            .collect()
    }

    #[test]
    fn bytes_are_hashed_as_another_hasher_does() {
        for length in (0..80).chain(250..270) {
            let bytes = some(length);
            for cut in 0..=length.min(24) {
                let (one, other) = bytes.split_at(cut);
                let mut sip = Sip::new(&KEY);
                sip.bytes(one);
                sip.bytes(other);
                assert_eq!(sip.finish(), known(&bytes), "{length} bytes, cut after {cut}");
            }
        }
    }

    #[test]
    fn pieces_are_their_lowest_bytes_whatever_was_before() {
        for before in 0..24 {
            for length in 0_usize..=16 {
                let bytes = some(before + length + 3);
                let (first, rest) = bytes.split_at(before);
                let (own, last) = rest.split_at(length);
                let number = own
                    .iter()
                    .rev()
                    .fold(0_u128, |sum, byte| sum << 8 | u128::from(*byte));
                let mut sip = Sip::new(&KEY);
                sip.bytes(first);
                sip.put(Piece::new(number, length as u64));
                sip.bytes(last);
                assert_eq!(sip.finish(), known(&bytes), "{length} behind {before}");
            }
        }
    }
}
