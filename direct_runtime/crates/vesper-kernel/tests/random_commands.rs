//! Random commands: what the log holds gives the same state again, and a refused command changes nothing.

use prost::Message as _;
use vesper_kernel::kernel::{Command, Kernel, Moment, replay};
use vesper_kernel::proto::log::v1 as log;
use vesper_kernel::proto::v1::{self, ProcessState};
use vesper_kernel::settings::{HOUR_US, RateLimit, SECOND_US, Settings};

/// A generator of numbers (splitmix64), so that a seed repeats its commands.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn number(&mut self, bound: i32) -> i32 {
        i32::try_from(self.below(u64::from(bound.unsigned_abs()))).unwrap_or(0)
    }
}

fn settings() -> Settings {
    Settings {
        rate_limit: RateLimit {
            burst: Some(3),
            per_minute: Some(20),
            per_hour: Some(200),
        },
        retention_us: HOUR_US,
        ..Settings::default()
    }
}

fn state_of(kernel: &Kernel) -> Vec<Vec<u8>> {
    kernel
        .snapshot()
        .iter()
        .map(prost::Message::encode_to_vec)
        .collect()
}

struct World {
    kernel: Kernel,
    sequence: u64,
    now_us: i64,
    changes: Vec<(u64, log::Change)>,
    accepted: u64,
    refused: u64,
}

impl World {
    fn new() -> Self {
        Self {
            kernel: Kernel::new(settings()),
            sequence: 0,
            now_us: 1_000_000_000,
            changes: Vec::new(),
            accepted: 0,
            refused: 0,
        }
    }

    fn perform<C: Command>(&mut self, command: C) -> Option<C::Answer> {
        let before = state_of(&self.kernel);
        let moment = Moment {
            sequence: self.sequence + 1,
            now_us: self.now_us,
        };
        match self.kernel.perform(command, moment) {
            Ok((answer, Some(change))) => {
                self.sequence += 1;
                self.accepted += 1;
                self.changes.push((self.sequence, change));
                Some(answer)
            }
            Ok((answer, None)) => {
                assert_eq!(
                    before,
                    state_of(&self.kernel),
                    "an unchanged command changed the state"
                );
                Some(answer)
            }
            Err(_) => {
                self.refused += 1;
                assert_eq!(
                    before,
                    state_of(&self.kernel),
                    "a refused command changed the state"
                );
                None
            }
        }
    }

