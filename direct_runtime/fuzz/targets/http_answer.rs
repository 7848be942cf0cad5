//! Fuzz target for the answers of HTTP servers.
//!
//! The first byte of an input decides whether the server keeps the connection, the rest is its answer. Every answer is
//! a value or a declared failure without a secret, and the next request gets its own answer.
#![no_main]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use tokio::runtime::{Builder, Runtime};
use vesper_host::effect::{Ask, AttemptError, Failure, Performer, Secrets};
use vesper_host::http::settings::{Auth, BodyFormat, HttpSettings, Redirects};
use vesper_host::http::url::read_url;
use vesper_host::http::{HttpPerformer, Surroundings, Template, look_up};
use vesper_interp::{Argument, Request};
use vesper_ir::{Effect, EffectClass, Type, Value};
use zeroize::Zeroizing;

const SECRET: &str = "sk_fuzz_0123456789";
const NEXT: &str = "\"the next answer\"";

struct Keys;

impl Secrets for Keys {
    fn text(&self, _name: &str) -> Result<Zeroizing<String>, Failure> {
        Ok(Zeroizing::new(SECRET.to_owned()))
    }
}

/// A performer, and the answer that its server gives.
struct World {
    runtime: Runtime,
    performer: HttpPerformer,
    answer: Arc<Mutex<Vec<u8>>>,
}

impl World {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let answer = Arc::new(Mutex::default());
        let shared = Arc::clone(&answer);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = serve(stream, &shared);
            }
        });
        let base = read_url(&url).expect("it is a URL");
        let settings = HttpSettings {
            table: "providers",
            name: "shop".to_owned(),
            pack: None,
            failures: Vec::new(),
            allowed: vec![base.origin.clone()],
            base,
            auth: Some(Auth::Header {
                name: "Authorization".to_owned(),
                value: Template {
                    texts: vec![String::new(), String::new()],
                    names: vec!["key".to_owned()],
                },
            }),
            headers: Vec::new(),
            key_header: "Idempotency-Key".to_owned(),
            body: BodyFormat::Json,
            timeout: Duration::from_secs(1),
            connect_timeout: Duration::from_secs(1),
            max_response: 4096,
            redirects: Redirects::SameHost,
            allow_private_addresses: true,
            ca_file: None,
            max_connections: 2,
            probe: None,
            retry_after_max: Duration::from_secs(60),
        };
        let surroundings = Surroundings {
            secrets: Arc::new(Keys),
            public_authorities: String::new(),
            resolve: Arc::new(look_up),
            on_answer: None,
        };
        Self {
            runtime: Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime starts"),
            performer: HttpPerformer::new([settings], surroundings).expect("the settings are right"),
            answer,
        }
    }

    fn perform(&self, endpoint: &str, timeout: Duration) -> Result<Value, Failure> {
        let fixed = [("provider", "shop"), ("method", "GET")];
        let request = Request {
            id: 0,
            node: "fuzz_v1".into(),
            step: "get".into(),
            path: "get".to_owned(),
            effect: Effect::HttpRequest,
            class: EffectClass::Read,
            key: None,
            fixed: fixed.map(|(name, text)| (name.into(), text.into())).to_vec(),
            arguments: vec![Argument {
                name: "endpoint".into(),
                ty: Type::Text,
                value: Value::Text(endpoint.into()),
            }],
            result: Type::Json,
        };
        let ask = Ask {
            execution: "run",
            request: &request,
            timeout: Some(timeout),
            is_repeat: false,
            attempt: 1,
            is_sensitive: false,
            secrets: &Keys,
            references: &HashMap::new(),
            trace: None,
            sink: None,
            limits: None,
            budgets: &[],
        };
        let result = self.runtime.block_on(self.performer.perform(ask));
        result.map_err(|error| match error {
            AttemptError::Failed(failure) => failure,
            AttemptError::Broken(broken) => panic!("an exception without Python: {broken:?}"),
        })
    }
}

/// Answers the requests of a connection.
fn serve(stream: TcpStream, answer: &Mutex<Vec<u8>>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream);
    loop {
        let mut first = String::new();
        if lines.read_line(&mut first)? == 0 {
            return Ok(());
        }
        let mut line = String::new();
        while lines.read_line(&mut line)? > 2 {
            line.clear();
        }
        if first.starts_with("GET /next ") {
            let length = NEXT.len();
            write!(
                lines.get_mut(),
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{NEXT}"
            )?;
            continue;
        }
        let given = answer.lock().expect("nothing panics with it").clone();
        let (keeps, bytes) = given
            .split_first()
            .map_or((0, &[][..]), |(first, rest)| (*first, rest));
        lines.get_mut().write_all(bytes)?;
        if keeps % 4 != 0 {
            return Ok(());
        }
    }
}

fuzz_target!(|data: &[u8]| {
    static WORLD: OnceLock<World> = OnceLock::new();
    let world = WORLD.get_or_init(World::start);
    *world.answer.lock().expect("nothing panics with it") = data.to_vec();
    if let Err(failure) = world.perform("/it", Duration::from_millis(20)) {
        let code = failure.code.name();
        let is_declared =
            matches!(code, "timeout" | "unavailable" | "bad_response") || code.starts_with("http_");
        assert!(is_declared, "{code}: {}", failure.message);
        assert!(!failure.message.contains(SECRET), "{}", failure.message);
        assert!(failure.message.chars().count() < 700, "{}", failure.message);
    }
    match world.perform("/next", Duration::from_secs(1)) {
        Ok(Value::Json(json)) => assert_eq!(json.text(), NEXT),
        other => panic!("the next request did not get its answer: {other:?}"),
    }
});
