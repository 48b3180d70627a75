//! Ctrl-C: the first one asks work to stop at the next good place, the second stops at once.
//!
//! Commands watch only while they have something to lose; before that Ctrl-C ends them as it ends any program.

use std::sync::OnceLock;

use trace_causal::Cancel;

use crate::failure::Failure;
use crate::output::say;

static CANCEL: OnceLock<Cancel> = OnceLock::new();

/// Starts to watch, unless an earlier step of the same command has; returns what Ctrl-C cancels.
pub fn watch() -> Result<Cancel, Failure> {
    if let Some(cancel) = CANCEL.get() {
        return Ok(cancel.clone());
    }
    let cancel = CANCEL.get_or_init(Cancel::new).clone();
    let asked = cancel.clone();
    ctrlc::set_handler(move || {
        if asked.is_cancelled() {
            std::process::exit(130);
        }
        asked.cancel();
        say(false, "\nstopping after what is under way; press Ctrl-C again to stop at once");
    })
    .map_err(|error| Failure::Output(std::io::Error::other(error)))?;
    Ok(cancel)
}

/// Whether Ctrl-C was pressed.
pub fn requested() -> bool {
    CANCEL.get().is_some_and(Cancel::is_cancelled)
}
