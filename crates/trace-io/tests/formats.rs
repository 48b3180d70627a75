//! Long formats and XES: what is read, in which order, and how it is shaped.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod support;

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BinaryArray, Date32Array, DictionaryArray, Float64Array, Int64Array, StringArray,
    TimestampMicrosecondArray, TimestampNanosecondArray,
};
use support::{gzip, parquet, read, refuse};
use trace_core::Vocabulary;
use trace_io::log::{BadRows, ColumnChoice, EventLog, Format, Log, LogOptions, RARE, Shaping, TimeUnit, Unknown};

fn plain() -> LogOptions {
    LogOptions::default()
}

fn shaped(shaping: Shaping) -> LogOptions {
    LogOptions { shaping, ..LogOptions::default() }
}

#[test]
fn rows_of_many_cases_are_grouped_and_sorted_and_ties_keep_their_order() {
    let text = "case_id,activity,timestamp\nb,3,2024-01-01 00:00:03\na,2,2024-01-01 00:00:02\nb,1,2024-01-01 00:00:01\n\
                a,x,2024-01-01 00:00:02\nb,y,2024-01-01 00:00:03\n";
    let log = read("log.csv", text, &plain());
    assert_eq!(log.lines(), ["b: 1 3 y", "a: 2 x"]);
    assert_eq!(log.times(0), [1_704_067_201.0, 1_704_067_203.0, 1_704_067_203.0]);
    assert_eq!((log.summary.ties, log.summary.report.sorted_cases), (2, 1));
    assert_eq!(log.log.lines, [2, 3]);
    assert!(log.log.dated && log.summary.dated());
    assert_eq!(log.summary.dates.unwrap().0, "2024-01-01T00:00:01Z");
}

#[test]
fn quotes_marks_delimiters_and_blank_lines() {
    let text = "\u{feff}\r\n\"case\";event;note\r\n\"a\";\"x;\r\n\"\"y\"\"\";\r\n\r\nb;5\" pipe;z\r\na;ü,é;";
    let log = read("log.csv", text, &plain());
    assert_eq!(log.lines(), ["a: x;\r\n\"y\" ü,é", "b: 5\" pipe"]);
    assert_eq!(log.log.lines, [3, 6]);
    assert_eq!(log.summary.report.delimiter, Some(';'));
    assert_eq!(read("log.tsv", "case\tevent\na,b\tc d\n", &plain()).lines(), ["a,b: c d"]);
    let options = LogOptions { delimiter: Some(b'~'), ..plain() };
    assert_eq!(read("log.csv", "case~event\na~b\n", &options).lines(), ["a: b"]);
    let columns = ColumnChoice { case: vec!["2".into()], event: vec!["1".into()], ..ColumnChoice::default() };
    let options = LogOptions { no_header: true, columns, ..plain() };
    assert_eq!(read("log.csv", "x,a\ny,a\n", &options).lines(), ["a: x y"]);
}

#[test]
fn names_with_anything_in_them() {
    let long = "n".repeat(5000);
    let text = format!("case,event\na,</script>\na,🚗\na,\"say \"\"hi\"\", ok\"\na,{long}\n");
    let log = read("log.csv", &text, &plain());
    assert_eq!(log.lines(), [format!("a: </script> 🚗 say \"hi\", ok {long}")]);
}

#[test]
fn several_columns_make_one_name() {
    let columns = ColumnChoice {
        case: vec!["a".into(), "b".into()],
        event: vec!["c".into(), "d".into()],
        time: vec!["day".into(), "hour".into()],
        ..ColumnChoice::default()
    };
    let options = LogOptions { columns, time_format: Some("%b %d %H:%M:%S".into()), ..plain() };
    let text = "a,b,c,d,day,hour\n1,2,x,y,Dec 10,06:55:46\n1,2,z,w,Dec 9,06:55:46\n";
    let log = read("log.csv", text, &options);
    assert_eq!(log.lines(), ["1+2: z+w x+y"]);
    assert_eq!(log.times(0)[1] - log.times(0)[0], 86_400.0);
}

#[test]
fn formats_by_content_compression_and_standard_input() {
    assert_eq!(read("-", "case,event\na,b\n", &plain()).summary.report.format, Format::Csv);
    assert_eq!(read("-", "a,b c,d\n", &plain()).summary.report.format, Format::Text);
    assert_eq!(read("-", "<!-- --><log><trace/></log>", &plain()).summary.report.format, Format::Xes);
    assert_eq!(read("log.csv.gz", gzip(b"case,event\na,b\n"), &plain()).lines(), ["a: b"]);
    assert_eq!(read("log", gzip(b"{\"id\": 1, \"events\": [7]}"), &plain()).lines(), ["1: 7"]);
    let packed = zstd::encode_all(&b"x y\nz\n"[..], 0).unwrap();
    assert_eq!(read("log.txt.zst", packed, &plain()).lines(), ["1: x y", "2: z"]);
    let two = [gzip(b"x y\n"), gzip(b"z\n")].concat();
    assert_eq!(read("log.txt.gz", two, &plain()).lines(), ["1: x y", "2: z"], "several members follow each other");
}

