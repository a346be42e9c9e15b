//! Plays scenes in the sandbox, and gathers what happened.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::Error;
use super::line::DemoLine;
use super::places;
use super::scene::{CallPlayed, DemoCall, DemoScene, JustBefore, Played};
use crate::sandbox::{self, Sandbox, plan::Cast};
use clew_simulator::{Draft, Id, Message, RequestRecord, ScriptedModel, World};

/// A scene takes milliseconds, with a model of one's own as long as that needs; if it
/// takes longer than this, something hangs.
const PATIENCE: Duration = Duration::from_mins(2);
/// How often the telemetry file is read.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Asks, waits for the end of the turn, and gathers what happened.
pub(super) async fn play(
    sandbox: &mut Sandbox,
    number: usize,
    scene: &DemoScene,
    cast: &Cast,
) -> Result<Played, Error> {
    let (channel, asker) = (cast.place(&scene.place), cast.person(&scene.asker));
    for text in &scene.asked_before {
        let question = sandbox.discord.post(channel, asker, cast.text(text));
        turn(sandbox, number, question).await?;
    }
    let earlier = sandbox.discord.requests().len();
    let before = match &scene.before {
        Some(JustBefore::Said(text)) => {
            let (author, words) = cast.said(text);
            Some(sandbox.discord.post(channel, author, words))
        }
        Some(JustBefore::SessionLost) => {
            sandbox.discord.forget_sessions();
            sandbox.discord.drop_gateway();
            None
        }
        None => None,
    };
    let mut asked = Draft::new(cast.text(&scene.question));
    if let Some(key) = &scene.reply_to {
        asked = asked.reply_to(cast.message(key));
    }
    let question = sandbox.discord.post(channel, asker, asked);
    let lines = turn(sandbox, number, question).await?;
    let mut calls = sandbox.discord.requests().split_off(earlier);
    // The bot also registers its commands, which is not part of the turn.
    calls.retain(|call| call.method == "GET" && call.path.starts_with("/channels/"));
    Ok(sandbox
        .discord
        .world(|world| tell(world, (channel, asker), before, question, &calls, lines)))
}

/// Calls a command, waits for its answer, and where that begins a thread until its message says
/// that the run is done; gathers what was told and posted.
pub(super) async fn play_call(
    sandbox: &Sandbox,
    call: &DemoCall,
    cast: &Cast,
    model: Option<&ScriptedModel>,
) -> Result<CallPlayed, Error> {
    let requests = || model.map_or_else(Vec::new, ScriptedModel::requests);
    let earlier = requests().len();
    let (channel, asker) = (cast.place(&call.place), cast.person(&call.asker));
    let options = json!(call.options);
    let called = sandbox.discord.call(asker, channel, &call.command, options);
    let shown = called.await?.answer().await?;
    let told = shown.text();
    let begun = sandbox
        .discord
        .world(|world| places::thread_in(world, &told));
    if let Some(thread) = begun {
        let is_done = |message: &Message| message.content.contains(": done.");
        sandbox.discord.wait_for_message(thread, is_done).await?;
    }
    let requests = requests().split_off(earlier);
    let roles = |request: &Value| -> Vec<String> {
        let messages = request["messages"].as_array().into_iter().flatten();
        let roles = messages.filter_map(|message| message["role"].as_str());
        roles.map(str::to_owned).collect()
    };
    let posted = begun.map_or_else(Vec::new, |thread| sandbox.discord.answers(thread));
    Ok(sandbox.discord.world(|world| CallPlayed {
        asker: places::name(world, asker),
        place: places::place(world, channel),
        told: places::readable(world, &told),
        is_private: shown.ephemeral,
        posted: posted
            .iter()
            .map(|message| places::readable(world, &message.content))
            .collect(),
        requests: requests.iter().map(roles).collect(),
    }))
}

/// The telemetry of a question's turn, once the turn is over.
async fn turn(sandbox: &mut Sandbox, number: usize, question: Id) -> Result<Vec<DemoLine>, Error> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let lines =
            lines_of(&sandbox.config.telemetry.dir, question).map_err(sandbox::Error::Folder)?;
        let over = |line: &DemoLine| line.event == "turn_done" || line.event == "refused";
        if lines.iter().any(over) {
            return Ok(lines);
        }
        if Instant::now() > deadline {
            return Err(Error::Endless {
                scene: number,
                seconds: PATIENCE.as_secs(),
            });
        }
        tokio::select! {
            () = sleep(LOOK_EVERY) => {}
            broken = sandbox.broken() => return Err(broken.into()),
        }
    }
}

/// The complete lines about a question, in the order they were written.
fn lines_of(folder: &Path, question: Id) -> io::Result<Vec<DemoLine>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        files.push(entry?.path());
    }
    files.sort();
    let question = question.to_string();
    let mut lines = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file)?;
        // The last line may be incomplete; it will be read the next time.
        let whole = text.split_inclusive('\n').filter(|l| l.ends_with('\n'));
        lines.extend(whole.filter_map(|line| DemoLine::read(line, &question)));
    }
    Ok(lines)
}

/// What happened, with names instead of ids.
fn tell(
    world: &World,
    (channel, asker): (Id, Id),
    before: Option<Id>,
    question: Id,
    calls: &[RequestRecord],
    lines: Vec<DemoLine>,
) -> Played {
    let place = world.get_channel(channel).into_iter();
    let posted = place.flat_map(|found| found.messages.range(question..));
    let own = posted.filter(|(_, message)| message.author == world.bot);
    let shown = |message: &Message| Message {
        content: places::readable(world, &message.content),
        ..message.clone()
    };
    let answers: Vec<Message> = own.map(|(_, message)| shown(message)).collect();
    let replied = answers.first().and_then(|answer| answer.reference?.message);
    let asked = world.message(channel, question);
    let quotation = |id| places::quotation(world, channel, id);
    Played {
        before,
        question,
        asker: places::name(world, asker),
        place: places::place(world, channel),
        text: asked.map_or_else(String::new, |asked| places::readable(world, &asked.content)),
        said_before: before.map(quotation),
        points_at: asked
            .and_then(|asked| asked.reference?.message)
            .map(quotation),
        replied,
        replied_to: replied.map(quotation),
        answers,
        gets: calls.iter().map(|call| places::call(world, call)).collect(),
        lines,
    }
}
