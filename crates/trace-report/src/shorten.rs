//! Names that are too long to be shown whole.

use std::collections::{BTreeMap, BTreeSet};

/// Shortens names to at most `longest` letters, so that names which differ still do.
///
/// What a long name loses is its middle, as what tells names apart tends to stand at either end. Names that would look
/// alike are cut around the first letter in which they differ.
pub fn distinct(names: &[String], longest: usize) -> Vec<String> {
    let clean: Vec<Vec<char>> = names.iter().map(|name| clean(name)).collect();
    let mut alike: BTreeMap<String, BTreeSet<&Vec<char>>> = BTreeMap::new();
    for name in &clean {
        alike.entry(middle(name, longest)).or_default().insert(name);
    }
    let shown = |name: &Vec<char>| {
        let short = middle(name, longest);
        match alike.get(&short) {
            Some(twins) if twins.len() > 1 => around(name, twins, longest),
            _ => short,
        }
    };
    clean.iter().map(shown).collect()
}

/// Letters that a terminal would act on are replaced.
fn clean(name: &str) -> Vec<char> {
    name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// A name without its middle.
fn middle(name: &[char], longest: usize) -> String {
    if name.len() <= longest {
        return name.iter().collect();
    }
    let tail = (longest - 1) / 2;
    let head = longest - 1 - tail;
    name[..head].iter().chain(&['…']).chain(&name[name.len() - tail..]).collect()
}

/// The part of a name around the last letter that tells it from one of its twins. In alphabetical order, the twin that
/// has most in common with it stands next to it.
fn around(name: &Vec<char>, twins: &BTreeSet<&Vec<char>>, longest: usize) -> String {
    let next = [twins.range::<&Vec<char>, _>(..name).next_back(), twins.range::<&Vec<char>, _>(name..).nth(1)];
    let differs = |twin: &&Vec<char>| name.iter().zip(twin.iter()).position(|(a, b)| a != b).unwrap_or(name.len());
    let at = next.into_iter().flatten().map(differs).max().unwrap_or(0);
    let room = longest.saturating_sub(2).max(1);
    let from = at.saturating_sub(room / 2).min(name.len().saturating_sub(room));
    let to = (from + room).min(name.len());
    let mut short = String::new();
    if from > 0 {
        short.push('…');
    }
    short.extend(&name[from..to]);
    if to < name.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(names: &[&str], longest: usize) -> Vec<String> {
        distinct(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), longest)
    }

    #[test]
    fn what_fits_stays_and_what_does_not_loses_its_middle() {
        assert_eq!(short(&["A", "Payment\nreceived"], 20), ["A", "Payment\u{fffd}received"]);
        assert_eq!(short(&["T02 Check confirmation of receipt"], 15), ["T02 Che…receipt"]);
    }

    #[test]
    fn names_that_differ_look_different() {
        let names = ["node 17 of rack 3 in hall north lost power", "node 18 of rack 3 in hall north lost power"];
        let shown = short(&names, 20);
        assert_ne!(shown[0], shown[1]);
        // All alike at both ends.
        let names = [1, 2, 3].map(|i| format!("{}{i}{}", "a".repeat(40), "b".repeat(40)));
        let shown = distinct(&names, 24);
        let unique: BTreeSet<&String> = shown.iter().collect();
        assert_eq!(unique.len(), 3, "{shown:?}");
        assert!(shown.iter().all(|name| name.chars().count() <= 24), "{shown:?}");
    }
}
