//! What the people of the waterworks say.

/// The chain of replies: who of the three on the shift says what.
pub(super) const BEARING: [(usize, &str); 20] = [
    (0, "Pump 2 sounds wrong. A rumble, twice a second."),
    (1, "Since when? It was quiet when I passed at six."),
    (0, "Since the restart after the power dip."),
    (2, "Which side, motor or impeller?"),
    (0, "Impeller side, you can feel it in the housing."),
    (1, "Vibration reads 4.8 mm/s there, 1.9 on the motor."),
    (
        2,
        "4.8 is over the alarm line of 4.5. Is the flow still right?",
    ),
    (0, "Flow is down to 212 m3/h from 230."),
    (1, "Suction pressure is steady, so it is not the strainer."),
    (2, "Could be cavitation. Does it change with the valve?"),
    (0, "No. Throttled to 180 and it rumbles the same."),
    (1, "Then I say bearing. Temperature?"),
    (0, "71 degrees, it was 58 last week."),
    (2, "When was it last greased?"),
    (1, "Work order says 14 months ago. It is due every 12."),
    (2, "Take it out of service then, pump 3 can carry it."),
    (0, "Pump 3 is running, pump 2 is off and locked out."),
    (1, "We have one bearing 6312 in the store, shelf C4."),
    (2, "Good. Who can do the change before the night shift?"),
    (0, "I can, if somebody gives me a hand with the coupling."),
];

/// The end of the long thread.
pub(super) const FILTER_END: [(usize, &str); 7] = [
    (1, "Tried a longer air scour at noon, no difference."),
    (0, "Coagulant is back at 2.4 mg/l, it was at 2.1 all night."),
    (2, "Lab says the raw water is fine, 3.1 NTU."),
    (
        1,
        "I looked through the hatch: the sand has a hollow near the inlet.",
    ),
    (0, "A hollow would explain it. How deep?"),
    (1, "A hand's width, I would say."),
    (
        2,
        "Then we lose sand somewhere. Check the nozzles after the next backwash.",
    ),
];

/// The replies to the forum post.
pub(super) const WELL_POST: [(usize, &str); 6] = [
    (
        1,
        "Is there a sheet for it? I only know it from watching Ada.",
    ),
    (0, "There is, but it still names the old valves."),
    (
        0,
        "The order is the same: V7 first, then start the pump, then close V4.",
    ),
    (1, "And the chlorine?"),
    (
        0,
        "Dosing follows the flow meter, but watch it for ten minutes.",
    ),
    (
        2,
        "Flush to waste until it is under 0.5 NTU, that is missing on the sheet.",
    ),
];

/// What is asked before the question about the shelf.
pub(super) const STORES: [&str; 3] = [
    "for later: the spare sump pump is on shelf 14.",
    "how much grease does the winch take?",
    "who keeps the list of hoses?",
];

/// What is said before the mention without a word.
pub(super) const GATE: [(usize, &str); 6] = [
    (2, "Morning. Handover is on the desk."),
    (0, "The inspector from the county comes at two, not at ten."),
    (1, "Then who shows him around?"),
    (2, "I can, but I need the sampling log of March."),
    (
        1,
        "It is in the blue folder, the pages for week 11 are missing.",
    ),
    (0, "They are in the lab, I bring them before noon."),
];

/// Two conversations in one channel; 3 is Ines.
pub(super) const YARD: [(usize, &str); 12] = [
    (0, "Boris, pump 4 drips at the shaft, a drop a second."),
    (2, "Ines, who shows the visitors the settling tanks?"),
    (1, "Ada, gland or mechanical seal?"),
    (3, "Chidi, I can, if they bring boots."),
    (
        0,
        "Boris, mechanical seal, the old one with the carbon ring.",
    ),
    (2, "Ines, it is 24 children, boots are on the list."),
    (1, "Ada, then tightening does not help, it needs a new one."),
    (3, "Chidi, good. And who takes the photographs?"),
    (0, "Boris, the store has none, I looked."),
    (2, "Ines, their teacher, she says."),
    (1, "Ada, the shaft is 40 mm, I wrote the size on the board."),
    (3, "Chidi, fine with me."),
];

