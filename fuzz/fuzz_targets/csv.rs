#![no_main]

use libfuzzer_sys::fuzz_target;
use trace_io::log::Format;

fuzz_target!(|data: &[u8]| trace_fuzz::read(Format::Csv, data));
