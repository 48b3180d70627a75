//! Parquet: one row per event, of which only the columns that are needed are read.
//!
//! Text, dictionaries of text and whole numbers name cases and events; times are timestamps, dates, numbers or text.

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit as ArrowUnit};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use super::columns::Columns;
use super::hints::{FROM_NANOSECONDS, Fault, SKIP_ROWS};
use super::index::{Index, Rows, SINGLE_CASE};
use super::options::{BadRows, Format, LogOptions, TimeUnit};
use super::report::Report;
use super::shorten;
use super::source::{Source, broken};
use super::time::{EXACT, TimeStyle, empty_time, in_seconds, not_finite, unreadable};
use crate::Error;

/// Rows that are decoded at once.
const BATCH: usize = 8192;

/// Reads a whole file.
pub(super) fn read(mut source: Source, options: &LogOptions) -> Result<Index, Error> {
    let name = source.name.clone();
    let mut report = Report::new(Format::Parquet, source.compression);
    // Parquet is read from its end, so that a pipe must be kept first; on disk, where it may be large.
    let file = match source.take_file()? {
        Some(file) => file,
        None => spool(source)?,
    };
    let (header, columns, batches) = guarded(&name, || open(&name, file, options))??;
    report.set_columns(&header, &columns);
    let timed = !columns.time.is_empty();
    let mut reading =
        Reading { name: &name, options, header: &header, columns: &columns, style: None, row: 0, dated: false };
    let mut rows = Rows::new(&name, timed);
    let mut batches = batches;
    while let Some(batch) = guarded(&name, || batches.next())? {
        let batch = batch.map_err(|error| damaged(&name, &error))?;
        guarded(&name, || reading.batch(&batch, &mut rows, &mut report))??;
    }
    report.dated = reading.dated;
    Ok(rows.group(report))
}

fn spool(source: Source) -> Result<File, Error> {
    let (name, compression) = (source.name.clone(), source.compression);
    let mut file = tempfile::tempfile().map_err(Error::io(&name))?;
    let mut reader = source.reader;
    io::copy(&mut reader, &mut file).map_err(|error| broken(&name, compression, error))?;
    io::Seek::rewind(&mut file).map_err(Error::io(&name))?;
    Ok(file)
}

/// The decoder gives up on some damaged files by panicking; that is an error like any other.
fn guarded<T>(name: &str, work: impl FnOnce() -> T) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| damaged(name, &"its pages contradict each other"))
}

fn damaged(name: &str, error: &dyn std::fmt::Display) -> Error {
    Error::file(name, format!("expected Parquet, but it is damaged or cut off: {error}"))
}

fn open(
    name: &str,
    file: File,
    options: &LogOptions,
) -> Result<(Vec<String>, Columns, ParquetRecordBatchReader), Error> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| damaged(name, &error))?;
    let header: Vec<String> = builder.schema().fields().iter().map(|field| field.name().clone()).collect();
    let columns = Columns::find(name, None, &header, &options.columns)?;
    let mask = ProjectionMask::roots(builder.parquet_schema(), columns.all());
    let batches = builder.with_projection(mask).with_batch_size(BATCH).build();
    Ok((header, columns, batches.map_err(|error| damaged(name, &error))?))
}

struct Reading<'r> {
    name: &'r str,
    options: &'r LogOptions,
    header: &'r [String],
    columns: &'r Columns,
    /// Of times that are text.
    style: Option<TimeStyle>,
    row: u64,
    dated: bool,
}

/// A cell that is not what it should be: which column, and why.
struct BadCell(usize, Fault);

