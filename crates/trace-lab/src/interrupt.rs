//! Ctrl-C: the first one asks work to stop at the next good place, the second stops at once.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::output::say;

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Starts to watch. Commands watch only while they have something to lose; before that Ctrl-C ends them as it ends any
/// program.
pub fn watch() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        if REQUESTED.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
        say(false, "\nstopping after what is under way; press Ctrl-C again to stop at once");
    })?;
    Ok(())
}

/// Whether Ctrl-C was pressed.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}
