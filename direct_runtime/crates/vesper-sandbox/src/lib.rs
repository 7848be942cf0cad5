//! Confines the calling process for good: readable files, no network, few system calls (docs/spec/sandbox.md).
//!
//! The system call filter is required. Landlock is a second layer: where the kernel lacks it, no file can be opened.

#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub use linux::confine;

/// Reports that this system has no sandbox.
#[cfg(not(target_os = "linux"))]
pub fn confine(_readable: &[std::path::PathBuf]) -> Result<Vec<String>, String> {
    Err("this system has no sandbox: it needs Linux with seccomp".to_owned())
}
