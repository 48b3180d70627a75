//! Everything that can be wrong with a log: an error that names the place, or a counted skip; never a panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod support;

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringArray};
use proptest::prelude::*;
use support::{gzip, parquet, read, refuse, try_read};
use trace_io::log::{BadRows, ColumnChoice, LogOptions, Shaping};

fn plain() -> LogOptions {
    LogOptions::default()
}

fn skip() -> LogOptions {
    LogOptions { bad_rows: BadRows::Skip, ..LogOptions::default() }
}

#[test]
fn csv_that_is_refused() {
    let cases: &[(&[u8], &str)] = &[
        (b"", "log.csv: holds no sequence; expected a header and at least one row"),
        (b"case,event\n", "log.csv: holds no sequence"),
        (b"case,event\na,b\nb\n", "log.csv: line 3: 1 fields, but the header has 2"),
        (b"case,event\na,b,c\n", "log.csv: line 2: 3 fields, but the header has 2"),
        (b"case,event\na,b\n,b\n", "log.csv: line 3: column 1 (\"case\"): is empty"),
        (b"case,event\na,\n", "log.csv: line 2: column 2 (\"event\"): is empty"),
        (b"case,event\na,\"b\n\nc,d\n", "log.csv: line 2: column 3: a quote opens here that nothing closes"),
        (b"case,\"event\na,b\n", "a quote opens here that nothing closes"),
        (b"case,event\na,caf\xe9\n", "line 2: column 2 (\"event\"): not UTF-8 text from byte 4 on (0xe9)"),
        (b"case,event\n\xff\xfe,b\n", "line 2: column 1 (\"case\"): not UTF-8 text"),
        (b"case,\xff\na,b\n", "line 1: column 2: not UTF-8 text from byte 1 on"),
        (b"\xff\xfec\0a\0s\0e\0", "log.csv: line 1: column 1: is UTF-16"),
        (b"c\0a\0s\0e\0,\0e\0", "is UTF-16 without a byte-order mark"),
        (b"case,event\na,b\0c\n", "line 2: column 2 (\"event\"): holds a NUL byte, at byte 2"),
        (b"case\0,event\na,b\n", "line 1: column 1: holds a NUL byte"),
        (b"case,event\ra,b\r", "carriage return"),
        (b"case,event,event\na,b,c\n", "line 1: columns 2 and 3 may both be the event"),
        (b"who,what\na,b\n", "line 1: no column looks like the case"),
        (b"case,event,time\na,b,2023-02-29 10:00:00\n", "line 2: column 3 (\"time\"): expected a number or a time"),
        (b"case,event,time\na,b,2023-02-28\na,b,2023-02-29\n", "line 3: column 3 (\"time\"): expected a time like"),
        (b"case,event,time\na,b,1\na,b,2023-02-28\n", "line 3: column 3 (\"time\"): expected a number, as in the rows"),
        (b"case,event,time\na,b,2023-02-28\na,b,1\n", "line 3: column 3 (\"time\"): expected a time like"),
        (b"case,event,time\na,b,1\na,b,\n", "line 3: column 3 (\"time\"): is empty; expected a time"),
        (
            b"case,event,time\na,b,1700000000123456789\n",
            "too large to be exact; the option time_unit = ns makes seconds of it",
        ),
        (b"case,event,time\na,b,soon\n", "the option time_format says how other times are written"),
        (b"case,event,time\na,b,1\na,b,NaN\n", "line 3: column 3"),
    ];
    for (text, expected) in cases {
        let said = refuse("log.csv", text, &plain());
        assert!(said.contains(expected), "{:?}: {said}", String::from_utf8_lossy(text));
    }
}

#[test]
fn csv_rows_that_are_skipped_and_counted() {
    let text = b"case,event,time\na,x,1\na,x\n,x,2\na,,2\na,x,\na,x,later\nb,\xff,2\na,y,2\n";
    let log = read("log.csv", text, &skip());
    assert_eq!(log.lines(), ["a: x y"]);
    let skipped = &log.summary.report.skipped;
    assert_eq!((skipped.count, log.summary.report.rows, skipped.reasons.len()), (6, 8, 5));
    assert_eq!(skipped.reasons[0], "line 3: 2 fields, but the header has 3");
    assert!(skipped.reasons[4].starts_with("line 7: column 3 (\"time\"): expected a number"), "{:?}", skipped.reasons);
    assert!(log.summary.line().contains("6 rows skipped (the first: line 3"), "{}", log.summary.line());
    let said = refuse("log.csv", b"case,event\na,\n", &skip());
    assert!(said.contains("all 1 rows were skipped, the first because of line 2: column 2"), "{said}");
    let said = refuse("log.csv", b"case,event\na,b\na,\"b", &skip());
    assert!(
        said.contains("line 3: column 3: a quote opens here"),
        "what follows an open quote cannot be known: {said}"
    );
}