    #[expect(clippy::too_many_lines, reason = "a table of commands")]
    fn step(&mut self, random: &mut Random) {
        self.now_us += i64::try_from(random.below(20)).unwrap_or(0) * SECOND_US;
        let pid = format!("p{}", 1 + random.below(self.sequence.max(1)));
        let worker = format!("worker{}", random.below(3));
        match random.below(22) {
            0 | 1 => drop(self.perform(v1::CreateProcessRequest {
                user_id: format!("user{}", random.below(3)),
                priority: random.number(6),
                quota: (random.below(2) == 0).then(|| v1::Quota {
                    max_tool_calls: Some(3),
                    max_iterations: Some(6),
                    timeout_us: Some(300 * SECOND_US),
                    ..v1::Quota::default()
                }),
                ..v1::CreateProcessRequest::default()
            })),
            2 => drop(self.perform(v1::SubmitRequest {
                process: Some(v1::CreateProcessRequest {
                    user_id: format!("user{}", random.below(3)),
                    request_id: format!("request{}", random.below(50)),
                    ..v1::CreateProcessRequest::default()
                }),
            })),
            3 => drop(self.perform(v1::ScheduleProcessRequest { pid })),
            4 => {
                let taken = self.perform(v1::GetNextRunnableRequest { worker, lease_us: 0 });
                if let Some(Some(process)) = taken
                    && random.below(3) == 0
                {
                    drop(self.perform(v1::TransitionStateRequest {
                        pid: process.pid,
                        state: ProcessState::Blocked.into(),
                        ..v1::TransitionStateRequest::default()
                    }));
                }
            }
            5 | 6 => drop(self.perform(v1::TransitionStateRequest {
                pid,
                state: random.number(9),
                terminal_reason: random.number(3),
                message: String::new(),
            })),
            7 => drop(self.perform(v1::TerminateProcessRequest {
                pid,
                ..v1::TerminateProcessRequest::default()
            })),
            8 => drop(self.perform(v1::RecordUsageRequest {
                pid,
                usage: Some(v1::Usage {
                    tool_calls: 1,
                    ..v1::Usage::default()
                }),
            })),
            9 => drop(self.perform(v1::CheckRateLimitRequest {
                user_id: format!("user{}", random.below(3)),
                record: random.below(2) == 0,
            })),
            10 => drop(self.perform(v1::RenewLeaseRequest {
                pid,
                worker,
                lease_us: 0,
            })),
            11 => drop(self.perform(v1::CreateInterruptRequest {
                pid,
                kind: random.number(9),
                message: "Go on?".to_owned(),
                ..v1::CreateInterruptRequest::default()
            })),
            12 => {
                let interrupt_id = format!("i{}", 1 + random.below(self.sequence.max(1)));
                let response = v1::InterruptResponse {
                    value_json: "true".to_owned(),
                    by: "ada".to_owned(),
                };
                let response = (random.below(3) > 0).then_some(response);
                drop(self.perform(v1::ResolveInterruptRequest {
                    interrupt_id,
                    response,
                }));
            }
            13 => {
                let interrupt_id = format!("i{}", 1 + random.below(self.sequence.max(1)));
                drop(self.perform(v1::CancelInterruptRequest {
                    interrupt_id,
                    by: String::new(),
                }));
            }
            14 => drop(self.perform(v1::InitializeSessionRequest {
                pid,
                pipeline: Some(pipeline()),
                ..v1::InitializeSessionRequest::default()
            })),
            15 => drop(self.perform(v1::ExecutePipelineRequest {
                process: Some(v1::CreateProcessRequest::default()),
                pipeline: Some(pipeline()),
                ..v1::ExecutePipelineRequest::default()
            })),
            16 | 17 => {
                let taken = self.perform(log::WorkerTakes {
                    worker: worker.clone(),
                    service: "agents".to_owned(),
                    lease_us: 0,
                });
                if let Some(Some(instruction)) = taken {
                    self.report(random, instruction, worker);
                }
            }
            18 => {
                let request = v1::GetNextInstructionRequest {
                    pid,
                    worker: worker.clone(),
                    lease_us: 0,
                };
                if let Some(instruction) = self.perform(request)
                    && instruction.kind() == v1::InstructionKind::RunAgent
                {
                    self.report(random, instruction, worker);
                }
            }
            19 => drop(self.perform(log::WorkerEnds { worker })),
            20 => drop(self.perform(log::WorkerRenews { worker, lease_us: 0 })),
            _ => {
                self.now_us += i64::try_from(random.below(3_000)).unwrap_or(0) * SECOND_US;
                let _: Option<v1::CleanupResponse> = self.perform(v1::CleanupRequest {});
            }
        }
    }

    fn report(&mut self, random: &mut Random, instruction: v1::Instruction, worker: String) {
        use v1::agent_execution_result::Outcome;
        let outcome = match random.below(8) {
            0 => Outcome::Failure(v1::AgentFailure {
                code: "broken".to_owned(),
                message: String::new(),
            }),
            1 => Outcome::Question(v1::AgentQuestion {
                kind: v1::InterruptKind::Confirmation.into(),
                message: "Send it?".to_owned(),
                ..v1::AgentQuestion::default()
            }),
            2 => return,
            _ => Outcome::OutputJson("{}".to_owned()),
        };
        let routes = instruction
            .agent_config
            .as_ref()
            .map_or(0, |agent| agent.routes.len());
        let route = random.below(u64::try_from(routes).unwrap_or(0) + 1);
        let result = v1::AgentExecutionResult {
            step_id: instruction.step_id,
            outcome: Some(outcome),
            ..v1::AgentExecutionResult::default()
        };
        let request = v1::ReportAgentResultRequest {
            pid: instruction.pid,
            worker,
            result: Some(result),
        };
        drop(
            self.perform(log::RoutedResult {
                request: Some(request),
                route: i32::try_from(route)
                    .ok()
                    .filter(|route| usize::try_from(*route).is_ok_and(|route| route < routes)),
                routing_error: String::new(),
            }),
        );
    }
}

