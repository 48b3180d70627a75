//! The designed cascades: which trouble code makes which other one more likely, and how strongly.

/// A designed mechanism, which a cohort can be simulated without.
#[derive(Clone, Copy, Debug)]
pub struct Cascade {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What happens, in a few words.
    pub story: &'static str,
    /// Cause, effect and weight of each rule. A weight of 1 at lag 1 makes the effect as likely as everything in the
    /// background together.
    pub(super) rules: &'static [(&'static str, &'static str, f32)],
}

/// The designed cascades of the hand-written codes, and last the one of all derived components.
pub const CASCADES: &[Cascade] = &[
    Cascade {
        name: "battery",
        story: "battery or generator → system voltage → communication bus → actuators",
        rules: &[
            ("B1318", "P0562", 1.8),
            ("P0620", "P0625", 1.6),
            ("P0625", "P0562", 1.6),
            ("P0562", "U0073", 2.2),
            ("U0073", "U0100", 1.1),
            ("U0073", "U0121", 1.1),
            ("U0073", "U0140", 1.1),
            ("U0100", "P2101", 1.6),
            ("P2101", "P2106", 1.4),
            ("U0121", "C0051", 1.6),
            ("U0121", "U0131", 0.9),
            ("U0131", "C0545", 1.6),
            ("U0140", "B2205", 1.2),
            ("U0140", "B2312", 1.2),
        ],
    },
    Cascade {
        name: "cooling",
        story: "fan, thermostat or pump → cooling performance → overheating → limp mode",
        rules: &[
            ("P0480", "P2181", 1.6),
            ("P0597", "P2181", 1.6),
            ("P261A", "P2181", 1.8),
            ("P2181", "P0217", 2.0),
            ("P0217", "P1299", 1.4),
            ("P0217", "P0218", 1.0),
            ("P0217", "P0692", 1.0),
            ("P1299", "P1290", 1.8),
        ],
    },
    Cascade {
        name: "fuel",
        story: "fuel pump → rail pressure → lean mixture and misfire → catalyst",
        rules: &[
            ("P0230", "P0087", 1.8),
            ("P0627", "P0087", 1.8),
            ("P0087", "P0171", 1.2),
            ("P0087", "P0300", 1.2),
            ("P0171", "P0300", 1.4),
            ("P0300", "P0420", 1.4),
            ("P0300", "P0430", 1.2),
        ],
    },
    Cascade {
        name: "ignition",
        story: "ignition coil → misfire of its cylinder → fuelling disabled",
        rules: &[
            ("P0351", "P0301", 1.8),
            ("P0352", "P0302", 1.8),
            ("P0353", "P0303", 1.8),
            ("P0301", "P0363", 1.2),
            ("P0302", "P0363", 1.2),
            ("P0303", "P0316", 1.4),
        ],
    },
    Cascade {
        name: "brakes",
        story: "wheel speed sensor → signals disagree → ABS, stability and cruise control off",
        rules: &[
            ("C0035", "C0236", 1.6),
            ("C0040", "C0236", 1.6),
            ("C0045", "C0236", 1.6),
            ("C0050", "U0415", 1.6),
            ("C0236", "C0561", 2.0),
            ("C0110", "C0561", 1.6),
            ("C0561", "C1A60", 1.2),
            ("C0561", "C1A61", 1.2),
            ("U0415", "P0500", 1.6),
            ("P0500", "P0567", 1.6),
        ],
    },
    Cascade {
        name: "transmission",
        story: "fluid pressure or solenoid → slipping → wrong ratio → fail-safe gear",
        rules: &[
            ("P0868", "P0894", 1.8),
            ("P0741", "P0894", 1.4),
            ("P0894", "P0730", 1.8),
            ("P0750", "P0730", 1.6),
            ("P0730", "P0700", 1.2),
            ("P0730", "P1783", 1.2),
        ],
    },
    Cascade {
        name: "turbo",
        story: "turbocharger control → underboost → air flow → boost performance",
        rules: &[
            ("P2563", "P0299", 1.6),
            ("P0045", "P0299", 1.8),
            ("P0299", "P0101", 1.4),
            ("P0299", "P2263", 1.2),
            ("P0101", "P0401", 1.4),
        ],
    },
    Cascade {
        name: "exhaust",
        story: "soot → regeneration → filter → limited power; reductant → NOx → no start",
        rules: &[
            ("P2463", "P2458", 1.8),
            ("P2458", "P2002", 1.6),
            ("P2002", "P246C", 1.6),
            ("P203F", "P20E8", 1.8),
            ("P20E8", "P20EE", 1.8),
            ("P20EE", "P2BAD", 1.4),
            ("P2BAD", "P1E05", 1.8),
        ],
    },
    Cascade {
        name: "high-voltage",
        story: "pack → energy control → DC/DC converter; isolation → interlock → shut-down",
        rules: &[
            ("P0A7F", "P0A80", 1.6),
            ("P0A80", "P0A1F", 1.6),
            ("P0A1F", "P0A94", 1.6),
            ("P0AA6", "P0A0D", 1.8),
            ("P0A0D", "P0AE6", 1.2),
            ("P0A0D", "P1A15", 1.4),
        ],
    },
    Cascade {
        name: "restraints",
        story: "clock spring → airbag circuit → restraints module → warning lamp",
        rules: &[("B1A01", "B0001", 1.8), ("B0001", "U0151", 1.4), ("U0151", "B1A10", 1.8), ("B0050", "B1A10", 1.4)],
    },
    Cascade {
        name: "climate",
        story: "refrigerant sensor or clutch → evaporator → cabin temperature control off",
        rules: &[("P0532", "B1448", 1.6), ("P0645", "B1448", 1.6), ("B1448", "B1449", 1.8)],
    },
    Cascade {
        name: "tyres",
        story: "pressure sensor → low pressure → monitoring off",
        rules: &[("C0750", "C0775", 1.6), ("C0760", "C0775", 1.6), ("C0775", "C0776", 1.6)],
    },
    Cascade {
        name: WEAR,
        story: "every second derived component: intermittent → erratic signal → no signal",
        rules: &[],
    },
];

/// The cascade of derived components.
pub(super) const WEAR: &str = "wear";
