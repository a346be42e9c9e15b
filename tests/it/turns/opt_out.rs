//! Messages of somebody who opted out never reach the model. Boris opted out; his
//! messages contain a mark that is searched for.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use clew::agents::Agents;
use clew::llm;
use clew::memory::{Memory, Stores};
use clew::model::{RunBounds, Vision};
use clew::runs::{Approvals, CatchUpPace, Connections, OpenApprovals, OpenRuns, Runs};
use clew::telemetry::event::Outcome;
use clew::telemetry::{Lines, Telemetry};
use clew::turn::{self, Control, LastRefusals, Services, TurnJob, TurnSettings};
use clew_context::collect::NegativeCache;
use clew_context::engine::window::{Window, WindowLimits};
use clew_context::model::{
    ApplicationId, Cause, ChannelId, ChannelKind, Limits, MessageId, OptOuts, Proxies, ReplyTarget,
    TurnRequest, UserId, fixed_clock,
};
use clew_discord::guild_state::{CurrentUser, GuildState};
use clew_discord::rest::Rest;
use clew_discord::session::Claims;
use clew_simulator::{Draft, File, Id};
use clew_store::Store;
use serde_json::json;
use tokio::time::Instant;

use super::{Place, assert_in_order, place, place_with};
use crate::memory::place::settings;
use crate::support::START;

/// In every message of Boris that is not a question.
const MARK: &str = "kumquat";

const RUN_BOUNDS: RunBounds = RunBounds {
    time: Duration::ZERO,
    max_tokens: 0,
};

/// What all turns share, as `app` puts it together, and the telemetry.
async fn services(p: &Place) -> (Services, Lines) {
    let discord = &p.stage.discord;
    let (telemetry, lines) = Telemetry::to_memory("mem.ctx", fixed_clock(START));
    let guild_state = GuildState::default();
    guild_state.set_current_user(CurrentUser {
        user: UserId::new(p.us.0),
        name: "Clew".to_owned(),
        application: ApplicationId::new(p.us.0),
    });
    let model = llm::ModelSettings {
        base_url: p.stage.model.url(),
        api_key: None,
        model: "fake".to_owned(),
        timeout: Duration::from_secs(20),
        max_output_tokens: 500,
        context_tokens: None,
        max_answer_bytes: 1 << 20,
        temperature: None,
        vision: Vision::Off,
    };
    let window = WindowLimits {
        per_channel: 200,
        max_bytes: 8 << 20,
    };
    let opt_outs = Arc::new(OptOuts::default());
    let memory = memory(Arc::clone(&opt_outs), telemetry.clone()).await;
    let services = Services {
        rest: Rest::new(&discord.token(), Some(&discord.url())).unwrap(),
        guild_state: Arc::new(guild_state),
        model: Some(llm::ModelServers::new(model, Vec::new(), 0).unwrap()),
        tokens: None,
        telemetry,
        window: parking_lot::Mutex::new(Window::new(window)),
        opt_outs,
        negative_cache: NegativeCache::default(),
        searched_servers: Arc::default(),
        tool_servers: Arc::default(),
        memory,
        claims: Arc::new(Claims::in_memory()),
        agents: Agents::load(None, Some("Be helpful.".to_owned()), Instant::now()).await,
        runs: Runs::new(0, OpenRuns::default()),
        approvals: Approvals::new(OpenApprovals::default(), START),
        connections: Connections::default(),
        catch_up_pace: CatchUpPace::default(),
        image_room: Arc::default(),
        settings: TurnSettings {
            limits: Limits::default(),
            proxies: Proxies::default(),
            reply_target: ReplyTarget::Newest,
            max_messages: 3,
            tools: p.stage.config().tools,
            receipt_button: false,
            mcp_listen: None,
            runs: RUN_BOUNDS,
            secret: b"secret".to_vec(),
        },
        refusals: LastRefusals::default(),
        observer: None,
    };
    (services, lines)
}

/// Nothing of it reaches a disk.
pub(super) async fn memory(opt_outs: Arc<OptOuts>, telemetry: Telemetry) -> Memory {
    let store = Arc::new(Store::in_memory().await.unwrap());
    let stores = Stores {
        lasting: Arc::clone(&store),
        conversations: store,
        transcripts: None,
        outputs: None,
    };
    let mut settings = settings();
    settings.memory.in_memory_only = true;
    settings.memory.save_interval = Duration::from_secs(30);
    Memory::open(stores, settings, opt_outs, fixed_clock(START), telemetry)
        .await
        .unwrap()
}

fn opt_out(services: &Services, who: Id) {
    services
        .opt_outs
        .set([UserId::new(who.0)].into_iter().collect());
}

/// A message arrives and, as a trigger, is answered: the window keeps one, the
/// turn gets the other, as the loop hands them out.
async fn ask(services: &Services, p: &Place, place: (Id, ChannelKind), id: Id) -> Outcome {
    let deadline = Instant::now() + Duration::from_secs(20);
    let channel = ChannelId::new(place.0.0);
    let read = services
        .rest
        .reader()
        .message(channel, MessageId::new(id.0), deadline);
    let message = read.await.unwrap();
    services.window().created(message.clone());
    let job = TurnJob {
        request: TurnRequest {
            trigger: Arc::new(message),
            channel_kind: Some(place.1),
            asker_roles: None,
            cause: Cause::Mention,
            is_private: false,
        },
        came: Instant::now(),
        asked: services.memory.now(),
        noted: services.memory.noted().revision(),
        newest: Some(MessageId::new(id.0)),
        waited: false,
        copies: Vec::new(),
        other_triggers: BTreeSet::new(),
        again: None,
        elsewhere: Vec::new(),
        left: None,
        run: None,
        activity: Arc::default(),
    };
    let control = Control::new().1;
    let outcome = turn::run(services, job, control).await.outcome;
    for request in p.stage.model.requests() {
        let request = request.to_string();
        assert!(!request.contains(MARK), "{request}");
    }
    let held = format!("{:?}", services.window());
    assert!(!held.contains(MARK), "{held}");
    outcome
}