fn stage(name: &str, routes: Vec<v1::RoutingRule>, on_error: &str) -> v1::AgentConfig {
    v1::AgentConfig {
        name: name.to_owned(),
        agent: name.to_owned(),
        service: "agents".to_owned(),
        routes,
        on_error: on_error.to_owned(),
        timeout_us: Some(100 * SECOND_US),
        ..v1::AgentConfig::default()
    }
}

fn to(targets: &[&str], join: &str) -> v1::RoutingRule {
    v1::RoutingRule {
        targets: targets.iter().map(|&target| target.to_owned()).collect(),
        join: join.to_owned(),
        ..v1::RoutingRule::default()
    }
}

fn pipeline() -> v1::PipelineConfig {
    v1::PipelineConfig {
        name: "review".to_owned(),
        agents: vec![
            stage(
                "read",
                vec![to(&["law", "price"], "merge"), to(&["merge"], ""), to(&[], "")],
                "",
            ),
            stage("law", vec![to(&["merge"], ""), to(&["price"], "")], "merge"),
            stage(
                "price",
                vec![to(&["merge"], ""), to(&["law", "read"], "merge")],
                "",
            ),
            stage("merge", vec![to(&["read"], "")], "read"),
        ],
        edge_limits: vec![v1::EdgeLimit {
            from: "merge".to_owned(),
            to: "read".to_owned(),
            max_traversals: 2,
        }],
    }
}

#[test]
fn the_log_and_the_snapshot_give_the_state_again() {
    let mut states = std::collections::BTreeSet::new();
    let (mut accepted, mut refused) = (0, 0);
    for seed in 0..5 {
        let mut random = Random(seed);
        let mut world = World::new();
        for _ in 0..200 {
            world.step(&mut random);
            states.extend(world.kernel.process_counts().by_state.into_keys());
        }
        let expected = state_of(&world.kernel);

        let mut again = Kernel::new(settings());
        for (sequence, change) in &world.changes {
            let bytes = change.encode_to_vec();
            let change = log::Change::decode(bytes.as_slice()).ok();
            let moment = Moment {
                sequence: *sequence,
                now_us: change.as_ref().map_or(0, |change| change.at_us),
            };
            let change = change.and_then(|change| change.change);
            let replayed = change.map(|change| replay(&mut again, &change, moment));
            assert_eq!(replayed, Some(Ok(())), "seed {seed}, change {sequence}");
        }
        assert_eq!(state_of(&again), expected, "seed {seed}: replayed");

        let mut restored = Kernel::new(settings());
        for part in world.kernel.snapshot() {
            assert_eq!(restored.restore(part), Some(()), "seed {seed}");
        }
        assert_eq!(state_of(&restored), expected, "seed {seed}: restored");
        // Both go on alike.
        let mut other = World {
            kernel: restored,
            ..World::new()
        };
        (other.sequence, other.now_us) = (world.sequence, world.now_us);
        let (mut left, mut right) = (Random(seed + 1_000), Random(seed + 1_000));
        for _ in 0..60 {
            world.step(&mut left);
            other.step(&mut right);
        }
        assert_eq!(
            state_of(&other.kernel),
            state_of(&world.kernel),
            "seed {seed}: continued"
        );

        (accepted, refused) = (accepted + world.accepted, refused + world.refused);
    }
    assert!(
        accepted > 500 && refused > 300,
        "{accepted} accepted, {refused} refused"
    );
    let all = [
        ProcessState::New,
        ProcessState::Ready,
        ProcessState::Running,
        ProcessState::Waiting,
        ProcessState::Blocked,
        ProcessState::Terminated,
        ProcessState::Zombie,
    ];
    let names: Vec<&str> = all
        .into_iter()
        .map(vesper_kernel::machines::processes::state_name)
        .collect();
    let unseen: Vec<_> = names.into_iter().filter(|name| !states.contains(*name)).collect();
    assert!(unseen.is_empty(), "no process is {unseen:?}");
}
