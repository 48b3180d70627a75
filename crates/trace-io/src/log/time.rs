//! Times as logs write them, as seconds.
//!
//! Dates become seconds since 1970-01-01 00:00 UTC; one without a zone is taken as UTC. As an `f64` such a time is
//! exact to a quarter of a microsecond. Plain numbers stay as they are, unless their unit is named.

use jiff::civil::DateTime;
use jiff::fmt::strtime::BrokenDownTime;
use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::Offset;
use jiff::{Error as JiffError, Timestamp};

use super::hints::{FROM_NANOSECONDS, Fault, OTHER_TIMES, WITHOUT_TIMES};
use super::options::{LogOptions, TimeUnit};
use super::shorten;

/// Whole numbers up to here have no neighbors that look the same.
pub(super) const EXACT: f64 = 9_007_199_254_740_992.0;
/// Times longer than this are no times.
const LONGEST: usize = 64;
/// Where a format has no year: a leap year, so that 29 February is a day of it.
const SOME_YEAR: i16 = 1972;

static PARSER: DateTimeParser = DateTimeParser::new();

/// How the times of one log are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TimeStyle {
    /// Numbers.
    Number(Option<TimeUnit>),
    /// ISO 8601 and its relatives.
    Date,
    /// As the user says, in the notation of `strftime`.
    Format(String),
}

impl TimeStyle {
    /// What the options say, or how this time is written; `None` if that is not known.
    pub(super) fn of(text: &[u8], options: &LogOptions) -> Option<Self> {
        if let Some(format) = &options.time_format {
            return Some(Self::Format(format.clone()));
        }
        let text = text.trim_ascii();
        if no_time(text).is_some() {
            return None;
        }
        if std::str::from_utf8(text).is_ok_and(|text| text.parse::<f64>().is_ok()) {
            return Some(Self::Number(options.time_unit));
        }
        date(text).is_ok().then_some(Self::Date)
    }

    /// Whether times count from 1970.
    pub(super) const fn dated(&self) -> bool {
        !matches!(self, Self::Number(_))
    }

    /// The time in seconds, or what was expected and what was found.
    pub(super) fn parse(&self, text: &[u8]) -> Result<f64, Fault> {
        let text = text.trim_ascii();
        let parsed = match self {
            Self::Number(unit) => number(text, *unit),
            Self::Date => quick(text).map_or_else(|| date(text), Ok).map_err(|error| {
                let expected = "expected a time like 2024-05-31T17:30:00Z or 2024-05-31 17:30:00.5";
                Fault::new(format!("{expected}, found {}: {}", quoted(text), plain(&error))).hint(OTHER_TIMES)
            }),
            Self::Format(format) => formatted(format, text).map_err(|error| {
                Fault::new(format!("expected a time like {format:?}, found {}: {}", quoted(text), plain(&error)))
            }),
        };
        parsed.map_err(|fault| no_time(text).unwrap_or(fault))
    }
}

/// A time whose style no row has settled yet.
pub(super) fn unreadable(text: &[u8]) -> Fault {
    let text = text.trim_ascii();
    if let Some(fault) = no_time(text) {
        return fault;
    }
    let found = format!("expected a number or a time like 2024-05-31T17:30:00Z, found {}", quoted(text));
    let reason = match date(text) {
        Err(error) if text.len() <= LONGEST && text.first().is_some_and(u8::is_ascii_digit) => {
            format!("{found}: {}", plain(&error))
        }
        _ => found,
    };
    Fault::new(reason).hint(OTHER_TIMES).hint(WITHOUT_TIMES)
}

/// What programs write where there is no time.
const MISSING: [&str; 10] = ["?", "-", "na", "n/a", "#n/a", "nat", "none", "null", "nil", "\\n"];

/// What is wrong with a text that stands for a missing time.
pub(super) fn no_time(text: &[u8]) -> Option<Fault> {
    let text = text.trim_ascii();
    if text.is_empty() {
        return Some(empty_time());
    }
    if MISSING.iter().any(|missing| text.eq_ignore_ascii_case(missing.as_bytes())) {
        let reason = format!("{} stands for no time; expected a time", quoted(text));
        return Some(Fault::new(reason).hint(OTHER_TIMES).hint(WITHOUT_TIMES));
    }
    // A number with digits may be too large to be finite here, but is none of NaN and infinity.
    let word = text.len() <= LONGEST && !text.iter().any(u8::is_ascii_digit);
    not_finite(word.then(|| std::str::from_utf8(text).ok()?.parse().ok())??)
}

