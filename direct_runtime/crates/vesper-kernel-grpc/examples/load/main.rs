//! Load for `make bench-kernel`: many unary calls at once over several connections, by one thread each.
//!
//! load ADDRESS CONNECTIONS `CALLS_AT_ONCE` WARM SECONDS   a mixture: create, get, record usage, count
//! load ADDRESS CONNECTIONS `CALLS_AT_ONCE` create COUNT   so many processes
//!
//! The last line is JSON. A call that fails ends the load with an error.

mod http2;

use std::collections::HashMap;
use std::fmt::Display;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use http2::Connection;
use prost::Message as _;
use vesper_kernel::proto::v1;

/// Makes names of requests unique among all loads of a server.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

#[derive(Clone, Copy, PartialEq)]
enum Step {
    Create,
    Get,
    Record,
    Count,
}

impl Step {
    fn path(self) -> &'static str {
        match self {
            Self::Create => "/vesper.kernel.v1.KernelService/CreateProcess",
            Self::Get => "/vesper.kernel.v1.KernelService/GetProcess",
            Self::Record => "/vesper.kernel.v1.KernelService/RecordUsage",
            Self::Count => "/vesper.kernel.v1.KernelService/GetProcessCounts",
        }
    }

    fn next(self) -> Self {
        match self {
            Self::Create => Self::Get,
            Self::Get => Self::Record,
            Self::Record => Self::Count,
            Self::Count => Self::Create,
        }
    }

    fn request(self, pid: &str) -> Vec<u8> {
        let pid = pid.to_owned();
        match self {
            Self::Create => creation().encode_to_vec(),
            Self::Get => v1::GetProcessRequest { pid }.encode_to_vec(),
            Self::Record => {
                let usage = v1::Usage {
                    llm_calls: 1,
                    tokens_in: 1_200,
                    tokens_out: 300,
                    ..v1::Usage::default()
                };
                v1::RecordUsageRequest {
                    pid,
                    usage: Some(usage),
                }
                .encode_to_vec()
            }
            Self::Count => v1::GetProcessCountsRequest {}.encode_to_vec(),
        }
    }
}

fn creation() -> v1::CreateProcessRequest {
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    let quota = v1::Quota {
        max_llm_calls: Some(100),
        max_tool_calls: Some(100),
        max_tokens_out: Some(1_000_000),
        ..v1::Quota::default()
    };
    v1::CreateProcessRequest {
        request_id: format!("request-{}-{number}", std::process::id()),
        user_id: format!("user-{}", number % 1_000),
        session_id: format!("session-{}", number / 10),
        quota: Some(quota),
        ..v1::CreateProcessRequest::default()
    }
}

/// When a load ends, and which of its calls count.
struct Plan {
    is_mixture: bool,
    from: Instant,
    until: Instant,
    left: AtomicI64,
}

impl Plan {
    fn has_more(&self, now: Instant) -> bool {
        now < self.until && (self.is_mixture || self.left.fetch_sub(1, Ordering::Relaxed) > 0)
    }
}

/// One call after the other.
struct Lane {
    step: Step,
    pid: String,
    sent: Instant,
}

/// Returns the times of the calls of one connection.
fn run(address: &str, at_once: usize, plan: &Plan) -> Result<Vec<Duration>, String> {
    let text = |error: &dyn Display| format!("{address}: {error}");
    let mut connection = Connection::open(address).map_err(|error| text(&error))?;
    let mut lanes: HashMap<u32, Lane> = HashMap::new();
    let begun = Instant::now();
    let new = || Lane {
        step: Step::Create,
        pid: String::new(),
        sent: begun,
    };
    let mut waiting: Vec<Lane> = (0..at_once).map(|_| new()).collect();
    let mut times = Vec::new();
    loop {
        let now = Instant::now();
        while let Some(mut lane) = waiting.pop() {
            if !plan.has_more(now) {
                continue;
            }
            let message = lane.step.request(&lane.pid);
            if !connection.has_room(message.len()) {
                waiting.push(lane);
                break;
            }
            lane.sent = now;
            lanes.insert(connection.call(lane.step.path(), &message), lane);
        }
        if lanes.is_empty() {
            return Ok(times);
        }
        let answers = connection.exchange().map_err(|error| text(&error))?;
        let now = Instant::now();
        for (stream, message) in answers {
            let Some(mut lane) = lanes.remove(&stream) else {
                continue;
            };
            let message = message.ok_or_else(|| text(&format!("{} failed", lane.step.path())))?;
            if lane.step == Step::Create {
                let created = v1::CreateProcessResponse::decode(message.as_slice());
                let process = created.map_err(|error| text(&error))?.process;
                lane.pid = process.ok_or_else(|| text(&"no process"))?.pid;
            }
            if plan.from <= lane.sent && now <= plan.until {
                times.push(now - lane.sent);
            }
            if plan.is_mixture {
                lane.step = lane.step.next();
            }
            waiting.push(lane);
        }
    }
}

fn number<T: std::str::FromStr>(text: Option<&String>) -> Result<T, String> {
    let read = text.and_then(|text| text.parse().ok());
    read.ok_or_else(|| "load ADDRESS CONNECTIONS CALLS_AT_ONCE (WARM SECONDS | create COUNT)".to_owned())
}

fn load() -> Result<String, String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let address: String = number(arguments.first())?;
    let connections: usize = number(arguments.get(1))?;
    let at_once: usize = number(arguments.get(2))?;
    let is_mixture = arguments.get(3).is_some_and(|word| word != "create");
    let begun = Instant::now();
    let (warm, seconds, count) = if is_mixture {
        (number(arguments.get(3))?, number(arguments.get(4))?, 0)
    } else {
        (0.0, 3_600.0, number(arguments.get(4))?)
    };
    let from = begun + Duration::from_secs_f64(warm);
    let plan = Arc::new(Plan {
        is_mixture,
        from,
        until: from + Duration::from_secs_f64(seconds),
        left: AtomicI64::new(count),
    });
    let threads: Vec<_> = (0..connections)
        .map(|_| {
            let (address, plan) = (address.clone(), Arc::clone(&plan));
            thread::spawn(move || run(&address, at_once, &plan))
        })
        .collect();
    let mut times = Vec::new();
    for thread in threads {
        times.extend(thread.join().map_err(|_| "a thread panicked".to_owned())??);
    }
    times.sort_unstable();
    let place = |part: usize| times.get(times.len() * part / 100).map_or(0, Duration::as_micros);
    let measured = if is_mixture {
        seconds
    } else {
        begun.elapsed().as_secs_f64()
    };
    let count = times.len();
    Ok(format!(
        "{{\"rpcs\": {count}, \"seconds\": {measured:.3}, \"p50_us\": {}, \"p99_us\": {}}}",
        place(50),
        place(99)
    ))
}

fn main() -> ExitCode {
    let (text, code) = match load() {
        Ok(line) => (line, ExitCode::SUCCESS),
        Err(problem) => (format!("load: {problem}"), ExitCode::FAILURE),
    };
    // Where standard output is closed, only the exit code remains.
    let _ = writeln!(std::io::stdout(), "{text}");
    code
}
