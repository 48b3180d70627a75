//! Prior knowledge files: TOML that says which types can cause which.
//!
//! ```toml
//! only_causes = ["ignition on"]               # nothing causes these
//! only_effects = ["service report *"]         # these cause nothing
//! tiers = [["P05*"], ["U0*"], ["C0*", "B1*"]] # what stands in a later tier never causes what stands in an earlier one
//!
//! [[forbidden]]
//! cause = "B1000"
//! effect = "*"
//!
//! [[required]]
//! cause = "P0562"
//! effect = "U0100"
//!
//! [[lags]]        # the pair acts at these lags only
//! cause = "P0562"
//! effect = "U0*"
//! min = 1
//! max = 4
//! ```
//!
//! `*` stands for any text. Every name must be one that the model knows, and every pattern must meet one: a rule about
//! nothing is a slip of the pen.

use std::path::Path;

use serde::Deserialize;
use toml::Spanned;
use trace_core::{EventId, EventName, Knowledge, LagRule, TypeSet, Vocabulary};
use twox_hash::XxHash3_64;

use crate::Error;

/// A knowledge file as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    only_causes: Vec<Spanned<EventName>>,
    #[serde(default)]
    only_effects: Vec<Spanned<EventName>>,
    #[serde(default)]
    tiers: Vec<Vec<Spanned<EventName>>>,
    #[serde(default)]
    forbidden: Vec<Pair>,
    #[serde(default)]
    required: Vec<Pair>,
    #[serde(default)]
    lags: Vec<Lags>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    cause: Spanned<EventName>,
    effect: Spanned<EventName>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lags {
    cause: Spanned<EventName>,
    effect: Spanned<EventName>,
    #[serde(default = "one")]
    min: Spanned<u32>,
    max: Option<u32>,
}

fn one() -> Spanned<u32> {
    Spanned::new(0..0, 1)
}

/// Reads a knowledge file for the types of a vocabulary. Also returns a hash of it, for results to name.
pub fn read(path: &Path, vocabulary: &Vocabulary) -> Result<(Knowledge, String), Error> {
    let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
    let knowledge = parse(&text, &path.display().to_string(), vocabulary)?;
    Ok((knowledge, format!("{:016x}", XxHash3_64::oneshot(text.as_bytes()))))
}

/// Reads the text of a knowledge file; `file` is what to call it in messages.
pub fn parse(text: &str, file: &str, vocabulary: &Vocabulary) -> Result<Knowledge, Error> {
    let line = |offset: usize| 1 + text.get(..offset).unwrap_or(text).matches('\n').count();
    let document: Document = toml::from_str(text).map_err(|error| {
        let reason = error.message().replace('\n', ", ");
        match error.span() {
            Some(span) => Error::line(file, line(span.start) as u64, reason),
            None => Error::file(file, reason),
        }
    })?;
    let names = Names { file, vocabulary, line: &line };
    let mut knowledge = Knowledge {
        only_causes: names.union(&document.only_causes)?,
        only_effects: names.union(&document.only_effects)?,
        tiers: document.tiers.iter().map(|tier| names.union(tier)).collect::<Result<_, _>>()?,
        ..Knowledge::default()
    };
    for pair in &document.forbidden {
        knowledge.forbidden.push((names.set(&pair.cause)?, names.set(&pair.effect)?));
    }
    for pair in &document.required {
        knowledge.required.insert((names.one(&pair.cause)?, names.one(&pair.effect)?));
    }
    for lags in &document.lags {
        let (least, most) = (*lags.min.get_ref(), lags.max.unwrap_or(u32::MAX));
        if least == 0 || most < least {
            let reason = format!("expected lags from 1 on and max at least min, found min {least} and max {most}");
            return Err(names.complain(&lags.cause, reason));
        }
        let (causes, effects) = (names.set(&lags.cause)?, names.set(&lags.effect)?);
        knowledge.lags.push(LagRule { causes, effects, least, most });
    }
    if let Some((cause, effect)) = knowledge.contradiction() {
        let pair = document.required.iter().find(|pair| names.one(&pair.cause).is_ok_and(|found| found == cause));
        let reason = format!(
            "{} → {} is required, but another rule excludes it at every lag",
            vocabulary.name(cause),
            vocabulary.name(effect)
        );
        return Err(pair.map_or_else(|| Error::file(file, &reason), |pair| names.complain(&pair.cause, &reason)));
    }
    Ok(knowledge)
}

/// Looks names up and complains about those that are not there.
struct Names<'n> {
    file: &'n str,
    vocabulary: &'n Vocabulary,
    line: &'n dyn Fn(usize) -> usize,
}

