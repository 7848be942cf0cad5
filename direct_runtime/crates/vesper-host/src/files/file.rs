//! One file of a root, for one effect.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use vesper_interp::json::json_of_text;
use vesper_ir::limits::{BYTES_LENGTH, TEXT_LENGTH};
use vesper_ir::{Type, Value};

use crate::effect::Failure;
use crate::files::Root;
use crate::files::path::{OURS, REFUSED, parts};
use crate::messages::{grouped, reason, seconds, shown};
use crate::sources::{Sources, kill_point};

const CHUNK: usize = 1 << 20;
const LOCK_TIME: Duration = Duration::from_secs(30);
const LOCK_INTERVAL: Duration = Duration::from_millis(5);
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Opening a FIFO must not wait for its other end.
const ANY_FILE: OFlags = OFlags::NOFOLLOW
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);
const NEW_FILE: Mode = Mode::from_raw_mode(0o666);
const NEW_FOLDER: Mode = Mode::from_raw_mode(0o777);

pub(super) struct File<'a> {
    root: &'a Root,
    folders: Vec<&'a str>,
    name: &'a str,
    /// The file in messages.
    what: String,
    is_read: bool,
    timeout: Option<Duration>,
    began: Instant,
}

impl<'a> File<'a> {
    pub(super) fn new(
        root: &'a Root,
        path: &'a str,
        is_read: bool,
        timeout: Option<Duration>,
    ) -> Result<Self, Failure> {
        let mut folders = parts(path)?;
        let name = folders.pop().unwrap_or_default();
        Ok(Self {
            root,
            folders,
            name,
            what: format!("the file {} of `{}`", shown(path), root.name),
            is_read,
            timeout,
            began: Instant::now(),
        })
    }

    /// Reads the file as a value of this type.
    pub(super) fn read(&self, ty: &Type) -> Result<Value, Failure> {
        let folder = self.folder(false)?;
        let file = self.open(folder.as_fd(), OFlags::RDONLY)?;
        let content = self.content(file.as_fd())?;
        if matches!(ty, Type::Bytes) {
            return if content.len() > BYTES_LENGTH {
                Err(self.bad_response("is no bytes: out_of_range"))
            } else {
                Ok(Value::Bytes(Arc::from(content)))
            };
        }
        let text = String::from_utf8(content).map_err(|error| {
            let byte = grouped(error.utf8_error().valid_up_to() as u64);
            self.bad_response(&format!(
                "is no UTF-8: byte {byte}; `returns: bytes` reads it as it is"
            ))
        })?;
        if matches!(ty, Type::Json) {
            let json = json_of_text(&text);
            let json = json.map_err(|kind| self.bad_response(&format!("is no JSON: {}", kind.name())))?;
            return Ok(Value::Json(Arc::new(json)));
        }
        if text.chars().count() > TEXT_LENGTH {
            return Err(self.bad_response("is no string: out_of_range"));
        }
        Ok(Value::Text(Arc::from(text)))
    }

    /// Replaces the file; returns the number of bytes.
    pub(super) fn write(&self, content: &[u8], sources: &dyn Sources) -> Result<Value, Failure> {
        self.check_writable(content.len())?;
        let folder = self.folder(true)?;
        let folder = folder.as_fd();
        let mode = self.mode_of_old(folder)?;
        let mut random = [0; 8];
        let filled = sources.fill(&mut random);
        filled.map_err(|_| Failure::new("unavailable", "the operating system gives no random bytes"))?;
        let temporary = format!("{OURS}{:016x}.tmp", u64::from_be_bytes(random));
        let mut is_done = false;
        let written = self.replace(folder, &temporary, mode, content, &mut is_done);
        if let Err(error) = written {
            if !is_done {
                // The first error is the one to report.
                let _ = rustix::fs::unlinkat(folder, &*temporary, AtFlags::empty());
            }
            return Err(self.failed(error, is_done));
        }
        Ok(length(content))
    }

