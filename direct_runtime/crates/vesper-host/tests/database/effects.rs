//! Queries, writes, receipts, state machines, values, guards and timeouts on both kinds of databases.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use vesper_host::database::{Kind, Machines, StateMachines};
use vesper_host::effect::{Failure, Performer as _};
use vesper_interp::Argument;
use vesper_ir::types::Field;
use vesper_ir::{Decimal, Effect, EffectClass, EnumType, RecordType, Set, Type, Value};

use crate::server::Server;
use crate::world::{World, ask, failed, request, wait, write};

fn text(text: &str) -> Value {
    Value::Text(Arc::from(text))
}

fn code<T: std::fmt::Debug>(result: Result<T, Failure>) -> String {
    result.expect_err("it fails").code.name().to_owned()
}

#[test]
fn on_sqlite() {
    let world = World::sqlite();
    make_tables(&world);
    check_all(&world);
    a_statement_touches_only_its_tables(&world);
}

#[test]
fn on_postgres() {
    let server = Server::start();
    let world = World::postgres(server.port);
    make_tables(&world);
    check_all(&world);
    types_without_a_value_are_their_text(&world);
    rights_of_the_role_are_reported(&world);
}

fn check_all(world: &World) {
    values_come_back(world);
    a_repeated_write_happens_once(world);
    failures_have_their_codes(world);
    results_have_limits(world);
    a_slow_statement_is_stopped(world);
    states_move_once(world);
    writers_take_turns(world);
}

fn make_tables(world: &World) {
    let decimal = if world.kind == Kind::Sqlite {
        "TEXT"
    } else {
        "numeric"
    };
    for sql in [
        format!("CREATE TABLE t (id INTEGER PRIMARY KEY, d {decimal}, s TEXT)"),
        "CREATE TABLE secrets (pw TEXT)".to_owned(),
        "INSERT INTO secrets VALUES ('canary')".to_owned(),
    ] {
        execute(world, &sql);
    }
}

/// Executes a statement that no node may have.
fn execute(world: &World, sql: &str) {
    let table = vesper_host::database::Table {
        sqlite: Box::leak(sql.to_owned().into_boxed_str()),
        postgres: Box::leak(sql.to_owned().into_boxed_str()),
    };
    let references = HashMap::new();
    let any = write("any", "x", &[]);
    wait(async {
        let mut session = world
            .databases
            .session("main", &ask(&any, None, &references), true, "conflict")
            .await
            .unwrap();
        session.create(table).await.unwrap();
        session.commit().await.unwrap();
    });
}

fn values_come_back(world: &World) {
    let bind = [
        ("id", Type::Integer, Value::Integer(1)),
        (
            "d",
            Type::Decimal,
            Value::Decimal(Decimal::parse("12345678901234567890.10").unwrap()),
        ),
        ("s", Type::Set(Arc::new(Type::Integer)), {
            let keys = [10, 2].map(|key| Value::Integer(key).to_key().unwrap());
            Value::Set(Arc::new(
                Set::from_keys(vesper_ir::KeyKind::Integer, keys.into_iter()).unwrap(),
            ))
        }),
    ];
    let count = world
        .write("values", "INSERT INTO t (id, d, s) VALUES (:id, :d, :s)", &bind)
        .unwrap();
    assert!(matches!(count, Value::Integer(1)));
    let field = |name: &str, ty: Type| Field {
        name: Arc::from(name),
        ty,
    };
    let row = RecordType::new(vec![
        field("d", Type::Decimal),
        field("s", Type::Set(Arc::new(Type::Integer))),
    ]);
    let found = world
        .query("SELECT s, d FROM t", "one", Type::Record(Arc::new(row.unwrap())))
        .unwrap();
    let Value::Record(fields) = found else {
        panic!("{found:?}")
    };
    assert!(fields[0].is_identical(&bind[1].2), "{fields:?}");
    assert!(fields[1].is_identical(&bind[2].2), "{fields:?}");
}

fn a_repeated_write_happens_once(world: &World) {
    let request = write("once", "INSERT INTO t (id, s) VALUES (2, 'x'), (3, 'y')", &[]);
    assert!(world.probe(&request).unwrap().is_none());
    for _ in 0..2 {
        assert!(matches!(world.perform(&request, None), Ok(Value::Integer(2))));
    }
    assert!(matches!(world.probe(&request), Ok(Some(Value::Integer(2)))));
    let failing = write("failing", "INSERT INTO t (id, s) VALUES (4, 'x'), (2, 'y')", &[]);
    let failure = world.perform(&failing, None).unwrap_err();
    assert_eq!(failure.code.name(), "conflict");
    assert!(!failure.may_have_happened);
    assert!(world.probe(&failing).unwrap().is_none());
    let count = world
        .query("SELECT count(*) AS n FROM t", "one", Type::Integer)
        .unwrap();
    assert!(matches!(count, Value::Integer(3)), "{count:?}");
}

fn failures_have_their_codes(world: &World) {
    let optional = Type::Optional(Arc::new(Type::Integer));
    assert_eq!(
        code(world.query("SELECT id FROM t WHERE id = 99", "one", Type::Integer)),
        "not_found"
    );
    assert!(matches!(
        world.query("SELECT id FROM t WHERE id = 99", "optional", optional),
        Ok(Value::Null)
    ));
    assert_eq!(
        code(world.query("SELECT id FROM t", "one", Type::Integer)),
        "too_many_rows"
    );
    assert_eq!(
        code(world.query("SELECT s FROM t WHERE id = 2", "one", Type::Integer)),
        "bad_response"
    );
    assert_eq!(
        code(world.query("SELECT id FROM absent", "one", Type::Integer)),
        "unavailable"
    );
    assert_eq!(
        code(world.query("DELETE FROM t", "one", Type::Integer)),
        "unavailable"
    );
    let damaged = world.write("damaged", "UPDATE t SET s = :s", &[]).unwrap_err();
    assert!(damaged.message.contains("nothing gives `:s`"), "{damaged:?}");
}

