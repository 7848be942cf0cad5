//! Parser of the grammar of docs/spec/regex.md.

use std::collections::HashMap;

use crate::unicode::Category;

use super::class::{Class, Ranges};
use super::{
    Anchor, MAX_COUNT, MAX_DEPTH, MAX_GROUPS, MAX_INSTRUCTIONS, MAX_LENGTH, Part, PatternError, Tree,
};

type Parsed<T> = Result<T, PatternError>;

pub(super) fn parse(text: &str) -> Parsed<Tree> {
    let mut parser = Parser {
        chars: text.chars().collect(),
        at: 0,
        ignores_case: false,
        dot_takes_newlines: false,
        classes: HashMap::new(),
        groups: 0,
        depth: 0,
    };
    if parser.chars.len() > MAX_LENGTH {
        return Err(parser.error("it has more than 1,000 code points"));
    }
    parser.flags()?;
    let root = parser.alternation()?;
    if parser.at < parser.chars.len() {
        return Err(parser.error("there is no `(` for this `)`"));
    }
    if root.size() > MAX_INSTRUCTIONS {
        return Err(parser.error("it has more than 10,000 instructions"));
    }
    let mut classes: Vec<(Class, u32)> = parser.classes.into_iter().collect();
    classes.sort_unstable_by_key(|(_, number)| *number);
    Ok(Tree {
        root,
        classes: classes.into_iter().map(|(class, _)| class).collect(),
        groups: parser.groups,
    })
}

/// Item of a class: one code point, or a set of them.
enum Item {
    Char(char),
    Several(Ranges),
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    ignores_case: bool,
    dot_takes_newlines: bool,
    /// Numbers of the distinct classes.
    classes: HashMap<Class, u32>,
    groups: u32,
    depth: u32,
}

impl Parser {
    fn error(&self, what: &'static str) -> PatternError {
        PatternError { at: self.at, what }
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let char = self.peek()?;
        self.at += 1;
        Some(char)
    }

    /// Consumes this text if it comes next.
    fn take(&mut self, text: &str) -> bool {
        let rest = self.chars.get(self.at..).unwrap_or(&[]);
        let length = text.chars().count();
        let is_next = rest.len() >= length && text.chars().zip(rest).all(|(own, found)| own == *found);
        self.at += if is_next { length } else { 0 };
        is_next
    }

    /// Reads the flags, which are permitted only at the start; `(?:` is not a flag.
    fn flags(&mut self) -> Parsed<()> {
        if self.chars.get(2) == Some(&':') || !self.take("(?") {
            return Ok(());
        }
        let mut count = 0;
        while let Some(flag) = self.next() {
            let is_set = match flag {
                ')' if count > 0 => return Ok(()),
                'i' => &mut self.ignores_case,
                's' => &mut self.dot_takes_newlines,
                _ => break,
            };
            if std::mem::replace(is_set, true) {
                return Err(self.error("a flag is given twice"));
            }
            count += 1;
        }
        Err(self.error("after `(?` come the flags `i` and `s`, or `:`"))
    }

    fn alternation(&mut self) -> Parsed<Part> {
        let first = self.sequence()?;
        if self.peek() != Some('|') {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.take("|") {
            parts.push(self.sequence()?);
        }
        Ok(Part::Alternation(parts))
    }

    fn sequence(&mut self) -> Parsed<Part> {
        let mut parts = Vec::new();
        while let Some(char) = self.peek() {
            if matches!(char, '|' | ')') {
                break;
            }
            parts.push(self.item()?);
        }
        Ok(Part::Sequence(parts))
    }

    fn item(&mut self) -> Parsed<Part> {
        for (text, anchor) in [
            ("^", Anchor::Start),
            ("$", Anchor::End),
            (r"\b", Anchor::WordBoundary),
            (r"\B", Anchor::NoWordBoundary),
        ] {
            if self.take(text) {
                return Ok(Part::Anchor(anchor));
            }
        }
        let of = self.atom()?;
        let (least, most) = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => self.counts()?,
            _ => return Ok(of),
        };
        self.at += 1;
        if most.is_none() && of.can_be_empty() {
            return Err(self.error("an unbounded repetition can match the empty string"));
        }
        let is_lazy = self.take("?");
        Ok(Part::Repeat {
            of: Box::new(of),
            least,
            most,
            is_lazy,
        })
    }