impl Reading<'_> {
    fn batch(&mut self, batch: &RecordBatch, rows: &mut Rows, report: &mut Report) -> Result<(), Error> {
        let array = |column: &usize| -> Result<(usize, &dyn Array), Error> {
            let missing = || damaged(self.name, &"a batch lacks a column");
            Ok((*column, batch.column_by_name(&self.header[*column]).ok_or_else(missing)?.as_ref()))
        };
        let arrays = |columns: &[usize]| columns.iter().map(array).collect::<Result<Vec<_>, _>>();
        let (cases, events, times) =
            (arrays(&self.columns.case)?, arrays(&self.columns.event)?, arrays(&self.columns.time)?);
        let outcomes = self.columns.outcome.as_ref().map(array).transpose()?;
        let (mut case, mut event, mut time) = (String::new(), String::new(), String::new());
        let mut outcome = String::new();
        for at in 0..batch.num_rows() {
            self.row += 1;
            report.rows += 1;
            let seconds = cells(&cases, at, &mut case).and_then(|()| {
                cells(&events, at, &mut event)?;
                if let Some((column, array)) = outcomes {
                    outcome.clear();
                    text(array, at, &mut outcome).map_err(|fault| BadCell(column, fault))?;
                }
                self.time(&times, at, &mut time)
            });
            match seconds {
                Ok(seconds) => {
                    let case = rows.case(if cases.is_empty() { SINGLE_CASE } else { &case }, self.row)?;
                    let event = if outcomes.is_some() { rows.step(&event, &outcome)? } else { rows.event(&event)? };
                    rows.extend([case].into_iter(), [event].into_iter(), seconds.as_slice());
                }
                Err(BadCell(column, fault)) => {
                    let name = shorten(&self.header[column]);
                    let fault = fault.at(format_args!("row {}: column {} ({name:?})", self.row, column + 1));
                    if self.options.bad_rows == BadRows::Refuse {
                        return Err(Error::file(self.name, fault.reason).with_hints(fault.hints).hint(SKIP_ROWS));
                    }
                    report.skipped.count += 1;
                    report.skipped.note(fault.reason);
                }
            }
        }
        Ok(())
    }

    fn time(&mut self, arrays: &[(usize, &dyn Array)], at: usize, out: &mut String) -> Result<Option<f64>, BadCell> {
        let Some((column, _)) = arrays.first() else { return Ok(None) };
        let fault = |fault: Fault| BadCell(*column, fault);
        if let [(_, only)] = arrays
            && self.options.time_format.is_none()
            && let Some((seconds, dated)) = instant(*only, at, self.options.time_unit).map_err(fault)?
        {
            self.dated |= dated;
            return Ok(Some(seconds));
        }
        out.clear();
        for (index, (_, array)) in arrays.iter().enumerate() {
            if index > 0 {
                out.push(' ');
            }
            text(*array, at, out).map_err(fault)?;
        }
        if out.trim().is_empty() {
            return Err(fault(empty_time()));
        }
        if self.style.is_none() {
            self.style = TimeStyle::of(out.as_bytes(), self.options);
        }
        let style = self.style.as_ref().ok_or_else(|| fault(unreadable(out.as_bytes())))?;
        self.dated |= style.dated();
        style.parse(out.as_bytes()).map(Some).map_err(fault)
    }
}

/// The text of some columns, joined.
fn cells(arrays: &[(usize, &dyn Array)], at: usize, out: &mut String) -> Result<(), BadCell> {
    out.clear();
    for (index, (column, array)) in arrays.iter().enumerate() {
        if index > 0 {
            out.push('+');
        }
        let before = out.len();
        text(*array, at, out).map_err(|fault| BadCell(*column, fault))?;
        if out[before..].trim().is_empty() {
            return Err(BadCell(*column, Fault::new("is empty; expected a name")));
        }
    }
    Ok(())
}

