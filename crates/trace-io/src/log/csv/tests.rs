//! Chunked reading against serial reading, and quoting there and back.

use proptest::prelude::*;

use super::*;
use crate::log::{RawSequence, SequenceReader};

type Outcome = Result<(Vec<RawSequence>, Vec<String>, Report), String>;

fn read_with(text: &[u8], options: &LogOptions, size: usize, threads: usize) -> Outcome {
    let bytes = std::io::Cursor::new(text.to_vec());
    let source = Source::new("log.csv", std::path::Path::new("log.csv"), Box::new(bytes), None).unwrap();
    let index = read_chunks(source, Format::Csv, options, size, threads).map_err(|error| error.to_string())?;
    let mut pass = index.pass();
    let (mut sequences, mut names) = (Vec::new(), Vec::new());
    while let Some(sequence) = pass.next_sequence().unwrap() {
        names.extend(sequence.events.iter().map(|event| pass.event_name(*event).to_string()));
        sequences.push(sequence);
    }
    Ok((sequences, names, pass.report()))
}

fn cell() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[a-c]{1,2}", 1 => "[a-c,;\"\n\r \t|é]{0,6}", 1 => Just(String::new())]
}

fn row() -> impl Strategy<Value = (String, String, String)> {
    let time = prop_oneof![8 => "[0-9]{1,3}", 1 => Just("x".to_owned()), 1 => Just(String::new())];
    (cell(), cell(), time)
}

proptest! {
    /// Any chunk size and any number of threads give the same sequences, names, counts and complaints.
    #[test]
    fn chunks_and_threads_do_not_matter(
        rows in proptest::collection::vec(row(), 0..60),
        raw in proptest::collection::vec(any::<bool>(), 60),
        size in 1usize..200,
        threads in 1usize..4,
        skip in any::<bool>(),
    ) {
        let mut writer = ::csv::Writer::from_writer(b"case,event,time\n".to_vec());
        for (case, event, time) in &rows {
            writer.write_record([case, event, time]).unwrap();
        }
        let mut text = writer.into_inner().unwrap();
        for ((case, event, time), _) in rows.iter().zip(raw).filter(|(_, raw)| *raw) {
            // Not quoted as it should be.
            text.extend_from_slice(format!("{case},{event},{time}\n").as_bytes());
        }
        let bad_rows = if skip { crate::log::BadRows::Skip } else { crate::log::BadRows::Refuse };
        let options = LogOptions { bad_rows, ..LogOptions::default() };
        let whole = read_with(&text, &options, 1 << 20, 1);
        prop_assert_eq!(read_with(&text, &options, size, threads), whole);
    }

    /// What the csv crate writes is read as it was, and as the csv crate reads it.
    #[test]
    fn quoting_there_and_back(
        rows in proptest::collection::vec(("[a-z]{1,3}", "[^\0]{1,20}"), 1..20),
        delimiter in prop_oneof![Just(b','), Just(b';'), Just(b'\t'), Just(b'|')],
        crlf in any::<bool>(),
    ) {
        prop_assume!(rows.iter().all(|(_, event)| !event.trim().is_empty()));
        let terminator = if crlf { ::csv::Terminator::CRLF } else { ::csv::Terminator::Any(b'\n') };
        let mut writer = ::csv::WriterBuilder::new().delimiter(delimiter).terminator(terminator).from_writer(Vec::new());
        writer.write_record(["event", "case"]).unwrap();
        for (case, event) in &rows {
            writer.write_record([event, case]).unwrap();
        }
        let text = writer.into_inner().unwrap();
        let options = LogOptions { delimiter: Some(delimiter), ..LogOptions::default() };
        let (sequences, names, _) = read_with(&text, &options, 64, 2).unwrap();
        let mut at = 0;
        for sequence in sequences {
            let expected: Vec<&String> = rows.iter().filter(|(case, _)| *case == sequence.id).map(|(_, event)| event).collect();
            let found: Vec<&String> = names[at..at + sequence.events.len()].iter().collect();
            prop_assert_eq!(found, expected);
            at += sequence.events.len();
        }
        prop_assert_eq!(at, rows.len());
    }
}
