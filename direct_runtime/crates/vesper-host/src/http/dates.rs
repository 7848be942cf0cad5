//! Dates of the header `Retry-After`.

use vesper_ir::time::Civil;

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

/// Returns the seconds since 1970 of a date in one of the three forms of RFC 9110, or with an offset as mails have it.
pub(super) fn parse(text: &str) -> Option<i64> {
    let mut words: Vec<&str> = text
        .split([' ', ',', '-'])
        .filter(|word| !word.is_empty())
        .collect();
    let is_weekday =
        |word: &&str| word.len() >= 3 && month_of(word).is_none() && word.parse::<i64>().is_err();
    if words.first().is_some_and(is_weekday) {
        words.remove(0);
    }
    let (day, month, year, time, zone) = match words.as_slice() {
        // `Oct 21 07:28:00 2015`.
        [month, day, time, year] if month_of(month).is_some() => (*day, *month, *year, *time, "GMT"),
        [day, month, year, time] => (*day, *month, *year, *time, "GMT"),
        // A minus sign of the offset was split off.
        [day, month, year, time, zone] => (*day, *month, *year, *time, *zone),
        _ => return None,
    };
    let year = digits(year)?;
    let year = match year {
        0..=68 => year + 2000,
        69..=99 => year + 1900,
        _ => year,
    };
    let day = Civil::new(
        i32::try_from(year).ok()?,
        month_of(month)?,
        i32::try_from(digits(day)?).ok()?,
    )?;
    let mut clock = time.split(':').map(digits);
    let (hour, minute) = (clock.next()??, clock.next()??);
    let second = clock.next().unwrap_or(Some(0))?;
    if hour > 23 || minute > 59 || second > 60 || clock.next().is_some() {
        return None;
    }
    let is_negative = text
        .trim_end()
        .rsplit(' ')
        .next()
        .is_some_and(|last| last.starts_with('-'));
    let offset = offset(zone)? * if is_negative { -1 } else { 1 };
    Some(i64::from(day.to_date()) * 86400 + hour * 3600 + minute * 60 + second - offset)
}

fn month_of(word: &str) -> Option<i32> {
    let word = word.to_ascii_lowercase();
    let place = MONTHS.iter().position(|month| *month == word)?;
    i32::try_from(place + 1).ok()
}

fn digits(text: &str) -> Option<i64> {
    let is_short = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_short.then(|| text.parse().ok()).flatten()
}

/// Returns the seconds of an offset without its sign.
fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "GMT" | "UTC" | "UT" | "Z") {
        return Some(0);
    }
    let number = digits(zone.trim_start_matches('+')).filter(|_| zone.len() >= 4)?;
    Some((number / 100) * 3600 + (number % 100) * 60)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn the_forms_of_http_are_read() {
        for text in [
            "Wed, 21 Oct 2015 07:28:00 GMT",
            "Wednesday, 21-Oct-15 07:28:00 GMT",
            "Wed Oct 21 07:28:00 2015",
            "21 Oct 2015 09:28:00 +0200",
            "21 Oct 2015 05:28:00 -0200",
        ] {
            assert_eq!(parse(text), Some(1_445_412_480), "{text}");
        }
        assert_eq!(parse("Fri, 31 Dec 9999 23:59:59 GMT"), Some(253_402_300_799));
    }

    #[test]
    fn other_texts_are_no_dates() {
        for text in [
            "",
            "soon",
            "-1",
            "1.5",
            "\u{663}",
            "Wed, 99 Oct 2015 07:28:00 GMT",
            "Wed, 21 Oct 2015 24:28:00 GMT",
            "Wed, 21 Oct 2015",
            "21 Oct 2015 07:28:00 ABCD",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
