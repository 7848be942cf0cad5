//! Unary gRPC calls over one connection, with as little work for each as HTTP/2 admits: the load must be cheaper than
//! the servers that it measures. What it needs of HPACK is four entries of the dynamic table.

use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SILENCE: Duration = Duration::from_secs(30);
const FRAME_HEADER: usize = 9;
/// Bytes that a server may send on the connection and on a stream before an update.
const WINDOW: u32 = 1 << 30;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;

/// A stream with the message of its answer. An RPC that failed has none.
pub(crate) type Answer = (u32, Option<Vec<u8>>);

pub(crate) struct Connection {
    socket: TcpStream,
    authority: String,
    output: Vec<u8>,
    input: Vec<u8>,
    bodies: HashMap<u32, Vec<u8>>,
    next_stream: u32,
    /// What the server takes before its next update.
    send_window: i64,
    received: u32,
}

impl Connection {
    pub(crate) fn open(address: &str) -> io::Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(SILENCE))?;
        let mut connection = Self {
            socket,
            authority: address.to_owned(),
            output: PREFACE.to_vec(),
            input: Vec::new(),
            bodies: HashMap::new(),
            next_stream: 1,
            send_window: 65_535,
            received: 0,
        };
        let mut settings = vec![0, 4];
        settings.extend(WINDOW.to_be_bytes());
        connection.frame(SETTINGS, 0, 0, &settings);
        connection.frame(WINDOW_UPDATE, 0, 0, &WINDOW.to_be_bytes());
        Ok(connection)
    }

    /// Returns true where the server has room for a message of this length.
    pub(crate) fn has_room(&self, length: usize) -> bool {
        i64::try_from(length).is_ok_and(|length| length + 5 <= self.send_window)
    }

    /// Adds a request to what `exchange` sends, and returns its stream.
    pub(crate) fn call(&mut self, path: &str, message: &[u8]) -> u32 {
        let stream = self.next_stream;
        self.next_stream += 2;
        // :method POST and :scheme http are of the static table; paths are sent as texts, as by other clients.
        let mut block = vec![0x83, 0x86, 0x04];
        add_text(&mut block, path);
        if stream == 1 {
            block.push(0x41);
            add_text(&mut block, &self.authority);
            block.push(0x5f);
            add_text(&mut block, "application/grpc");
            block.push(0x40);
            add_text(&mut block, "te");
            add_text(&mut block, "trailers");
        } else {
            block.extend([0xc0, 0xbf, 0xbe]);
        }
        let mut body = vec![0];
        body.extend(u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes());
        body.extend_from_slice(message);
        self.frame(HEADERS, END_HEADERS, stream, &block);
        self.frame(DATA, END_STREAM, stream, &body);
        self.send_window -= i64::try_from(body.len()).unwrap_or(i64::MAX);
        stream
    }

    /// Sends what was added, waits for input and returns the answers in it.
    pub(crate) fn exchange(&mut self) -> io::Result<Vec<Answer>> {
        self.socket.write_all(&self.output)?;
        self.output.clear();
        let mut buffer = [0; 16_384];
        let count = self.socket.read(&mut buffer)?;
        if count == 0 {
            return Err(io::Error::other("the server closed the connection"));
        }
        self.input
            .extend_from_slice(buffer.get(..count).unwrap_or_default());
        let mut answers = Vec::new();
        let input = std::mem::take(&mut self.input);
        let mut rest = input.as_slice();
        while let Some((header, after)) = rest.split_first_chunk::<FRAME_HEADER>() {
            let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = *header;
            let length = usize::try_from(u32::from_be_bytes([0, l0, l1, l2])).unwrap_or(usize::MAX);
            let Some((payload, after)) = after.split_at_checked(length) else {
                break;
            };
            let stream = u32::from_be_bytes([s0 & 0x7f, s1, s2, s3]);
            self.take_frame(kind, flags, stream, payload, &mut answers)?;
            rest = after;
        }
        self.input = rest.to_vec();
        Ok(answers)
    }

    fn take_frame(
        &mut self,
        kind: u8,
        flags: u8,
        stream: u32,
        payload: &[u8],
        answers: &mut Vec<Answer>,
    ) -> io::Result<()> {
        match kind {
            DATA => {
                self.count_received(payload.len());
                self.bodies
                    .entry(stream)
                    .or_default()
                    .extend_from_slice(unpadded(flags, payload));
            }
            SETTINGS if flags & ACK == 0 => self.frame(SETTINGS, ACK, 0, &[]),
            PING if flags & ACK == 0 => self.frame(PING, ACK, 0, payload),
            WINDOW_UPDATE if stream == 0 => {
                let more = payload
                    .first_chunk()
                    .map_or(0, |bytes| u32::from_be_bytes(*bytes));
                self.send_window += i64::from(more);
            }
            GOAWAY => return Err(io::Error::other("the server says GOAWAY")),
            _ => {}
        }
        let is_end = kind == RST_STREAM || (matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0);
        if is_end {
            let body = self.bodies.remove(&stream);
            // A message has a byte for compression and four for its length before it.
            answers.push((stream, body.and_then(|body| body.get(5..).map(<[u8]>::to_vec))));
        }
        Ok(())
    }

    fn count_received(&mut self, length: usize) {
        self.received += u32::try_from(length).unwrap_or(u32::MAX);
        if self.received > WINDOW / 4 {
            let count = std::mem::take(&mut self.received);
            self.frame(WINDOW_UPDATE, 0, 0, &count.to_be_bytes());
        }
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let [_, l0, l1, l2] = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
        self.output.extend([l0, l1, l2, kind, flags]);
        self.output.extend(stream.to_be_bytes());
        self.output.extend_from_slice(payload);
    }
}

/// Adds a text of fewer than 127 bytes, without Huffman's code.
fn add_text(block: &mut Vec<u8>, text: &str) {
    block.push(u8::try_from(text.len()).unwrap_or(0));
    block.extend_from_slice(text.as_bytes());
}

fn unpadded(flags: u8, payload: &[u8]) -> &[u8] {
    if flags & PADDED == 0 {
        return payload;
    }
    let Some((length, rest)) = payload.split_first() else {
        return payload;
    };
    rest.get(..rest.len().saturating_sub(usize::from(*length)))
        .unwrap_or_default()
}