/// Everything that a message can say.
fn marked() -> Draft {
    Draft::new(MARK)
        .embed(json!({"title": MARK, "description": MARK}))
        .attachment(File::text("a.txt", MARK))
}

#[tokio::test]
async fn nothing_of_theirs_reaches_the_model() {
    let (p, thread) = place_with(&[], |world, seeds| {
        let start = world.seed(seeds.channel, seeds.boris, marked());
        let thread = world.thread_from(seeds.channel, start, "pumps", seeds.ada);
        world.seed(thread, seeds.ada, "the pump leaks");
        let theirs = world.seed(thread, seeds.boris, marked());
        world.seed(thread, seeds.boris, marked());
        world.seed(thread, seeds.ada, Draft::new("since May").reply_to(theirs));
        thread
    })
    .await;
    let (services, lines) = services(&p).await;
    opt_out(&services, p.boris);
    let question = p.post(thread, p.ada, p.to_us("why?"));
    let place = (thread, ChannelKind::PublicThread);
    assert_eq!(ask(&services, &p, place, question).await, Outcome::Answered);
    let prompt = p.prompt(1).await;
    assert_in_order(
        &prompt,
        &[
            "... the first message, which its author keeps private ...",
            "the pump leaks",
            "... 2 messages that their authors keep private ...",
            "since May",
            "why?",
        ],
    );
    assert!(!prompt.contains("Boris"), "{prompt}");
    let told = lines.text();
    assert!(
        told.contains("\"opted_out\":3") && !told.contains(MARK),
        "{told}"
    );
}

#[tokio::test]
async fn a_bare_mention_that_points_at_one_gets_a_line() {
    let (p, theirs) = place_with(&[], |world, seeds| {
        world.seed(seeds.channel, seeds.boris, marked())
    })
    .await;
    let (services, _) = services(&p).await;
    opt_out(&services, p.boris);
    let bare = Draft::new(p.to_us("")).reply_to(theirs);
    let bare = p.post(p.channel, p.ada, bare);
    let place = (p.channel, ChannelKind::Text);
    assert_eq!(ask(&services, &p, place, bare).await, Outcome::Refused);
    assert_eq!(
        p.answer(p.channel, 1).await,
        "-# Whoever wrote that message opted out, so I don't read it."
    );
    assert_eq!(p.stage.model.requests().len(), 0);
    // With words of the asker's own there is something to answer.
    let asked = Draft::new(p.to_us("what does he mean?")).reply_to(theirs);
    let asked = p.post(p.channel, p.ada, asked);
    assert_eq!(ask(&services, &p, place, asked).await, Outcome::Answered);
    let marker = "... the message pointed at, which its author keeps private ...";
    assert_in_order(&p.prompt(1).await, &[marker, "what does he mean?"]);
}

/// One turn, and the next one knows nothing of it.
#[tokio::test]
async fn their_own_question_is_answered_once() {
    let p = place(&[]).await;
    let (services, _) = services(&p).await;
    opt_out(&services, p.boris);
    let thread = p.stage.discord.thread(
        p.channel,
        clew_simulator::ChannelKind::PublicThread,
        "pumps",
        p.ada,
    );
    p.post(thread, p.boris, marked());
    let place = (thread, ChannelKind::PublicThread);
    let theirs = p.post(thread, p.boris, p.to_us("how tall is it?"));
    assert_eq!(ask(&services, &p, place, theirs).await, Outcome::Answered);
    let prompt = p.prompt(1).await;
    assert_in_order(&prompt, &["keeps private ...", "how tall is it?"]);
    let next = p.post(thread, p.ada, p.to_us("and how wide?"));
    assert_eq!(ask(&services, &p, place, next).await, Outcome::Answered);
    let prompt = p.prompt(2).await;
    assert_in_order(
        &prompt,
        &[
            "... a message that its author keeps private ...",
            "and how wide?",
        ],
    );
    assert!(!prompt.contains("how tall"), "{prompt}");
}

/// What was gathered before somebody opts out is gone with it.
#[tokio::test]
async fn opting_out_empties_what_is_held() {
    let p = place(&[]).await;
    let (services, _) = services(&p).await;
    let early = p.post(p.channel, p.boris, p.to_us("is the valve open?"));
    let place = (p.channel, ChannelKind::Text);
    assert_eq!(ask(&services, &p, place, early).await, Outcome::Answered);
    let held = || {
        let window = services.window.lock();
        format!("{window:?}").contains("the valve")
    };
    assert!(held());
    opt_out(&services, p.boris);
    services.withhold();
    assert!(!held());
    let next = Draft::new(p.to_us("is it?")).reply_to(early);
    let next = p.post(p.channel, p.ada, next);
    assert_eq!(ask(&services, &p, place, next).await, Outcome::Answered);
    let prompt = p.prompt(2).await;
    assert!(!prompt.contains("the valve"), "{prompt}");
}