    /// Reads `{m}`, `{m,}` or `{m,n}`, up to the closing brace.
    fn counts(&mut self) -> Parsed<(u32, Option<u32>)> {
        self.at += 1;
        let least = self.count()?;
        let most = if !self.take(",") {
            Some(least)
        } else if self.peek() == Some('}') {
            None
        } else {
            Some(self.count()?)
        };
        if self.peek() != Some('}') {
            return Err(self.error("a count ends with `}`"));
        }
        if most.is_some_and(|most| most < least) {
            return Err(self.error("the second count is less than the first"));
        }
        Ok((least, most))
    }

    fn count(&mut self) -> Parsed<u32> {
        let start = self.at;
        let mut count = 0_u32;
        while let Some(digit) = self.peek().and_then(|char| char.to_digit(10)) {
            self.at += 1;
            count = count.saturating_mul(10).saturating_add(digit);
        }
        if self.at == start {
            return Err(self.error("a count is missing"));
        }
        if count > MAX_COUNT {
            return Err(self.error("a count is at most 1,000"));
        }
        Ok(count)
    }

    fn atom(&mut self) -> Parsed<Part> {
        let Some(char) = self.next() else {
            return Err(self.error("the pattern ends too early"));
        };
        match char {
            '(' => self.group(),
            '[' => self.class(),
            '.' if self.dot_takes_newlines => Ok(self.class_of(Ranges::default().complement())),
            '.' => {
                let mut newline = Ranges::default();
                newline.add('\n', '\n');
                Ok(self.class_of(newline.complement()))
            }
            '\\' => Ok(match self.escape()? {
                Item::Char(char) => self.literal(char),
                Item::Several(ranges) => self.class_of(ranges),
            }),
            '?' | '*' | '+' | '{' => Err(self.error("there is nothing to repeat")),
            ']' | '}' => Err(self.error("a literal bracket needs `\\` before it")),
            char => Ok(self.literal(char)),
        }
    }

    fn literal(&mut self, char: char) -> Part {
        match self.ignores_case.then(|| Ranges::of_case(char)).flatten() {
            Some(alike) => self.class_of(alike),
            None => Part::Char(char),
        }
    }

    fn class_of(&mut self, ranges: Ranges) -> Part {
        let next = u32::try_from(self.classes.len()).unwrap_or(u32::MAX);
        Part::Class(*self.classes.entry(ranges.into_class()).or_insert(next))
    }

