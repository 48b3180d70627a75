//! The workflows that come with the software.

use serde::{Deserialize, Serialize};

use super::Specification;
use crate::Error;

/// A workflow that comes with the software.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Emergency patients: triage, tests in any order, wards, return visits.
    #[default]
    Hospital,
    /// Loan applications: checks, offers, rework, late and tied bookings.
    Business,
    /// Requests to ten services, each `ok`, `slow` or `5xx`; a callee is logged before its caller.
    Services,
    /// Five of seven tests in random order, none twice; nothing is designed.
    LabTests,
}

impl Preset {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Hospital, Self::Business, Self::Services, Self::LabTests];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hospital => "hospital",
            Self::Business => "business",
            Self::Services => "services",
            Self::LabTests => "lab-tests",
        }
    }

    /// Its text.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Hospital => include_str!("presets/hospital.toml"),
            Self::Business => include_str!("presets/business.toml"),
            Self::Services => include_str!("presets/services.toml"),
            Self::LabTests => include_str!("presets/lab-tests.toml"),
        }
    }

    /// Its specification.
    pub fn specification(self) -> Result<Specification, Error> {
        Specification::parse(self.text())
    }
}