#[test]
fn xes() {
    let text = r#"<?xml version="1.0" encoding="UTF-8"?>
<log xmlns="http://www.xes-standard.org/">
  <global scope="event"><string key="concept:name" value="UNKNOWN"/></global>
  <string key="concept:name" value="the log"/>
  <trace><string key="concept:name" value="c&amp;1"><string key="concept:name" value="nested"/></string>
    <event><string key="concept:name" value="B"/><date key="time:timestamp" value="2011-10-11T13:45:40.500+02:00"/>
      <string key="lifecycle:transition" value="start"/></event>
    <event><date key="time:timestamp" value="2011-10-11T11:45:40Z"/><string key="lifecycle:transition" value="end"/>
      <string key="concept:name" value="A &lt;x&gt;"/></event>
  </trace>
  <trace><event><string key="concept:name" value="C"/></event></trace>
</log>"#;
    let log = read("log.xes", text, &plain());
    assert_eq!(log.lines(), ["c&1: A <x> B", "2: C"]);
    assert_eq!(log.times(0), [1_318_333_540.0, 1_318_333_540.5]);
    assert_eq!(log.log.sequences[1].times, None);
    assert_eq!(log.log.lines, [5, 11]);
    let columns =
        ColumnChoice { event: vec!["concept:name".into(), "lifecycle:transition".into()], ..ColumnChoice::default() };
    let options = LogOptions { columns, bad_rows: BadRows::Skip, ..plain() };
    let log = read("log.xes.gz", gzip(text.as_bytes()), &options);
    assert_eq!(log.lines(), ["c&1: A <x>+end B+start", "2: "]);
    assert_eq!(log.summary.report.skipped.count, 1);
}

#[test]
fn parquet_of_every_kind_of_column() {
    let case: ArrayRef = Arc::new(Int64Array::from(vec![7, 8, 7]));
    let event: ArrayRef = Arc::new(vec!["b", "c", "a"].into_iter().collect::<DictionaryArray<Int32Type>>());
    let text: ArrayRef = Arc::new(StringArray::from(vec!["b", "c", "a"]));
    let bytes: ArrayRef = Arc::new(BinaryArray::from_vec(vec![b"b", b"c", b"a"]));
    let micro: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![2_500_000, 0, 1_000_000]).with_timezone("UTC"));
    let nano: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![2_500_000_000, 0, 1_000_000_000]));
    let written: ArrayRef =
        Arc::new(StringArray::from(vec!["1970-01-01T00:00:02.5Z", "1970-01-01", "1970-01-01 00:00:01"]));
    let real: ArrayRef = Arc::new(Float64Array::from(vec![2.5, 0.0, 1.0]));
    let days: ArrayRef = Arc::new(Date32Array::from(vec![2, 0, 1]));
    for event in [&event, &text, &bytes] {
        for time in [&micro, &nano, &written, &real] {
            let file = parquet(vec![
                ("case", case.clone()),
                ("other", real.clone()),
                ("event", event.clone()),
                ("time", time.clone()),
            ]);
            let log = read("log.parquet", &file, &plain());
            assert_eq!(log.lines(), ["7: a b", "8: c"]);
            assert_eq!(log.times(0), [1.0, 2.5]);
        }
    }
    let log = read("log", parquet(vec![("case", case.clone()), ("event", text.clone()), ("time", days)]), &plain());
    assert_eq!(log.times(0), [86_400.0, 172_800.0]);
    let columns = ColumnChoice { single_case: true, no_time: true, ..ColumnChoice::default() };
    let log = read("log.pq", parquet(vec![("event", text), ("time", nano)]), &LogOptions { columns, ..plain() });
    assert_eq!(log.lines(), ["log: b c a"]);
    let unit = LogOptions { time_unit: Some(TimeUnit::Nanoseconds), ..plain() };
    let long: ArrayRef = Arc::new(Int64Array::from(vec![1_700_000_000_250_000_000, 0, 1]));
    let log = read("log.pq", parquet(vec![("case", case), ("event", event), ("time", long)]), &unit);
    assert_eq!(log.times(0)[1], 1_700_000_000.25);
}