    fn group(&mut self) -> Parsed<Part> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("brackets nest more than 50 levels deep"));
        }
        let number = if self.take("?:") {
            None
        } else if self.peek() == Some('?') {
            return Err(self.error("no look-around, no named groups, no flags inside"));
        } else {
            self.groups += 1;
            if self.groups > MAX_GROUPS {
                return Err(self.error("it has more than 100 groups"));
            }
            Some(self.groups)
        };
        let of = self.alternation()?;
        if !self.take(")") {
            return Err(self.error("a bracket is not closed"));
        }
        self.depth -= 1;
        Ok(match number {
            Some(number) => Part::Group(number, Box::new(of)),
            None => of,
        })
    }

    fn class(&mut self) -> Parsed<Part> {
        let is_negated = self.take("^");
        let start = self.at;
        // SEMANTICS: `i` folds literal characters; an escape has the same meaning as outside a class.
        let (mut written, mut escaped) = (Ranges::default(), Ranges::default());
        while !self.take("]") {
            let is_first = self.at == start;
            match self.class_item(is_first)? {
                Item::Several(ranges) => escaped.add_all(&ranges),
                Item::Char(first) => {
                    let last = self.range_end()?.unwrap_or(first);
                    if last < first {
                        return Err(self.error("the range ends before it begins"));
                    }
                    written.add(first, last);
                }
            }
        }
        if self.at == start + 1 {
            return Err(self.error("the class is empty"));
        }
        if self.ignores_case {
            written = written.fold_case();
        }
        written.add_all(&escaped);
        let members = if is_negated { written.complement() } else { written };
        Ok(self.class_of(members))
    }

    fn class_item(&mut self, is_first: bool) -> Parsed<Item> {
        match self.next() {
            None => Err(self.error("the class is not closed")),
            Some('\\') => self.escape(),
            Some('[') => Err(self.error("`[` in a class has `\\` before it")),
            Some('-') if !is_first && self.peek() != Some(']') => {
                Err(self.error("a literal `-` is first or last in a class"))
            }
            Some(char) => Ok(Item::Char(char)),
        }
    }

    /// Reads the end of a range, if there is one. A `-` before the closing bracket is literal.
    fn range_end(&mut self) -> Parsed<Option<char>> {
        if self.peek() != Some('-') || self.chars.get(self.at + 1) == Some(&']') {
            return Ok(None);
        }
        self.at += 1;
        match self.class_item(true)? {
            Item::Char(char) => Ok(Some(char)),
            Item::Several(_) => Err(self.error("a range ends with one code point")),
        }
    }

    /// Reads an escape after `\`, inside or outside a class.
    fn escape(&mut self) -> Parsed<Item> {
        let Some(char) = self.next() else {
            return Err(self.error("there is nothing after `\\`"));
        };
        let mut ranges = Ranges::default();
        match char.to_ascii_lowercase() {
            'd' => ranges.add('0', '9'),
            'w' => {
                ranges.add('0', '9');
                ranges.add('A', 'Z');
                ranges.add('_', '_');
                ranges.add('a', 'z');
            }
            's' => {
                ranges.add('\t', '\r');
                ranges.add(' ', ' ');
            }
            'p' => ranges = self.categories()?,
            _ => return self.char_escape(char).map(Item::Char),
        }
        let is_negated = char.is_ascii_uppercase();
        Ok(Item::Several(if is_negated {
            ranges.complement()
        } else {
            ranges
        }))
    }

    fn categories(&mut self) -> Parsed<Ranges> {
        let start = self.at + 1;
        let is_open = self.take("{");
        while is_open && self.peek().is_some_and(|char| char.is_ascii_alphabetic()) {
            self.at += 1;
        }
        let name: String = self.chars.get(start..self.at).unwrap_or(&[]).iter().collect();
        let is_wanted = |category: Category| {
            category.name() == name || name.len() == 1 && category.name().starts_with(name.as_str())
        };
        if !self.take("}") || !Category::ALL.iter().any(|category| is_wanted(*category)) {
            return Err(self.error("`\\p` names a general category: `\\p{L}`, `\\p{Lu}`"));
        }
        Ok(Ranges::of_categories(is_wanted))
    }

    fn char_escape(&mut self, char: char) -> Parsed<char> {
        Ok(match char {
            't' => '\t',
            'n' => '\n',
            'r' => '\r',
            'f' => '\u{c}',
            'v' => '\u{b}',
            'x' => {
                let digits = [self.next(), self.next()];
                self.code_point(digits.into_iter().collect::<Option<Vec<char>>>())?
            }
            'u' => {
                let is_open = self.take("{");
                let start = self.at;
                while is_open && self.peek().is_some_and(|char| char.is_ascii_hexdigit()) {
                    self.at += 1;
                }
                let digits = self.chars.get(start..self.at).map(<[char]>::to_vec);
                let digits = digits.filter(|digits| !digits.is_empty());
                if !self.take("}") {
                    return Err(self.error("a code point is written `\\u{…}`, in hexadecimal"));
                }
                self.code_point(digits)?
            }
            char if char.is_ascii_punctuation() => char,
            _ => return Err(self.error("there is no such escape")),
        })
    }

    fn code_point(&self, digits: Option<Vec<char>>) -> Parsed<char> {
        let number = digits.and_then(|digits| {
            digits.iter().try_fold(0_u32, |number, digit| {
                Some(number.saturating_mul(16).saturating_add(digit.to_digit(16)?))
            })
        });
        let char = number.and_then(char::from_u32);
        char.ok_or_else(|| self.error("these digits are not a code point"))
    }
}
