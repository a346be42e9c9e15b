//! What a seed makes: settings, a Discord, and a script of what people and faults do.

mod faults;
mod more;

use crate::chance::Chance;
use crate::process::Lack;
use crate::world::{ModelTrouble, StoreTrouble};

/// A world before it runs.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) store: StoreKind,
    /// Whether stores of the other kinds do all that it does.
    pub(crate) has_twins: bool,
    pub(crate) guilds: u64,
    pub(crate) people: u64,
    /// On how many machines there is a process of the bot.
    pub(crate) machines: u64,
    /// Settings beside those that every world has.
    pub(crate) settings: Vec<(&'static str, &'static str)>,
    /// In order of time.
    pub(crate) script: Vec<Step>,
}

/// Which store the bot has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreKind {
    Sqlite,
    Files,
}

/// Something that is done at a time, in milliseconds since the world's beginning.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) at: i64,
    pub(crate) what: Act,
}

/// What is done. Numbers choose among what there is when it is done, so that the rest of a
/// script means the same when steps are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Person(PersonAct),
    Fault(FaultAct),
    /// The process ends for a time in milliseconds, and begins again.
    Restart {
        how: Restart,
        down: i64,
    },
}

/// How a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Restart {
    /// It is asked to stop.
    Stop,
    /// The same when it has gone through its seams so often, at any await.
    StopAt(u64),
    /// It is killed at once.
    Kill,
    /// It is killed when it has gone through its seams so often, at any await.
    KillAt(u64),
}

/// What a person does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PersonAct {
    Says {
        who: u64,
        place: u64,
    },
    Asks {
        who: u64,
        place: u64,
    },
    AsksDirectly {
        who: u64,
    },
    Replies {
        who: u64,
        to: u64,
    },
    /// Replies to somebody's message with a mention.
    AsksAbout {
        who: u64,
        to: u64,
    },
    /// Asks with a link to somebody's message, maybe of another channel.
    AsksWithLink {
        who: u64,
        to: u64,
        place: u64,
    },
    /// Asks, or says, what an app is to post in their place.
    WritesForApp {
        who: u64,
        place: u64,
        asks: bool,
    },
    /// The app posts what has waited longest for it, and deletes that before or afterwards.
    AppPosts {
        is_late: bool,
    },
    Edits {
        which: u64,
    },
    Deletes {
        which: u64,
    },
    DeletesMany {
        place: u64,
        count: u64,
    },
    Pins {
        which: u64,
    },
    Unpins {
        which: u64,
    },
    Uses {
        who: u64,
        place: u64,
        command: Command,
    },
    StartsThread {
        who: u64,
        place: u64,
    },
    ArchivesThread {
        place: u64,
    },
    DeletesThread {
        place: u64,
    },
    LosesRole {
        who: u64,
    },
    GetsRole {
        who: u64,
    },
    HidesChannel {
        place: u64,
    },
    ShowsChannel {
        place: u64,
    },
    /// The bot may do less in a channel and its threads.
    BarsBot {
        place: u64,
        right: Right,
    },
    /// It may do there what it could.
    AllowsBot {
        place: u64,
    },
    /// Presses a button of the bot's message, mostly of an answer to themselves.
    Presses {
        who: u64,
        on: u64,
        which: u64,
    },
    /// A server's outage begins, or is over.
    Outage {
        place: u64,
        is_on: bool,
    },
}

/// What the bot needs in a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Right {
    View,
    Send,
    ReadHistory,
}

