//! What separates the fields of a CSV file.

use super::records::next_record;

const CANDIDATES: [u8; 4] = [b',', b';', b'\t', b'|'];
/// Records that are looked at.
const SAMPLE: usize = 50;

/// The delimiter that cuts the first records into the same number of fields, and into the most; a comma where none does.
pub(in crate::log) fn sniff(head: &[u8]) -> u8 {
    let score = |delimiter: u8| {
        let counts = field_counts(head, delimiter);
        let first = counts.first().copied().unwrap_or(0);
        let alike = counts.iter().filter(|count| **count == first).count();
        // First that rows agree, as a share; then how many fields there are.
        if first < 2 { (0, 0) } else { (alike * 1000 / counts.len(), first) }
    };
    // The first of equals wins.
    CANDIDATES.into_iter().rev().max_by_key(|delimiter| score(*delimiter)).unwrap_or(b',')
}

/// The number of fields in each of the first records; the last one may be cut off and does not count, unless alone.
fn field_counts(head: &[u8], delimiter: u8) -> Vec<usize> {
    let (mut at, mut counts, mut fields) = (0, Vec::new(), Vec::new());
    while at < head.len() && counts.len() < SAMPLE {
        let record = next_record(head, at, delimiter, 0, &mut fields);
        let cut = record.next == head.len() && head.last() != Some(&b'\n');
        if !record.blank && (!cut || counts.is_empty()) {
            counts.push(record.count);
        }
        at = record.next;
    }
    counts
}

/// The names in the first record that is not blank.
pub(in crate::log) fn header(head: &[u8], delimiter: u8) -> Option<Vec<Vec<u8>>> {
    let (mut at, mut fields) = (0, Vec::new());
    while at < head.len() {
        let record = next_record(head, at, delimiter, usize::MAX, &mut fields);
        if !record.blank {
            let mut scratch = Vec::new();
            return Some(fields.iter().map(|field| field.value(head, &mut scratch).to_vec()).collect());
        }
        at = record.next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiters() {
        assert_eq!(sniff(b"case;event\na;x,y\nb;x,y,z\n"), b';');
        assert_eq!(sniff(b"case\tevent\na\tx, y\n"), b'\t');
        assert_eq!(sniff(b"case|event\n\na|x"), b'|');
        assert_eq!(sniff(b"case,event,note\na,b,x;y;z\n"), b',');
        assert_eq!(sniff(b"\"a;b;c;d\",event\n\"x;y;z;w\",e\n"), b',');
        assert_eq!(sniff(b"nothing"), b',');
        assert_eq!(sniff(b""), b',');
    }
}
