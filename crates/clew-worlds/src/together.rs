//! Several processes of one bot at once, each on a machine of its own: which of them is the bot they
//! agree by what they share. All run in one runtime.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clew::app::Outside;
use clew_context::model::{Clock, UnixMillis};
use futures_util::future::join_all;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::disk;
use crate::history::What;
use crate::people::People;
use crate::plan::{Act, FaultAct, Restart};
use crate::process::{Lack, Process};
use crate::run::{QUIET, START_AGAIN, Stage};
use crate::seams::cluster::LocalCluster;
use crate::seams::net::Net;
use crate::world::lock;

/// How far clocks of machines are off at most, in milliseconds.
const OFF: u64 = 120_000;
/// How far apart the first processes begin, in milliseconds.
const APART: u64 = 2_000;

/// A machine.
struct Machine {
    /// How far its clock is off, in milliseconds.
    off: i64,
    /// When its first process begins.
    begins: Duration,
    running: Mutex<Running>,
    ordered: Notify,
}

#[derive(Default)]
struct Running {
    /// None while none runs.
    process: Option<Arc<Process>>,
    /// Counts the processes that ever were.
    number: u32,
    /// How the process is to end, and for how many milliseconds; none for good.
    order: Option<(Restart, Option<i64>)>,
}

impl Machine {
    fn of(stage: &Stage, number: u64) -> Self {
        let off = stage.world.between(0, 2 * OFF).cast_signed() - OFF.cast_signed();
        let begins = if number == 0 {
            0
        } else {
            stage.world.between(0, APART)
        };
        Self {
            off,
            begins: Duration::from_millis(begins),
            running: Mutex::default(),
            ordered: Notify::new(),
        }
    }

    fn process(&self) -> Option<Arc<Process>> {
        lock(&self.running).process.clone()
    }

    fn is_the_bot(&self) -> bool {
        self.process().is_some_and(|process| process.number() > 0)
    }

    /// Has its process end; nothing is done if none runs.
    fn end(&self, how: Restart, down: Option<i64>) {
        let mut running = lock(&self.running);
        if running.process.is_some() {
            running.order = Some((how, down));
            self.ordered.notify_one();
        }
    }

    async fn order(&self) -> (Restart, Option<i64>) {
        loop {
            if let Some(order) = lock(&self.running).order.take() {
                return order;
            }
            self.ordered.notified().await;
        }
    }
}

impl Stage {
    /// Processes on several machines.
    pub(crate) async fn live_together(&self, people: &mut People) -> Result<(), String> {
        self.world.clock.follow_runtime();
        let machines = 0..self.plan.machines;
        let machines: Vec<Machine> = machines.map(|one| Machine::of(self, one)).collect();
        let running = join_all(machines.iter().map(|machine| self.keep(machine)));
        let playing = self.play(&machines, people);
        let (ended, ()) = tokio::join!(running, playing);
        for ended in ended {
            ended?;
        }
        let closed = self.world.database.close().await;
        closed.map_err(|error| error.to_string())?;
        let looked = self.world.look_at_disk();
        looked.map_err(|error| error.to_string())?;
        self.world.clock.leave_runtime();
        Ok(())
    }

    async fn play(&self, machines: &[Machine], people: &mut People) {
        let clock = &self.world.clock;
        for step in &self.plan.script {
            let wait = u64::try_from(step.at - clock.elapsed_ms()).unwrap_or_default();
            sleep_until(Instant::now() + Duration::from_millis(wait)).await;
            match step.what {
                Act::Person(act) => people.act(act),
                Act::Fault(fault) => self.begin_together(machines, fault),
                Act::Restart { how, down } => {
                    // Mostly of whichever is the bot.
                    let of_bot = self.world.between(0, 3) > 0;
                    let mut all = machines.iter().filter(|one| one.process().is_some());
                    let meant = all.find(|machine| machine.is_the_bot() == of_bot);
                    if let Some(machine) = meant {
                        machine.end(how, Some(down));
                    }
                }
            }
        }
        people.end_outages();
        self.calm();
        self.world.database.go(0);
        for process in machines.iter().filter_map(Machine::process) {
            for lack in Lack::ALL {
                process.lack(lack, 0);
            }
        }
        sleep(QUIET).await;
        self.is_over.set(true);
        // None takes over from another at the end.
        for is_the_bot in [false, true] {
            for machine in machines {
                if machine.is_the_bot() == is_the_bot {
                    machine.end(Restart::Stop, None);
                }
            }
            sleep(Duration::from_millis(1)).await;
        }
    }