/// A command of the bot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    OptOut,
    OptIn,
    Erase,
    Clear,
    Save,
    Show,
    Why,
    DeleteConversation,
    Remember,
    /// What lone mentions get in the server, by the operator's setting.
    SetLone(&'static str),
    /// Whether facts are learnt there.
    SetLearning(&'static str),
    /// Whether answers have buttons there.
    SetButtons,
    Run,
    StopRun,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultAct {
    Model(ModelTrouble, u64),
    Store(StoreTrouble, u64),
    RestStatus {
        status: u16,
        times: u64,
    },
    RestLimited {
        seconds: u64,
        times: u64,
    },
    RestLate {
        ms: u64,
        times: u64,
    },
    RestBroken {
        applied: bool,
        times: u64,
    },
    RestTruncated {
        times: u64,
    },
    RestShort {
        times: u64,
    },
    RestHangs {
        ms: u64,
        times: u64,
    },
    GatewayDrops,
    GatewayCloses,
    GatewayAsksToReconnect,
    GatewayInvalidates {
        resumable: bool,
    },
    GatewayForgets,
    HeartbeatsUnanswered {
        answered: bool,
    },
    EventsLate {
        count: u64,
        ms: u64,
    },
    EventsTwice {
        count: u64,
    },
    ClockJumps {
        ms: i64,
    },
    /// No process reaches the database.
    DatabaseGone {
        ms: u64,
    },
    /// An operator drains the one that is the bot.
    Drained,
    /// An operator wants so many shards.
    Resharded {
        shards: u32,
    },
    /// The one that is the bot lacks this.
    Lacks {
        lack: Lack,
        ms: u64,
    },
}

/// The application through which people write.
pub(crate) const APP_ID: &str = "466378653216014359";

/// The shortest and the longest script, in steps.
const STEPS: (u64, u64) = (60, 150);
/// The longest pause between two steps, in milliseconds; most are much shorter.
const PAUSE: u64 = 20_000;
/// How soon an app posts, in milliseconds: mostly before it is no longer waited for.
const APP: (u64, u64) = (200, 2_000);
/// For how long a process does not reach its database at most, in milliseconds.
pub(crate) const LONGEST_CUT: i64 = 20_000;
const STEPS_OF_WEEK: u64 = 3_000;
/// The longest pause in a week.
const PAUSE_IN_WEEK: u64 = 3_600_000;

/// How long a world lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Span {
    Minutes,
    /// About a week.
    Week,
}

impl Plan {
    /// What a seed makes.
    pub(crate) fn of(seed: u64) -> Self {
        Self::lasting(seed, Span::Minutes)
    }

    /// The same, for longer.
    pub(crate) fn lasting(seed: u64, span: Span) -> Self {
        let mut chance = Chance::new(seed);
        let store = if chance.percent(60) {
            StoreKind::Sqlite
        } else {
            StoreKind::Files
        };
        let mut plan = Self {
            seed,
            store,
            has_twins: false,
            guilds: chance.between(1, 3),
            people: chance.between(2, 6),
            machines: 1,
            settings: settings(store, &mut chance),
            script: Vec::new(),
        };
        let (steps, longest) = match span {
            Span::Minutes => (chance.between(STEPS.0, STEPS.1), PAUSE),
            Span::Week => (STEPS_OF_WEEK, PAUSE_IN_WEEK),
        };
        // Trouble comes in a world more or less often.
        let (faults, restarts) = (chance.between(3, 20), chance.between(1, 4));
        let mut at = 2_000;
        for _ in 0..steps {
            at += pause(&mut chance, longest);
            let what = act(&mut chance, faults, restarts);
            plan.script.push(Step { at, what });
            if matches!(what, Act::Person(PersonAct::WritesForApp { .. })) {
                let what = Act::Person(PersonAct::AppPosts {
                    is_late: chance.percent(50),
                });
                let later = chance.between(APP.0, APP.1);
                let at = at + i64::try_from(later).unwrap_or_default();
                plan.script.push(Step { at, what });
            }
        }
        plan.add_by_seed();
        plan.script.sort_by_key(|step| step.at);
        plan
    }
}

fn settings(store: StoreKind, chance: &mut Chance) -> Vec<(&'static str, &'static str)> {
    let mut settings = Vec::new();
    let mut set = |often, name, value| {
        if chance.percent(often) {
            settings.push((name, value));
        }
    };
    set(30, "LONE_CONTEXT", "conversation");
    set(20, "LONE_CONTEXT", "recent");
    set(20, "THREAD_SELECT", "conversation");
    set(20, "MEM_MAX_MSGS", "8");
    set(20, "MEM_MAX_CHARS", "600");
    set(20, "WINDOW_PER_CHANNEL", "0");
    set(20, "THREAD_REPLY_TARGET", "trigger");
    set(30, "MEMORY_LEARN", "model");
    set(20, "TOOL_MAX_ROUNDS", "0");
    set(60, "PROXY_APPS", APP_ID);
    set(80, "USER_TURNS_PER_MIN", "60");
    // What nobody has reached is no limit.
    if !settings
        .iter()
        .any(|(name, _)| *name == "USER_TURNS_PER_MIN")
    {
        settings.push(("USER_TURNS_PER_MIN", "3"));
    }
    // Files know one scope.
    if store == StoreKind::Sqlite
        && let Some(scope) = chance.one_of(&["member", "member", "thread", "user"])
    {
        settings.push(("CONTEXT_SCOPE", scope));
    }
    settings
}

/// Bursts and pauses.
fn pause(chance: &mut Chance, longest: u64) -> i64 {
    let most = match chance.below(10) {
        0..3 => 40,
        3..6 => 800,
        6..9 => 4_000,
        _ => longest,
    };
    i64::try_from(chance.below(most)).unwrap_or_default()
}

fn act(chance: &mut Chance, faults: u64, restarts: u64) -> Act {
    if chance.percent(faults) {
        return Act::Fault(fault(chance));
    }
    if chance.percent(restarts) {
        let how = match chance.below(4) {
            0 => Restart::Stop,
            1 => Restart::Kill,
            _ => Restart::KillAt(chance.between(1, 60)),
        };
        let down = i64::try_from(chance.between(200, 30_000)).unwrap_or_default();
        return Act::Restart { how, down };
    }
    Act::Person(person(chance))
}

fn person(chance: &mut Chance) -> PersonAct {
    let (who, place, which) = (chance.any(), chance.any(), chance.any());
    match chance.below(100) {
        0..21 => PersonAct::Says { who, place },
        21..25 => PersonAct::WritesForApp {
            who,
            place,
            asks: chance.percent(70),
        },
        25..50 => PersonAct::Asks { who, place },
        50..55 => PersonAct::AsksDirectly { who },
        55..63 => PersonAct::Replies { who, to: which },
        63..70 => PersonAct::AsksAbout { who, to: which },
        70..76 => PersonAct::Edits { which },
        76..83 => PersonAct::Deletes { which },
        83..85 => PersonAct::DeletesMany {
            place,
            count: chance.between(2, 5),
        },
        85..93 => PersonAct::Uses {
            who,
            place,
            command: command(chance),
        },
        93 => PersonAct::LosesRole { who },
        94 => PersonAct::GetsRole { who },
        95 => PersonAct::HidesChannel { place },
        96 => PersonAct::ShowsChannel { place },
        97 => PersonAct::StartsThread { who, place },
        _ => match chance.below(3) {
            0 => PersonAct::DeletesThread { place },
            _ => PersonAct::ArchivesThread { place },
        },
    }
}

fn command(chance: &mut Chance) -> Command {
    let lone = chance.one_of(&["off", "recent", "conversation", "default"]);
    let learning = chance.one_of(&["on", "off", "default"]);
    match chance.below(16) {
        0 => Command::OptOut,
        1 => Command::OptIn,
        2 => Command::Erase,
        3 | 4 => Command::Clear,
        5 => Command::Save,
        6 => Command::Show,
        7 => Command::Why,
        8 => Command::DeleteConversation,
        9 | 10 => Command::Remember,
        11 => Command::SetLone(lone.unwrap_or("default")),
        12 => Command::SetLearning(learning.unwrap_or("default")),
        13 => Command::StopRun,
        _ => Command::Run,
    }
}

fn fault(chance: &mut Chance) -> FaultAct {
    let times = chance.between(1, 4);
    match chance.below(20) {
        0..3 => FaultAct::Model(model_trouble(chance), times),
        3..7 => store_fault(chance),
        7 => FaultAct::RestStatus {
            status: chance.one_of(&[500, 502, 503]).unwrap_or(500),
            times,
        },
        8 => FaultAct::RestLimited {
            seconds: chance.between(1, 4),
            times,
        },
        9 => FaultAct::RestLate {
            ms: chance.between(100, 4_000),
            times,
        },
        10 => FaultAct::RestBroken {
            applied: chance.percent(50),
            times,
        },
        11 => match chance.below(2) {
            0 => FaultAct::RestTruncated { times },
            _ => FaultAct::RestHangs {
                ms: chance.between(1_000, 40_000),
                times,
            },
        },
        12 => FaultAct::GatewayDrops,
        13 => FaultAct::GatewayCloses,
        14 => FaultAct::GatewayAsksToReconnect,
        15 => FaultAct::GatewayInvalidates {
            resumable: chance.percent(50),
        },
        16 => match chance.below(3) {
            0 => FaultAct::GatewayForgets,
            // Half of the time they come back by themselves.
            _ => FaultAct::HeartbeatsUnanswered {
                answered: chance.percent(50),
            },
        },
        17 => FaultAct::EventsLate {
            count: chance.between(1, 20),
            ms: chance.between(50, 3_000),
        },
        18 => FaultAct::EventsTwice {
            count: chance.between(1, 10),
        },
        _ => FaultAct::ClockJumps {
            ms: i64::try_from(chance.below(240_000)).unwrap_or_default() - 120_000,
        },
    }
}

fn model_trouble(chance: &mut Chance) -> ModelTrouble {
    match chance.below(8) {
        0 => ModelTrouble::Status(500),
        1 => ModelTrouble::Status(429),
        2 => ModelTrouble::Status(400),
        3 => ModelTrouble::BreaksOff,
        4 => ModelTrouble::Hangs(chance.between(1_000, 90_000)),
        5 => ModelTrouble::Empty,
        _ => ModelTrouble::Slow(chance.between(100, 4_000)),
    }
}

fn store_fault(chance: &mut Chance) -> FaultAct {
    match (store_trouble(chance), chance.between(1, 12)) {
        // It ends at the first.
        (StoreTrouble::Held, _) => FaultAct::Store(StoreTrouble::Held, 1),
        (trouble, times) => FaultAct::Store(trouble, times),
    }
}

fn store_trouble(chance: &mut Chance) -> StoreTrouble {
    match chance.below(16) {
        0..6 => StoreTrouble::Fails,
        6..9 => StoreTrouble::AppliedButLost,
        9..12 => StoreTrouble::Full,
        12 => StoreTrouble::Held,
        _ => StoreTrouble::Hangs(chance.between(20, 20_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000;

    #[test]
    fn scripts_are_in_order_and_last_for_minutes_or_about_a_week() {
        for (span, lasts) in [
            (Span::Minutes, 60_000..1_200_000),
            (Span::Week, 5 * DAY..8 * DAY),
        ] {
            for seed in 0..20 {
                let script = Plan::lasting(seed, span).script;
                assert!(script.is_sorted_by_key(|step| step.at));
                let last = script.last().map_or(0, |step| step.at);
                assert!(lasts.contains(&last), "{span:?} {seed}: {last}");
            }
        }
    }
}
