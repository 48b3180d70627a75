//! Packing the connected parts of a drawing.

use super::{Grain, PAGE, PART_GAP, Part, Point};

/// Puts parts side by side, tallest first, and opens a new shelf below when one is full. The first shelf is as wide as
/// the widest part, or as a page.
pub(super) fn pack(parts: &mut [Part], grain: Grain) {
    parts.sort_by(|a, b| b.height.total_cmp(&a.height)); // stable
    let room = parts.iter().map(|part| part.width).fold(PAGE.0, f64::max);
    let (mut x, mut y, mut shelf) = (0.0, 0.0, 0.0f64);
    for part in parts {
        if x > 0.0 && x + part.width > room {
            x = 0.0;
            y += shelf + PART_GAP;
            shelf = 0.0;
        }
        part.corner = Point { x, y };
        x += part.width + PART_GAP;
        if !grain.down {
            x = (x / grain.step()).ceil() * grain.step(); // columns of neighboring parts stand in line
        }
        shelf = shelf.max(part.height);
    }
}
