//! The tokio runtime of this process: made at first use, by each process for itself, because a fork copies no threads.
//!
//! A future of a synchronous caller is polled on the thread of the caller (`block_on`), one of `spawn` by a worker. Both
//! may compute and commit for long, so that a thread of its own drives timers and sockets.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, OnceLock};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

use crate::per_process::{self, PerProcess};

/// Time between two checks for signals while a caller waits.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Poll interval of a thread that waits for polls to end, or for a fork.
const QUIET_INTERVAL: Duration = Duration::from_micros(200);
/// Longest wait of a fork, and for one.
const FORK_PATIENCE: Duration = Duration::from_secs(1);
const MIN_WORKERS: usize = 2;
const MAX_WORKERS: usize = 4;

/// Failure of the operating system to start the threads of the runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoRuntime(pub String);

/// The threads of one process.
#[derive(Debug)]
struct Threads {
    workers: Runtime,
    /// The driver of timers and sockets.
    driver: Handle,
    /// Ends the thread of the driver when it is dropped.
    _end: oneshot::Sender<()>,
}

static THREADS: LazyLock<PerProcess<OnceLock<Threads>>> = LazyLock::new(PerProcess::default);
/// Number of futures that are being polled at this moment.
static POLLING: AtomicUsize = AtomicUsize::new(0);
/// Number of threads that are about to fork: no poll begins meanwhile.
static FORKING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The part of `POLLING` that this thread counts.
    static OWN: Cell<usize> = const { Cell::new(0) };
}

/// Counts a poll for as long as it lives. A lock that a child needs, too, is held only under one.
pub(crate) struct Polling;

impl Polling {
    pub(crate) fn new() -> Self {
        count_poll();
        Self
    }
}

impl Drop for Polling {
    fn drop(&mut self) {
        uncount_poll();
    }
}

fn count_poll() {
    POLLING.fetch_add(1, Ordering::SeqCst);
    // Inside another poll this thread holds up the fork already.
    if FORKING.load(Ordering::SeqCst) > 0 && OWN.get() == 0 {
        POLLING.fetch_sub(1, Ordering::SeqCst);
        wait_until(|| FORKING.load(Ordering::SeqCst) == 0);
        POLLING.fetch_add(1, Ordering::SeqCst);
    }
    OWN.set(OWN.get() + 1);
}

fn uncount_poll() {
    OWN.set(OWN.get().saturating_sub(1));
    POLLING.fetch_sub(1, Ordering::SeqCst);
}

/// Runs a future to its end on this thread. While it waits, `check` is called every 50 ms; an error of it drops the
/// future and is returned.
pub fn block_on<T, E: From<NoRuntime>>(
    future: impl Future<Output = T>,
    mut check: impl FnMut() -> Result<(), E>,
) -> Result<T, E> {
    let threads = current()?;
    let runtime = &threads.workers;
    let driven = async {
        let mut future = pin!(future);
        let mut timer = pin!(None);
        std::future::poll_fn(move |context| {
            let _driver = threads.driver.enter();
            let polling = Polling::new();
            if let Poll::Ready(value) = future.as_mut().poll(context) {
                return Poll::Ready(Ok(value));
            }
            drop(polling);
            loop {
                let Some(waiting) = timer.as_mut().as_pin_mut() else {
                    timer.set(Some(tokio::time::sleep(CHECK_INTERVAL)));
                    continue;
                };
                if waiting.poll(context).is_pending() {
                    return Poll::Pending;
                }
                if let Err(error) = check() {
                    return Poll::Ready(Err(error));
                }
                timer.set(None);
            }
        })
        .await
    };
    if Handle::try_current().is_ok() {
        // An effect of the application runs a node.
        tokio::task::block_in_place(|| runtime.block_on(driven))
    } else {
        runtime.block_on(driven)
    }
}

/// Runs a future on the workers of the runtime.
pub fn spawn(future: impl Future<Output = ()> + Send + 'static) -> Result<(), NoRuntime> {
    let threads = current()?;
    let mut future = Box::pin(future);
    threads.workers.spawn(std::future::poll_fn(move |context| {
        let _driver = threads.driver.enter();
        let _polling = Polling::new();
        future.as_mut().poll(context)
    }));
    Ok(())
}

/// Calls a function that may block for long, such as one of the application, without holding up other runs or a fork.
pub fn blocking<T>(function: impl FnOnce() -> T) -> T {
    let _paused = Paused::new();
    tokio::task::block_in_place(function)
}

/// Does not count the polls of this thread for as long as it lives.
struct Paused(usize);

impl Paused {
    fn new() -> Self {
        let own = OWN.replace(0);
        POLLING.fetch_sub(own, Ordering::SeqCst);
        Self(own)
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        for _ in 0..self.0 {
            count_poll();
        }
    }
}

/// Waits until no other thread polls a future, at most a second, and lets none begin until the fork is over. A fork copies
/// locks as they are, and a future that is not being polled holds none.
pub fn before_fork() {
    FORKING.fetch_add(1, Ordering::SeqCst);
    wait_until(|| POLLING.load(Ordering::SeqCst) <= OWN.get());
}

/// Waits for polls to end, or for a fork. Bounded: the other side may wait for a lock that this thread holds.
fn wait_until(is_over: impl Fn() -> bool) {
    let until = Instant::now() + FORK_PATIENCE;
    while !is_over() && Instant::now() < until {
        thread::sleep(QUIET_INTERVAL);
    }
}

/// Lets polls begin again.
pub fn after_fork_in_parent() {
    FORKING.fetch_sub(1, Ordering::SeqCst);
}

/// Lets a forked child make what belongs to a process. The runtime of the parent is leaked: its threads do not exist here.
pub fn after_fork_in_child() {
    per_process::after_fork_in_child();
    FORKING.store(0, Ordering::SeqCst);
    POLLING.store(OWN.get(), Ordering::SeqCst);
}

/// Returns the threads of this process.
fn current() -> Result<&'static Threads, NoRuntime> {
    let made = THREADS.get();
    loop {
        if let Some(threads) = made.get() {
            return Ok(threads);
        }
        let started = start().map_err(|error| {
            NoRuntime(format!(
                "the threads that wait for effects cannot be started: {error}"
            ))
        })?;
        // Where another thread was faster, its threads are used and these end.
        if let Err(late) = made.set(started) {
            late.workers.shutdown_background();
        }
    }
}

fn start() -> io::Result<Threads> {
    let count = thread::available_parallelism().map_or(MIN_WORKERS, usize::from);
    let workers = Builder::new_multi_thread()
        .worker_threads(count.clamp(MIN_WORKERS, MAX_WORKERS))
        .thread_name("vesper-runtime")
        .build()?;
    let driver = Builder::new_current_thread().enable_all().build()?;
    let handle = driver.handle().clone();
    let named = thread::Builder::new().name(String::from("vesper-driver"));
    let (end, ended) = oneshot::channel();
    named.spawn(move || driver.block_on(ended))?;
    Ok(Threads {
        workers,
        driver: handle,
        _end: end,
    })
}
