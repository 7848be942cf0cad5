//! Kernels of the `regex` family.

use std::ops::Range;
use std::sync::Arc;

use vesper_ir::limits::TEXT_LENGTH;
use vesper_ir::pattern::Pattern;
use vesper_ir::{ErrorCode, RegexKernels, Value};

use crate::{Native, within_items};

mod search;

use search::Searcher;

/// Iterator over the matches from left to right, without overlap.
struct Matches<'a> {
    searcher: Searcher<'a>,
    text: &'a str,
    /// Start of the next search; `None` after the last one.
    from: Option<usize>,
    /// End of the previous match.
    ended: Option<usize>,
}

impl<'a> Matches<'a> {
    fn new(text: &'a str, pattern: &'a Pattern) -> Self {
        Self {
            searcher: Searcher::new(pattern, text, false),
            text,
            from: may_match(text, pattern).then_some(0),
            ended: None,
        }
    }
}

impl Iterator for Matches<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        loop {
            let found = self.searcher.search(self.from.take()?)?;
            // SEMANTICS: an empty match directly after the previous match is skipped. Python's `findall` returns it.
            if found.is_empty() && self.ended == Some(found.end) {
                let next = self.text.get(found.end..)?.chars().next();
                self.from = next.map(|char| found.end + char.len_utf8());
                continue;
            }
            self.from = Some(found.end);
            self.ended = Some(found.end);
            return Some(found);
        }
    }
}

/// Returns false only where there is no match. This is the common case and cheaper than finding a match.
fn may_match(value: &str, pattern: &Pattern) -> bool {
    pattern.matches(value) != Some(false)
}

fn text_of(value: &str, part: Range<usize>) -> Value {
    Value::Text(Arc::from(value.get(part).unwrap_or("")))
}

fn matches(value: &str, pattern: &Pattern) -> bool {
    let told = pattern.matches(value);
    told.unwrap_or_else(|| Searcher::new(pattern, value, false).search(0).is_some())
}

fn find(value: &str, pattern: &Pattern) -> Option<Value> {
    let found = Matches::new(value, pattern).next()?;
    Some(text_of(value, found))
}

fn find_all(value: &str, pattern: &Pattern) -> Result<Arc<[Value]>, ErrorCode> {
    let mut found = Vec::new();
    for part in Matches::new(value, pattern) {
        within_items(found.len().saturating_add(1))?;
        found.push(text_of(value, part));
    }
    Ok(Arc::from(found))
}

fn groups(value: &str, pattern: &Pattern) -> Option<Value> {
    if !may_match(value, pattern) {
        return None;
    }
    let mut searcher = Searcher::new(pattern, value, true);
    let whole = searcher.search(0)?;
    let groups = (1..=pattern.groups()).map(|number| searcher.group(number));
    let parts = [Some(whole)].into_iter().chain(groups);
    let parts = parts.map(|part| Value::from_optional(part.map(|part| text_of(value, part))));
    Some(Value::Array(parts.collect()))
}

fn replace(value: &str, pattern: &Pattern, new: &str) -> Result<Arc<str>, ErrorCode> {
    let length_of_new = new.chars().count();
    let mut result = String::new();
    let (mut length, mut from) = (0_usize, 0);
    // The length is checked while building: the result may be a million times longer than the inputs.
    let mut push = |part: &str, counted: usize| {
        length = length.saturating_add(counted);
        if length > TEXT_LENGTH {
            return Err(ErrorCode::TooLarge);
        }
        result.push_str(part);
        Ok(())
    };
    for found in Matches::new(value, pattern) {
        let kept = value.get(from..found.start).unwrap_or("");
        push(kept, kept.chars().count())?;
        push(new, length_of_new)?;
        from = found.end;
    }
    let kept = value.get(from..).unwrap_or("");
    push(kept, kept.chars().count())?;
    Ok(Arc::from(result))
}

fn split(value: &str, pattern: &Pattern) -> Result<Arc<[Value]>, ErrorCode> {
    let mut parts = Vec::new();
    let mut from = 0;
    for found in Matches::new(value, pattern) {
        // Includes the part after the last match.
        within_items(parts.len().saturating_add(2))?;
        parts.push(text_of(value, from..found.start));
        from = found.end;
    }
    parts.push(text_of(value, from..value.len()));
    Ok(Arc::from(parts))
}

impl RegexKernels for Native {
    fn regex_matches(&self, value: &str, pattern: &Pattern) -> bool {
        matches(value, pattern)
    }

    fn regex_find(&self, value: &str, pattern: &Pattern) -> Option<Value> {
        find(value, pattern)
    }

    fn regex_find_all(&self, value: &str, pattern: &Pattern) -> Result<Arc<[Value]>, ErrorCode> {
        find_all(value, pattern)
    }

    fn regex_groups(&self, value: &str, pattern: &Pattern) -> Option<Value> {
        groups(value, pattern)
    }

    fn regex_replace(&self, value: &str, pattern: &Pattern, new: &str) -> Result<Arc<str>, ErrorCode> {
        replace(value, pattern, new)
    }

    fn regex_split(&self, value: &str, pattern: &Pattern) -> Result<Arc<[Value]>, ErrorCode> {
        split(value, pattern)
    }
}

#[cfg(test)]
mod tests;
