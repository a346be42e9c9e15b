//! What worlds have beside their scripts, from some seed on.

use super::{
    Act, Command, FaultAct, LONGEST_CUT, PersonAct, Plan, Restart, Right, Step, StoreKind,
};
use crate::chance::Chance;
use crate::process::Lack;

/// Worlds from this seed on have more in them. Of those before, all but [`WITH_ALL`] stay what they
/// were: what failed among them is known by its seed. A later widening begins at a later seed.
const WIDER: u64 = 100_000;
/// From this seed on, processes are also killed while they begin, and hold less.
const HURRIED: u64 = 200_000;
/// From this seed on, the bot loses rights, and servers have outages.
const BARRED: u64 = 300_000;
/// From this seed on, messages are pinned, and most prompts show what is.
const PINNED: u64 = 400_000;
/// From this seed on, answers have buttons, which are pressed.
const STEERED: u64 = 500_000;
/// From this seed on, the bot has several machines.
const TOGETHER: u64 = 600_000;
/// From this seed on, one of them at times does not reach Discord.
const OFFLINE: u64 = 700_000;
/// From this seed on, operators drain the bot's process and change the number of shards.
const OPERATED: u64 = 800_000;
/// Of fifty of the first worlds, those that have all of it, so that any thousand do. None that had
/// failed when this was added is among them.
const WITH_ALL: [u64; 8] = [17, 21, 27, 30, 36, 44, 46, 48];
/// How soon after a message is asked about its channel may be closed, in milliseconds.
const CLOSES: u64 = 400;

impl Plan {
    /// Adds what worlds of its seed have.
    pub(super) fn add_by_seed(&mut self) {
        let seed = self.seed;
        let has_all = seed < WIDER && WITH_ALL.contains(&(seed % 50));
        if seed >= WIDER || has_all {
            self.widen(&mut Chance::new(!seed));
        }
        if seed >= HURRIED || has_all {
            self.hurry(&mut Chance::new(seed.rotate_left(32)));
        }
        if seed >= BARRED || has_all {
            self.bar(&mut Chance::new(seed.rotate_left(16)));
        }
        if seed >= PINNED {
            self.pin(&mut Chance::new(seed.rotate_left(48)));
        }
        if seed >= STEERED {
            self.steer(&mut Chance::new(seed.rotate_left(8)));
        }
        if seed >= TOGETHER {
            self.cluster(&mut Chance::new(seed.rotate_left(24)));
        }
        if seed >= OFFLINE {
            self.cut_off(&mut Chance::new(seed.rotate_left(40)));
        }
        if seed >= OPERATED {
            self.operate(&mut Chance::new(seed.rotate_left(56)));
        }
    }

    /// Links into other channels, channels that close while somebody asks about what stands in them,
    /// short pages, stops at any await and in a hurry, a server's limit.
    fn widen(&mut self, chance: &mut Chance) {
        if chance.percent(10) {
            self.settings.push(("TOKENS_PER_DAY", "0,4000"));
        }
        let mut added = Vec::new();
        for step in &mut self.script {
            let mut add = |after, what| {
                let after = i64::try_from(after).unwrap_or_default();
                let at = step.at + after;
                added.push(Step { at, what });
            };
            if let Act::Person(PersonAct::AsksAbout { who, to }) = step.what
                && chance.percent(50)
            {
                let place = chance.any();
                step.what = Act::Person(PersonAct::AsksWithLink { who, to, place });
            }
            match &mut step.what {
                Act::Person(PersonAct::AsksWithLink { .. } | PersonAct::AsksAbout { .. })
                    if chance.percent(20) =>
                {
                    let place = chance.any();
                    let closes = chance.below(CLOSES);
                    add(closes, Act::Person(PersonAct::HidesChannel { place }));
                    let opens = closes + chance.between(500, 30_000);
                    add(opens, Act::Person(PersonAct::ShowsChannel { place }));
                }
                Act::Fault(fault) if chance.percent(10) => {
                    let times = chance.between(1, 4);
                    *fault = FaultAct::RestShort { times };
                }
                Act::Restart { how, .. } if *how == Restart::Stop && chance.percent(50) => {
                    *how = Restart::StopAt(chance.between(1, 60));
                }
                _ => {}
            }
        }
        self.script.extend(added);
        // What is under way at a stop is taken back.
        if chance.percent(30) {
            self.settings.push(("SHUTDOWN_TIMEOUT_S", "0.1"));
        }
    }

    /// Small bounds, and kills while a process begins: what it is asked at once, takes over and catches up.
    fn hurry(&mut self, chance: &mut Chance) {
        for (often, name, value) in [
            (50, "WINDOW_PER_CHANNEL", "6"),
            (20, "TOKENS_PER_DAY", "3000,0"),
        ] {
            let is_set = self.settings.iter().any(|(of, _)| *of == name);
            if chance.percent(often) && !is_set {
                self.settings.push((name, value));
            }
        }
        let mut added = Vec::new();
        let mut kill = |chance: &mut Chance, at: i64| {
            let how = Restart::KillAt(chance.between(1, 80));
            let down = i64::try_from(chance.between(1_000, 20_000)).unwrap_or_default();
            let what = Act::Restart { how, down };
            added.push(Step { at, what });
            at + down
        };
        if chance.percent(50) {
            // Its session has begun by now, and is not noted yet.
            let asked = 400;
            let (who, place) = (chance.any(), chance.any());
            let what = Act::Person(PersonAct::Asks { who, place });
            self.script.push(Step { at: asked, what });
            kill(chance, asked);
        }
        for step in &self.script {
            let Act::Restart { down, .. } = step.what else {
                continue;
            };
            let mut begins = step.at + down;
            while chance.percent(40) {
                let soon = i64::try_from(chance.below(4_000)).unwrap_or_default();
                begins = kill(chance, begins + soon);
            }
        }
        self.script.extend(added);
    }