/// What is wrong with NaN and infinity.
pub(super) fn not_finite(number: f64) -> Option<Fault> {
    let reason = match number {
        _ if number.is_nan() => "time NaN is not a number; expected a time".to_owned(),
        _ if number.is_infinite() => format!("time {number} is not finite; expected a time"),
        _ => return None,
    };
    Some(Fault::new(reason).hint(WITHOUT_TIMES))
}

pub(super) fn empty_time() -> Fault {
    Fault::new("is empty; expected a time").hint(WITHOUT_TIMES)
}

/// Text for a message, whatever its bytes are.
pub(super) fn quoted(text: &[u8]) -> String {
    format!("{:?}", shorten(&String::from_utf8_lossy(text)))
}

/// The first clause of an error: jiff names the input again after it.
fn plain(error: &JiffError) -> String {
    let text = error.to_string();
    shorten(text.rsplit(": ").next().unwrap_or(&text))
}

fn number(text: &[u8], unit: Option<TimeUnit>) -> Result<f64, Fault> {
    let expected = || Fault::new(format!("expected a number, as in the rows before, found {}", quoted(text)));
    let text = std::str::from_utf8(text).map_err(|_| expected())?;
    let Some(unit) = unit else {
        let number: f64 = text.parse().map_err(|_| expected())?;
        let too_large = || Fault::new(format!("time {} is too large to be exact", shorten(text)));
        return within(number).ok_or_else(|| too_large().hint(FROM_NANOSECONDS));
    };
    // Whole numbers are divided before they are rounded.
    let seconds = match text.parse::<i64>() {
        Ok(whole) => in_seconds(whole, unit),
        Err(_) => text.parse::<f64>().map_err(|_| expected())? / unit.per_second() as f64,
    };
    within(seconds).ok_or_else(|| Fault::new(format!("time {} is out of range", shorten(text))))
}

fn within(number: f64) -> Option<f64> {
    (number.abs() <= EXACT).then_some(number)
}

/// A whole number of units in seconds.
pub(super) fn in_seconds(whole: i64, unit: TimeUnit) -> f64 {
    let per_second = unit.per_second();
    (whole / per_second) as f64 + (whole % per_second) as f64 / per_second as f64
}