fn results_have_limits(world: &World) {
    let texts = Type::Array(Arc::new(Type::Text));
    let long = "x".repeat(1001);
    let bind = [("s", Type::Text, text(&long))];
    world
        .write("long", "UPDATE t SET s = :s WHERE id = 3", &bind)
        .unwrap();
    let failure = world
        .query("SELECT s FROM t WHERE id = 3", "all", texts.clone())
        .unwrap_err();
    assert_eq!(
        failure.message,
        "column `s` of row 1 of `main` holds 1,001 bytes, more than `max_value` of 1,000"
    );
    world
        .write("more", "INSERT INTO t (id, s) VALUES (5, 'x'), (6, 'x')", &[])
        .unwrap();
    let failure = world.query("SELECT 'x' AS s FROM t", "all", texts).unwrap_err();
    assert_eq!(failure.code.name(), "too_many_rows");
}

fn a_slow_statement_is_stopped(world: &World) {
    let sql = match world.kind {
        Kind::Sqlite => {
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 100000000000) \
             SELECT count(*) AS n FROM c"
        }
        Kind::Postgres => "SELECT 1 AS n FROM pg_sleep(300)",
    };
    let fixed = [("database", "main"), ("sql", sql), ("rows", "one")];
    let request = request(
        Effect::DatabaseQuery,
        EffectClass::Read,
        &fixed,
        &[],
        Type::Integer,
    );
    let start = Instant::now();
    let failure = world
        .perform(&request, Some(Duration::from_millis(500)))
        .unwrap_err();
    assert_eq!(failure.code.name(), "timeout", "{failure:?}");
    assert!(start.elapsed() < Duration::from_secs(20));
    assert!(
        world
            .query("SELECT count(*) AS n FROM t", "one", Type::Integer)
            .is_ok()
    );
}

fn states_move_once(world: &World) {
    let machines = Arc::new(Machines::default());
    machines.know("order", "draft");
    let states = StateMachines::new(Arc::clone(&world.databases), "main", machines);
    let members = ["draft", "paid"].map(Arc::from);
    let gives = Type::Enum(Arc::new(EnumType::new(members.into()).unwrap()));
    let fixed = [("machine", "order"), ("from", "draft"), ("to", "paid")];
    let mut step = request(
        Effect::StateTransition,
        EffectClass::Txn,
        &fixed,
        &[],
        gives.clone(),
    );
    step.arguments = vec![Argument {
        name: Arc::from("entity"),
        ty: Type::Text,
        value: text("o-1"),
    }];
    let references = HashMap::new();
    let perform =
        |request: &vesper_interp::Request| failed(wait(states.perform(ask(request, None, &references))));
    for _ in 0..2 {
        assert!(
            perform(&step)
                .unwrap()
                .is_identical(&Value::Member(vesper_ir::Member(0)))
        );
    }
    let mut read = request(
        Effect::StateRead,
        EffectClass::Read,
        &[("machine", "order")],
        &[],
        gives,
    );
    read.arguments.clone_from(&step.arguments);
    assert!(
        perform(&read)
            .unwrap()
            .is_identical(&Value::Member(vesper_ir::Member(1)))
    );
    "again".clone_into(&mut step.path);
    assert_eq!(code(perform(&step)), "invalid_transition");
}

fn writers_take_turns(world: &World) {
    thread::scope(|scope| {
        for writer in 0..8_i64 {
            scope.spawn(move || {
                for turn in 0..10_i64 {
                    let bind = [("id", Type::Integer, Value::Integer(1000 + writer * 100 + turn))];
                    let path = format!("turn[{writer}][{turn}]");
                    world
                        .write(&path, "INSERT INTO t (id) VALUES (:id)", &bind)
                        .unwrap();
                }
            });
        }
    });
    let count = world
        .query(
            "SELECT count(*) AS n FROM t WHERE id >= 1000",
            "one",
            Type::Integer,
        )
        .unwrap();
    assert!(matches!(count, Value::Integer(80)), "{count:?}");
}

fn a_statement_touches_only_its_tables(world: &World) {
    // The reader of these tests sees no table behind `IN`.
    let failure = world
        .query(
            "SELECT count(*) AS n FROM t WHERE s IN secrets",
            "one",
            Type::Integer,
        )
        .unwrap_err();
    assert!(failure.message.contains("prohibited"), "{failure:?}");
    let failure = world
        .query("SELECT random() AS n FROM t", "one", Type::Integer)
        .unwrap_err();
    assert!(failure.message.contains("not authorized"), "{failure:?}");
}

fn types_without_a_value_are_their_text(world: &World) {
    for (sql, expected) in [
        ("SELECT CAST('192.168.0.1' AS inet) AS v", "192.168.0.1"),
        (
            "SELECT CAST('00000000-0000-0000-0000-0000000000ab' AS uuid) AS v",
            "00000000-0000-0000-0000-0000000000ab",
        ),
        ("SELECT CAST('a' AS char(3)) AS v", "a  "),
        ("SELECT CAST('[1,5)' AS int4range) AS v", "[1,5)"),
        ("SELECT CAST('x' AS name) AS v", "x"),
    ] {
        let found = world.query(sql, "one", Type::Text).unwrap();
        assert!(found.is_identical(&text(expected)), "{sql}: {found:?}");
    }
}

fn rights_of_the_role_are_reported(world: &World) {
    let risks = wait(world.databases.role_risks("main")).unwrap();
    assert_eq!(
        risks,
        ["the role `vesper` is a superuser, which can read every table, file and secret of the server"]
    );
}