impl Names<'_> {
    fn complain(&self, at: &Spanned<EventName>, reason: impl Into<String>) -> Error {
        Error::line(self.file, (self.line)(at.span().start) as u64, reason)
    }

    fn one(&self, name: &Spanned<EventName>) -> Result<EventId, Error> {
        self.vocabulary.id(name.get_ref()).ok_or_else(|| {
            let reason = format!(
                "{:?} is not among the {} types the model knows; a required pair names two of them",
                name.get_ref().to_string(),
                self.vocabulary.len()
            );
            self.complain(name, reason)
        })
    }

    /// The types that a name or pattern means.
    fn set(&self, name: &Spanned<EventName>) -> Result<TypeSet, Error> {
        if let Some(id) = self.vocabulary.id(name.get_ref()) {
            return Ok(TypeSet::from_iter([id]));
        }
        let pattern = name.get_ref().to_string();
        if pattern == "*" {
            return Ok(TypeSet::All);
        }
        let ids = 0..self.vocabulary.len() as u32;
        let meets = |id: &EventId| match self.vocabulary.name(*id) {
            EventName::Text(text) => matches(&pattern, &text),
            EventName::Number(number) => matches(&pattern, &number.to_string()),
        };
        let found: Vec<EventId> = ids.map(EventId).filter(meets).collect();
        if found.is_empty() {
            let reason = format!("{pattern:?} meets none of the {} types the model knows", self.vocabulary.len());
            return Err(self.complain(name, reason));
        }
        Ok(found.into_iter().collect())
    }

    fn union(&self, names: &[Spanned<EventName>]) -> Result<TypeSet, Error> {
        let mut union = TypeSet::default();
        for name in names {
            match (&mut union, self.set(name)?) {
                (TypeSet::All, _) => {}
                (union, TypeSet::All) => *union = TypeSet::All,
                (TypeSet::Of(all), TypeSet::Of(more)) => all.extend(more),
            }
        }
        Ok(union)
    }
}

/// Whether a text meets a pattern in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use trace_core::{Lag, Prior};

    use super::*;

    fn vocabulary() -> Vocabulary {
        let mut vocabulary = Vocabulary::named();
        for name in ["P0562 low", "U0100 lost", "U0101 lost", "B1000", "12"] {
            vocabulary.intern(&name.into());
        }
        vocabulary
    }

    #[test]
    fn patterns() {
        for (pattern, text, expected) in [
            ("U*", "U0100", true),
            ("*lost", "U0100 lost", true),
            ("U*0*st", "U0100 lost", true),
            ("U*", "P0562", false),
            ("a*a", "a", false),
            ("a*b*a", "aba", true),
            ("abc", "abcd", false),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn rules_mean_the_types_they_name() {
        let text = r#"
            only_causes = ["P0562*"]
            only_effects = [12]
            tiers = [["P0562 low"], ["U*"]]
            [[forbidden]]
            cause = "B1000"
            effect = "*"
            [[required]]
            cause = "P0562 low"
            effect = "U0100 lost"
            [[lags]]
            cause = "P0562 low"
            effect = "U0101 lost"
            max = 2
        "#;
        let knowledge = parse(text, "k.toml", &vocabulary()).unwrap();
        let verdict = |cause, effect, lag| knowledge.prior(EventId(cause), EventId(effect), Lag(lag));
        assert_eq!(verdict(0, 1, 9), Prior::Required);
        assert_eq!((verdict(0, 2, 2), verdict(0, 2, 3)), (Prior::Open, Prior::Excluded));
        assert_eq!(
            (verdict(1, 0, 1), verdict(4, 1, 1), verdict(3, 2, 1)),
            (Prior::Excluded, Prior::Excluded, Prior::Excluded)
        );
        assert_eq!(verdict(1, 2, 1), Prior::Open);
    }

    #[test]
    fn faults_name_their_line() {
        for (text, expected) in [
            ("only_causes = [\n\"X\"]", "k.toml: line 2: \"X\" meets none of the 5 types the model knows"),
            ("\n[[required]]\ncause = \"B1000\"\neffect = \"U*\"", "k.toml: line 4: \"U*\" is not among the 5 types"),
            ("forbiden = []", "k.toml: line 1: unknown field `forbiden`"),
            ("[[lags]]\ncause = \"*\"\neffect = \"*\"\nmin = 3\nmax = 2", "k.toml: line 2: expected lags from 1 on"),
            (
                "only_causes = [\"B1000\"]\n[[required]]\ncause = \"12\"\neffect = \"B1000\"",
                "k.toml: line 3: 12 → B1000 is required",
            ),
            ("tiers = [", "k.toml: line 1:"),
            ("only_causes = [1.5]", "k.toml: line 1:"),
        ] {
            let error = parse(text, "k.toml", &vocabulary()).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
