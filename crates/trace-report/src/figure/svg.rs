//! Writing SVG. All text goes through one place that escapes it.

use super::{INK, LINE};

/// Families to look for; the last one is what PNG figures have.
const FONT: &str = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";

/// A document in the making.
pub(super) struct Svg {
    body: String,
}

/// A line to stroke.
pub(super) struct Stroke<'s> {
    pub(super) ink: &'s str,
    pub(super) width: f64,
    pub(super) opacity: f64,
    pub(super) dashes: Option<&'s str>,
}

impl Svg {
    pub(super) fn new() -> Self {
        Self { body: String::new() }
    }

    /// A path, with a title for those who hover over it.
    pub(super) fn path(&mut self, path: &str, stroke: &Stroke<'_>, title: &str) {
        let dashes = stroke.dashes.map_or(String::new(), |dashes| format!(" stroke-dasharray=\"{dashes}\""));
        self.body += &format!(
            "<path d=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.2}\" stroke-opacity=\"{:.2}\"{dashes}><title>{}</title></path>\n",
            stroke.ink,
            stroke.width,
            stroke.opacity,
            escaped(title)
        );
    }

    /// An arrow's head whose tip is at a point and which points along an angle, in degrees.
    pub(super) fn head(&mut self, x: f64, y: f64, angle: f64, ink: &str, opacity: f64) {
        self.body += &format!(
            "<path d=\"M-6.5 -3.2L0.2 0L-6.5 3.2Z\" transform=\"translate({x:.1} {y:.1}) rotate({angle:.0})\" fill=\"{ink}\" fill-opacity=\"{opacity:.2}\"/>\n"
        );
    }

    pub(super) fn circle(&mut self, x: f64, y: f64, radius: f64, fill: &str, stroke: &str) {
        self.body += &format!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{fill}\" stroke=\"{stroke}\" stroke-width=\"1.6\"/>\n"
        );
    }

    /// A box with round corners around a centre.
    pub(super) fn rounded(&mut self, x: f64, y: f64, width: f64, height: f64) {
        self.body += &format!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width}\" height=\"{height}\" rx=\"6\" fill=\"#ffffff\" stroke=\"{LINE}\"/>\n",
            x - width / 2.0,
            y - height / 2.0
        );
    }

    /// Text with its anchor (`start`, `middle`, `end`) at a point, turned by an angle.
    pub(super) fn text(&mut self, x: f64, y: f64, anchor: &str, angle: f64, size: f64, text: &str) {
        let turned = if angle == 0.0 { String::new() } else { format!(" rotate({angle})") };
        self.body += &format!(
            "<text transform=\"translate({x:.1} {y:.1}){turned}\" text-anchor=\"{anchor}\" font-size=\"{size}\" fill=\"{INK}\">{}</text>\n",
            escaped(text)
        );
    }

    /// The document, on white.
    pub(super) fn finish(self, width: f64, height: f64, title: &str) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"{FONT}\">\n<title>{}</title>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{}</svg>\n",
            escaped(title),
            self.body
        )
    }
}

/// Text for between tags. What XML cannot hold becomes U+FFFD.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\t' | '\n' | '\r' => out.push(' '),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
