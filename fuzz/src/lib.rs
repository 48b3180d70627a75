//! What every target does with its bytes.

use std::io::Cursor;

use trace_core::Vocabulary;
use trace_io::log::{BadRows, EventLog, Format, Log, LogOptions, Shaping, Unknown};

/// Reads a log of one format; the first byte chooses the options, the rest is the log.
pub fn read(format: Format, data: &[u8]) {
    let Some((flags, bytes)) = data.split_first() else { return };
    let has = |bit: u8| flags & (1 << bit) != 0;
    let mut options = LogOptions { format: Some(format), ..LogOptions::default() };
    if has(0) {
        options.bad_rows = BadRows::Skip;
    }
    if has(1) {
        options.shaping = Shaping { min_count: Some(2), collapse: true, max_length: Some(3), gap: None };
    }
    if has(2) && matches!(format, Format::Csv | Format::Parquet) {
        options.columns.single_case = true;
    }
    if has(3) && format == Format::Csv {
        options.no_header = true;
        options.columns.case = vec!["1".into()];
        options.columns.event = vec!["2".into()];
        options.columns.single_case = false;
    }
    if has(4) && matches!(format, Format::Csv | Format::Parquet | Format::Xes) {
        options.time_format = Some("%Y-%m-%d %H:%M:%S%.f".into());
    }
    let Ok(log) = Log::from_reader("log", Cursor::new(bytes.to_vec()), &options) else { return };
    let mut vocabulary = Vocabulary::named();
    let Ok((read, summary)) = EventLog::read(&log, &mut vocabulary, Unknown::Add) else { return };
    // What was read holds together.
    assert_eq!(read.sequences.len() as u64, summary.cases);
    assert_eq!(read.events() as u64, summary.events);
    for sequence in &read.sequences {
        if let Some(times) = &sequence.times {
            assert_eq!(times.len(), sequence.events.len());
            assert!(times.is_sorted());
        }
    }
    let (again, _) = EventLog::read(&log, &mut vocabulary, Unknown::Refuse).expect("it was read before");
    assert_eq!(again.sequences, read.sequences);
}
