//! The machines one by one, against their tables and against plain models.

use std::sync::Arc;

use vesper_kernel::ids::Pid;
use vesper_kernel::machines::bus::{Address, Bus};
use vesper_kernel::machines::interrupts::InterruptConfig;
use vesper_kernel::machines::processes::{End, NewProcess, Processes, State, successors};
use vesper_kernel::machines::rate_limits::{RateLimits, Verdict};
use vesper_kernel::machines::registry::Registry;
use vesper_kernel::proto::v1::{
    InterruptKind, Message, Priority, ProcessState, Quota, ServiceInfo, ServiceStatus, SubscribeRequest,
    TerminalReason,
};
use vesper_kernel::refusal::{Code, Refusal};
use vesper_kernel::settings::{HOUR_US, MINUTE_US, RateLimit, SECOND_US};

const STATES: [ProcessState; 7] = [
    ProcessState::New,
    ProcessState::Ready,
    ProcessState::Running,
    ProcessState::Waiting,
    ProcessState::Blocked,
    ProcessState::Terminated,
    ProcessState::Zombie,
];

fn state(kind: ProcessState) -> State {
    let end = End {
        at_us: 0,
        reason: TerminalReason::Completed,
        message: "".into(),
    };
    match kind {
        ProcessState::New | ProcessState::Unspecified => State::New,
        ProcessState::Ready => State::Ready { turn: 0 },
        ProcessState::Running => State::Running {
            worker: Arc::from("ada"),
            lease_until_us: None,
        },
        ProcessState::Waiting => State::Waiting,
        ProcessState::Blocked => State::Blocked,
        ProcessState::Terminated => State::Terminated(end),
        ProcessState::Zombie => State::Zombie(end),
    }
}

fn new_process(name: &str, priority: Priority) -> NewProcess {
    NewProcess {
        request_id: name.into(),
        user_id: "".into(),
        session_id: "".into(),
        parent: None,
        priority,
        quota: Arc::new(Quota::default()),
    }
}

/// Returns processes with one in this state.
fn in_state(kind: ProcessState) -> Result<Processes, Refusal> {
    use ProcessState::{Blocked, Ready, Running, Terminated, Waiting, Zombie};
    let way: &[ProcessState] = match kind {
        ProcessState::New | ProcessState::Unspecified => &[],
        Ready => &[Ready],
        Running => &[Ready, Running],
        Waiting => &[Ready, Running, Waiting],
        Blocked => &[Ready, Running, Blocked],
        Terminated => &[Terminated],
        Zombie => &[Terminated, Zombie],
    };
    let mut processes = Processes::default();
    processes.create(Pid(1), new_process("r", Priority::Normal), 0);
    for kind in way {
        processes.change(Pid(1), state(*kind), 1)?;
    }
    Ok(processes)
}

#[test]
fn every_transition_is_legal_or_refused() -> Result<(), Refusal> {
    // The table of docs/spec/kernel.md, from its text.
    let page = include_str!("../../../../docs/spec/kernel.md");
    let name = |kind: ProcessState| kind.as_str_name().trim_start_matches("PROCESS_STATE_").to_owned();
    for from in STATES {
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| `{}` |", name(from))));
        let followers = row.and_then(|row| row.split('|').nth(3)).unwrap_or_default();
        for to in STATES {
            let is_drawn = followers.contains(&format!("`{}`", name(to)));
            assert_eq!(successors(from).contains(&to), is_drawn, "{from:?} to {to:?}");
            let mut processes = in_state(from)?;
            let before = processes.clone();
            match processes.change(Pid(1), state(to), 2) {
                Ok(old) => assert!(is_drawn && old == from, "{from:?} to {to:?}"),
                Err(refusal) => {
                    assert!(
                        !is_drawn && refusal.code == Code::FailedPrecondition,
                        "{from:?} to {to:?}"
                    );
                    assert_eq!(processes, before);
                }
            }
        }
    }
    Ok(())
}

#[test]
fn ready_processes_run_by_priority_then_turn() -> Result<(), Refusal> {
    let mut processes = Processes::default();
    let priorities = [
        Priority::Low,
        Priority::Normal,
        Priority::Realtime,
        Priority::Normal,
        Priority::Idle,
        Priority::High,
    ];
    for (number, priority) in (1..).zip(priorities) {
        processes.create(Pid(number), new_process(&format!("r{number}"), priority), 0);
        processes.change(Pid(number), State::Ready { turn: 0 }, 0)?;
    }
    let mut order = Vec::new();
    while let Some(pid) = processes.next_runnable() {
        processes.change(pid, state(ProcessState::Running), 0)?;
        order.push(pid.0);
    }
    assert_eq!(order, [3, 6, 2, 4, 1, 5]);
    Ok(())
}

#[test]
fn rate_limits_count_every_window_exactly() {
    let limit = RateLimit {
        burst: Some(2),
        per_minute: Some(5),
        per_hour: Some(20),
    };
    let windows = [(2, SECOND_US), (5, MINUTE_US), (20, HOUR_US)];
    let mut limits = RateLimits::default();
    let mut admitted: Vec<i64> = Vec::new();
    let mut now_us = 0;
    let mut seed: i64 = 7;
    for _ in 0..3_000 {
        seed = (seed * 48_271) % 2_147_483_647;
        now_us += (seed % 9) * 300_000 * if seed % 11 == 0 { 40 } else { 1 };
        let within = |length_us: i64| {
            admitted
                .iter()
                .filter(|at_us| **at_us + length_us > now_us)
                .count()
        };
        let expected = windows.iter().all(|(most, length_us)| within(*length_us) < *most);
        match limits.ask(limit, "ada", now_us) {
            Verdict::Admitted => {
                assert!(expected, "at {now_us}");
                limits.record("ada", now_us);
                admitted.push(now_us);
            }
            Verdict::Refused { retry_us, .. } => {
                assert!(!expected && retry_us > now_us, "at {now_us}");
                assert_eq!(limits.ask(limit, "ada", retry_us), Verdict::Admitted);
                assert!(matches!(
                    limits.ask(limit, "ada", retry_us - 1),
                    Verdict::Refused { .. }
                ));
            }
        }
    }
    assert!(admitted.len() > 50, "{}", admitted.len());
}

