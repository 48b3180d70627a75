//! The sample graph: events in a line, an arc from each cause to its effects.

use trace_io::result::ResultLine;

use super::svg::{Stroke, Svg};
use super::{LINE, PROMOTING, ink};
use crate::shorten::distinct;

const ARC_HEIGHT: f64 = 190.0;
const LABEL: usize = 24;
/// Of a letter at size 11, as wide as letters usually are, with some room.
const LETTER: f64 = 6.6;

/// Draws the edges of a result that were kept.
pub fn timeline(line: &ResultLine) -> String {
    let kept: Vec<_> = line.edges().collect();
    let length = line.events.len();
    let names: Vec<String> = line.events.iter().map(ToString::to_string).collect();
    let labels = distinct(&names, LABEL);
    let longest = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0) as f64 * LETTER;
    let step = (1100.0 / length.max(1) as f64).clamp(18.0, 64.0);
    let level = longest + 6.0 < step;
    let slant = 42f64.to_radians();
    let left = if level { 36.0 } else { 24.0 + longest * slant.cos() };
    let x = |position: u32| left + f64::from(position) * step;
    let lags = kept.iter().map(|edge| edge.lag.0).max().unwrap_or(1);
    let tallest = (24.0 + 0.6 * step * f64::from(lags)).min(ARC_HEIGHT);
    let base = tallest + 24.0;

    let mut svg = Svg::new();
    let end = x(length.saturating_sub(1) as u32);
    let axis = Stroke { ink: LINE, width: 1.4, opacity: 1.0, dashes: None };
    svg.path(&format!("M{left:.1} {base}H{end:.1}"), &axis, "");
    let mut by_strength = kept.clone();
    by_strength.sort_by(|a, b| a.strength.total_cmp(&b.strength)); // strong ones on top
    for edge in by_strength {
        let (from, to) = (x(edge.cause.0), x(edge.effect.0));
        let share = (f64::from(edge.lag.0) / f64::from(lags)).powf(0.85);
        let top = base - (14.0 + (tallest - 14.0) * share) * 4.0 / 3.0;
        let (ink, dashes) = ink(edge.log_ratio);
        let opacity = 0.34 + 0.6 * (edge.strength / 0.8).sqrt().min(1.0);
        let width = 1.0 + 3.2 * (edge.strength / 1.5).sqrt().min(1.2);
        let foot = base - 6.0;
        let tied = if edge.tied { ", tied" } else { "" };
        let title =
            format!("{} → {}: {:.3} nats{tied}", names[edge.cause.index()], names[edge.effect.index()], edge.strength);
        let path = format!("M{from:.1} {foot}C{from:.1} {top:.1} {to:.1} {top:.1} {to:.1} {:.1}", foot - 3.0);
        svg.path(&path, &Stroke { ink, width, opacity, dashes }, &title);
        svg.head(to, foot, 90.0, ink, opacity);
    }
    let mut touched = vec![(false, false); length];
    for edge in &kept {
        touched[edge.cause.index()].1 = true;
        touched[edge.effect.index()].0 = true;
    }
    for (position, label) in labels.iter().enumerate() {
        let at = x(position as u32);
        let (fill, stroke) = match touched[position] {
            (true, _) => (PROMOTING, "#ffffff"),
            (false, true) => ("#ffffff", PROMOTING), // a chain begins here
            (false, false) => (LINE, "#ffffff"),
        };
        svg.circle(at, base, 4.4, fill, stroke);
        if level {
            svg.text(at, base + 22.0, "middle", 0.0, 11.0, label);
        } else {
            svg.text(at + 3.0, base + 16.0, "end", -42.0, 11.0, label);
        }
    }
    let label_height = if level { 30.0 } else { 26.0 + longest * slant.sin() };
    let bottom = base + label_height + 22.0;
    legend(&mut svg, 24.0, bottom);
    svg.finish((end + 36.0).max(430.0), bottom + 18.0, &format!("Sample graph of {}", line.id))
}

/// What the lines mean.
fn legend(svg: &mut Svg, mut x: f64, y: f64) {
    for (sign, text) in [(1.0, "promotes"), (-1.0, "happened in spite of")] {
        let (ink, dashes) = ink(sign);
        svg.path(&format!("M{x} {y}h30"), &Stroke { ink, width: 2.2, opacity: 1.0, dashes }, text);
        svg.text(x + 38.0, y + 4.0, "start", 0.0, 11.0, text);
        x += 68.0 + text.len() as f64 * LETTER;
    }
    svg.circle(x, y, 4.4, "#ffffff", PROMOTING);
    svg.text(x + 10.0, y + 4.0, "start", 0.0, 11.0, "chain begins");
}