/// The most common ways to write a date since 1970, several times as fast as [`date`] and with the same result;
/// `None` for everything else, also for what is wrong.
fn quick(text: &[u8]) -> Option<f64> {
    let (head, mut rest) = text.split_at_checked(19)?;
    let separated = matches!(head[4], b'-' | b'/') && head[7] == head[4] && matches!(head[10], b'T' | b' ');
    if !separated || head[13] != b':' || head[16] != b':' {
        return None;
    }
    let two = |at: usize| -> Option<i64> {
        let (tens, ones) = (head[at].wrapping_sub(b'0'), head[at + 1].wrapping_sub(b'0'));
        (tens < 10 && ones < 10).then(|| i64::from(tens) * 10 + i64::from(ones))
    };
    let (year, month, day) = (two(0)? * 100 + two(2)?, two(5)?, two(8)?);
    let (hour, minute, second) = (two(11)?, two(14)?, two(17)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let exists = (1..=12).contains(&month) && (1..=days).contains(&day) && hour < 24 && minute < 60 && second < 60;
    if year < 1971 || !exists {
        return None;
    }
    let mut nanoseconds = 0i64;
    if let Some(fraction) = rest.strip_prefix(b".") {
        let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if !(1..=9).contains(&digits) {
            return None;
        }
        for digit in fraction[..digits].iter().chain(b"000000000").take(9) {
            nanoseconds = nanoseconds * 10 + i64::from(digit - b'0');
        }
        rest = &fraction[digits..];
    }
    let offset = match rest {
        [] | [b'Z'] => 0,
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] | [sign @ (b'+' | b'-'), h1, h2, m1, m2] => {
            if ![h1, h2, m1, m2].iter().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            let number = |tens: &u8, ones: &u8| i64::from(tens - b'0') * 10 + i64::from(ones - b'0');
            let (hours, minutes) = (number(h1, h2), number(m1, m2));
            if hours > 23 || minutes > 59 {
                return None;
            }
            let size = hours * 3600 + minutes * 60;
            if *sign == b'-' { -size } else { size }
        }
        _ => return None,
    };
    // Days since 1970-01-01, in years that begin in March, so that a leap day is the last of its year.
    let (shifted, from_march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + (153 * from_march + 2) / 5 + day - 719_469;
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset;
    Some(seconds as f64 + nanoseconds as f64 / 1e9)
}

/// ISO 8601, also with a space for the `T`, with `/` or `.` in the date, without seconds or without a time of day.
fn date(text: &[u8]) -> Result<f64, JiffError> {
    if text.len() > 10 && text.len() <= LONGEST && (text[4] == b'/' || text[4] == b'.') && text[7] == text[4] {
        let mut copy = [0; LONGEST];
        copy[..text.len()].copy_from_slice(text);
        (copy[4], copy[7]) = (b'-', b'-');
        return dashed(&copy[..text.len()]);
    }
    if text.len() == 10 && (text[4] == b'/' || text[4] == b'.') && text[7] == text[4] {
        return date(&[text, b" 00:00"].concat());
    }
    dashed(text)
}

fn dashed(text: &[u8]) -> Result<f64, JiffError> {
    // Dates have hyphens of their own; after them a sign or a Z is a zone.
    let zoned = text.get(10..).is_some_and(|rest| rest.iter().any(|byte| matches!(byte, b'Z' | b'z' | b'+' | b'-')));
    if zoned { PARSER.parse_timestamp(text).map(seconds) } else { utc(PARSER.parse_datetime(text)?) }
}

fn formatted(format: &str, text: &[u8]) -> Result<f64, JiffError> {
    let mut parsed = BrokenDownTime::parse(format, text)?;
    if parsed.timestamp().is_some() {
        return parsed.to_timestamp().map(seconds);
    }
    let dated = parsed.year().is_some() || parsed.month().is_some() || parsed.day().is_some();
    if !dated && parsed.hour().is_some() {
        // A time of day alone: seconds since midnight.
        return utc(jiff::civil::date(1970, 1, 1).to_datetime(parsed.to_time()?));
    }
    if parsed.year().is_none() && parsed.month().is_some() {
        parsed.set_year(Some(SOME_YEAR))?;
    }
    if parsed.offset().is_some() { parsed.to_timestamp().map(seconds) } else { utc(parsed.to_datetime()?) }
}

fn utc(time: DateTime) -> Result<f64, JiffError> {
    Offset::UTC.to_timestamp(time).map(seconds)
}

fn seconds(time: Timestamp) -> f64 {
    time.as_second() as f64 + f64::from(time.subsec_nanosecond()) / 1e9
}

/// A time for people, in whole seconds, where times are dates: `2024-05-31T17:30:00Z`. It counts in seconds since
/// 1970-01-01 00:00 UTC; `None` if that is no date.
pub fn show_time(seconds: f64) -> Option<String> {
    let whole = Some(seconds.floor()).filter(|whole| whole.is_finite())?;
    Some(Timestamp::from_second(whole as i64).ok()?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<f64> {
        let style = TimeStyle::of(text.as_bytes(), &LogOptions::default())?;
        style.parse(text.as_bytes()).ok()
    }

    #[test]
    fn common_ways_to_write_one_time() {
        for text in [
            "2014-10-22T11:15:41Z",
            "2014-10-22 11:15:41",
            "2014/10/22 11:15:41.000",
            "2014.10.22 11:15:41",
            "2014-10-22T13:15:41+02:00",
            "2014-10-22 13:15:41.000000+0200",
            "2014-10-22T13:15:41.000+02:00[Europe/Amsterdam]",
            "20141022T111541Z",
            "1413976541",
            " 1413976541.0 ",
        ] {
            assert_eq!(read(text), Some(1_413_976_541.0), "{text}");
        }
        assert_eq!(read("2014-10-22"), Some(1_413_936_000.0));
        assert_eq!(read("2014/10/22"), Some(1_413_936_000.0));
        assert_eq!(read("2014-10-22 11:15"), Some(1_413_976_500.0));
        assert_eq!(read("1969-12-31T23:59:59.25Z"), Some(-0.75));
    }

    proptest::proptest! {
        /// The fast way gives what the slow one gives, and nothing where that gives nothing.
        #[test]
        fn quick_dates_are_dates(
            year in 1960..2110, month in 0..14, day in 0..33, time in "[0-2][0-9]:[0-6][0-9]:[0-6][0-9]",
            sign in "[-/]", between in "[T ]", fraction in "(\\.[0-9]{0,10})?", zone in "(Z|[-+][0-2][0-9]:?[0-6][0-9])?",
        ) {
            let text = format!("{year}{sign}{month:02}{sign}{day:02}{between}{time}{fraction}{zone}");
            if let Some(found) = quick(text.as_bytes()) {
                proptest::prop_assert_eq!(date(text.as_bytes()).ok(), Some(found), "{}", text);
            }
        }
    }

    #[test]
    fn dates_that_do_not_exist() {
        for text in ["2023-02-29T10:00:00Z", "2023-13-01", "2023/04/31 10:00:00", "2023-01-01 25:00:00", "10:00", ""] {
            assert_eq!(read(text), None, "{text}");
        }
        let said = TimeStyle::Date.parse(b"2023-02-30 10:00:00").unwrap_err();
        assert!(said.reason.contains("found \"2023-02-30 10:00:00\""), "{said:?}");
        for text in ["NaN", "inf", "1e300", "-1e17"] {
            assert!(TimeStyle::Number(None).parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn what_stands_for_no_time_settles_nothing() {
        let cases = [
            ("", "is empty"),
            ("?", "\"?\" stands for no time"),
            ("NaT", "\"NaT\" stands for no time"),
            ("null", "\"null\" stands for no time"),
            ("n/a", "\"n/a\" stands for no time"),
            ("NaN", "time NaN is not a number"),
            ("-inf", "time -inf is not finite"),
        ];
        let styles = [TimeStyle::Date, TimeStyle::Number(None), TimeStyle::Number(Some(TimeUnit::Milliseconds))];
        for (text, expected) in cases {
            assert_eq!(TimeStyle::of(text.as_bytes(), &LogOptions::default()), None, "{text}");
            for style in &styles {
                let said = style.parse(text.as_bytes()).unwrap_err();
                assert!(said.reason.starts_with(expected), "{text}: {said:?}");
            }
        }
        let said = TimeStyle::Number(None).parse(b"1e400").unwrap_err();
        assert_eq!((said.reason.as_str(), said.hints), ("time 1e400 is too large to be exact", vec![FROM_NANOSECONDS]));
    }

    #[test]
    fn times_for_people() {
        assert_eq!(show_time(1_413_976_541.9).as_deref(), Some("2014-10-22T11:15:41Z"));
        assert_eq!(show_time(-0.5).as_deref(), Some("1969-12-31T23:59:59Z"));
        assert_eq!((show_time(f64::NAN), show_time(f64::INFINITY), show_time(1e15)), (None, None, None));
    }

    #[test]
    fn formats_with_and_without_a_year() {
        let style = |format: &str| TimeStyle::Format(format.to_owned());
        assert_eq!(style("%d.%m.%Y %H:%M").parse(b"22.10.2014 11:15"), Ok(1_413_976_500.0));
        assert_eq!(style("%Y-%m-%d-%H.%M.%S.%f").parse(b"2005-06-03-15.42.50.675872"), Ok(1_117_813_370.675_872));
        let (a, b) =
            (style("%b %d %H:%M:%S").parse(b"Feb 29 23:59:59"), style("%b %d %H:%M:%S").parse(b"Mar 1 00:00:00"));
        assert_eq!(b.unwrap() - a.unwrap(), 1.0);
        assert_eq!(style("%H:%M:%S").parse(b"01:00:01"), Ok(3601.0));
        assert_eq!(style("%d/%b/%Y:%H:%M:%S %z").parse(b"22/Oct/2014:13:15:41 +0200"), Ok(1_413_976_541.0));
        assert_eq!(style("%s").parse(b"12"), Ok(12.0));
        assert!(style("%Y").parse(b"2014").is_err());
        assert!(style("%q").parse(b"2014").is_err());
    }

    #[test]
    fn units_divide_before_they_round() {
        let style = |unit| TimeStyle::Number(Some(unit));
        assert_eq!(style(TimeUnit::Nanoseconds).parse(b"1700000000250000000"), Ok(1_700_000_000.25));
        assert_eq!(style(TimeUnit::Milliseconds).parse(b"-1"), Ok(-0.001));
        assert_eq!(style(TimeUnit::Seconds).parse(b"1.5"), Ok(1.5));
    }
}