/// The laboratory's channel; a question links to the fourth message.
pub(super) const LAB: [(usize, &str); 6] = [
    (
        0,
        "Chlorine at the outlet is 0.42 mg/l, where it should be.",
    ),
    (1, "Sample 7 is cloudy again."),
    (2, "Which tap is that?"),
    (1, "The one at the reservoir, since Monday."),
    (2, "Then flush it for ten minutes and take another."),
    (0, "I am here until four."),
];

/// The message about the well on which a thread hangs.
pub(super) const WELL_1: &str = "Well 1 draws air since noon, the flow jumps.";

/// What is said there through an app.
pub(super) const WELL_1_PROXIED: [(&str, &str); 2] = [
    ("Luna", "I think the foot valve sticks, I freed it twice."),
    ("Sol", "I put in a new spring, it holds since two."),
];

/// The message about the pump on which a thread hangs.
pub(super) const PUMP_4: &str = "Pump 4 is loud since the night shift.";

/// What was found there.
pub(super) const PUMP_4_ANSWER: &str = "Not the bearing, the coupling was loose. Quiet since ten.";

/// Everyday remarks of a shift.
const CHATTER: [&str; 26] = [
    "The truck with the hypochlorite is at gate 2.",
    "Round done, nothing to report.",
    "Who has the key of the valve chamber?",
    "It is on the hook again.",
    "Tank B at 71 percent and rising.",
    "Coffee is ready.",
    "The lab wants two more samples from the outlet.",
    "On my way.",
    "Gate 1 does not close, I have called the electrician.",
    "Rain from four o'clock on, says the forecast.",
    "Reservoir level 12.40 m.",
    "Can somebody take the phone for ten minutes?",
    "Yes.",
    "Sludge pump is back from the workshop.",
    "Switched to night tariff.",
    "The new gloves are in the store, all sizes.",
    "Compressor tested, pressure holds.",
    "Visitors from the school on Thursday, 24 children.",
    "I have moved the ladder behind the shed.",
    "Chlorine at the outlet 0.21 mg/l.",
    "Thanks!",
    "Fire drill is next week, not today.",
    "UV lamp 4 has 200 hours left.",
    "The mower is broken again.",
    "Pressure in the north zone 5.1 bar.",
    "Lunch?",
];

/// Remarks between the readings in the long thread.
const FILTER: [&str; 14] = [
    "Backwash of filter 3 started.",
    "Backwash done, 9 minutes, wash water clear at the end.",
    "Back in service.",
    "Filters 1, 2 and 4 are all under 0.10.",
    "The turbidity meter was cleaned, same value.",
    "Second meter says the same.",
    "Took a sample by hand for the lab.",
    "Head loss looks normal to me.",
    "Could it be the coagulant?",
    "Jar test is running.",
    "Inflow is a bit higher than yesterday.",
    "Slowed it down to 6 m/h.",
    "No change yet.",
    "I will look again in a quarter of an hour.",
];

/// The step through [`CHATTER`]: coprime to its length, so that all remarks
/// come up in an order that looks random.
const STRIDE: usize = 11;

/// The nth thing said on a shift.
pub(super) fn chatter(nth: usize) -> &'static str {
    CHATTER[nth * STRIDE % CHATTER.len()]
}

/// The nth message of the long thread: every third one is a reading.
pub(super) fn filter(nth: usize) -> String {
    if nth.is_multiple_of(3) {
        let turbidity = 28 + nth / 16 + nth * 7 % 4;
        let loss = 31 + nth / 25;
        return format!("Outlet 0.{turbidity} NTU, head loss {loss} kPa.");
    }
    FILTER[(nth - nth / 3) % FILTER.len()].to_owned()
}