/// The whole number of a cell, if the array has them.
fn whole(array: &dyn Array, at: usize) -> Option<i128> {
    Some(match array.data_type() {
        DataType::Int8 => array.as_primitive::<Int8Type>().value(at).into(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(at).into(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(at).into(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(at).into(),
        DataType::UInt8 => array.as_primitive::<UInt8Type>().value(at).into(),
        DataType::UInt16 => array.as_primitive::<UInt16Type>().value(at).into(),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(at).into(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(at).into(),
        _ => return None,
    })
}

fn real(array: &dyn Array, at: usize) -> Option<f64> {
    match array.data_type() {
        DataType::Float32 => Some(f64::from(array.as_primitive::<Float32Type>().value(at))),
        DataType::Float64 => Some(array.as_primitive::<Float64Type>().value(at)),
        _ => None,
    }
}

/// Writes what a cell says; nothing where it is null.
fn text(array: &dyn Array, at: usize, out: &mut String) -> Result<(), Fault> {
    if array.is_null(at) {
        return Ok(());
    }
    if let Some(number) = whole(array, at) {
        let _ = write!(out, "{number}"); // to a String it cannot fail
        return Ok(());
    }
    if let Some(number) = real(array, at) {
        // Whole numbers with missing ones among them become fractions in many tools; NaN is such a missing one.
        if !number.is_nan() {
            let _ = write!(out, "{number}");
        }
        return Ok(());
    }
    let bytes = match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().value(at).as_bytes(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(at).as_bytes(),
        DataType::Utf8View => array.as_string_view().value(at).as_bytes(),
        DataType::Binary => array.as_binary::<i32>().value(at),
        DataType::LargeBinary => array.as_binary::<i64>().value(at),
        DataType::BinaryView => array.as_binary_view().value(at),
        DataType::Boolean => {
            out.push_str(if array.as_boolean().value(at) { "true" } else { "false" });
            return Ok(());
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let key = whole(dictionary.keys(), at).and_then(|key| usize::try_from(key).ok());
            let key = key
                .filter(|key| *key < dictionary.values().len())
                .ok_or_else(|| Fault::new("a key outside its dictionary"))?;
            return text(dictionary.values().as_ref(), key, out);
        }
        other => return Err(Fault::new(format!("is of type {other}; expected text or whole numbers"))),
    };
    let valid = std::str::from_utf8(bytes).map_err(|error| {
        Fault::new(format!("not UTF-8 text from byte {} on; expected text", error.valid_up_to() + 1))
    })?;
    if valid.contains('\0') {
        return Err(Fault::new("holds a NUL byte; expected text"));
    }
    out.push_str(valid);
    Ok(())
}

/// The time of a cell that is not text, and whether it counts from 1970.
fn instant(array: &dyn Array, at: usize, unit: Option<TimeUnit>) -> Result<Option<(f64, bool)>, Fault> {
    if array.is_null(at) {
        return Err(empty_time());
    }
    let seconds = match array.data_type() {
        DataType::Timestamp(ArrowUnit::Second, _) => array.as_primitive::<TimestampSecondType>().value(at) as f64,
        DataType::Timestamp(ArrowUnit::Millisecond, _) => {
            in_seconds(array.as_primitive::<TimestampMillisecondType>().value(at), TimeUnit::Milliseconds)
        }
        DataType::Timestamp(ArrowUnit::Microsecond, _) => {
            in_seconds(array.as_primitive::<TimestampMicrosecondType>().value(at), TimeUnit::Microseconds)
        }
        DataType::Timestamp(ArrowUnit::Nanosecond, _) => {
            in_seconds(array.as_primitive::<TimestampNanosecondType>().value(at), TimeUnit::Nanoseconds)
        }
        DataType::Date32 => f64::from(array.as_primitive::<Date32Type>().value(at)) * 86_400.0,
        DataType::Date64 => in_seconds(array.as_primitive::<Date64Type>().value(at), TimeUnit::Milliseconds),
        _ => return number(array, at, unit),
    };
    if seconds.abs() <= EXACT {
        Ok(Some((seconds, true)))
    } else {
        Err(Fault::new(format!("time {seconds} is out of range")))
    }
}

fn number(array: &dyn Array, at: usize, unit: Option<TimeUnit>) -> Result<Option<(f64, bool)>, Fault> {
    let seconds = match (whole(array, at), real(array, at), unit) {
        (Some(whole), _, Some(unit)) => {
            in_seconds(i64::try_from(whole).map_err(|_| Fault::new(format!("time {whole} is out of range")))?, unit)
        }
        (Some(whole), _, None) => whole as f64,
        (None, Some(real), unit) => real / unit.map_or(1.0, |unit| unit.per_second() as f64),
        (None, None, _) => return Ok(None),
    };
    match not_finite(seconds) {
        Some(fault) => Err(fault),
        None if seconds.abs() <= EXACT => Ok(Some((seconds, false))),
        None if unit.is_some() => Err(Fault::new(format!("time {seconds} is out of range"))),
        None => Err(Fault::new(format!("time {seconds} is too large to be exact")).hint(FROM_NANOSECONDS)),
    }
}
