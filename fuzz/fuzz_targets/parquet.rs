#![no_main]

use std::sync::Once;

use libfuzzer_sys::fuzz_target;
use trace_io::log::Format;

static QUIET: Once = Once::new();

// The decoder panics on some damaged files; our reader makes errors of that. The fuzzer's hook would abort first.
fuzz_target!(|data: &[u8]| {
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    trace_fuzz::read(Format::Parquet, data);
});
