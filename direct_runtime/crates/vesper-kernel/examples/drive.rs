//! Drives the machines by records on standard input, and writes what is observed after each.
//!
//! `tests/proofs/machines/records.py` describes the records, and compares the observations with those of a reference.
//! A batch of records is answered as a whole; each has its length before it.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};

use prost::Message;
use vesper_kernel::ids::Pid;
use vesper_kernel::kernel::{Command, Event, Kernel, Moment};
use vesper_kernel::proto::log::v1::{self as log, change::Change};
use vesper_kernel::proto::v1;
use vesper_kernel::refusal::{Code, Refusal};
use vesper_kernel::settings::{RateLimit, Settings};

type Failure = Box<dyn std::error::Error>;

const CHANGED: u8 = 0;
const UNCHANGED: u8 = 1;
const REFUSED: u8 = 10;

/// Reads numbers and texts from a batch.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, size: usize) -> Result<&'a [u8], Failure> {
        let (head, rest) = self.0.split_at_checked(size).ok_or("a record is cut off")?;
        self.0 = rest;
        Ok(head)
    }

    fn byte(&mut self) -> Result<u8, Failure> {
        Ok(self.take(1)?.first().copied().ok_or("no byte")?)
    }

    fn i64(&mut self) -> Result<i64, Failure> {
        Ok(i64::from_le_bytes(self.take(8)?.try_into()?))
    }

    fn chunk(&mut self) -> Result<&'a [u8], Failure> {
        let size = u32::from_le_bytes(self.take(4)?.try_into()?);
        self.take(usize::try_from(size)?)
    }
}

fn put(out: &mut Vec<u8>, text: &[u8]) {
    put_count(out, text.len());
    out.extend_from_slice(text);
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
}

fn settings(text: &[u8]) -> Result<Settings, Failure> {
    let mut reader = Reader(text);
    let mut next = || -> Result<Option<i64>, Failure> { Ok(Some(reader.i64()?).filter(|value| *value >= 0)) };
    let default_quota = v1::Quota {
        max_llm_calls: next()?,
        max_tool_calls: next()?,
        max_agent_hops: next()?,
        max_iterations: next()?,
        max_tokens_in: next()?,
        max_tokens_out: next()?,
        timeout_us: next()?,
    };
    let mut limit = || -> Result<Option<u32>, Failure> { Ok(next()?.map(u32::try_from).transpose()?) };
    let rate_limit = RateLimit {
        burst: limit()?,
        per_minute: limit()?,
        per_hour: limit()?,
    };
    Ok(Settings {
        default_quota,
        rate_limit,
        retention_us: next()?.ok_or("no retention")?,
    })
}

/// What a record was answered.
struct Answered {
    code: u8,
    answer: Vec<u8>,
}

fn answered(code: u8, answer: &impl Message) -> Answered {
    Answered {
        code,
        answer: answer.encode_to_vec(),
    }
}

fn refused(refusal: &Refusal) -> Answered {
    let place = match refusal.code {
        Code::InvalidArgument => 0,
        Code::NotFound => 1,
        Code::AlreadyExists => 2,
        Code::FailedPrecondition => 3,
        Code::ResourceExhausted => 4,
        Code::Aborted => 5,
        Code::OutOfRange => 6,
        Code::Unavailable => 7,
        Code::DeadlineExceeded => 8,
    };
    Answered {
        code: REFUSED + place,
        answer: Vec::new(),
    }
}

/// One kernel with what was last observed of it.
struct World {
    kernel: Kernel,
    sequence: u64,
    known: BTreeMap<String, Vec<u8>>,
}

impl World {
    fn new(settings: Settings) -> Self {
        Self {
            kernel: Kernel::new(settings),
            sequence: 0,
            known: BTreeMap::new(),
        }
    }

    fn perform<C: Command, M: Message>(
        &mut self,
        command: C,
        now_us: i64,
        message: impl FnOnce(C::Answer) -> M,
    ) -> Answered {
        let sequence = self.sequence + 1;
        match self.kernel.perform(command, Moment { sequence, now_us }) {
            Err(refusal) => refused(&refusal),
            Ok((answer, change)) => {
                let code = if change.is_some() { CHANGED } else { UNCHANGED };
                self.sequence += u64::from(change.is_some());
                answered(code, &message(answer))
            }
        }
    }