#[test]
fn each_kind_of_interrupt_has_its_configuration() {
    let of = |kind| {
        InterruptConfig::of(kind).map(|each| (each.default_ttl_us, each.auto_expire, each.require_response))
    };
    let kinds = [
        (InterruptKind::Clarification, Some(24 * HOUR_US), true, true),
        (InterruptKind::Confirmation, Some(HOUR_US), true, true),
        (InterruptKind::AgentReview, Some(30 * MINUTE_US), true, true),
        (InterruptKind::Checkpoint, None, false, false),
        (InterruptKind::ResourceExhausted, Some(5 * MINUTE_US), true, false),
        (InterruptKind::Timeout, Some(5 * MINUTE_US), true, false),
        (InterruptKind::SystemError, Some(HOUR_US), true, false),
    ];
    for (kind, ttl_us, auto_expire, require_response) in kinds {
        assert_eq!(
            of(kind),
            Some((ttl_us, auto_expire, require_response)),
            "{kind:?}"
        );
    }
    assert_eq!(of(InterruptKind::Unspecified), None);
}

#[test]
fn a_service_takes_what_its_health_allows() -> Result<(), Refusal> {
    let mut registry = Registry::default();
    let info = ServiceInfo {
        name: "agents".to_owned(),
        max_concurrent: 5,
        ..ServiceInfo::default()
    };
    registry.register(info, 0);
    let most = [
        (ServiceStatus::Healthy, 5),
        (ServiceStatus::Degraded, 2),
        (ServiceStatus::Unhealthy, 0),
        (ServiceStatus::Unknown, 5),
    ];
    for (status, expected) in most {
        registry.set_health("agents", status, 1)?;
        let mut taken = 0;
        while registry.acquire("agents").is_ok() {
            taken += 1;
        }
        assert_eq!(taken, expected, "{status:?}");
        for _ in 0..taken {
            registry.release("agents")?;
        }
        assert!(registry.release("agents").is_err());
    }
    Ok(())
}

fn message(number: usize) -> Message {
    Message {
        message_id: format!("m{number}"),
        sender: "shop".to_owned(),
        ..Message::default()
    }
}

fn subscribe(bus: &mut Bus, group: &str, window: i32) -> Result<u64, Refusal> {
    bus.subscribe(&SubscribeRequest {
        topics: vec!["orders".to_owned()],
        group: group.to_owned(),
        acknowledges: true,
        max_in_flight: window,
        ..SubscribeRequest::default()
    })
}

#[test]
fn what_a_member_of_a_group_did_not_acknowledge_goes_to_another() -> Result<(), Refusal> {
    let mut bus = Bus::default();
    let (alone, first, second) = (
        subscribe(&mut bus, "", 100)?,
        subscribe(&mut bus, "desk", 2)?,
        subscribe(&mut bus, "desk", 2)?,
    );
    let topic = Address::Topic("orders".to_owned());
    for number in 1..=6 {
        assert_eq!(bus.accept(&topic, message(number)), Some(2));
    }
    let mut seen: Vec<(u64, String, i32)> = Vec::new();
    let mut take = |bus: &mut Bus| {
        let taken = bus.deliver();
        seen.extend(
            taken
                .iter()
                .map(|each| (each.to, each.message.message_id.clone(), each.message.delivery)),
        );
        taken
    };
    take(&mut bus);
    bus.acknowledge(&first.to_string(), &["m1".to_owned()])?;
    take(&mut bus);
    bus.unsubscribe(first);
    let all: Vec<String> = (1..=6).map(|number| format!("m{number}")).collect();
    for _ in 0..6 {
        bus.acknowledge(&second.to_string(), &all)?;
        take(&mut bus);
    }
    let of = |id: u64| {
        seen.iter()
            .filter(|(to, ..)| *to == id)
            .map(|(_, name, _)| name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(of(alone), all, "a subscriber without a group gets all, in order");
    let twice = seen
        .iter()
        .filter(|(to, _, delivery)| *to == second && *delivery == 2)
        .count();
    assert_eq!(twice, 2, "the two that the first one had: {seen:?}");
    let mut grouped: Vec<String> = of(second);
    grouped.push("m1".to_owned());
    grouped.sort();
    assert_eq!(
        grouped, all,
        "every message has reached one member that acknowledged it"
    );
    Ok(())
}

#[test]
fn a_full_queue_accepts_nothing_until_it_has_room() -> Result<(), Refusal> {
    let mut bus = Bus::default();
    let id = subscribe(&mut bus, "", 1)?;
    let topic = Address::Topic("orders".to_owned());
    let mut accepted = 0;
    while bus.accept(&topic, message(accepted + 1)).is_some() {
        accepted += 1;
    }
    assert_eq!(accepted, 4_096);
    assert_eq!(bus.deliver().len(), 1);
    assert!(bus.has_room(&topic));
    assert_eq!(bus.accept(&topic, message(accepted + 1)), Some(1));
    assert!(!bus.has_room(&topic));
    assert_eq!(bus.acknowledge(&id.to_string(), &["m1".to_owned()])?, 1);
    assert_eq!(
        bus.deliver().first().map(|each| each.message.message_id.clone()),
        Some("m2".to_owned())
    );
    Ok(())
}
