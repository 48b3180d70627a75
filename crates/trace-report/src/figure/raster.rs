//! Pixels, with a font that is part of this software.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

/// Pixels a figure has at most, about 400 MB of memory.
const MOST_PIXELS: f64 = 1e8;

/// Why a figure could not be made into pixels.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The drawing has no size, or one that does not fit memory.
    #[error(
        "a figure of {width:.0} × {height:.0} pixels is too large for PNG; expected at most {MOST_PIXELS:.0} pixels: use a smaller scale, fewer events, or SVG"
    )]
    Size {
        /// Pixels across.
        width: f64,
        /// Pixels down.
        height: f64,
    },
    /// The drawing could not be read back.
    #[error("the drawing is not valid: {0}")]
    Drawing(String),
    /// The pixels could not be written.
    #[error("PNG: {0}")]
    Png(String),
}

/// Renders an SVG document with `scale` pixels for each of its units.
pub fn png(svg: &str, scale: f32) -> Result<Vec<u8>, Error> {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    let options = Options { fontdb: Arc::new(fonts), font_family: "DejaVu Sans".to_owned(), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|error| Error::Drawing(error.to_string()))?;
    let size = |length: f32| f64::from((length * scale).ceil().max(1.0));
    let (width, height) = (size(tree.size().width()), size(tree.size().height()));
    let too_large = || Error::Size { width, height };
    if width * height > MOST_PIXELS {
        return Err(too_large());
    }
    let mut pixels = Pixmap::new(width as u32, height as u32).ok_or_else(too_large)?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| Error::Png(error.to_string()))
}