    fn change(&mut self, change: Change, now_us: i64) -> Answered {
        match change {
            Change::CreateProcess(each) => self.perform(each, now_us, |answer| answer),
            Change::Submit(each) => self.perform(each, now_us, |answer| answer),
            Change::ScheduleProcess(each) => self.perform(each, now_us, |answer| answer),
            Change::TakeRunnable(each) => {
                self.perform(each, now_us, |process| v1::GetNextRunnableResponse { process })
            }
            Change::TransitionState(each) => self.perform(each, now_us, |answer| answer),
            Change::TerminateProcess(each) => self.perform(each, now_us, |answer| answer),
            Change::RecordUsage(each) => self.perform(each, now_us, |answer| answer),
            Change::RecordRequest(each) => self.perform(each, now_us, |answer| answer),
            Change::RenewLease(each) => self.perform(each, now_us, |lease_until_us| v1::RenewLeaseResponse {
                lease_until_us,
            }),
            Change::CreateInterrupt(each) => self.perform(each, now_us, |answer| answer),
            Change::ResolveInterrupt(each) => self.perform(each, now_us, |answer| answer),
            Change::CancelInterrupt(each) => self.perform(each, now_us, |answer| answer),
            Change::RegisterService(each) => self.perform(each, now_us, |answer| answer),
            Change::UnregisterService(each) => self.perform(each, now_us, |()| ()),
            Change::UpdateHealth(each) => self.perform(each, now_us, |answer| answer),
            Change::InitializeSession(each) => self.perform(each, now_us, |answer| answer),
            Change::ExecutePipeline(each) => {
                self.perform(each, now_us, |pid| v1::GetProcessRequest { pid: pid.to_string() })
            }
            Change::TakeStep(each) => self.perform(each, now_us, |answer| answer),
            Change::ReportResult(each) => self.perform(each, now_us, |answer| answer),
            Change::TerminateSession(each) => self.perform(each, now_us, |answer| answer),
            Change::CleanupSession(each) => self.perform(each, now_us, |()| ()),
            Change::CreateEnvelope(each) => self.perform(each, now_us, |answer| answer),
            Change::UpdateEnvelope(each) => self.perform(each, now_us, |answer| answer),
            Change::CloneEnvelope(each) => self.perform(each, now_us, |answer| answer),
            Change::Cleanup(each) => self.perform(each, now_us, |answer| answer),
            Change::WorkerTakes(each) => self.perform(each, now_us, |step| v1::WorkResponse {
                work_id: String::new(),
                work: step.map(v1::work_response::Work::Step),
            }),
            Change::WorkerEnds(each) => self.perform(each, now_us, |()| ()),
            Change::WorkerRenews(each) => self.perform(each, now_us, |()| ()),
        }
    }

    /// Answers a query, numbered as `QUERIES` of the reference are.
    fn query(&self, number: u8, body: &[u8], now_us: i64) -> Result<Answered, Failure> {
        fn said<M: Message>(found: Result<M, Refusal>) -> Answered {
            found.map_or_else(|refusal| refused(&refusal), |answer| answered(UNCHANGED, &answer))
        }
        let kernel = &self.kernel;
        let text = std::str::from_utf8(body).unwrap_or_default();
        Ok(match number {
            0 => said(kernel.check_quota(text, now_us)),
            1 => said(kernel.request_status(text, now_us)),
            2 => said(kernel.check_bounds(text, now_us)),
            3 => said(kernel.list_processes(&v1::ListProcessesRequest::decode(body)?)),
            4 => said(kernel.list_interrupts(&v1::ListInterruptsRequest::decode(body)?)),
            5 => said(kernel.list_services(&v1::ListServicesRequest::decode(body)?)),
            6 => answered(UNCHANGED, &kernel.registry().stats()),
            7 => said(
                kernel
                    .registry()
                    .reason_against(text)
                    .map(|why| v1::CanAcceptResponse {
                        can_accept: why.is_none(),
                        reason: String::new(),
                    }),
            ),
            8 => said(kernel.session_state(text)),
            9 => said(kernel.get_interrupt(text)),
            10 => said(kernel.envelope(text)),
            _ => return Err(format!("there is no query {number}").into()),
        })
    }