    fn begin_together(&self, machines: &[Machine], fault: FaultAct) {
        let until = |ms: u64| self.world.clock.elapsed_ms() + ms.cast_signed();
        let bot = machines.iter().find(|machine| machine.is_the_bot());
        let bot = bot.and_then(Machine::process);
        match (fault, bot) {
            (FaultAct::DatabaseGone { ms }, _) => self.world.database.go(until(ms)),
            (FaultAct::Lacks { lack, ms }, Some(bot)) => bot.lack(lack, until(ms)),
            (FaultAct::Drained, Some(_)) => {
                let mut bots = machines.iter().filter(|machine| machine.is_the_bot());
                let number = bots.next().map(|machine| lock(&machine.running).number);
                self.world.database.drain(number.unwrap_or_default());
            }
            (FaultAct::Resharded { shards }, _) => self.world.database.reshard(shards),
            _ => {}
        }
        self.begin(fault);
    }

    /// Keeps a process on a machine, until it is to end for good.
    async fn keep(&self, machine: &Machine) -> Result<(), String> {
        sleep(machine.begins).await;
        loop {
            let number = self.next_process();
            let folder = self.folder_of(number);
            let process = Arc::new(Process::new(0, Arc::clone(&self.world.clock)));
            let config = self.config_in(&folder)?;
            *lock(&machine.running) = Running {
                process: Some(Arc::clone(&process)),
                number,
                order: None,
            };
            self.note_machines(1);
            let time = (Arc::clone(&self.world.clock), machine.off);
            let clock: Clock = Arc::new(move || UnixMillis(time.0.of_bot_ms() + time.1));
            let cluster = LocalCluster {
                net: Net {
                    world: Arc::clone(&self.world),
                    process: Arc::clone(&process),
                },
                process: number,
                name: format!("process {number}"),
                config: config.clone(),
                clock: Arc::clone(&clock),
            };
            let shutdown = CancellationToken::new();
            let around = Outside {
                cluster: Some(Arc::new(cluster)),
                ..Outside::of_system(clock)
            };
            let mut bot = self.start(&process, config, around, &shutdown);
            let ended = tokio::select! {
                biased;
                ended = &mut bot => Err(ended),
                order = machine.order() => Ok(order),
            };
            let down = match ended {
                Ok((how, down)) => {
                    self.end(&process, &shutdown, &mut bot, how).await;
                    down
                }
                Err(ended) => {
                    self.note_end(process.number(), ended);
                    Some(START_AGAIN)
                }
            };
            process.cut();
            bot.abort();
            *lock(&machine.running) = Running::default();
            self.note_machines(-1);
            self.leave(number)?;
            let Some(down) = down else { return Ok(()) };
            sleep(Duration::from_millis(down.unsigned_abs())).await;
            if self.is_over.get() {
                return Ok(());
            }
        }
    }

    fn note_machines(&self, change: isize) {
        let up = self.up.get().saturating_add_signed(change);
        self.up.set(up);
        self.world.note(What::Machines { up });
    }

    /// The next process is in another container: what this one had on its disk is gone. What it told
    /// is taken as it is now, since its tasks still have the files.
    fn leave(&self, number: u32) -> Result<(), String> {
        let folder = self.folder_of(number);
        let left = || {
            self.world.look_at_disk()?;
            let told = self
                .folder()
                .join(disk::TELEMETRY)
                .join(format!("{number:04}"));
            fs::create_dir_all(&told)?;
            let telling = folder.join(disk::TELEMETRY);
            // One that never was the bot has none.
            if telling.exists() {
                for file in disk::files(&telling)? {
                    fs::write(told.join(file.path), file.text)?;
                }
            }
            fs::remove_dir_all(&folder)
        };
        left().map_err(|error: io::Error| error.to_string())
    }

    fn folder_of(&self, number: u32) -> PathBuf {
        self.folder().join("machines").join(number.to_string())
    }
}
