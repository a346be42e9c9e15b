//! What the people of the playground are called and say.

/// Who, by number, and what.
pub(super) type Said = (usize, &'static str);

/// User name and display name of those in the first server.
pub(super) const PEOPLE: [(&str, &str); 5] = [
    ("mira", "Mira"),
    ("tomas", "Tomás"),
    ("aiko", "Aiko 愛子"),
    ("samuel", "Samuel"),
    ("noor", "Noor"),
];

/// Who has the second server.
pub(super) const GARDENER: (&str, &str) = ("lotte", "Lotte");

pub(super) const GENERAL_BEFORE: [Said; 6] = [
    (
        0,
        "The workshop is open on Saturday from ten. Bring boots, the yard is mud.",
    ),
    (3, "I have the key of the paint store until Monday."),
    (4, "Can somebody take the minutes on Thursday? I am away."),
    (2, "I can."),
    (1, "The crane is booked for the 28th."),
    (0, "Good, then the masts come down that day."),
];

pub(super) const GENERAL: [Said; 8] = [
    (3, "Coffee is ready ☕"),
    (2, "On my way, I only lock the slip."),
    (4, "Who has the long ladder?"),
    (1, "Behind the shed, where it always is."),
    (4, "It is not."),
    (3, "Then the neighbours have it again."),
    (0, "I ask them this afternoon."),
    (2, "New gloves are in the store, all sizes."),
];

pub(super) const BOATS: [Said; 5] = [
    (0, "*Petrel* is back in the water, engine runs."),
    (2, "Nice! How is the new fuel filter?"),
    (0, "Dry so far."),
    (3, "The school wants a tour on Friday, 24 children."),
    (
        1,
        "There is water in the stern of *Petrel* again, two fingers since this morning. I open a thread.",
    ),
];

pub(super) const LEAK_YESTERDAY: [Said; 16] = [
    (
        1,
        "So: about two litres in four hours. It is salt water, I tasted it 😖",
    ),
    (0, "Then it is not rain from the cockpit. Stern gland?"),
    (
        1,
        "That was my first thought. It drips once a second when the shaft turns, and not at all when it stands.",
    ),
    (2, "One drop in a minute would be normal. Tighten it?"),
    (
        1,
        "Done, a quarter turn on both nuts. It no longer drips, and the housing stays cold.",
    ),
    (3, "And the water?"),
    (1, "Still comes. Less, perhaps."),
    (0, "What about the rudder tube? It was re-bedded in spring."),
    (2, "I did that one. Polyurethane, three days to cure."),
    (
        1,
        "It looks dry from inside, but I cannot see the lower end.",
    ),
    (
        3,
        "Put paper towels around everything and see which is wet first.",
    ),
    (1, "Good idea. Towels are in."),
    (
        4,
        "I was at the pump meanwhile: the float switch sticks, so it never ran by itself.",
    ),
    (0, "So it may have leaked for longer than we know."),
    (4, "Yes. Switch is cleaned, it works again."),
    (1, "I look at the towels tomorrow morning."),
];

pub(super) const LEAK_MORNING: [Said; 14] = [
    (
        1,
        "Towels: the gland is dry, the rudder tube is dry, the exhaust hose is **wet** at the clamp.",
    ),
    (
        0,
        "The exhaust! Cooling water goes through there, so it is salt, and only with the engine on.",
    ),
    (2, "But it leaked at night, too, with the engine off?"),
    (
        1,
        "I measured from 18:00 to 07:00: nothing. It only leaks when she runs.",
    ),
    (
        3,
        "That explains why tightening the gland seemed to help: you had stopped the engine for it.",
    ),
    (1, "…true."),
    (0, "Which hose is it? We have 45 mm in the store."),
    (
        1,
        "It is 50. There is a crack of two centimetres under the clamp, on the lower side.",
    ),
    (
        2,
        "Tape for today, a new one for good. The chandler has 50 mm wet exhaust hose, 31 € a metre.",
    ),
    (4, "We need 80 cm, so take a metre."),
    (
        1,
        "Self-fusing tape is on. Ran her for an hour: a few drops, no more.",
    ),
    (
        0,
        "Then the bilge should stay dry until the new one is there.",
    ),
    (
        3,
        "And both clamps new, please, stainless. The old ones are rust with a thread.",
    ),
    (
        1,
        "Ordered: 1 m of hose, four clamps. They bring it within the hour.",
    ),
];

pub(super) const LEAK_NOW: [Said; 9] = [
    (1, "The hose is here. It is stiffer than I thought."),
    (2, "Hot water, five minutes, then it slides on."),
    (
        1,
        "Off with the old one. The stub of the muffler is corroded, but not through.",
    ),
    (
        0,
        "Clean it with a brush and look for pinholes with a torch.",
    ),
    (
        1,
        "No holes. Brushed, and the new hose is on, two clamps on each end.",
    ),
    (4, "Test with the engine warm, the clamps loosen once."),
    (
        1,
        "Ran her for 30 minutes: **dry**. I tighten again and let her run for another hour.",
    ),
    (3, "Should we take the rudder tube off the list, then?"),
    (
        0,
        "Leave it there until the weekend. Two leaks at once would be just our luck.",
    ),
];

pub(super) const SANDER: (&str, &[Said]) = (
    "Orbital sander leaves swirls",
    &[
        (
            3,
            "I get small swirls in the oak, only visible after the oil is on. 120, then 180. What am I doing wrong?",
        ),
        (0, "Do you press? Let the weight of the machine do it."),
        (3, "A bit, at the edges."),
        (
            2,
            "And change the disc earlier. A dull one with a single big grain makes exactly that.",
        ),
        (
            1,
            "Vacuum between the grits. One grain of 120 under the 180 disc is enough.",
        ),
        (3, "No vacuum so far… I try that first."),
    ],
);

pub(super) const BATTERY: (&str, &[Said]) = (
    "Which charger for the LiFePO4 in the shed?",
    &[
        (
            4,
            "The old charger has only a lead-acid setting: 14.4 V, then 13.8 V float. The battery is a 100 Ah LiFePO4. Can I use it?",
        ),
        (
            2,
            "The 14.4 V are fine. What does the float do when it is full?",
        ),
        (4, "It stays at 13.8 V for as long as it is plugged in."),
        (
            0,
            "Then use it, and unplug it when it is full. For always-on you want float off or 13.5 V.",
        ),
        (2, "And never the *equalise* button: that goes to 15.5 V."),
    ],
);

pub(super) const GLUE: (&str, &[Said]) = (
    "Glue for a wet joint?",
    &[
        (1, "The joint of the gate is never dry. Which glue holds?"),
        (0, "Polyurethane. It even wants a little moisture."),
        (2, "Clamp it, it foams and pushes the parts apart."),
        (1, "It holds since Sunday. Thanks!"),
    ],
);

pub(super) const PUMP: [Said; 7] = [
    (
        4,
        "The compressor switches on every two minutes, although nobody uses air.",
    ),
    (0, "A leak, then. Do you hear it hiss?"),
    (4, "No. Here is its log of this morning."),
    (2, "It loses 0.3 bar a minute. That is a lot for no hiss."),
    (4, "Soapy water on all couplings: no bubbles."),
    (
        3,
        "The check valve. If that leaks, the air goes back through the pump, silently.",
    ),
    (4, "How do I test that?"),
];

pub(super) const PUMP_LOG: &str = "time   bar  motor\n09:00  8.0  off\n09:01  7.7  off\n\
    09:02  7.4  on\n09:03  8.0  off\n09:04  7.7  off\n09:05  7.4  on\n";

pub(super) const BETWEEN: [Said; 12] = [
    (1, "Has anybody seen the 13 mm spanner?"),
    (3, "In the drawer with the 12s."),
    (2, "Band saw is free."),
    (0, "I take it at three."),
    (1, "The lamp over the bench flickers."),
    (3, "Starter. There are new ones in the box by the door."),
    (2, "Delivery from the timber yard is at two."),
    (1, "I can help unload."),
    (0, "Please sweep the slip before you leave."),
    (2, "Done already."),
    (3, "Who ordered 400 screws?"),
    (1, "Me. It was meant to be 40."),
];

pub(super) const ALARMS: [Said; 3] = [
    (0, "Second lines on all boats, please, and fenders down."),
    (3, "*Petrel* and *Dunlin* are done."),
    (2, "The awning is in, too."),
];

pub(super) const BEDS: [Said; 7] = [
    (0, "The slugs were at the lettuce again."),
    (2, "Beer traps?"),
    (
        0,
        "They bring their friends. I go with copper tape this time.",
    ),
    (1, "I have half a roll left, take it."),
    (2, "The beans are up, all but the last row."),
    (
        0,
        "That row was the old seed from 2021. I sow it again on Sunday.",
    ),
    (1, "Ferns can be divided now, if anybody wants some."),
];
