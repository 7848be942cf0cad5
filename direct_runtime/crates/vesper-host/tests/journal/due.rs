//! Due work in a journal: waits, signals, queues, and the process that dies between any two of them.

use std::sync::Arc;

use crate::support::{Folder, beginning, entry, journal, journal_under, rows};
use vesper_host::journal::begin::StoreJournal;
use vesper_host::journal::due::{
    Claim, DueQuery, Moment, NewDue, Place, QUEUED, SIGNAL, Settled, Signal, Wait, Waited,
};
use vesper_host::journal::store::{Cell, write};
use vesper_host::journal::{ErrorKind, JournalError, Kind, Run, Status};
use vesper_host::policy::rate_limit::Rule;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn wait(kind: &str, moment: Moment) -> Wait {
    Wait {
        due: NewDue {
            kind: kind.to_owned(),
            moment,
            path: "pause".to_owned(),
            name: "settled".to_owned(),
            queue: String::new(),
            lane: "order-1".to_owned(),
            priority: 0,
            attempts: 0,
            body: r#"{"arguments":{"match":"order-1"}}"#.to_owned(),
        },
        effect: "signal_wait",
        digest: "digest".to_owned(),
        at_us: 7,
        fits: Arc::new(|text| text != "\"wrong\""),
    }
}

/// Begins a run that waits; returns what became of it.
fn begin(
    journal: &StoreJournal,
    execution: &str,
    is_sensitive: bool,
    kind: &str,
    moment: Moment,
) -> Result<Waited, JournalError> {
    let mut given = beginning(execution);
    given.is_sensitive = is_sensitive;
    let run = journal.begin(&given)?;
    let mut intent = entry(Kind::Intent, "pause", r#"{"arguments":{"match":"order-1"}}"#);
    intent.class = "wait";
    intent.effect = "signal_wait";
    intent.digest = "digest";
    run.append(&intent)?;
    run.wait(wait(kind, moment))
}

fn signal<'a>(execution: Option<&'a str>, value: &'a str, key: Option<&'a str>) -> Signal<'a> {
    Signal {
        execution,
        name: "settled",
        lane: if execution.is_some() { "" } else { "order-1" },
        value,
        key,
        actor: Some("ann"),
        checked: None,
    }
}

fn place(queue: &str) -> Place<'_> {
    Place {
        queue,
        lane: "",
        priority: 0,
        due_us: None,
        attempts: 0,
        body: "{}",
    }
}

fn claim(queue: &str, limit: usize) -> Claim {
    Claim {
        kinds: vec![QUEUED.to_owned()],
        limit,
        lease_us: 1_000_000,
        queue: Some(queue.to_owned()),
        ..Claim::default()
    }
}

fn status(journal: &StoreJournal, execution: &str) -> Result<Status, JournalError> {
    Ok(journal.summary(execution)?.status)
}

fn problems(journal: &StoreJournal, execution: &str) -> Result<Vec<String>, JournalError> {
    Ok(journal.verify(execution)?.1)
}

