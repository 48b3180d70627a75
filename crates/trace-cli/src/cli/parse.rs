//! Values of flags that are numbers or words.

use trace_causal::{Memory, Order, Particles, Shard, Threshold};

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub usize);

pub fn parse_bytes(text: &str) -> Result<Bytes, String> {
    let expected = || "expected a size such as 500MB, 2GB or 1.5GiB".to_owned();
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number.parse().map_err(|_| expected())?;
    let unit = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1_048_576.0,
        "gib" => 1_073_741_824.0,
        "tib" => 1_099_511_627_776.0,
        _ => return Err(expected()),
    };
    let bytes = number * unit;
    if (1.0..1e18).contains(&bytes) { Ok(Bytes(bytes as usize)) } else { Err(expected()) }
}

fn parse_count(text: &str, words: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("expected {words} or a whole number"))
}

pub fn parse_particles(text: &str) -> Result<Particles, String> {
    match text {
        "auto" => Ok(Particles::Auto),
        "all" => Ok(Particles::All),
        _ => parse_count(text, "auto, all").map(Particles::Fixed),
    }
}

pub fn parse_draws(text: &str) -> Result<Particles, String> {
    if text == "all" { Ok(Particles::All) } else { parse_count(text, "all").map(Particles::Fixed) }
}

pub fn parse_memory(text: &str) -> Result<Memory, String> {
    if text == "all" { Ok(Memory::All) } else { parse_count(text, "all").map(Memory::Lags) }
}

pub fn parse_shard(text: &str) -> Result<Shard, String> {
    let parts = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
    match parts {
        Some((number, of)) => Ok(Shard { number, of }),
        None => Err("expected a part such as 3/64".to_owned()),
    }
}

pub fn parse_order(text: &str) -> Result<Order, String> {
    if text == "auto" { Ok(Order::Auto) } else { parse_count(text, "auto").map(Order::Fixed) }
}

pub fn parse_threshold(text: &str) -> Result<Threshold, String> {
    match text {
        "scaling-law" => Ok(Threshold::ScalingLaw),
        "bound" => Ok(Threshold::Bound),
        _ => {
            text.parse().map(Threshold::Fixed).map_err(|_| "expected a number of nats, scaling-law or bound".to_owned())
        }
    }
}

pub fn parse_delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        _ if matches!(text, "tab" | "\\t") => Ok(b'\t'),
        [b'"' | b'\n' | b'\r' | 0] => Err("cannot separate fields".to_owned()),
        [sign] if sign.is_ascii() => Ok(*sign),
        _ => Err("expected one ASCII character, or tab".to_owned()),
    }
}

pub fn parse_length(text: &str) -> Result<usize, String> {
    let length = text.parse().ok().filter(|length| *length > 0);
    length.ok_or_else(|| "expected a whole number, 1 or more".to_owned())
}

/// A duration in seconds.
pub fn parse_gap(text: &str) -> Result<f64, String> {
    let expected = || "expected a duration such as 90, 500ms, 30m, 2h or 1d".to_owned();
    let split = text.find(|c: char| c.is_ascii_alphabetic() && c != 'e').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = match unit {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "us" => 1e-6,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        "w" => 604_800.0,
        _ => return Err(expected()),
    };
    let number: f64 = number.trim().parse().map_err(|_| expected())?;
    let seconds = number * unit;
    if seconds.is_finite() && seconds >= 0.0 { Ok(seconds) } else { Err(expected()) }
}
