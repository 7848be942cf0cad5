//! The cells of a process: 64-bit numbers in memory or in a mapped file.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ptr;
use std::slice;
use std::sync::atomic::AtomicU64;

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// Size of a process' region. All its pages are reserved on disk when a file is made.
pub(crate) const REGION_BYTES: usize = 2 << 20;
pub(crate) const CELL_BYTES: usize = size_of::<AtomicU64>();

/// The cells that a process counts in. They are never unmapped: handles refer to them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Region(&'static [AtomicU64]);

impl Region {
    /// Maps zeroed memory.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: the kernel chooses the address of new memory, which is zeroed, aligned to a page and never unmapped.
        let cells = unsafe {
            let flags = MapFlags::PRIVATE;
            let base = mmap_anonymous(ptr::null_mut(), REGION_BYTES, protection(), flags)?;
            slice::from_raw_parts(base.cast::<AtomicU64>(), REGION_BYTES / CELL_BYTES)
        };
        Ok(Self(cells))
    }

    pub(crate) fn cells(self) -> &'static [AtomicU64] {
        self.0
    }

    /// Replaces the memory of the region by that of a file of its size. Addresses stay.
    pub(crate) fn move_to_file(self, file: &File) -> io::Result<()> {
        // SAFETY: the range belongs to this region alone and is replaced in one step, so every cell stays readable and
        // writable. Cells are atomic, so their change under a reader is sound. The file has the length of the region.
        unsafe {
            let flags = MapFlags::SHARED | MapFlags::FIXED;
            mmap(self.base(), REGION_BYTES, protection(), flags, file, 0)?;
        }
        Ok(())
    }

    /// Replaces the memory of the region by zeroed memory. Addresses stay.
    pub(crate) fn move_to_memory(self) -> io::Result<()> {
        // SAFETY: as in `move_to_file`.
        unsafe {
            let flags = MapFlags::PRIVATE | MapFlags::FIXED;
            mmap_anonymous(self.base(), REGION_BYTES, protection(), flags)?;
        }
        Ok(())
    }

    fn base(self) -> *mut c_void {
        self.0.as_ptr().cast_mut().cast()
    }
}

fn protection() -> ProtFlags {
    ProtFlags::READ | ProtFlags::WRITE
}

/// The cells of a file of another process, mapped to read them.
#[derive(Debug)]
pub(crate) struct MappedFile {
    base: *mut c_void,
    bytes: usize,
}

impl MappedFile {
    /// Maps the whole cells of a file.
    pub(crate) fn new(file: &File) -> io::Result<Self> {
        let bytes = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX) / CELL_BYTES * CELL_BYTES;
        if bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // SAFETY: the kernel chooses the address; `drop` unmaps it. The owner of the file never shortens it.
        let base = unsafe { mmap(ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, file, 0)? };
        Ok(Self { base, bytes })
    }

    pub(crate) fn cells(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is aligned to a page, has this length and lives as long as `self`. Cells are only loaded,
        // which is permitted in read-only memory.
        unsafe { slice::from_raw_parts(self.base.cast::<AtomicU64>(), self.bytes / CELL_BYTES) }
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: `new` mapped this range, and borrows of it have ended. It can fail for no valid range.
        let _ = unsafe { munmap(self.base, self.bytes) };
    }
}
