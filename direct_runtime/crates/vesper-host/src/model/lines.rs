//! Events of a stream: server-sent events, and JSON values on lines.

/// Form of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// `data:` lines, with an empty line after each event.
    Events,
    /// One JSON value on each line.
    Lines,
}

/// Splits the bytes of a stream into the texts of its events. The reader of the connection bounds the bytes.
#[derive(Debug)]
pub(super) struct Splitter {
    framing: Framing,
    line: Vec<u8>,
    /// The `data:` lines of the event so far.
    data: Option<Vec<u8>>,
    is_after_return: bool,
}

impl Splitter {
    pub(super) fn new(framing: Framing) -> Self {
        Self {
            framing,
            line: Vec::new(),
            data: None,
            is_after_return: false,
        }
    }

    /// Adds bytes and appends the events that they complete.
    pub(super) fn push(&mut self, mut bytes: &[u8], events: &mut Vec<Vec<u8>>) {
        if self.is_after_return && !bytes.is_empty() {
            self.is_after_return = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(place) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (head, rest) = bytes.split_at_checked(place).unwrap_or((bytes, &[]));
            self.line.extend_from_slice(head);
            let line = std::mem::take(&mut self.line);
            self.end_line(line, events);
            let is_return = rest.first() == Some(&b'\r');
            bytes = rest.get(1..).unwrap_or_default();
            if is_return {
                self.is_after_return = bytes.is_empty();
                bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
        }
        self.line.extend_from_slice(bytes);
    }

    /// Appends what a stream without a last line break left.
    pub(super) fn finish(&mut self, events: &mut Vec<Vec<u8>>) {
        let line = std::mem::take(&mut self.line);
        self.end_line(line, events);
        if self.framing == Framing::Events {
            self.end_line(Vec::new(), events);
        }
    }

    fn end_line(&mut self, line: Vec<u8>, events: &mut Vec<Vec<u8>>) {
        match self.framing {
            Framing::Lines if line.iter().all(u8::is_ascii_whitespace) => {}
            Framing::Lines => events.push(line),
            Framing::Events if line.is_empty() => events.extend(self.data.take()),
            Framing::Events => {
                // Other fields, and comments that keep a connection alive, hold nothing that is needed.
                let Some(text) = line.strip_prefix(b"data:") else {
                    return;
                };
                let text = text.strip_prefix(b" ").unwrap_or(text);
                match &mut self.data {
                    Some(data) => {
                        data.push(b'\n');
                        data.extend_from_slice(text);
                    }
                    None => self.data = Some(text.to_vec()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(framing: Framing, text: &[u8], size: usize) -> Vec<String> {
        let mut splitter = Splitter::new(framing);
        let mut events = Vec::new();
        for piece in text.chunks(size) {
            splitter.push(piece, &mut events);
        }
        splitter.finish(&mut events);
        events
            .iter()
            .map(|event| String::from_utf8_lossy(event).into_owned())
            .collect()
    }

    #[test]
    fn streams_are_split_at_any_byte() {
        let events = b": ping\r\n\r\nevent: a\r\ndata: {\"x\":\r\ndata: 1}\r\n\r\ndata:2\n\ndata: [DONE]\n";
        let lines = b"{\"a\":1}\n\n{\"b\":2}\r\n{\"c\":3}";
        for size in 1..events.len() {
            assert_eq!(
                split(Framing::Events, events, size),
                ["{\"x\":\n1}", "2", "[DONE]"]
            );
            assert_eq!(
                split(Framing::Lines, lines, size),
                ["{\"a\":1}", "{\"b\":2}", "{\"c\":3}"]
            );
        }
    }
}