#[test]
fn a_record_without_end_does_not_fill_the_memory() {
    let mut text = b"case,event\na,\"".to_vec();
    text.resize(70 << 20, b'x');
    text.extend_from_slice(&vec![b'x'; 70 << 20]);
    let said = refuse("log.csv", text, &plain());
    assert!(said.contains("line 2: a record of more than 64 MB begins here"), "{said}");
}

#[test]
fn options_that_mean_nothing() {
    let choose = |columns: ColumnChoice| LogOptions { columns, ..plain() };
    let case = choose(ColumnChoice { case: vec!["a".into()], ..ColumnChoice::default() });
    let said = refuse("log.jsonl", b"{}", &case);
    assert!(said.contains("the option case_column means nothing to a log in JSON Lines"), "{said}");
    let said = refuse("log.txt", b"a b", &choose(ColumnChoice { single_case: true, ..ColumnChoice::default() }));
    assert!(said.contains("the option single_case means nothing to a log in plain text"), "{said}");
    let said = refuse("log.xes", b"<log/>", &LogOptions { delimiter: Some(b','), ..plain() });
    assert!(said.contains("the option delimiter means nothing to a log in XES"), "{said}");
    assert!(said.ends_with("; the option format names another format"), "{said}");
    let shape = |shaping: Shaping| refuse("log.txt", b"a b", &LogOptions { shaping, ..plain() });
    let said = shape(Shaping { max_length: Some(0), ..Shaping::default() });
    assert_eq!(said, "log.txt: the option max_length is 0; expected 1 or more");
    let said = shape(Shaping { gap: Some(f64::NAN), ..Shaping::default() });
    assert_eq!(said, "log.txt: the option gap is NaN; expected seconds, 0 or more");
    let said = refuse("log.csv", b"a,b", &LogOptions { delimiter: Some(b'"'), ..plain() });
    assert_eq!(said, "log.csv: the option delimiter is '\"', which cannot separate fields");
    let times = choose(ColumnChoice { time: vec!["a".into(), "b".into()], ..ColumnChoice::default() });
    let said = refuse("log.xes", b"<log/>", &times);
    assert_eq!(said, "log.xes: the option time_column names 2 attributes; expected one of a log in XES");
}

#[test]
fn compressed_data_that_is_cut_or_damaged() {
    let row = |i: u32| format!("c{},e{}\n", i * 7919 % 997, i * 31 % 89);
    let text = ["case,event\n".to_owned()].into_iter().chain((0..5000).map(row)).collect::<Vec<_>>().concat();
    let packed = gzip(text.as_bytes());
    let said = refuse("log.csv.gz", &packed[..packed.len() / 2], &plain());
    assert!(said.contains("log.csv.gz: the gzip data is cut off"), "{said}");
    let mut wrong = packed.clone();
    let middle = wrong.len() / 2;
    wrong[middle..middle + 40].fill(0x55);
    let said = refuse("log.csv.gz", wrong, &plain());
    assert!(said.contains("the gzip data is damaged") || said.contains("line "), "{said}");
    let said = refuse("log.csv.gz", text.as_bytes(), &plain());
    assert!(said.contains("is called .gz but does not begin like such a file"), "{said}");
    let zst = zstd::encode_all(text.as_bytes(), 0).unwrap();
    let said = refuse("log.csv.zst", &zst[..zst.len() / 2], &plain());
    assert!(said.contains("the Zstandard data is"), "{said}");
    assert!(refuse("log.jsonl.gz", &gzip(b"{\"events\": [1]}")[..20], &plain()).contains("gzip data is cut off"));
}