#[test]
fn shaping_in_order() {
    let text = "case,event,time\na,x,0\na,x,1\na,y,2\na,r,100\na,s,101\na,x,102\nb,x,0\nb,y,1\n";
    let log = read("log.csv", text, &shaped(Shaping { gap: Some(50.0), ..Shaping::default() }));
    assert_eq!(log.lines(), ["a: x x y", "a#2: r s x", "b: x y"]);
    let all = Shaping { gap: Some(50.0), min_count: Some(2), collapse: true, max_length: Some(1), open_cases: false };
    let log = read("log.csv", text, &shaped(all));
    assert_eq!(log.lines(), ["a: x", "a#2: y", "a#3: (rare)", "a#4: x", "b: x", "b#2: y"]);
    assert_eq!(log.times(2), [100.0]);
    let done = log.summary.report.shaped;
    assert_eq!((done.folded_types, done.folded_events, done.collapsed), (2, 2, 2));
    assert_eq!((done.gap_pieces, done.length_pieces), (1, 3));
    assert_eq!(log.summary.types, 3);
    let text = read("log.txt", "x x y\nz\n", &shaped(Shaping { min_count: Some(2), ..Shaping::default() }));
    assert_eq!(text.lines(), ["1: x x (rare)", "2: (rare)"]);
    assert!(!text.log.dated && !log.log.dated, "no times, and times that are numbers");
    let said = refuse("log.txt", "x y\n", &shaped(Shaping { gap: Some(1.0), ..Shaping::default() }));
    assert!(said.contains("the option gap needs times, but sequence \"1\" (line 1) has none"), "{said}");
}

/// The sequences after which the case ended.
fn ended(log: &support::Read) -> Vec<&str> {
    log.log.sequences.iter().filter(|sequence| sequence.ended).map(|sequence| sequence.id.as_str()).collect()
}

#[test]
fn cases_end_unless_they_are_cut_off_or_open() {
    let text = "case,event,time\na,x,0\na,x,1\na,y,2\na,r,100\na,s,101\na,x,102\nb,x,0\nb,y,1\n";
    assert_eq!(ended(&read("log.csv", text, &plain())), ["a", "b"]);
    let pieces = Shaping { gap: Some(50.0), max_length: Some(2), ..Shaping::default() };
    let log = read("log.csv", text, &shaped(pieces));
    assert_eq!(log.lines(), ["a: x x", "a#2: y", "a#3: r s", "a#4: x", "b: x y"]);
    assert_eq!(ended(&log), ["a#4", "b"]);
    assert_eq!(log.summary.ended_cases, 2);
    let open = read("log.csv", text, &shaped(Shaping { open_cases: true, ..Shaping::default() }));
    assert_eq!((ended(&open), open.summary.ended_cases, open.summary.cases), (vec![], 0, 2));
    let lines = "{\"id\": \"a\", \"events\": [\"x\", \"y\"], \"open\": true}\n{\"id\": \"b\", \"events\": [\"x\"]}\n\
                 {\"id\": \"c\", \"events\": [\"x\"], \"open\": false}\n{\"id\": \"d\", \"events\": [\"x\"], \"open\": null}\n";
    assert_eq!(ended(&read("log.jsonl", lines, &plain())), ["b", "c", "d"]);
    let cut = read("log.jsonl", lines, &shaped(Shaping { max_length: Some(1), ..Shaping::default() }));
    assert_eq!(ended(&cut), ["b", "c", "d"], "the last piece of an open case is open");
    assert_eq!(ended(&read("log.txt", "x y\nz\n", &plain())), ["1", "2"]);
}

#[test]
fn a_model_that_knows_rare_takes_every_unknown_type_as_that() {
    let mut vocabulary = Vocabulary::named();
    vocabulary.intern(&"A".into());
    vocabulary.intern(&RARE.into());
    let log = Log::from_reader("log.txt", &b"A new A other new\n"[..], &plain()).unwrap();
    for unknown in [Unknown::Refuse, Unknown::Skip] {
        let (read, summary) = EventLog::read(&log, &mut vocabulary, unknown).unwrap();
        let ids: Vec<u32> = read.sequences[0].events.iter().map(|event| event.0).collect();
        assert_eq!(ids, [0, 1, 0, 1, 1]);
        assert_eq!((summary.taken_as_rare, read.skipped[0].len()), ((2, 3), 0));
    }
}

#[test]
fn a_log_can_be_read_again_and_again() {
    let folder = tempfile::tempdir().unwrap();
    let files: [(&str, Vec<u8>); 4] = [
        ("log.csv", b"case,event\na,x\nb,y\na,x\n".to_vec()),
        ("log.jsonl", b"{\"id\":\"a\",\"events\":[\"x\",\"x\"]}\n{\"id\":\"b\",\"events\":[\"y\"]}\n".to_vec()),
        ("log.txt.gz", gzip(b"x x\ny\n")),
        ("log.xes", b"<log><trace><event><string key='concept:name' value='x'/></event></trace></log>".to_vec()),
    ];
    for (name, bytes) in files {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let shaping = Shaping { min_count: Some(2), collapse: true, ..Shaping::default() };
        let log = Log::open(&path, &shaped(shaping)).unwrap();
        let read = || EventLog::read(&log, &mut Vocabulary::named(), Unknown::Add).unwrap().0.sequences;
        assert_eq!(read(), read(), "{name}");
        assert!(!read().is_empty());
    }
}
