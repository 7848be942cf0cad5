//! Unicode normalisation forms.

use super::tables::{CANONICAL, CLASSES, COMPATIBLE, COMPOSED};
use crate::NormalForm;

/// Hangul syllables: first one, first leading consonant, first vowel, and the code point before the first trailing
/// consonant; and the numbers of syllables, vowels and trailing consonants with none.
const SYLLABLE: u32 = 0xac00;
const LEAD: u32 = 0x1100;
const VOWEL: u32 = 0x1161;
const TRAIL: u32 = 0x11a7;
const SYLLABLES: u32 = 11_172;
const LEADS: u32 = 19;
const VOWELS: u32 = 21;
const TRAILS: u32 = 28;

/// Returns the text in a normalisation form.
pub fn normalize(text: &str, form: NormalForm) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let is_compatible = matches!(form, NormalForm::Nfkc | NormalForm::Nfkd);
    let mut found = Vec::with_capacity(text.len());
    for char in text.chars() {
        decompose(char, is_compatible, &mut found);
    }
    sort_marks(&mut found);
    if matches!(form, NormalForm::Nfc | NormalForm::Nfkc) {
        compose(&mut found);
    }
    found.into_iter().map(|(char, _)| char).collect()
}

/// Appends the full decomposition with the combining class of each part. Steps end after few levels.
fn decompose(char: char, is_compatible: bool, onto: &mut Vec<(char, u8)>) {
    if let Some(place) = u32::from(char)
        .checked_sub(SYLLABLE)
        .filter(|place| *place < SYLLABLES)
    {
        let parts = [
            LEAD + place / (VOWELS * TRAILS),
            VOWEL + place / TRAILS % VOWELS,
            TRAIL + place % TRAILS,
        ];
        let parts = parts.into_iter().filter(|part| *part != TRAIL);
        onto.extend(parts.filter_map(char::from_u32).map(|part| (part, 0)));
        return;
    }
    let step = find(CANONICAL, char).or_else(|| {
        if is_compatible {
            find(COMPATIBLE, char)
        } else {
            None
        }
    });
    match step {
        Some(parts) => parts
            .chars()
            .for_each(|part| decompose(part, is_compatible, onto)),
        None => onto.push((char, class(char))),
    }
}

fn find(table: &'static [(char, &'static str)], char: char) -> Option<&'static str> {
    let place = table.binary_search_by_key(&char, |(of, _)| *of).ok()?;
    table.get(place).map(|(_, parts)| *parts)
}

/// Returns the canonical combining class.
fn class(char: char) -> u8 {
    let code = u32::from(char);
    let place = CLASSES.partition_point(|(_, last, _)| *last < code);
    match CLASSES.get(place) {
        Some((first, _, class)) if *first <= code => *class,
        _ => 0,
    }
}

/// Sorts each run of marks by class. The sort keeps the order of marks of one class.
fn sort_marks(text: &mut [(char, u8)]) {
    for marks in text.split_mut(|(_, class)| *class == 0) {
        marks.sort_by_key(|(_, class)| *class);
    }
}

/// Joins each starter with what follows it where a primary composite exists and nothing is in between.
fn compose(text: &mut Vec<(char, u8)>) {
    let mut kept: Vec<(char, u8)> = Vec::with_capacity(text.len());
    let mut starter: Option<usize> = None;
    for (char, class) in text.drain(..) {
        let last = kept.last().map_or(0, |(_, class)| *class);
        if let Some(place) = starter
            && (place + 1 == kept.len() || last < class)
            && let Some((first, _)) = kept.get_mut(place)
            && let Some(joined) = composite(*first, char)
        {
            *first = joined;
            continue;
        }
        if class == 0 {
            starter = Some(kept.len());
        }
        kept.push((char, class));
    }
    *text = kept;
}

fn composite(first: char, second: char) -> Option<char> {
    let (left, right) = (u32::from(first), u32::from(second));
    if (LEAD..LEAD + LEADS).contains(&left) && (VOWEL..VOWEL + VOWELS).contains(&right) {
        return char::from_u32(SYLLABLE + ((left - LEAD) * VOWELS + right - VOWEL) * TRAILS);
    }
    if (SYLLABLE..SYLLABLE + SYLLABLES).contains(&left)
        && (left - SYLLABLE).is_multiple_of(TRAILS)
        && (TRAIL + 1..TRAIL + TRAILS).contains(&right)
    {
        return char::from_u32(left + right - TRAIL);
    }
    let pair = (first, second);
    let place = COMPOSED
        .binary_search_by_key(&pair, |(left, right, _)| (*left, *right))
        .ok()?;
    COMPOSED.get(place).map(|(_, _, joined)| *joined)
}