    /// Rights that the bot loses for a time, and outages of servers, mostly around a question.
    fn bar(&mut self, chance: &mut Chance) {
        let mut added = Vec::new();
        for step in &self.script {
            let is_question = matches!(step.what, Act::Person(PersonAct::Asks { .. }));
            if !chance.percent(if is_question { 10 } else { 1 }) {
                continue;
            }
            let place = chance.any();
            let rights = [Right::View, Right::Send, Right::ReadHistory];
            let right = chance.one_of(&rights).unwrap_or(Right::View);
            let (begins, ends) = if chance.percent(30) {
                let outage = |is_on| PersonAct::Outage { place, is_on };
                (outage(true), outage(false))
            } else {
                let bars = PersonAct::BarsBot { place, right };
                (bars, PersonAct::AllowsBot { place })
            };
            let from = i64::try_from(chance.below(2 * CLOSES)).unwrap_or_default();
            let lasts = i64::try_from(chance.between(200, 30_000)).unwrap_or_default();
            let at = step.at - from + i64::try_from(CLOSES).unwrap_or_default();
            for (at, what) in [(at, begins), (at + lasts, ends)] {
                let what = Act::Person(what);
                added.push(Step { at, what });
            }
        }
        self.script.extend(added);
    }

    /// Pins of what was just said, of which some go again.
    fn pin(&mut self, chance: &mut Chance) {
        let place = ["topic,pins", "topic,pins", "topic"];
        let place = chance.one_of(&place).unwrap_or("off");
        self.settings.push(("PLACE_CONTEXT", place));
        let mut added = Vec::new();
        for step in &self.script {
            let is_said = matches!(step.what, Act::Person(PersonAct::Says { .. }));
            let which = chance.any();
            let what = if is_said && chance.percent(50) {
                PersonAct::Pins { which: which % 4 }
            } else if chance.percent(5) {
                PersonAct::Unpins { which }
            } else {
                continue;
            };
            let after = i64::try_from(chance.below(CLOSES)).unwrap_or_default();
            let (at, what) = (step.at + after, Act::Person(what));
            added.push(Step { at, what });
        }
        self.script.extend(added);
    }

    /// Buttons under answers, and presses while the answers grow and later.
    fn steer(&mut self, chance: &mut Chance) {
        let mut added = Vec::new();
        let mut add = |at, what| {
            let what = Act::Person(what);
            added.push(Step { at, what });
        };
        for who in 0..self.guilds {
            let command = Command::SetButtons;
            let place = 0;
            add(
                500,
                PersonAct::Uses {
                    who,
                    place,
                    command,
                },
            );
        }
        for step in &self.script {
            let is_question = matches!(step.what, Act::Person(PersonAct::Asks { .. }));
            if !chance.percent(if is_question { 50 } else { 15 }) {
                continue;
            }
            let longest = chance.one_of(&[CLOSES, 4_000, 30_000]).unwrap_or(CLOSES);
            let after = i64::try_from(chance.below(longest)).unwrap_or_default();
            let (who, on, which) = (chance.any(), chance.below(4), chance.any());
            add(step.at + after, PersonAct::Presses { who, on, which });
        }
        self.script.extend(added);
    }

    /// Several machines, whose database is gone at times, or which do not reach it, or do nothing.
    fn cluster(&mut self, chance: &mut Chance) {
        self.machines = chance.between(2, 4);
        self.store = StoreKind::Sqlite;
        let mut added = Vec::new();
        for step in &self.script {
            if !chance.percent(4) {
                continue;
            }
            // A lease lasts for ten seconds.
            let ms = chance.between(500, LONGEST_CUT.unsigned_abs());
            let fault = match chance.below(5) {
                0 => FaultAct::DatabaseGone { ms },
                1 | 2 => lacks(Lack::Database, ms),
                _ => lacks(Lack::Time, ms),
            };
            let (at, what) = (step.at + 1, Act::Fault(fault));
            added.push(Step { at, what });
        }
        self.script.extend(added);
    }

    /// Machines that do not reach Discord, also for longer than another one waits.
    fn cut_off(&mut self, chance: &mut Chance) {
        let mut added = Vec::new();
        for step in &self.script {
            if chance.percent(3) {
                let longest = chance.one_of(&[5_000, 100_000, 300_000]).unwrap_or(5_000);
                let ms = chance.between(500, longest);
                let (at, what) = (step.at + 2, Act::Fault(lacks(Lack::Discord, ms)));
                added.push(Step { at, what });
            }
        }
        self.script.extend(added);
    }

    /// What operators ask of the processes.
    fn operate(&mut self, chance: &mut Chance) {
        let mut added = Vec::new();
        for step in &self.script {
            let fault = match chance.below(100) {
                0..3 => FaultAct::Drained,
                3..6 => FaultAct::Resharded {
                    shards: u32::try_from(chance.between(1, 3)).unwrap_or(1),
                },
                _ => continue,
            };
            let (at, what) = (step.at + 3, Act::Fault(fault));
            added.push(Step { at, what });
        }
        self.script.extend(added);
    }
}

const fn lacks(lack: Lack, ms: u64) -> FaultAct {
    FaultAct::Lacks { lack, ms }
}