#[test]
fn xes_that_is_refused() {
    let bomb = "<?xml version=\"1.0\"?><!DOCTYPE lolz [<!ENTITY a \"lol\"><!ENTITY b \"&a;&a;&a;&a;\">]><log>&b;</log>";
    let deep = "<log><trace>".to_owned() + &"<string key='a' value='b'>".repeat(100_000);
    let cases: Vec<(String, &str)> = vec![
        (bomb.to_owned(), "line 1: column 83: a document type with declarations of its own is refused"),
        (deep, "elements are nested more than 64 deep"),
        ("<log>\n<trace>\n<event>".into(), "line 3: column 8: the file is cut off; expected </log>"),
        ("<log>\n<trace></log>".into(), "line 2"),
        ("<log><trace".into(), "line 1"),
        ("<log><trace><event><string key='concept:name' value='&nope;'/></event></trace></log>".into(), "nope"),
        ("<log><trace><event><string key='concept:name' key='x' value='a'/></event></trace></log>".into(), "line 1: column"),
        ("<html><body/></html>".into(), "line 1: column 7: expected <log>, found <html>"),
        (String::new(), "cut off"),
        ("<log></log>".into(), "holds no sequence"),
        ("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><log/>".into(), "the encoding is \"ISO-8859-1\"; expected UTF-8"),
        ("<log><trace>\n<event><date key='time:timestamp' value='2023-02-28'/></event></trace></log>".into(), "line 2: an event without concept:name"),
        (
            "<log><trace><event>\n<string key='concept:name' value='a'/><date key='time:timestamp' value='2023-02-29T00:00:00Z'/></event></trace></log>".into(),
            "line 1: time:timestamp: expected a time like",
        ),
    ];
    for (text, expected) in cases {
        let said = refuse("log.xes", &text, &plain());
        assert!(said.contains(expected), "{}: {said}", text.chars().take(80).collect::<String>());
    }
    let mut bytes = b"<log><trace><event><string key='concept:name' value='caf".to_vec();
    bytes.extend_from_slice(b"\xe9'/></event></trace></log>");
    assert!(refuse("log.xes", bytes, &plain()).contains("line 1: column"));
    let mut huge = b"<log><trace a='".to_vec();
    huge.resize(20 << 20, b'x');
    let said = refuse("log.xes", huge, &plain());
    assert!(said.contains("a tag or text of more than 16 MB"), "{said}");
    assert!(
        refuse("log.xes", "\u{feff}<log>".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>(), &plain())
            .contains("UTF-16")
    );
}

#[test]
fn parquet_that_is_refused() {
    let case: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), Some("a"), None]));
    let event: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
    let file = parquet(vec![("case", case.clone()), ("event", event.clone())]);
    let said = refuse("log.parquet", &file, &plain());
    assert!(said.contains("log.parquet: row 2: column 2 (\"event\"): is empty"), "{said}");
    let log = read("log.parquet", &file, &skip());
    assert_eq!((log.lines(), log.summary.report.skipped.count), (vec!["a: 1".to_owned()], 2));
    for cut in [0, 3, 4, 11, file.len() / 2, file.len() - 1] {
        let said = refuse("log.parquet", &file[..cut], &plain());
        assert!(said.contains("expected Parquet, but it is damaged or cut off"), "{cut}: {said}");
    }
    let said = refuse("log.parquet", parquet(vec![("who", case), ("what", event)]), &plain());
    assert!(said.contains("log.parquet: no column looks like the case (columns found: who, what)"), "{said}");
    assert!(refuse("log.parquet", b"case,event\na,b\n", &plain()).contains("expected Parquet"));
}

#[test]
fn json_lines_that_are_skipped() {
    let text =
        b"{\"id\":1,\"events\":[1]}\nnothing\n{\"id\":2,\"events\":[1,2],\"times\":[2,1]}\n{\"id\":3,\"events\":[\n";
    let log = read("log.jsonl", text, &skip());
    assert_eq!((log.lines(), log.summary.report.skipped.count), (vec!["1: 1".to_owned()], 3));
    assert!(refuse("log.jsonl", text, &plain()).contains("line 2: expected a sequence"));
}

/// A small file of a format that a test may damage.
fn sound(format: usize) -> (&'static str, Vec<u8>) {
    let csv = b"case,event,time\na,\"x,\n\"\"y\"\"\",2024-01-01T00:00:00Z\nb,z,2024-01-01\n".to_vec();
    match format {
        0 => ("log.csv", csv),
        1 => ("log.csv.gz", gzip(&csv)),
        2 => ("log.jsonl", b"{\"id\": \"a\", \"events\": [\"x\", 2], \"times\": [0, 1.5]}\n".to_vec()),
        3 => ("log.xes", br#"<log><trace><string key="concept:name" value="a"/><event><string key="concept:name" value="x"/><date key="time:timestamp" value="2024-01-01T00:00:00Z"/></event></trace></log>"#.to_vec()),
        4 => {
            let case: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "a"]));
            let time: ArrayRef = Arc::new(Int64Array::from(vec![3, 2, 1]));
            ("log.parquet", parquet(vec![("case", case.clone()), ("event", case), ("time", time)]))
        }
        _ => ("log.txt.zst", zstd::encode_all(&b"a b c\n"[..], 0).unwrap()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), format in 0usize..6) {
        let _ = try_read(sound(format).0, &bytes, &skip());
    }

    #[test]
    fn no_damage_makes_a_reader_panic(
        format in 0usize..6,
        cut in any::<prop::sample::Index>(),
        whole in any::<bool>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        lenient in any::<bool>(),
    ) {
        let (name, mut bytes) = sound(format);
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        if !whole {
            bytes.truncate(cut.index(bytes.len()));
        }
        let _ = try_read(name, &bytes, &if lenient { skip() } else { plain() });
    }
}
