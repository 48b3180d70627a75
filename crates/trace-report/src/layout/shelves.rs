//! Packing the connected parts of a drawing.

use super::{PART_GAP, Part, Point};

/// Puts parts side by side, tallest first, and opens a new shelf below when one is full. The first shelf is as wide as
/// the widest part, or as `target`.
pub(super) fn pack(parts: &mut [Part], target: f64) {
    parts.sort_by(|a, b| b.height.total_cmp(&a.height)); // stable
    let room = parts.iter().map(|part| part.width).fold(target, f64::max);
    let (mut x, mut y, mut shelf) = (0.0, 0.0, 0.0f64);
    for part in parts {
        if x > 0.0 && x + part.width > room {
            x = 0.0;
            y += shelf + PART_GAP;
            shelf = 0.0;
        }
        part.corner = Point { x, y };
        // Columns of neighbouring parts stand in line.
        x += ((part.width + PART_GAP) / super::LAYER_STEP).ceil() * super::LAYER_STEP;
        shelf = shelf.max(part.height);
    }
}
