//! The designed cascades: which trouble code makes which other code more likely, and how strongly.

/// A designed mechanism. A cohort can be simulated without it.
#[derive(Clone, Copy, Debug)]
pub struct Cascade {
    /// Its name in [`FleetSpec::without`](super::FleetSpec::without).
    pub name: &'static str,
    /// What happens, in a few words.
    pub story: &'static str,
    /// Cause, effect and share of each rule: the probability of this effect, given that the cause decides the next
    /// event. The shares of a cause sum to less than 1.
    pub(super) rules: &'static [(&'static str, &'static str, f32)],
}

/// The designed cascades of the hand-written codes; the last one is that of all derived components.
pub const CASCADES: &[Cascade] = &[
    Cascade {
        name: "battery",
        story: "battery or generator → system voltage → communication bus → actuators",
        rules: &[
            ("B1318", "P0562", 0.9),
            ("P0620", "P0625", 0.8),
            ("P0625", "P0562", 0.8),
            ("P0562", "U0073", 0.95),
            ("U0073", "U0100", 0.31),
            ("U0073", "U0121", 0.31),
            ("U0073", "U0140", 0.31),
            ("U0100", "P2101", 0.8),
            ("P2101", "P2106", 0.7),
            ("U0121", "C0051", 0.6),
            ("U0121", "U0131", 0.34),
            ("U0131", "C0545", 0.8),
            ("U0140", "B2205", 0.47),
            ("U0140", "B2312", 0.47),
        ],
    },
    Cascade {
        name: "cooling",
        story: "fan, thermostat or pump → cooling performance → overheating → limp mode",
        rules: &[
            ("P0480", "P2181", 0.8),
            ("P0597", "P2181", 0.8),
            ("P261A", "P2181", 0.9),
            ("P2181", "P0217", 0.95),
            ("P0217", "P1299", 0.39),
            ("P0217", "P0218", 0.27),
            ("P0217", "P0692", 0.27),
            ("P1299", "P1290", 0.9),
        ],
    },
    Cascade {
        name: "fuel",
        story: "fuel pump → rail pressure → lean mixture and misfire → catalyst",
        rules: &[
            ("P0230", "P0087", 0.9),
            ("P0627", "P0087", 0.9),
            ("P0087", "P0171", 0.47),
            ("P0087", "P0300", 0.47),
            ("P0171", "P0300", 0.7),
            ("P0300", "P0420", 0.51),
            ("P0300", "P0430", 0.43),
        ],
    },
    Cascade {
        name: "ignition",
        story: "ignition coil → misfire of its cylinder → fuelling disabled",
        rules: &[
            ("P0351", "P0301", 0.9),
            ("P0352", "P0302", 0.9),
            ("P0353", "P0303", 0.9),
            ("P0301", "P0363", 0.6),
            ("P0302", "P0363", 0.6),
            ("P0303", "P0316", 0.7),
        ],
    },
    Cascade {
        name: "brakes",
        story: "wheel speed sensor → signals disagree → ABS, stability and cruise control off",
        rules: &[
            ("C0035", "C0236", 0.8),
            ("C0040", "C0236", 0.8),
            ("C0045", "C0236", 0.8),
            ("C0050", "U0415", 0.8),
            ("C0236", "C0561", 0.95),
            ("C0110", "C0561", 0.8),
            ("C0561", "C1A60", 0.47),
            ("C0561", "C1A61", 0.47),
            ("U0415", "P0500", 0.8),
            ("P0500", "P0567", 0.8),
        ],
    },
    Cascade {
        name: "transmission",
        story: "fluid pressure or solenoid → slipping → wrong ratio → fail-safe gear",
        rules: &[
            ("P0868", "P0894", 0.9),
            ("P0741", "P0894", 0.7),
            ("P0894", "P0730", 0.9),
            ("P0750", "P0730", 0.8),
            ("P0730", "P0700", 0.47),
            ("P0730", "P1783", 0.47),
        ],
    },
    Cascade {
        name: "turbo",
        story: "turbocharger control → underboost → air flow → boost performance",
        rules: &[
            ("P2563", "P0299", 0.8),
            ("P0045", "P0299", 0.9),
            ("P0299", "P0101", 0.51),
            ("P0299", "P2263", 0.43),
            ("P0101", "P0401", 0.7),
        ],
    },
    Cascade {
        name: "exhaust",
        story: "soot → regeneration → filter → limited power; reductant → NOx → no start",
        rules: &[
            ("P2463", "P2458", 0.9),
            ("P2458", "P2002", 0.8),
            ("P2002", "P246C", 0.8),
            ("P203F", "P20E8", 0.9),
            ("P20E8", "P20EE", 0.9),
            ("P20EE", "P2BAD", 0.7),
            ("P2BAD", "P1E05", 0.9),
        ],
    },
    Cascade {
        name: "high-voltage",
        story: "pack → energy control → DC/DC converter; isolation → interlock → shut-down",
        rules: &[
            ("P0A7F", "P0A80", 0.8),
            ("P0A80", "P0A1F", 0.8),
            ("P0A1F", "P0A94", 0.8),
            ("P0AA6", "P0A0D", 0.9),
            ("P0A0D", "P0AE6", 0.43),
            ("P0A0D", "P1A15", 0.51),
        ],
    },
    Cascade {
        name: "restraints",
        story: "clock spring → airbag circuit → restraints module → warning lamp",
        rules: &[("B1A01", "B0001", 0.9), ("B0001", "U0151", 0.7), ("U0151", "B1A10", 0.9), ("B0050", "B1A10", 0.7)],
    },
    Cascade {
        name: "climate",
        story: "refrigerant sensor or clutch → evaporator → cabin temperature control off",
        rules: &[("P0532", "B1448", 0.8), ("P0645", "B1448", 0.8), ("B1448", "B1449", 0.9)],
    },
    Cascade {
        name: "tyres",
        story: "pressure sensor → low pressure → monitoring off",
        rules: &[("C0750", "C0775", 0.8), ("C0760", "C0775", 0.8), ("C0775", "C0776", 0.8)],
    },
    Cascade {
        name: WEAR,
        story: "every second derived component: intermittent → erratic signal → no signal",
        rules: &[],
    },
];

/// The cascade of derived components.
pub(super) const WEAR: &str = "wear";
