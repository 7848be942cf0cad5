//! A server on loopback, scripted by path and byte. It records requests and counts accepted connections.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A request that was completely received.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub(crate) method: String,
    pub(crate) target: String,
    /// Names as they were sent.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Number of the connection, from 1.
    pub(crate) connection: usize,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(each, _)| each.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// Answers a request; returns false to close the connection.
pub(crate) type Script = Arc<dyn Fn(&Got, &mut dyn Write) -> bool + Send + Sync>;

/// A stream of either kind.
pub(crate) trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// Makes the server's side of a connection.
pub(crate) type Accept = Arc<dyn Fn(TcpStream) -> Option<Box<dyn Stream>> + Send + Sync>;

#[derive(Default)]
struct State {
    scripts: Mutex<HashMap<String, Script>>,
    got: Mutex<Vec<Got>>,
    open: Mutex<Vec<TcpStream>>,
    connections: AtomicUsize,
    is_stopping: AtomicBool,
}

pub(crate) struct Web {
    pub(crate) port: u16,
    state: Arc<State>,
}

impl Web {
    pub(crate) fn start() -> Self {
        Self::accepting(Arc::new(|stream| Some(Box::new(stream))))
    }

    pub(crate) fn accepting(accept: Accept) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                if shared.is_stopping.load(Ordering::SeqCst) {
                    return;
                }
                let number = shared.connections.fetch_add(1, Ordering::SeqCst) + 1;
                shared.open.lock().unwrap().push(stream.try_clone().unwrap());
                let (shared, accept) = (Arc::clone(&shared), Arc::clone(&accept));
                std::thread::spawn(move || {
                    let closing = stream.try_clone().unwrap();
                    if let Some(stream) = accept(stream) {
                        serve(stream, number, &shared);
                    }
                    let _ = closing.shutdown(Shutdown::Both);
                });
            }
        });
        Self { port, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn on(&self, path: &str, script: Script) {
        self.state.scripts.lock().unwrap().insert(path.to_owned(), script);
    }

    pub(crate) fn got(&self) -> Vec<Got> {
        self.state.got.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// Closes every connection.
    pub(crate) fn drop_idle(&self) {
        for stream in self.state.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.state.is_stopping.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        self.drop_idle();
    }
}

fn serve(stream: Box<dyn Stream>, number: usize, state: &State) {
    let mut stream = BufReader::new(stream);
    while let Some(got) = read_request(&mut stream, number) {
        let path = got.target.split('?').next().unwrap().to_owned();
        let script = state.scripts.lock().unwrap().get(&path).cloned();
        state.got.lock().unwrap().push(got.clone());
        let script = script.unwrap_or_else(|| sends(&message(404, "{\"error\": \"no such path\"}")));
        if !script(&got, stream.get_mut()) {
            return;
        }
    }
}

fn read_request(lines: &mut impl BufRead, connection: usize) -> Option<Got> {
    let mut first = String::new();
    lines.read_line(&mut first).ok()?;
    let mut words = first.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut got = Got {
        method,
        target,
        headers,
        body: Vec::new(),
        connection,
    };
    let length = got
        .header("content-length")
        .map_or(0, |length| length.parse().unwrap());
    got.body = vec![0; length];
    lines.read_exact(&mut got.body).ok()?;
    Some(got)
}

// -- scripts --------------------------------------------------------------------------------------

pub(crate) fn message(status: u16, body: &str) -> Vec<u8> {
    message_with(status, body, "")
}

/// Returns a well-formed answer; `headers` are whole lines.
pub(crate) fn message_with(status: u16, body: &str, headers: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status} -\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Sends these bytes and keeps the connection.
pub(crate) fn sends(data: &[u8]) -> Script {
    let data = data.to_vec();
    Arc::new(move |_, stream| stream.write_all(&data).and_then(|()| stream.flush()).is_ok())
}

/// Sends these bytes and closes the connection.
pub(crate) fn sends_and_closes(data: &[u8]) -> Script {
    let data = data.to_vec();
    Arc::new(move |_, stream| {
        let _ = stream.write_all(&data).and_then(|()| stream.flush());
        false
    })
}

/// Sends a start, then one piece until the client disconnects.
pub(crate) fn sends_for_ever(start: &[u8], piece: &[u8], pause: Duration) -> Script {
    let (start, piece) = (start.to_vec(), piece.to_vec());
    Arc::new(move |_, stream| {
        let mut result = stream.write_all(&start);
        while result.is_ok() {
            result = stream.write_all(&piece).and_then(|()| stream.flush());
            std::thread::sleep(pause);
        }
        false
    })
}

pub(crate) fn says(json: &str) -> Script {
    sends(&message_with(200, json, "Content-Type: application/json\r\n"))
}

pub(crate) fn redirects(status: u16, location: &str) -> Script {
    sends(&message_with(status, "", &format!("Location: {location}\r\n")))
}

/// Sends nothing for a while.
pub(crate) fn hangs() -> Script {
    Arc::new(|_, _| {
        std::thread::sleep(Duration::from_secs(5));
        false
    })
}

/// Closes without an answer.
pub(crate) fn closes() -> Script {
    Arc::new(|_, _| false)
}
