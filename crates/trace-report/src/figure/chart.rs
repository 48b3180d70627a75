//! Line charts of measurements.

use super::svg::{Stroke, Svg};
use super::{INK, LINE};

const WIDTH: f64 = 660.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 52.0;
/// What names need below the axis, where they stand aslant.
const NAMES: f64 = 56.0;
/// Colours that differ for most eyes.
const INKS: [&str; 9] =
    ["#0b6e99", "#d1495b", "#3a7d44", "#8e5ea2", "#b5651d", "#5f6b7a", "#c2a83e", "#1b998b", "#2d3142"];

/// How the horizontal axis runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By factors.
    Logarithmic,
    /// Places with names.
    Named(Vec<String>),
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Places, values and spreads.
    pub points: Vec<(f64, f64, f64)>,
}

/// A chart of one or more lines.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// What the horizontal axis means.
    pub x: String,
    /// How it runs.
    pub axis: Scale,
    /// The lines.
    pub series: Vec<Series>,
}

impl Chart {
    /// The chart as a document.
    pub fn svg(&self) -> String {
        let mut svg = Svg::new();
        let named = matches!(self.axis, Scale::Named(_));
        let height = if named { HEIGHT + NAMES } else { HEIGHT };
        let bottom = HEIGHT - BOTTOM;
        svg.text(LEFT, 22.0, "start", 0.0, 14.0, &self.title);
        let points = || self.series.iter().flat_map(|series| &series.points);
        let place = |x: f64| if self.axis == Scale::Logarithmic { x.max(f64::MIN_POSITIVE).ln() } else { x };
        let (low_x, high_x) = range(points().map(|point| place(point.0)));
        let (low_y, high_y) = range(points().flat_map(|point| [point.1 - point.2, point.1 + point.2]));
        // Shares are easier to compare on the same axis.
        let (low_y, high_y) = if low_y >= 0.0 && high_y <= 1.0 { (0.0, 1.0) } else { (low_y.min(0.0), high_y) };
        let across = |x: f64| LEFT + (place(x) - low_x) / (high_x - low_x) * (WIDTH - LEFT - RIGHT);
        let up = |y: f64| bottom - (y - low_y) / (high_y - low_y) * (bottom - TOP);

        let thin = Stroke { ink: LINE, width: 1.0, opacity: 1.0, dashes: None };
        for y in ticks(low_y, high_y) {
            svg.path(&format!("M{LEFT:.1} {:.1}H{:.1}", up(y), WIDTH - RIGHT), &thin, "");
            svg.text(LEFT - 8.0, up(y) + 4.0, "end", 0.0, 11.0, &number(y));
        }
        let mut last = f64::NEG_INFINITY;
        for (x, label) in self.places() {
            if named {
                svg.text(across(x) + 4.0, bottom + 16.0, "end", -35.0, 11.0, &label);
            } else if across(x) - last >= 28.0 {
                last = across(x);
                svg.text(across(x), bottom + 18.0, "middle", 0.0, 11.0, &label);
            }
        }
        svg.text(LEFT + (WIDTH - LEFT - RIGHT) / 2.0, height - 12.0, "middle", 0.0, 12.0, &self.x);
        for (index, series) in self.series.iter().enumerate() {
            let ink = INKS[index % INKS.len()];
            let stroke = Stroke { ink, width: 1.8, opacity: 1.0, dashes: (index >= INKS.len()).then_some("5 3") };
            let mut points = series.points.clone();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let line: Vec<String> = points.iter().map(|p| format!("{:.1} {:.1}", across(p.0), up(p.1))).collect();
            if !named && !line.is_empty() {
                svg.path(&format!("M{}", line.join("L")), &stroke, &series.name);
            }
            for (x, y, spread) in &points {
                if *spread > 0.0 {
                    let bar = format!("M{:.1} {:.1}V{:.1}", across(*x), up(y - spread), up(y + spread));
                    svg.path(&bar, &stroke, &series.name);
                }
                svg.circle(across(*x), up(*y), 3.0, ink, ink);
            }
            let row = TOP + 8.0 + 18.0 * index as f64;
            svg.circle(WIDTH - RIGHT + 16.0, row - 4.0, 3.5, ink, ink);
            svg.text(WIDTH - RIGHT + 26.0, row, "start", 0.0, 11.0, &series.name);
        }
        let axis = Stroke { ink: INK, width: 1.0, opacity: 1.0, dashes: None };
        svg.path(&format!("M{LEFT:.1} {TOP:.1}V{bottom:.1}H{:.1}", WIDTH - RIGHT), &axis, "");
        svg.finish(WIDTH, height, &self.title)
    }

    /// Where the horizontal axis has labels.
    fn places(&self) -> Vec<(f64, String)> {
        if let Scale::Named(names) = &self.axis {
            return names.iter().enumerate().map(|(index, name)| (index as f64, name.clone())).collect();
        }
        let mut places: Vec<f64> = self.series.iter().flat_map(|series| &series.points).map(|point| point.0).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        places.into_iter().map(|x| (x, number(x))).collect()
    }
}

/// The smallest and the largest number, a little apart where they are equal.
fn range(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) =
        numbers.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), number| (low.min(number), high.max(number)));
    match () {
        () if low > high => (0.0, 1.0),
        () if low == high => (low - 0.5, high + 0.5),
        () => (low, high),
    }
}

/// About five round numbers between two others.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= rough).unwrap_or(rough);
    let first = (low / step).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|index| index as f64 * step).collect()
}

/// A number as short as it can be.
fn number(value: f64) -> String {
    if value != 0.0 && !(1e-3..1e6).contains(&value.abs()) {
        return format!("{value:.0e}");
    }
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(axis: Scale) -> String {
        let points = vec![(10.0, 0.2, 0.05), (100.0, 0.6, 0.0), (1000.0, 0.9, 0.0)];
        let series = vec![Series { name: "a < b".to_owned(), points }];
        Chart { title: "Title & more".to_owned(), x: "types".to_owned(), axis, series }.svg()
    }

    #[test]
    fn a_line_goes_through_its_points_with_even_steps_on_a_logarithmic_axis() {
        let svg = chart(Scale::Logarithmic);
        let line = svg.lines().find(|line| line.contains('L') && line.contains("a &lt; b")).unwrap();
        let xs: Vec<f64> = line.split('"').nth(1).unwrap()[1..]
            .split('L')
            .map(|point| point.split(' ').next().unwrap().parse().unwrap())
            .collect();
        assert!((xs[2] - xs[1] - (xs[1] - xs[0])).abs() < 0.2, "{xs:?}");
        assert!(svg.contains("Title &amp; more"));
    }

    #[test]
    fn ticks_are_round_and_cover_the_range() {
        assert_eq!(
            ticks(0.0, 1.0).iter().map(|tick| number(*tick)).collect::<Vec<_>>(),
            ["0", "0.2", "0.4", "0.6", "0.8", "1"]
        );
        assert_eq!(ticks(0.0, 7.0), [0.0, 2.0, 4.0, 6.0]);
    }

    #[test]
    fn a_chart_of_nothing_is_still_a_document() {
        let chart = Chart { title: String::new(), x: String::new(), axis: Scale::Linear, series: Vec::new() };
        assert!(chart.svg().ends_with("</svg>\n"));
    }
}
