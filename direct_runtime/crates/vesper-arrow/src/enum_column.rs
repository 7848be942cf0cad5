//! The column of an enum: the contiguous names of its members.

use std::sync::Arc;

use arrow_array::StringArray;
use arrow_buffer::{Buffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::ArrowError;
use vesper_ir::{EnumType, Member};

use crate::buffer_pool;

/// Length up to which names are written with padding, which the next name overwrites.
const PADDED_BYTES: usize = 16;

/// A padded name and its length.
type Padded = ([u8; PADDED_BYTES], usize);

/// A column of names under construction.
///
/// Names are few and short, and rows are many. Copying a fixed number of bytes for each name is faster than copying
/// its exact length.
#[derive(Debug)]
pub(crate) struct EnumColumn {
    of: Arc<EnumType>,
    /// Padded names by member; empty if one name is too long.
    padded: Vec<Padded>,
    bytes: Vec<u8>,
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
}

fn pad_names(of: &EnumType) -> Option<Vec<Padded>> {
    let pad = |name: &Arc<str>| {
        let mut room = [0; PADDED_BYTES];
        room.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
        Some((room, name.len()))
    };
    of.texts().iter().map(pad).collect()
}

impl EnumColumn {
    pub(crate) fn new(of: &Arc<EnumType>, rows: usize) -> Self {
        let mut offsets = buffer_pool::take_vec(rows + 1);
        offsets.push(0);
        Self {
            padded: pad_names(of).unwrap_or_default(),
            of: Arc::clone(of),
            bytes: buffer_pool::take_vec(rows * 8 + PADDED_BYTES),
            offsets,
            nulls: NullBufferBuilder::new(rows),
        }
    }

    /// Adds the offset of the end. An offset beyond 32 bits makes `finish` fail.
    #[inline]
    fn push_offset(&mut self) {
        self.offsets
            .push(i32::try_from(self.bytes.len()).unwrap_or(i32::MAX));
    }

    #[inline]
    fn write(&mut self, member: Member) -> bool {
        if let Some((room, length)) = self.padded.get(member.0 as usize) {
            let end = self.bytes.len() + length;
            self.bytes.extend_from_slice(room);
            self.bytes.truncate(end);
        } else if let Some(name) = self.of.text(member) {
            self.bytes.extend_from_slice(name.as_bytes());
        } else {
            return false;
        }
        self.push_offset();
        true
    }

    /// Writes short names. Returns false if a name is long or missing; the column is then partly written.
    fn write_all(&mut self, members: impl Iterator<Item = Member> + Clone) -> bool {
        let Self {
            padded,
            bytes,
            offsets,
            ..
        } = self;
        let start = bytes.len();
        let mut end = start;
        let mut is_known = true;
        offsets.extend(members.clone().map(|member| {
            let length = padded.get(member.0 as usize).map_or(usize::MAX, |name| name.1);
            is_known &= length <= PADDED_BYTES;
            end = end.saturating_add(length);
            i32::try_from(end).unwrap_or(i32::MAX)
        }));
        if !is_known {
            return false;
        }
        bytes.resize(end + PADDED_BYTES, 0);
        let mut at = start;
        for member in members {
            if let (Some((name, length)), Some(room)) = (
                padded.get(member.0 as usize),
                bytes
                    .get_mut(at..)
                    .and_then(<[u8]>::first_chunk_mut::<PADDED_BYTES>),
            ) {
                *room = *name;
                at += length;
            }
        }
        bytes.truncate(end);
        true
    }

    /// Writes a member. One that the enum does not have, which the verifier rules out, becomes null.
    #[inline]
    pub(crate) fn append(&mut self, member: Member) {
        if self.write(member) {
            self.nulls.append_non_null();
        } else {
            self.append_null();
        }
    }

    /// Writes several members. If all names are short, their lengths are added first, and memory is reserved once.
    pub(crate) fn append_all(&mut self, members: impl Iterator<Item = Member> + Clone) {
        let before = (self.bytes.len(), self.offsets.len());
        if self.write_all(members.clone()) {
            self.nulls.append_n_non_nulls(self.offsets.len() - before.1);
            return;
        }
        self.bytes.truncate(before.0);
        self.offsets.truncate(before.1);
        let mut count = 0;
        for member in members {
            if self.write(member) {
                count += 1;
            } else {
                self.nulls.append_n_non_nulls(count);
                count = 0;
                self.append_null();
            }
        }
        self.nulls.append_n_non_nulls(count);
    }

    pub(crate) fn append_null(&mut self) {
        self.push_offset();
        self.nulls.append_null();
    }

    pub(crate) fn finish(&mut self) -> Result<StringArray, ArrowError> {
        let offsets = std::mem::replace(&mut self.offsets, vec![0]);
        let bytes = std::mem::take(&mut self.bytes);
        StringArray::try_new(
            OffsetBuffer::new(ScalarBuffer::from(buffer_pool::recycle_on_drop(
                Buffer::from_vec(offsets),
            ))),
            buffer_pool::recycle_on_drop(Buffer::from_vec(bytes)),
            self.nulls.finish(),
        )
    }
}
