//! The runtime of a process: futures of callers, of workers, and interrupted waits.
#![allow(
    clippy::unnecessary_wraps,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and a check may fail"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::time::sleep;
use vesper_host::runtime::{NoRuntime, after_fork_in_parent, before_fork, block_on, blocking, spawn};

/// Error of a wait that a signal ends.
#[derive(Debug, PartialEq)]
enum Ended {
    Interrupted,
    NoRuntime,
}

impl From<NoRuntime> for Ended {
    fn from(_: NoRuntime) -> Self {
        Self::NoRuntime
    }
}

fn patient() -> Result<(), Ended> {
    Ok(())
}

#[test]
fn a_future_is_polled_on_the_thread_of_its_caller() {
    let caller = thread::current().id();
    let threads = block_on(
        async {
            let before = thread::current().id();
            sleep(Duration::from_millis(5)).await;
            [before, thread::current().id()]
        },
        patient,
    );
    assert_eq!(threads, Ok([caller, caller]));
}

#[test]
fn a_wait_is_interrupted() {
    let began = Instant::now();
    let mut checks = 0;
    let result = block_on(async { sleep(Duration::from_secs(30)).await }, || {
        checks += 1;
        if checks == 3 {
            Err(Ended::Interrupted)
        } else {
            Ok(())
        }
    });
    assert_eq!(result, Err(Ended::Interrupted));
    assert!(began.elapsed() >= Duration::from_millis(150));
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn an_effect_may_run_a_node() {
    let inner = || block_on(async { sleep(Duration::from_millis(2)).await }, patient);
    assert_eq!(block_on(async { inner() }, patient), Ok(Ok(())));
    assert_eq!(block_on(async { blocking(inner) }, patient), Ok(Ok(())));
    let (sender, receiver) = channel();
    spawn(async move { sender.send(blocking(inner)).unwrap() }).unwrap();
    assert_eq!(receiver.recv_timeout(Duration::from_secs(10)).unwrap(), Ok(()));
}

#[test]
fn ten_thousand_waits_need_no_thread_each() {
    let done = Arc::new(AtomicUsize::new(0));
    let (sender, receiver) = channel();
    for _ in 0..10_000 {
        let (done, sender) = (Arc::clone(&done), sender.clone());
        spawn(async move {
            sleep(Duration::from_millis(300)).await;
            if done.fetch_add(1, Ordering::Relaxed) + 1 == 10_000 {
                sender.send(()).unwrap();
            }
        })
        .unwrap();
    }
    receiver.recv_timeout(Duration::from_secs(30)).unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let threads = status
        .lines()
        .find_map(|line| line.strip_prefix("Threads:"))
        .unwrap();
    assert!(threads.trim().parse::<usize>().unwrap() < 50, "{threads}");
}

#[test]
fn workers_wait_while_an_effect_blocks() {
    let (release, held) = channel::<()>();
    let (sender, receiver) = channel();
    // More than there are workers.
    let held = Arc::new(Mutex::new(held));
    for _ in 0..8 {
        let (held, sender) = (Arc::clone(&held), sender.clone());
        spawn(async move {
            blocking(|| held.lock().unwrap().recv().unwrap());
            sender.send(()).unwrap();
        })
        .unwrap();
    }
    let began = Instant::now();
    block_on(async { sleep(Duration::from_millis(10)).await }, patient).unwrap();
    assert!(began.elapsed() < Duration::from_secs(5), "timers go on");
    for _ in 0..8 {
        release.send(()).unwrap();
        receiver.recv_timeout(Duration::from_secs(10)).unwrap();
    }
}

/// Held by tests that poll for long, and by those that wait for polls to end.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn computing_runs_hold_up_no_timer() {
    let _alone = alone();
    let (sender, receiver) = channel();
    // More than there are workers, and none says that it takes long.
    for _ in 0..8 {
        let sender = sender.clone();
        spawn(async move {
            thread::sleep(Duration::from_secs(1));
            sender.send(()).unwrap();
        })
        .unwrap();
    }
    thread::sleep(Duration::from_millis(50));
    let began = Instant::now();
    block_on(async { sleep(Duration::from_millis(10)).await }, patient).unwrap();
    assert!(
        began.elapsed() < Duration::from_millis(500),
        "{:?}",
        began.elapsed()
    );
    for _ in 0..8 {
        receiver.recv_timeout(Duration::from_secs(30)).unwrap();
    }
}

#[test]
fn a_fork_waits_for_polls_and_holds_up_others() {
    let _alone = alone();
    let (release, held) = channel::<()>();
    let (started, has_started) = channel();
    let polling = thread::spawn(move || {
        block_on(
            async move {
                started.send(()).unwrap();
                // An effect of the application does not hold up a fork.
                blocking(|| held.recv().unwrap());
                thread::sleep(Duration::from_millis(100));
            },
            patient,
        )
    });
    has_started.recv().unwrap();
    let began = Instant::now();
    before_fork();
    assert!(
        began.elapsed() < Duration::from_millis(900),
        "nothing is being polled"
    );
    release.send(()).unwrap();
    let other = thread::spawn(|| block_on(async { Instant::now() }, patient).unwrap());
    thread::sleep(Duration::from_millis(50));
    let forked = Instant::now();
    after_fork_in_parent();
    assert!(other.join().unwrap() >= forked, "it was polled after the fork");
    polling.join().unwrap().unwrap();
}

#[test]
fn a_run_may_fork() {
    let _alone = alone();
    let began = Instant::now();
    block_on(
        async {
            before_fork();
            after_fork_in_parent();
        },
        patient,
    )
    .unwrap();
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "it does not wait for itself"
    );
}
