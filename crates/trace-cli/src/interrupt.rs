//! Ctrl-C: the first one asks work to stop at the next good place, the second stops at once.
//!
//! Commands watch only while they have something to lose; before that Ctrl-C ends them as it ends any program.

use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

static WATCHING: AtomicBool = AtomicBool::new(false);

/// Starts to watch, unless an earlier step of the same command has.
pub fn watch() -> anyhow::Result<()> {
    if WATCHING.swap(true, Ordering::SeqCst) {
        return Ok(());
    }
    ctrlc::set_handler(|| {
        if REQUESTED.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
        eprintln!("\nstopping after what is under way; press Ctrl-C again to stop at once");
    })?;
    Ok(())
}

/// Whether work should stop.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}