    fn slot(&mut self, is_taken: bool, service: &str) -> Answered {
        let registry = self.kernel.registry_mut();
        let found = if is_taken {
            registry.acquire(service)
        } else {
            registry.release(service)
        };
        found.map_or_else(|refusal| refused(&refusal), |info| answered(UNCHANGED, info))
    }

    /// Returns what can be seen of each entity.
    fn entities(&self) -> Result<BTreeMap<String, Vec<u8>>, Failure> {
        let mut found = BTreeMap::new();
        for part in self.kernel.snapshot() {
            for process in part.processes {
                let seen = self.kernel.process_message(Pid::read(&process.pid)?)?;
                found.insert(process.pid, seen.encode_to_vec());
            }
            if !part.ready_pids.is_empty() {
                found.insert("ready".to_owned(), part.ready_pids.join(" ").into_bytes());
            }
            for interrupt in part.interrupts {
                let text = interrupt.encode_to_vec();
                found.insert(interrupt.interrupt_id, text);
            }
            for service in part.services {
                found.insert(format!("svc:{}", service.name), service.encode_to_vec());
            }
            for session in part.sessions {
                let key = format!("s:{}", session.pid);
                let seen = log::SessionSnapshot {
                    pipeline: None,
                    ..session
                };
                found.insert(key, seen.encode_to_vec());
            }
            for envelope in part.envelopes {
                let text = envelope.encode_to_vec();
                found.insert(envelope.envelope_id, text);
            }
        }
        Ok(found)
    }

    fn observe(&mut self, done: &Answered, now_us: i64) -> Result<Vec<u8>, Failure> {
        let mut out = vec![done.code];
        put(&mut out, &done.answer);
        let events = self.kernel.take_events();
        put_count(&mut out, events.len());
        for event in events {
            let (kind, text) = match event {
                Event::Kernel(event) => (b'K', event.encode_to_vec()),
                Event::Pipeline(event) => (b'P', event.encode_to_vec()),
            };
            out.push(kind);
            put(&mut out, &text);
        }
        put(&mut out, &self.kernel.system_status(now_us).encode_to_vec());
        out.push(u8::from(self.kernel.is_due(now_us)));
        let found = self.entities()?;
        let mut rows: BTreeMap<&str, &[u8]> = BTreeMap::new();
        for key in self.known.keys().filter(|key| !found.contains_key(*key)) {
            rows.insert(key, &[]);
        }
        for (key, text) in &found {
            if self.known.get(key) != Some(text) {
                rows.insert(key, text);
            }
        }
        put_count(&mut out, rows.len());
        for (key, text) in rows {
            put(&mut out, key.as_bytes());
            put(&mut out, text);
        }
        self.known = found;
        Ok(out)
    }
}

/// Performs the records of a batch, and returns their observations.
fn perform(batch: &[u8], world: &mut World) -> Result<Vec<u8>, Failure> {
    let mut reader = Reader(batch);
    let mut out = Vec::new();
    while !reader.0.is_empty() {
        let kind = reader.byte()?;
        let mut record = Reader(reader.chunk()?);
        let (done, now_us) = match kind {
            b'R' => {
                *world = World::new(settings(record.0)?);
                continue;
            }
            b'C' => {
                let change = log::Change::decode(record.0)?;
                let now_us = change.at_us;
                let change = change.change.ok_or("a change of no kind")?;
                (world.change(change, now_us), now_us)
            }
            b'A' | b'L' => {
                let now_us = record.i64()?;
                (world.slot(kind == b'A', std::str::from_utf8(record.0)?), now_us)
            }
            b'Q' => {
                let now_us = record.i64()?;
                let number = record.byte()?;
                (world.query(number, record.0, now_us)?, now_us)
            }
            other => return Err(format!("there is no record {other}").into()),
        };
        put(&mut out, &world.observe(&done, now_us)?);
    }
    Ok(out)
}

fn main() -> Result<(), Failure> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let mut world = World::new(Settings::default());
    let mut size = [0_u8; 4];
    loop {
        match input.read_exact(&mut size) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            read => read?,
        }
        let mut batch = vec![0; usize::try_from(u32::from_le_bytes(size))?];
        input.read_exact(&mut batch)?;
        let out = perform(&batch, &mut world)?;
        output.write_all(&u32::try_from(out.len())?.to_le_bytes())?;
        output.write_all(&out)?;
        output.flush()?;
    }
}