#[test]
fn a_sleep_that_is_over_is_woken_with_its_time_and_can_be_taken_over() -> Outcome {
    let folder = Folder::new()?;
    let journal = journal(&folder.path)?;
    for (execution, is_sensitive) in [("run-1", false), ("run-2", true)] {
        assert_eq!(
            begin(&journal, execution, is_sensitive, "sleep", Moment::At(1_000_000))?,
            Waited::Until(Some(1_000_000))
        );
        assert_eq!(problems(&journal, execution)?, Vec::<String>::new());
    }
    assert_eq!(journal.unfinished(10, false)?, []);
    let refused = journal.take_over("run-1", "interp").map_err(|error| error.kind);
    assert_eq!(refused.err(), Some(ErrorKind::NotTaken));
    assert_eq!(journal.next_due(&["sleep".to_owned()])?, Some(1_000_000));
    assert_eq!(journal.wake_due(10)?.len(), 2);
    assert_eq!(journal.wake_due(10)?.len(), 0);
    assert_eq!(journal.unfinished(10, true)?.len(), 2);
    for execution in ["run-1", "run-2"] {
        assert_eq!(problems(&journal, execution)?, Vec::<String>::new());
        let run = journal.take_over(execution, "interp")?;
        let result = run.recorded().last().ok_or("no entry")?;
        assert_eq!((result.kind, result.digest.as_str()), (Kind::Result, "digest"));
        assert_eq!(
            result.body,
            r#"{"value":{"$time":"1970-01-01T00:00:01.000000Z"},"woken":true}"#
        );
        run.append(&entry(Kind::End, "", r#"{"outcome":"returned","value":{}}"#))?;
        run.commit(Status::Ended, Some("returned"))?;
        assert_eq!(problems(&journal, execution)?, Vec::<String>::new());
    }
    assert_eq!(rows(&journal, "SELECT 1 FROM vesper_due")?.len(), 0);
    Ok(())
}

#[test]
fn one_signal_wakes_all_that_wait_for_it_and_only_those() -> Outcome {
    let folder = Folder::new()?;
    let journal = journal(&folder.path)?;
    for (execution, is_sensitive) in [("run-1", false), ("run-2", true), ("run-3", false)] {
        begin(&journal, execution, is_sensitive, SIGNAL, Moment::Never)?;
    }
    let other = Signal {
        lane: "order-2",
        ..signal(None, "1", None)
    };
    assert!(journal.signal(&other)?.is_kept);
    assert_eq!(
        journal.signal(&signal(Some("run-3"), "1", Some("k")))?.woken,
        ["run-3"]
    );
    assert!(journal.signal(&signal(Some("run-3"), "1", Some("k")))?.is_repeat);
    assert_eq!(
        journal.signal(&signal(None, "2", None))?.woken,
        ["run-1", "run-2"]
    );
    assert!(journal.signal(&signal(None, "3", None))?.is_kept);
    assert!(
        !journal.wake("run-1", "pause", Settled::Value("4"), None)?,
        "it was woken before"
    );
    let bodies = rows(
        &journal,
        "SELECT body, lane FROM vesper_signals WHERE is_taken = 0 ORDER BY id",
    )?;
    assert_eq!(bodies.len(), 2);
    Ok(())
}

#[test]
fn a_kept_signal_is_taken_once_in_the_commit_of_the_wait() -> Outcome {
    for is_sensitive in [false, true] {
        let folder = Folder::new()?;
        let journal = journal(&folder.path)?;
        for value in ["\"wrong\"", "41"] {
            assert!(journal.signal(&signal(None, value, None))?.is_kept);
        }
        let taken = begin(&journal, "run-1", is_sensitive, SIGNAL, Moment::Never)?;
        assert_eq!(taken, Waited::Taken("{\"value\":41}".to_owned()));
        assert_eq!(status(&journal, "run-1")?, Status::Running);
        assert_eq!(problems(&journal, "run-1")?, Vec::<String>::new());
        assert!(matches!(
            begin(&journal, "run-2", is_sensitive, SIGNAL, Moment::Never)?,
            Waited::Until(None)
        ));
        assert_eq!(
            rows(&journal, "SELECT 1 FROM vesper_signals")?.len(),
            1,
            "the wrong one stays"
        );
    }
    Ok(())
}

#[test]
fn a_signal_to_a_run_that_does_not_wait_yet_is_kept_sealed_with_its_key() -> Outcome {
    let folder = Folder::new()?;
    let journal = journal(&folder.path)?;
    let mut given = beginning("run-1");
    given.is_sensitive = true;
    let run = journal.begin(&given)?;
    run.commit(Status::Running, None)?;
    assert!(
        journal
            .signal(&signal(Some("run-1"), "\"a secret\"", Some("k")))?
            .is_kept
    );
    let stored = rows(&journal, "SELECT body FROM vesper_signals")?;
    assert!(matches!(&stored[0][0], Cell::Bytes(body) if !String::from_utf8_lossy(body).contains("secret")));
    let mut intent = entry(Kind::Intent, "pause", "{}");
    intent.class = "wait";
    run.append(&intent)?;
    let taken = run.wait(wait(SIGNAL, Moment::Never))?;
    assert_eq!(taken, Waited::Taken("{\"value\":\"a secret\"}".to_owned()));
    run.append(&entry(Kind::End, "", r#"{"outcome":"returned","value":{}}"#))?;
    run.commit(Status::Ended, Some("returned"))?;
    assert_eq!(problems(&journal, "run-1")?, Vec::<String>::new());
    assert!(
        journal.signal(&signal(Some("run-1"), "1", Some("k")))?.is_repeat,
        "its key is remembered"
    );
    let refused = journal
        .signal(&signal(Some("run-1"), "1", None))
        .err()
        .ok_or("taken")?;
    assert!(refused.message.contains("has ended"), "{refused}");
    Ok(())
}

#[test]
fn the_row_of_a_sensitive_run_has_no_value_in_clear() -> Outcome {
    let folder = Folder::new()?;
    let journal = journal(&folder.path)?;
    begin(&journal, "run-1", true, SIGNAL, Moment::Never)?;
    for row in rows(&journal, "SELECT lane, body FROM vesper_due")? {
        assert!(matches!(&row[0], Cell::Text(lane) if !lane.contains("order")));
        assert!(matches!(&row[1], Cell::Bytes(body) if !String::from_utf8_lossy(body).contains("order")));
    }
    let query = DueQuery {
        lane: Some("order-1".to_owned()),
        ..DueQuery::default()
    };
    let due = journal.due(&query, 10)?;
    assert_eq!(due[0].body, r#"{"arguments":{"match":"order-1"}}"#);
    assert!(due[0].is_sensitive);
    journal.erase("run-1")?;
    assert_eq!(journal.due(&query, 10)?[0].body, "{}");
    assert!(journal.wake("run-1", "pause", Settled::Value("1"), None).is_err());
    Ok(())
}

#[test]
fn queued_runs_are_claimed_once_and_end_with_their_rows() -> Outcome {
    let folder = Folder::new()?;
    let journal = journal(&folder.path)?;
    for number in 0..5 {
        journal.begin_queued(&beginning(&format!("run-{number}")), &place("mail"))?;
    }
    let mut claimed = journal.claim_queued(&claim("mail", 3), None)?;
    claimed.extend(journal.claim_queued(&claim("mail", 3), Some("python"))?);
    let mut found: Vec<_> = claimed
        .iter()
        .filter_map(|each| each.due.execution.clone())
        .collect();
    found.sort();
    assert_eq!(found, ["run-0", "run-1", "run-2", "run-3", "run-4"]);
    assert_eq!(journal.claim(&claim("mail", 9))?, []);
    assert_eq!(
        journal.unfinished(10, false)?,
        [],
        "workers of the queue finish them"
    );
    for (number, each) in claimed.iter().enumerate() {
        let run = each.run.as_ref().ok_or("not taken")?;
        assert_eq!(run.recorded().len(), 1);
        let outcome = if number == 0 { "failed" } else { "returned" };
        let body = format!(r#"{{"outcome":"{outcome}"}}"#);
        run.append(&entry(Kind::End, "", &body))?;
        run.commit(Status::Ended, Some(outcome))?;
        assert_eq!(problems(&journal, run.execution())?, Vec::<String>::new());
    }
    let depths = journal.queue_depths(None, 9)?;
    assert_eq!(
        (depths[0].count, depths[0].running),
        (1, 1),
        "its worker decides about a failed one"
    );
    let failed = &claimed[0].due;
    assert!(journal.release((failed.id, failed.fence), None, 1, Some("mail/dead"))?);
    assert_eq!(journal.claim(&claim("mail/dead", 9))?, []);
    assert_eq!(journal.remove_due(&[(failed.id, failed.fence)])?, 1);
    Ok(())
}

#[test]
fn limits_of_a_queue_and_of_its_lanes_hold_for_all_claims() -> Outcome {
    let folder = Folder::new()?;
    let journal = journal(&folder.path)?;
    for number in 0..12 {
        let lane = format!("lane-{}", number / 6);
        let place = Place {
            lane: &lane,
            ..place("mail")
        };
        journal.begin_queued(&beginning(&format!("run-{number}")), &place)?;
    }
    let mut limited = claim("mail", 9);
    limited.lane_limit = Some(2);
    assert_eq!(journal.claim(&limited)?.len(), 4);
    assert_eq!(journal.claim(&limited)?.len(), 0);
    limited.lane_limit = None;
    limited.queue_limit = Some(5);
    assert_eq!(journal.claim(&limited)?.len(), 1);
    Ok(())
}

#[test]
fn a_lease_that_is_over_or_of_a_dead_process_is_claimed_again() -> Outcome {
    let folder = Folder::new()?;
    let journal = journal(&folder.path)?;
    journal.begin_queued(&beginning("run-1"), &place("mail"))?;
    let first = journal.claim(&claim("mail", 1))?;
    assert_eq!(journal.renew_due(&[(first[0].id, first[0].fence)], 1)?, 1);
    std::thread::sleep(std::time::Duration::from_micros(10));
    let second = journal.claim(&claim("mail", 1))?;
    assert_eq!(second[0].fence, first[0].fence + 1);
    assert_eq!(
        journal.remove_due(&[(first[0].id, first[0].fence)])?,
        0,
        "it is another's"
    );
    let owner = second[0].owner.rsplitn(3, ':').collect::<Vec<_>>();
    let dead = format!("{}:999:{}", owner[2], owner[0]); // another process had this pid
    write(&*journal.store, |transaction| {
        transaction.run("UPDATE vesper_due SET owner = ?", &[Cell::Text(dead.clone())])
    })?;
    assert_eq!(journal.claim(&claim("mail", 1))?.len(), 1);
    Ok(())
}

#[test]
fn cancelling_ends_a_queued_run_and_fails_a_wait() -> Outcome {
    let folder = Folder::new()?;
    let journal = journal(&folder.path)?;
    journal.begin_queued(&beginning("run-1"), &place("mail"))?;
    assert_eq!(journal.cancel("run-1", "not needed", Some("ann"))?, Status::Ended);
    assert_eq!(journal.claim(&claim("mail", 1))?, []);
    begin(&journal, "run-2", false, "interrupt", Moment::Never)?;
    assert_eq!(journal.cancel("run-2", "not needed", None)?, Status::Running);
    let run = journal.take_over("run-2", "interp")?;
    let failed = run.recorded().last().ok_or("no entry")?;
    assert_eq!(failed.kind, Kind::Failed);
    assert!(failed.body.contains("\"cancelled\""), "{}", failed.body);
    let refused = journal
        .cancel("run-2", "not needed", None)
        .err()
        .ok_or("cancelled")?;
    assert!(refused.message.contains("it is running"), "{refused}");
    for execution in ["run-1", "run-2"] {
        assert_eq!(problems(&journal, execution)?, Vec::<String>::new());
    }
    Ok(())
}

#[test]
fn rows_without_a_run_are_replaced_by_compare_and_swap() -> Outcome {
    let folder = Folder::new()?;
    let journal = journal(&folder.path)?;
    let put = |due_us: i64, expected: Option<i64>| {
        let mut due = wait("schedule", Moment::At(due_us)).due;
        due.lane = String::new();
        journal.put_due(&due, expected)
    };
    assert!(put(5, None)?);
    assert!(!put(6, None)?);
    assert!(put(9, Some(5))?);
    assert!(!put(9, Some(5))?);
    let mut schedules = claim("", 1);
    schedules.kinds = vec!["schedule".to_owned()];
    schedules.queue = None;
    assert_eq!(journal.claim(&schedules)?.len(), 1);
    assert!(!put(7, Some(9))?, "a process has the row");
    Ok(())
}

#[test]
fn a_verification_reports_rows_that_contradict_a_run() -> Outcome {
    let folder = Folder::new()?;
    let journal = journal(&folder.path)?;
    begin(&journal, "run-1", false, "sleep", Moment::Never)?;
    for (change, part) in [
        ("UPDATE vesper_due SET path = 'other'", "not that of its wait"),
        (
            "UPDATE vesper_executions SET status = 'running'",
            "is waiting False",
        ),
        ("DELETE FROM vesper_due", "nothing wakes"),
    ] {
        write(&*journal.store, |transaction| transaction.run(change, &[]))?;
        let found = problems(&journal, "run-1")?.join("\n");
        assert!(found.contains(part), "{change}: {found}");
        if change.contains("running") {
            let back = "UPDATE vesper_executions SET status = 'waiting'";
            write(&*journal.store, |transaction| transaction.run(back, &[]))?;
        }
    }
    Ok(())
}

#[test]
fn pruning_deletes_the_rows_of_a_run() -> Outcome {
    let folder = Folder::new()?;
    let journal = journal(&folder.path)?;
    journal.begin_queued(&beginning("run-1"), &place("mail"))?;
    journal.signal(&signal(Some("run-1"), "1", None))?;
    journal.signal(&signal(None, "1", None))?;
    journal.cancel("run-1", "not needed", None)?;
    assert_eq!(journal.prune(i64::MAX, None)?, 1);
    for table in ["vesper_due", "vesper_signals"] {
        assert_eq!(
            rows(&journal, &format!("SELECT 1 FROM {table}"))?.len(),
            0,
            "{table}"
        );
    }
    Ok(())
}

/// Makes the lease of every row one that is over.
fn end_leases(journal: &StoreJournal) -> Outcome {
    let sql = "UPDATE vesper_due SET lease_until_us = 0";
    write(&*journal.store, |transaction| transaction.run(sql, &[]))?;
    Ok(())
}

#[test]
fn a_run_under_another_master_key_keeps_no_other_from_being_woken_or_claimed() -> Outcome {
    let folder = Folder::new()?;
    let (ours, theirs) = (
        journal_under(&folder.path, Some(&[1; 32]))?,
        journal_under(&folder.path, Some(&[2; 32]))?,
    );
    begin(&theirs, "theirs", true, "sleep", Moment::At(1_000_000))?;
    begin(&ours, "ours", true, "sleep", Moment::At(2_000_000))?;
    for (journal, execution) in [(&theirs, "their-mail"), (&ours, "our-mail")] {
        let mut given = beginning(execution);
        given.is_sensitive = true;
        journal.begin_queued(&given, &place("mail"))?;
    }
    let kinds = ["sleep".to_owned()];
    assert_eq!(ours.wake_due(10)?.len(), 1);
    assert_eq!(
        ours.next_due(&kinds)?,
        None,
        "what this process cannot wake is postponed"
    );
    let claimed = ours.claim_queued(&claim("mail", 10), None)?;
    assert_eq!(claimed.len(), 1);
    assert!(claimed[0].run.is_some());
    let queued = DueQuery {
        kind: Some(QUEUED.to_owned()),
        ..DueQuery::default()
    };
    assert_eq!(ours.due(&queued, 10)?[0].body, "{}");
    assert_eq!(status(&ours, "their-mail")?, Status::Queued);
    end_leases(&theirs)?;
    assert_eq!(theirs.next_due(&kinds)?, Some(1_000_000));
    assert_eq!(theirs.wake_due(10)?.len(), 1);
    let run = theirs.take_over("theirs", "interp")?;
    let result = run.recorded().last().ok_or("no entry")?;
    assert!(result.body.contains("00:00:01.000000Z"), "{}", result.body);
    assert!(theirs.claim_queued(&claim("mail", 10), None)?[0].run.is_some());
    Ok(())
}

#[test]
fn pruning_keeps_a_run_whose_end_no_worker_has_settled() -> Outcome {
    let folder = Folder::new()?;
    let journal = journal(&folder.path)?;
    journal.begin_queued(&beginning("run-1"), &place("mail"))?;
    let claimed = journal.claim_queued(&claim("mail", 1), None)?;
    let (due, run) = (&claimed[0].due, claimed[0].run.as_ref().ok_or("no run")?);
    run.append(&entry(Kind::End, "", r#"{"outcome":"failed"}"#))?;
    run.commit(Status::Ended, Some("failed"))?;
    assert_eq!(journal.prune(i64::MAX, None)?, 0);
    assert_eq!(journal.remove_due(&[(due.id, due.fence)])?, 1);
    assert_eq!(journal.prune(i64::MAX, Some("pay"))?, 1);
    Ok(())
}

#[test]
fn a_clock_that_was_wrong_once_does_not_stop_a_rate() -> Outcome {
    let folder = Folder::new()?;
    let journal = journal(&folder.path)?;
    for number in 0..3 {
        journal.begin_queued(&beginning(&format!("run-{number}")), &place("mail"))?;
    }
    let mut limited = claim("mail", 1);
    limited.queue_rate = Some(Rule {
        limit: 1,
        per_us: 1_000,
        burst: 1,
    });
    limited.ahead_us = 3_600_000_000;
    assert_eq!(journal.claim(&limited)?.len(), 1);
    let jumped = "UPDATE vesper_due SET due_us = due_us + 86400000000 WHERE kind = 'rate'";
    write(&*journal.store, |transaction| transaction.run(jumped, &[]))?;
    assert_eq!(journal.claim(&limited)?.len(), 0);
    let arrival = rows(&journal, "SELECT due_us FROM vesper_due WHERE kind = 'rate'")?[0][0].integer()?;
    let ahead = arrival - journal.now_us()?;
    assert!(ahead <= limited.ahead_us + 1_002, "{ahead}");
    Ok(())
}

#[test]
fn a_signal_wakes_only_waits_that_its_sender_has_checked() -> Outcome {
    let folder = Folder::new()?;
    let journal = journal(&folder.path)?;
    let pair = |execution: &str| (execution.to_owned(), "pause".to_owned());
    begin(&journal, "run-1", false, SIGNAL, Moment::Never)?;
    begin(&journal, "run-2", false, SIGNAL, Moment::Never)?;
    let first = [pair("run-1")];
    for execution in [None, Some("run-2")] {
        let unchecked = Signal {
            checked: Some(&first),
            ..signal(execution, "1", Some("key"))
        };
        let refused = journal.signal(&unchecked).err().ok_or("sent")?;
        assert_eq!(refused.kind, ErrorKind::Unchecked);
    }
    assert_eq!(rows(&journal, "SELECT 1 FROM vesper_signals")?.len(), 0);
    let both = [pair("run-1"), pair("run-2"), pair("run-3")];
    let checked = Signal {
        checked: Some(&both),
        ..signal(None, "1", Some("key"))
    };
    assert_eq!(journal.signal(&checked)?.woken, ["run-1", "run-2"]);
    Ok(())
}

#[test]
fn kept_signals_have_a_bound_and_are_read_in_pages() -> Outcome {
    let folder = Folder::new()?;
    let journal = journal(&folder.path)?;
    let fill = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 999) INSERT INTO \
        vesper_signals (run, name, lane, body, at_us, is_taken) SELECT NULL, 'settled', 'order-1', ?, 1, 0 FROM n";
    write(&*journal.store, |transaction| {
        transaction.run(fill, &[Cell::Bytes(b"\"wrong\"".to_vec())])
    })?;
    assert!(journal.signal(&signal(None, "1", Some("key")))?.is_kept);
    let refused = journal
        .signal(&signal(None, "2", Some("other")))
        .err()
        .ok_or("kept")?;
    assert_eq!(refused.kind, ErrorKind::NotTaken);
    assert!(journal.signal(&signal(None, "1", Some("key")))?.is_repeat);
    let taken = begin(&journal, "run-1", false, SIGNAL, Moment::Never)?;
    assert_eq!(taken, Waited::Taken(r#"{"value":1}"#.to_owned()));
    assert!(journal.signal(&signal(None, "2", Some("other")))?.is_kept);
    Ok(())
}

#[test]
fn an_erased_run_takes_no_signal_and_is_ended_by_a_cancel_without_texts() -> Outcome {
    let folder = Folder::new()?;
    let journal = journal(&folder.path)?;
    begin(&journal, "erased", true, SIGNAL, Moment::Never)?;
    begin(&journal, "other", false, SIGNAL, Moment::Never)?;
    let mut given = beginning("queued");
    given.is_sensitive = true;
    journal.begin_queued(&given, &place("mail"))?;
    for execution in ["erased", "queued"] {
        assert!(journal.erase(execution)?);
        let refused = journal
            .signal(&signal(Some(execution), "\"secret\"", None))
            .err()
            .ok_or("sent")?;
        assert!(refused.message.contains("vesper journal cancel"), "{refused}");
    }
    assert_eq!(journal.signal(&signal(None, "1", None))?.woken, ["other"]);
    assert_eq!(rows(&journal, "SELECT 1 FROM vesper_signals")?.len(), 0);
    for execution in ["erased", "queued"] {
        assert_eq!(journal.cancel(execution, "secret", Some("ann"))?, Status::Ended);
        assert_eq!(problems(&journal, execution)?, Vec::<String>::new());
        let end = journal.read(execution)?.entries.pop().ok_or("no entry")?;
        assert_eq!(end.kind, Kind::End);
        assert_eq!(
            end.body,
            r#"{"duration_us":0,"limit":"cancelled","outcome":"limit_hit"}"#
        );
    }
    assert_eq!(rows(&journal, "SELECT 1 FROM vesper_due")?.len(), 0);
    Ok(())
}
