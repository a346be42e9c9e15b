//! Runs a world: processes of the bot, one after the other, on one thread in virtual time.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Once};
use std::thread;
use std::time::Duration;

use clew::app::{self, Observer, Outside};
use clew::config::Config;
use clew::telemetry::event::CircuitState;
use clew::turn::Services;
use clew_context::model::{Clock, UnixMillis};
use clew_context::outside::without_threads;
use clew_simulator::{Fault, FaultKind};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::chance::{Chance, seed_system};
use crate::clock::WorldClock;
use crate::disk::{STORE, TELEMETRY};
use crate::evidence::Evidence;
use crate::history::What;
use crate::people::People;
use crate::place;
use crate::plan::{Act, FaultAct, Plan, Restart, Step, StoreKind};
use crate::process::Process;
use crate::seams::gateway::Dialer;
use crate::seams::net::{MODEL_URL, Net};
use crate::seams::store::TroubledStore;
use crate::stored;
use crate::twins::Twins;
use crate::world::World;

/// How long the world is left alone at its end: longer than anything waits to be tried again.
pub(crate) const QUIET: Duration = Duration::from_mins(20);
/// How long a stop may take: what turns may go on for, and what may be taken back and closed
/// after it.
const STOP: Duration = Duration::from_secs(90);
/// How often a process is asked how its store is.
const HEALTH: Duration = Duration::from_secs(1);
/// How long a kill at a crossing waits for it.
const KILL: Duration = Duration::from_secs(5);
/// How long a service manager waits before it starts again what ended by itself.
pub(crate) const START_AGAIN: i64 = 5_000;
/// Room for the bot's futures.
const STACK: usize = 16 << 20;

/// Runs a plan on a thread of its own.
///
/// # Errors
/// What kept it from being run.
pub(crate) fn run(plan: &Plan) -> Result<Evidence, String> {
    // What libraries keep for the whole program is made of the first world's chance: without this,
    // a world would not be the same alone and after others.
    static FIRST: Once = Once::new();
    FIRST.call_once(|| drop(run_alone(&Plan::of(0))));
    run_alone(plan)
}

fn run_alone(plan: &Plan) -> Result<Evidence, String> {
    let plan = plan.clone();
    let running = thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || {
            seed_system(plan.seed);
            without_threads(|| run_here(&plan))
        })
        .map_err(|error| error.to_string())?;
    running.join().map_err(|panic| said(&*panic))?
}

fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panicked: {}", text.unwrap_or("without a word"))
}

/// A world that is run.
pub(crate) struct Stage {
    pub(crate) world: Arc<World>,
    pub(crate) plan: Plan,
    folder: TempDir,
    processes: AtomicU32,
    /// On how many machines there is a process.
    pub(crate) up: Cell<usize>,
    /// None begins any more.
    pub(crate) is_over: Cell<bool>,
}

/// Why there is no process now.
enum Gone {
    /// For so many milliseconds.
    For(i64),
    /// The world is over.
    ForGood,
}

fn run_here(plan: &Plan) -> Result<Evidence, String> {
    let clock = Arc::new(WorldClock::default());
    let (discord, places) = place::make(plan, &clock).ok_or("no world comes of the plan")?;
    let folder = TempDir::with_prefix("world-").map_err(|error| error.to_string())?;
    let mut chance = Chance::new(plan.seed ^ 0x5eed);
    let twins = plan.has_twins.then(|| {
        let clock = Arc::clone(&clock);
        let clock: Clock = Arc::new(move || UnixMillis(clock.of_bot_ms()));
        Twins::open(plan, folder.path(), &clock)
    });
    let twins = twins.transpose()?;
    let world = Arc::new(World::new(
        clock,
        discord,
        twins,
        folder.path(),
        chance.branch(),
    ));
    let mut people = People::new(Arc::clone(&world), places);
    people.note_all_who_see();
    let stage = Stage {
        world,
        plan: plan.clone(),
        folder,
        processes: AtomicU32::new(0),
        up: Cell::new(0),
        is_over: Cell::new(false),
    };
    let config = stage.config_in(stage.folder())?;
    if plan.machines > 1 {
        runtime()?.block_on(stage.live_together(&mut people))?;
    } else {
        stage.live_alone(&config, &mut people)?;
    }
    let clock = Arc::clone(&stage.world.clock);
    let rows = stored::rows(&config, Arc::new(move || UnixMillis(clock.of_bot_ms())));
    let rows = runtime()?
        .block_on(rows)
        .map_err(|error| error.to_string())?;
    Evidence::gather(plan, &stage.world, stage.folder(), rows)
}

