//! Derived trouble codes: components by location and number, each with the failure modes that SAE J2012-DA appends to a
//! code as two digits.

/// The letter of the code's system, and the component.
const ITEMS: &[(char, &str)] = &[
    ('B', "door lock"),
    ('B', "window motor"),
    ('B', "seat heater"),
    ('B', "headlamp"),
    ('C', "brake pad wear sensor"),
    ('C', "suspension level sensor"),
    ('P', "knock sensor"),
    ('P', "oxygen sensor"),
    ('B', "mirror motor"),
    ('B', "parking sensor"),
    ('C', "damper valve"),
    ('P', "injector"),
    ('B', "rain sensor"),
    ('U', "radar module"),
    ('U', "camera module"),
    ('P', "glow plug"),
    ('B', "airflow flap motor"),
    ('B', "seat position motor"),
    ('C', "brake pressure sensor"),
    ('P', "camshaft position sensor"),
    ('B', "interior lamp"),
    ('B', "speaker"),
    ('U', "antenna module"),
    ('P', "exhaust gas temperature sensor"),
    ('C', "steering angle sensor"),
    ('P', "particulate sensor"),
    ('B', "fuel flap lock"),
    ('U', "display module"),
    ('P', "intake flap motor"),
    ('B', "blind spot indicator"),
];

const PLACES: &[&str] = &[
    "front left",
    "front right",
    "rear left",
    "rear right",
    "centre",
    "upper left",
    "upper right",
    "lower left",
    "lower right",
    "auxiliary",
];

/// The failure modes of a component, in order. The first three are the wear cascade.
const MODES: [(&str, &str); 8] = [
    ("1F", "circuit intermittent"),
    ("2F", "signal erratic"),
    ("31", "no signal"),
    ("11", "short to ground"),
    ("12", "short to battery"),
    ("13", "circuit open"),
    ("49", "internal electronic failure"),
    ("62", "signal comparison failure"),
];

/// The wear cascade of every second component: which mode leads to which, and how strongly.
const WEAR_RULES: [(usize, usize, f32); 2] = [(0, 1, 0.8), (1, 2, 0.8)];

/// Code and meaning of derived type number `index`.
pub(super) fn name(index: usize) -> String {
    let (component, (digits, mode)) = (index / MODES.len(), MODES[index % MODES.len()]);
    let (letter, item) = ITEMS[component % ITEMS.len()];
    // Consecutive components have different locations, and no item has the same location twice.
    let place = PLACES[(component + component / ITEMS.len()) % PLACES.len()];
    let unit = component / (ITEMS.len() * PLACES.len()) + 1;
    let number = if unit > 1 { format!(" {unit}") } else { String::new() };
    // No hand-written code starts with a 3.
    format!("{letter}{:04X}-{digits} {place} {item}{number} {mode}", 0x3000 + component)
}

/// The rules among the first `count` derived types: cause, effect, share.
pub(super) fn wear(count: usize) -> impl Iterator<Item = (usize, usize, f32)> {
    let components = (0..count.div_ceil(MODES.len())).step_by(2);
    components
        .flat_map(|component| {
            let first = component * MODES.len();
            WEAR_RULES.map(|(cause, effect, weight)| (first + cause, first + effect, weight))
        })
        .filter(move |(_, effect, _)| *effect < count)
}
