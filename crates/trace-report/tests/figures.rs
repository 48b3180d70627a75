//! Figures: valid documents whatever the names, and pixels without any font on the machine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod support;

use support::sample::{long, result, vehicle};
use trace_report::figure;

#[test]
fn hostile_names_stay_text() {
    let events: Vec<String> =
        ["</title><script>x</script>", "a & b \"c\" 'd'", "\u{1}\u{0}\u{ffff}", "🚗]]>", &"long ".repeat(1000)]
            .map(str::to_owned)
            .to_vec();
    let mut line = result("<id> & \u{2}", &events, 2, 4);
    assert!(line.move_threshold(0.0));
    for svg in [figure::timeline(&line), figure::summary(&line)] {
        assert!(!svg.contains("<script"));
        assert!(svg.contains("&lt;script&gt;x&lt;/script&gt;"));
        assert!(svg.chars().all(|c| c == '\n' || !c.is_control()));
        // A renderer reads it as XML, and so must find it well formed.
        assert!(figure::png(&svg, 1.0).unwrap().starts_with(b"\x89PNG"));
    }
}

#[test]
fn every_edge_has_its_line() {
    let line = vehicle("one", 3);
    let kept = line.edges().count();
    assert_eq!(figure::timeline(&line).matches(" nats").count(), kept);
    let summary = figure::summary(&line);
    let despite = summary.matches("stroke-dasharray").count();
    assert_eq!(summary.matches(" → ").count(), line.summary.len());
    assert!(despite > 0 && despite < line.summary.len(), "some are dashed, not all: {despite}");
}

#[test]
fn text_is_drawn() {
    // The same figure with other names has other pixels: text was not left out for want of a font.
    let named = |name: &str| {
        let events = vec![name.to_owned(); 4];
        figure::png(&figure::timeline(&result("x", &events, 1, 3)), 1.0).unwrap()
    };
    assert_ne!(named("AAAA"), named("BBBB"));
}

#[test]
fn a_figure_too_large_for_memory_is_refused() {
    let svg = figure::timeline(&long("long", 3000, 50, 1));
    let said = figure::png(&svg, 20.0).unwrap_err().to_string();
    assert!(said.contains("too large for PNG"), "{said}");
}