/// A runtime whose time is its own.
fn runtime() -> Result<Runtime, String> {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| error.to_string())
}

impl Stage {
    /// One process after the other.
    fn live_alone(&self, config: &Config, people: &mut People) -> Result<(), String> {
        let mut script = self.plan.script.iter().copied().peekable();
        loop {
            let runtime = runtime()?;
            let gone = {
                let process = self.process();
                let living = self.live(&process, config, people, &mut script);
                let gone = runtime.block_on(living);
                process.cut();
                drop(runtime);
                gone
            };
            let looked = self.world.look_at_disk();
            looked.map_err(|error| error.to_string())?;
            let Gone::For(down) = gone else { return Ok(()) };
            let until = self.world.clock.elapsed_ms() + down;
            while let Some(step) = script.next_if(|step| step.at <= until) {
                self.world.clock.advance_to(step.at);
                match step.what {
                    Act::Person(act) => people.act(act),
                    Act::Fault(fault) => self.begin(fault),
                    // Nothing runs that could end.
                    Act::Restart { .. } => {}
                }
            }
            self.world.clock.advance_to(until);
        }
    }

    /// Where the world's files are.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What a process is told that has such a folder to itself; what the store has is the world's.
    pub(crate) fn config_in(&self, own: &Path) -> Result<Config, String> {
        let (plan, discord) = (&self.plan, &self.world.discord);
        let path = |name: &str| self.folder().join(name).display().to_string();
        let of_own = |name: &str| own.join(name).display().to_string();
        let state = own.join("state");
        let keys = fs::create_dir_all(&state)
            .and_then(|()| fs::write(state.join("frame.key"), [7; 32]))
            .and_then(|()| fs::write(state.join("telemetry.key"), [9; 32]));
        keys.map_err(|error| error.to_string())?;
        let store = match plan.store {
            StoreKind::Sqlite => format!("sqlite:{}", path(STORE)),
            StoreKind::Files => format!("files:{}", path("conversations")),
        };
        let settings = [
            ("DISCORD_TOKEN", discord.token()),
            ("DISCORD_API_URL", discord.url()),
            ("LLM_BASE_URL", MODEL_URL.to_owned()),
            ("LLM_MODEL", "model".to_owned()),
            ("TELEMETRY_DIR", of_own(TELEMETRY)),
            ("STATE_DIR", of_own("state")),
            ("CONTEXT_STORE", store),
            ("AGENTS_DIR", path("agents")),
            ("TOOL_OUTPUT_DIR", path("tool_outputs")),
            ("USER_PROFILE_DIR", path("users")),
            ("SERVER_PROFILE_DIR", path("servers")),
        ];
        let settings = settings.into_iter().chain(
            plan.settings
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned())),
        );
        let settings = settings.map(|(name, value)| (name.to_owned(), value));
        let mut config = Config::load(settings, None).map_err(|errors| format!("{errors:?}"))?;
        // The rest of it wants PostgreSQL.
        config.cluster = plan.machines > 1;
        Ok(config)
    }

    /// Counts the processes that ever were, from 1.
    pub(crate) fn next_process(&self) -> u32 {
        self.processes.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn process(&self) -> Arc<Process> {
        Arc::new(Process::new(
            self.next_process(),
            Arc::clone(&self.world.clock),
        ))
    }

    /// One process from its start to its end.
    async fn live(
        &self,
        process: &Arc<Process>,
        config: &Config,
        people: &mut People,
        script: &mut std::iter::Peekable<impl Iterator<Item = Step>>,
    ) -> Gone {
        let clock = &self.world.clock;
        clock.follow_runtime();
        let number = process.number();
        self.world.note(What::Started { process: number });
        let shutdown = CancellationToken::new();
        let time = Arc::clone(clock);
        let time: Clock = Arc::new(move || UnixMillis(time.of_bot_ms()));
        let around = Outside::of_system(time);
        let mut bot = self.start(process, config.clone(), around, &shutdown);
        let gone = async {
            for step in script.by_ref() {
                let wait = u64::try_from(step.at - clock.elapsed_ms()).unwrap_or_default();
                sleep_until(Instant::now() + Duration::from_millis(wait)).await;
                match step.what {
                    Act::Person(act) => people.act(act),
                    Act::Fault(fault) => self.begin(fault),
                    Act::Restart { how, down } => return Some((how, down)),
                }
            }
            people.end_outages();
            self.calm();
            sleep(QUIET).await;
            None
        };
        let ended = tokio::select! {
            biased;
            ended = &mut bot => Err(ended),
            gone = gone => Ok(gone),
        };
        let gone = match ended {
            Err(ended) => {
                self.note_end(number, ended);
                Gone::For(START_AGAIN)
            }
            Ok(Some((how, down))) => {
                self.end(process, &shutdown, &mut bot, how).await;
                Gone::For(down)
            }
            Ok(None) => {
                self.end(process, &shutdown, &mut bot, Restart::Stop).await;
                Gone::ForGood
            }
        };
        process.cut();
        clock.leave_runtime();
        gone
    }

    /// Begins a process with its clock, and its cluster if it has one.
    pub(crate) fn start(
        &self,
        process: &Arc<Process>,
        config: Config,
        around: Outside,
        shutdown: &CancellationToken,
    ) -> JoinHandle<Result<(), app::Error>> {
        let net = Net {
            world: Arc::clone(&self.world),
            process: Arc::clone(process),
        };
        let troubled = net.clone();
        let (services, begun) = oneshot::channel();
        tokio::spawn(watch_health(net.clone(), begun));
        let outside = Outside {
            transport: Some(Arc::new(net.clone())),
            dial: Some(Arc::new(Dialer {
                token: self.world.discord.token(),
                net,
            })),
            // A cluster's opens it.
            store: around.cluster.is_none().then_some(Arc::new(move |store| {
                TroubledStore::around(store, troubled.clone())
            })),
            observer: Some(Observer {
                services,
                turns: mpsc::unbounded_channel().0,
                lines: mpsc::unbounded_channel().0,
            }),
            ..around
        };
        let running = app::run_in(config, outside, shutdown.clone());
        tokio::spawn(running)
    }

    /// Ends a process.
    pub(crate) async fn end(
        &self,
        process: &Process,
        shutdown: &CancellationToken,
        bot: &mut JoinHandle<Result<(), app::Error>>,
        how: Restart,
    ) {
        if let Restart::StopAt(crossings) | Restart::KillAt(crossings) = how {
            let is_killed = matches!(how, Restart::KillAt(_));
            // Or at another time, if it has so little to do.
            let _ = timeout(KILL, process.ends_after(crossings, is_killed)).await;
        }
        match how {
            Restart::Stop | Restart::StopAt(_) => {
                let number = process.number();
                if number > 0 {
                    self.world.note(What::AskedToStop { process: number });
                }
                shutdown.cancel();
                match timeout(STOP, bot).await {
                    Ok(ended) => return self.note_end(process.number(), ended),
                    Err(_) => self.world.note(What::Ended {
                        process: number,
                        error: Some("it does not stop".to_owned()),
                    }),
                }
            }
            Restart::Kill | Restart::KillAt(_) => {}
        }
        process.cut();
        let (number, crossings) = (process.number(), process.crossings());
        if number > 0 {
            self.world.note(What::Killed {
                process: number,
                crossings,
            });
        }
    }

    pub(crate) fn note_end(
        &self,
        process: u32,
        ended: Result<Result<(), app::Error>, tokio::task::JoinError>,
    ) {
        let error = match ended {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(panic) => Some(panic.to_string()),
        };
        // One that stands by is not the bot, and ends without a word.
        if process > 0 || error.is_some() {
            self.world.note(What::Ended { process, error });
        }
    }

    pub(crate) fn begin(&self, fault: FaultAct) {
        let discord = &self.world.discord;
        let many = |times: u64| usize::try_from(times).unwrap_or(usize::MAX);
        let rest = |kind: FaultKind, times: u64| {
            discord.fault(Fault::new("*", "/", kind).times(many(times)));
        };
        let ms = Duration::from_millis;
        match fault {
            FaultAct::Model(trouble, times) => {
                let mut troubles = self.world.troubles();
                troubles
                    .model
                    .extend(std::iter::repeat_n(trouble, many(times)));
            }
            FaultAct::Store(trouble, times) => {
                let mut troubles = self.world.troubles();
                troubles
                    .store
                    .extend(std::iter::repeat_n(trouble, many(times)));
            }
            FaultAct::RestStatus { status, times } => {
                let kind = FaultKind::Status {
                    status,
                    body: Value::Null,
                    retry_after: None,
                };
                rest(kind, times);
            }
            FaultAct::RestLimited { seconds, times } => {
                let seconds = u32::try_from(seconds).map_or(1.0, f64::from);
                let limited = Fault::rate_limited("*", "/channels", seconds).times(many(times));
                discord.fault(limited);
            }
            FaultAct::RestLate { ms: late, times } => rest(FaultKind::Latency(ms(late)), times),
            FaultAct::RestBroken { applied, times } => {
                let kind = if applied {
                    FaultKind::DroppedAfter
                } else {
                    FaultKind::DroppedBefore
                };
                rest(kind, times);
            }
            FaultAct::RestTruncated { times } => rest(FaultKind::Truncated, times),
            FaultAct::RestShort { times } => {
                let short = Fault::new("GET", "/channels/*/messages", FaultKind::Short);
                discord.fault(short.times(many(times)));
            }
            FaultAct::RestHangs { ms: hangs, times } => rest(FaultKind::Hang(ms(hangs)), times),
            FaultAct::GatewayDrops => discord.drop_gateway(),
            FaultAct::GatewayCloses => discord.close_gateway(4000),
            FaultAct::GatewayAsksToReconnect => discord.ask_to_reconnect(),
            FaultAct::GatewayInvalidates { resumable } => discord.invalidate_sessions(resumable),
            FaultAct::GatewayForgets => {
                discord.forget_sessions();
                discord.drop_gateway();
            }
            FaultAct::HeartbeatsUnanswered { answered } => {
                discord.set_heartbeats_answered(answered);
            }
            FaultAct::EventsLate { count, ms } => {
                let count = u32::try_from(count).unwrap_or(u32::MAX);
                self.world.troubles().late_events = (count, ms);
            }
            FaultAct::EventsTwice { count } => {
                let count = u32::try_from(count).unwrap_or(u32::MAX);
                self.world.troubles().doubled_events = count;
            }
            FaultAct::ClockJumps { ms } => self.world.clock.set_off(ms),
            // Of several machines, which see to it.
            FaultAct::DatabaseGone { .. }
            | FaultAct::Lacks { .. }
            | FaultAct::Drained
            | FaultAct::Resharded { .. } => {}
        }
        self.world.note(What::Fault { name: fault.name() });
    }

    /// All faults end.
    pub(crate) fn calm(&self) {
        self.world.discord.end_faults();
        self.world.discord.set_heartbeats_answered(true);
        *self.world.troubles() = crate::world::Troubles::default();
        self.world.note(What::Quiet);
    }
}

/// Notes what a process says of its store, and how much it holds.
async fn watch_health(net: Net, begun: oneshot::Receiver<Arc<Services>>) {
    let Ok(services) = begun.await else { return };
    let services = Arc::downgrade(&services);
    let (mut told, mut most) = (None, (0, 0));
    let process = net.process.number();
    while let Some(services) = services.upgrade() {
        let store = services.memory.store_state();
        let is_read = store.read == CircuitState::Closed;
        let is_written = store.write == CircuitState::Closed;
        // What is left of it may go on after it was the bot.
        let is_gone = net.process.is_cut() || net.process.number() != process;
        if told != Some((is_read, is_written)) && !is_gone {
            told = Some((is_read, is_written));
            net.world.note(What::StoreSeems {
                process,
                is_read,
                is_written,
            });
        }
        let (messages, _) = services.window().size();
        let unsaved = store.unsaved;
        if (messages > most.0 || unsaved > most.1) && !is_gone {
            most = (messages.max(most.0), unsaved.max(most.1));
            net.world.note(What::Holds {
                process,
                messages,
                unsaved,
            });
        }
        drop(services);
        sleep(HEALTH).await;
    }
}