    fn replace(
        &self,
        folder: BorrowedFd<'_>,
        temporary: &str,
        mode: Option<Mode>,
        content: &[u8],
        is_done: &mut bool,
    ) -> Result<(), Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | ANY_FILE;
        let file = rustix::fs::openat(folder, temporary, flags, NEW_FILE)?;
        kill_point("file.created");
        if let Some(mode) = mode {
            rustix::fs::fchmod(&file, mode)?;
        }
        write_all(file.as_fd(), content)?;
        if self.root.is_synced {
            rustix::fs::fsync(&file)?;
        }
        drop(file);
        kill_point("file.written");
        rustix::fs::renameat(folder, temporary, folder, self.name)?;
        *is_done = true;
        kill_point("file.renamed");
        if self.root.is_synced {
            rustix::fs::fsync(folder)?;
        }
        Ok(())
    }

    /// Appends to the file, or creates it; returns the number of bytes.
    pub(super) async fn append(&self, content: &[u8]) -> Result<Value, Failure> {
        self.check_writable(content.len())?;
        let folder = self.folder(true)?;
        let is_new = self.stat(folder.as_fd())?.is_none();
        let file = self.open(folder.as_fd(), OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE)?;
        self.lock(file.as_fd()).await?;
        let before = rustix::fs::fstat(&file)
            .map_err(|error| self.failed(error, false))?
            .st_size;
        let before = u64::try_from(before).unwrap_or(0);
        if before + content.len() as u64 > self.root.max_bytes {
            let most = grouped(self.root.max_bytes);
            return Err(self.refused(&format!("would be over {most} bytes")));
        }
        if let Err(error) = write_all(file.as_fd(), content) {
            // The lock is ours, so everything after `before` is our half.
            let is_undone = rustix::fs::ftruncate(&file, before).is_ok();
            return Err(self.failed(error, !is_undone));
        }
        if self.root.is_synced {
            let mut synced = rustix::fs::fsync(&file);
            if is_new {
                synced = synced.and_then(|()| rustix::fs::fsync(&folder));
            }
            synced.map_err(|error| self.failed(error, true))?;
        }
        Ok(length(content))
    }

    // -- folders -------------------------------------------------------------------------------------

    /// Opens the folder of the file; creates missing ones where `makes` is true.
    fn folder(&self, makes: bool) -> Result<OwnedFd, Failure> {
        let opened = rustix::fs::openat(CWD, &self.root.path, FOLDER, Mode::empty());
        let mut folder = opened.map_err(|error| {
            let why = reason(&io::Error::from(error));
            Failure::new(
                "unavailable",
                format!("the folder of `{}` cannot be opened: {why}", self.root.name),
            )
        })?;
        for part in &self.folders {
            folder = self.inner(folder.as_fd(), part, makes)?;
        }
        Ok(folder)
    }

    fn inner(&self, folder: BorrowedFd<'_>, part: &str, makes: bool) -> Result<OwnedFd, Failure> {
        let open = || rustix::fs::openat(folder, part, FOLDER | OFlags::NOFOLLOW, Mode::empty());
        match open() {
            Ok(found) => return Ok(found),
            Err(Errno::NOENT) if makes => {}
            Err(error) => return Err(self.no_folder(error, folder, part)),
        }
        match rustix::fs::mkdirat(folder, part, NEW_FOLDER) {
            Ok(()) if self.root.is_synced => {
                rustix::fs::fsync(folder).map_err(|error| self.failed(error, false))?;
            }
            // Another process may create it meanwhile; opening it shows what it is.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(self.failed(error, false)),
        }
        open().map_err(|error| self.no_folder(error, folder, part))
    }

    fn no_folder(&self, error: Errno, folder: BorrowedFd<'_>, part: &str) -> Failure {
        if matches!(error, Errno::NOTDIR | Errno::LOOP) {
            let found = rustix::fs::statat(folder, part, AtFlags::SYMLINK_NOFOLLOW);
            if found.is_ok_and(|found| kind(&found) == FileType::Symlink) {
                let message = format!("{}: `{part}` is a link, and links are not followed", self.what);
                return Failure::new(REFUSED, message);
            }
            if !self.is_read {
                return Failure::new("unavailable", format!("{}: `{part}` is no folder", self.what));
            }
            return self.failed(Errno::NOTDIR, false);
        }
        self.failed(error, false)
    }

    // -- files ---------------------------------------------------------------------------------------

    /// Opens the file, which must be a regular one: nothing that waits, rings or runs is ever read or written.
    fn open(&self, folder: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, Failure> {
        if let Some(found) = self.stat(folder)? {
            // Opening some devices has an effect already.
            self.check_kind(&found)?;
        }
        let file = match rustix::fs::openat(folder, self.name, flags | ANY_FILE, NEW_FILE) {
            Ok(file) => file,
            // Exchanged after the check.
            Err(Errno::LOOP | Errno::NXIO | Errno::ISDIR) => return Err(self.refused("is no regular file")),
            Err(error) => return Err(self.failed(error, false)),
        };
        let found = rustix::fs::fstat(&file).map_err(|error| self.failed(error, false))?;
        self.check_kind(&found)?;
        Ok(file)
    }

    fn stat(&self, folder: BorrowedFd<'_>) -> Result<Option<Stat>, Failure> {
        match rustix::fs::statat(folder, self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.failed(error, false)),
        }
    }

    fn check_kind(&self, found: &Stat) -> Result<(), Failure> {
        match kind(found) {
            FileType::Symlink => Err(self.refused("is a link, and links are not followed")),
            FileType::Directory => Err(self.refused("is a folder")),
            FileType::RegularFile if found.st_nlink > 1 && !self.root.allows_hard_links => {
                Err(self.refused("has another name, perhaps outside; `hard_links = true` allows such files"))
            }
            FileType::RegularFile => Ok(()),
            _ => Err(self.refused("is no regular file")),
        }
    }

    /// Returns the permissions of the file that is replaced: its successor is no more readable than it was.
    fn mode_of_old(&self, folder: BorrowedFd<'_>) -> Result<Option<Mode>, Failure> {
        let Some(found) = self.stat(folder)? else {
            return Ok(None);
        };
        self.check_kind(&found)?;
        Ok(Some(Mode::from_raw_mode(found.st_mode & 0o777)))
    }

    fn content(&self, file: BorrowedFd<'_>) -> Result<Vec<u8>, Failure> {
        let most = usize::try_from(self.root.max_bytes).unwrap_or(usize::MAX);
        let mut content = Vec::new();
        let mut chunk = vec![0; CHUNK.min(most.saturating_add(1))];
        loop {
            self.check_time()?;
            let count = rustix::io::read(file, &mut chunk).map_err(|error| self.failed(error, false))?;
            if count == 0 {
                return Ok(content);
            }
            content.extend_from_slice(chunk.get(..count).unwrap_or_default());
            if content.len() > most {
                let most = grouped(self.root.max_bytes);
                return Err(self.bad_response(&format!("is over `max_bytes`, {most} bytes")));
            }
        }
    }

    fn check_writable(&self, size: usize) -> Result<(), Failure> {
        if self.root.is_read_only {
            return Err(Failure::new(
                REFUSED,
                format!("`{}` is read-only", self.root.name),
            ));
        }
        if size as u64 > self.root.max_bytes {
            let most = grouped(self.root.max_bytes);
            return Err(self.refused(&format!("would be over `max_bytes`, {most} bytes")));
        }
        Ok(())
    }

    /// Locks the file, so that two appends happen one after the other.
    async fn lock(&self, file: BorrowedFd<'_>) -> Result<(), Failure> {
        let began = Instant::now();
        loop {
            match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(()),
                Err(Errno::WOULDBLOCK) => {}
                Err(error) => return Err(self.failed(error, false)),
            }
            self.check_time()?;
            if began.elapsed() > LOCK_TIME {
                return Err(Failure::new(
                    "timeout",
                    format!("{} is locked by somebody else", self.what),
                ));
            }
            tokio::time::sleep(LOCK_INTERVAL).await;
        }
    }

    fn check_time(&self) -> Result<(), Failure> {
        match self.timeout {
            Some(timeout) if self.began.elapsed() > timeout => Err(Failure::new(
                "timeout",
                format!("{} took longer than {} s", self.what, seconds(timeout)),
            )),
            _ => Ok(()),
        }
    }

    // -- failures ------------------------------------------------------------------------------------

    fn refused(&self, why: &str) -> Failure {
        Failure::new(REFUSED, format!("{} {why}", self.what))
    }

    fn bad_response(&self, why: &str) -> Failure {
        Failure::new("bad_response", format!("{} {why}", self.what))
    }

    fn failed(&self, error: Errno, may_have_happened: bool) -> Failure {
        if self.is_read && matches!(error, Errno::NOENT | Errno::NOTDIR) {
            return Failure::new("not_found", format!("{} does not exist", self.what));
        }
        let why = reason(&io::Error::from(error));
        Failure {
            may_have_happened,
            ..Failure::new("unavailable", format!("{}: {why}", self.what))
        }
    }
}

fn kind(found: &Stat) -> FileType {
    FileType::from_raw_mode(found.st_mode)
}

fn write_all(file: BorrowedFd<'_>, content: &[u8]) -> Result<(), Errno> {
    let mut left = content;
    while !left.is_empty() {
        let count = rustix::io::write(file, left)?;
        left = left.get(count..).unwrap_or_default();
    }
    Ok(())
}

fn length(content: &[u8]) -> Value {
    Value::Integer(i64::try_from(content.len()).unwrap_or(i64::MAX))
}
