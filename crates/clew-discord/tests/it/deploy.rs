//! Connecting, losing the connection and restarting: the gateway against the
//! simulator, over sockets.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a helper of a test that fails, fails the test"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::{Message as Frame, WebSocket, WebSocketUpgrade};
use clew_context::model::{
    ChannelId, GuildId, InteractionPlace, MessageId, OptedOut, UnixMillis, UserId,
};
use clew_discord::commands;
use clew_discord::event::{Event, FatalReason, Ready, ShardEvent};
use clew_discord::gateway::{Gateway, GatewaySettings, run};
use clew_discord::guild_state::GuildState;
use clew_discord::model::{CommandData, InteractionData, OptionValue};
use clew_discord::rest::Rest;
use clew_discord::session::{
    Lasts, SessionFile, ShardProgress, ShardSession, load, save, save_guilds,
};
use clew_simulator::{ChannelKind, GatewayEvent, GatewayRecord, Id, Simulator, Use, World};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// The longest wait for an event: a bound, not a measurement.
const PATIENCE: Duration = Duration::from_secs(20);

/// A world with one server, one channel and one user.
struct Place {
    simulator: Simulator,
    guild: GuildId,
    channel: Id,
    alice: Id,
}

async fn place(change: impl FnOnce(&mut World)) -> Place {
    let mut world = World::new();
    // 0 skips the five seconds between two IDENTIFYs.
    world.settings.max_concurrency = 0;
    let guild = world.guild("Guild");
    let channel = world.channel(guild, ChannelKind::Text, "general");
    let alice = world.member(guild, "alice");
    change(&mut world);
    Place {
        simulator: Simulator::start(world).await.unwrap(),
        guild: GuildId::new(guild.0),
        channel,
        alice,
    }
}

/// The gateway half of a bot.
struct Bot {
    guild_state: Arc<GuildState>,
    progress: Arc<Mutex<ShardProgress>>,
    events: mpsc::Receiver<ShardEvent>,
    shutdown: CancellationToken,
    task: JoinHandle<Result<(), FatalReason>>,
}

fn settings(simulator: &Simulator) -> GatewaySettings {
    GatewaySettings {
        api: simulator.url(),
        token: simulator.token(),
        url: None,
        message_content: true,
        members: false,
        resume: Vec::new(),
        seed: 1,
    }
}

fn connect(simulator: &Simulator, settings: GatewaySettings, guild_state: Arc<GuildState>) -> Bot {
    let rest = Rest::new(&settings.token, Some(&simulator.url())).unwrap();
    let (sender, events) = mpsc::channel(64);
    let (progress, shutdown) = (
        Arc::<Mutex<ShardProgress>>::default(),
        CancellationToken::new(),
    );
    let gateway = Gateway {
        settings,
        guild_state: Arc::clone(&guild_state),
        progress: Arc::clone(&progress),
        clock: Arc::new(|| UnixMillis(0)),
        events: sender,
        shutdown: shutdown.clone(),
        shards: tokio::sync::watch::channel(0).1,
        dial: None,
    };
    Bot {
        guild_state,
        progress,
        events,
        shutdown,
        task: tokio::spawn(async move { run(gateway, &rest).await }),
    }
}

impl Bot {
    fn new(place: &Place) -> Self {
        let settings = settings(&place.simulator);
        connect(&place.simulator, settings, Arc::default())
    }

    async fn next(&mut self) -> ShardEvent {
        timeout(PATIENCE, self.events.recv())
            .await
            .expect("an event in time")
            .expect("the gateway runs")
    }

    fn finish(&self, event: &ShardEvent) {
        let mut progress = self.progress.lock().unwrap();
        if matches!(event.event, Event::Ready(_)) {
            progress.caught_up(event.mark);
        }
        progress.finished(event.mark);
    }

    /// Handles events until `pick` returns a value.
    async fn until<T>(&mut self, mut pick: impl FnMut(&Event) -> Option<T>) -> T {
        loop {
            let next = self.next().await;
            self.finish(&next);
            if let Some(found) = pick(&next.event) {
                return found;
            }
        }
    }

    async fn message(&mut self) -> MessageId {
        self.until(|event| match event {
            Event::Message(incoming) => Some(incoming.message.id),
            _ => None,
        })
        .await
    }

    async fn ready(&mut self) -> Ready {
        self.until(|event| match event {
            Event::Ready(ready) => Some((**ready).clone()),
            _ => None,
        })
        .await
    }

    async fn available(&mut self) {
        self.until(|event| matches!(event, Event::GuildAvailable { .. }).then_some(()))
            .await;
    }

    async fn stop(self) -> Vec<ShardSession> {
        self.shutdown.cancel();
        self.task.await.unwrap().unwrap();
        self.progress.lock().unwrap().sessions()
    }
}

fn id(message: Id) -> MessageId {
    MessageId::new(message.0)
}

#[tokio::test]
async fn the_first_events_name_the_bot_and_its_servers() {
    let place = place(|_| {}).await;
    let mut bot = Bot::new(&place);
    let ready = bot.ready().await;
    assert_eq!(ready.user, UserId::new(place.simulator.bot().0));
    assert!(ready.content_granted);
    assert_eq!(ready.guilds, [place.guild]);
    bot.available().await;
    let channel = ChannelId::new(place.channel.0);
    assert_eq!(
        bot.guild_state.channel_name(channel).as_deref(),
        Some("general")
    );
    assert!(
        !bot.guild_state
            .our_access(channel)
            .forbids(|rights| rights.send)
    );
    let posted = place.simulator.post(place.channel, place.alice, "hello");
    assert_eq!(bot.message().await, id(posted));
}

#[tokio::test]
async fn after_a_drop_the_session_resumes_and_nothing_is_missed() {
    let place = place(|_| {}).await;
    let mut bot = Bot::new(&place);
    bot.available().await;
    place.simulator.drop_gateway();
    let missed = place
        .simulator
        .post(place.channel, place.alice, "while away");
    let mut lost = false;
    let found = bot
        .until(|event| match event {
            Event::Message(incoming) => Some(incoming.message.id),
            Event::SessionLost => panic!("the session was resumable"),
            _ => None,
        })
        .await;
    assert_eq!(found, id(missed));
    bot.until(|event| matches!(event, Event::Resumed).then_some(()))
        .await;
    for end in [Simulator::ask_to_reconnect, |simulator: &Simulator| {
        simulator.close_gateway(4000);
    }] {
        end(&place.simulator);
        let event = bot.until(|event| match event {
            Event::Resumed => Some(true),
            Event::Ready(_) => Some(false),
            _ => None,
        });
        lost |= !event.await;
    }
    assert!(!lost);
}

#[tokio::test]
async fn an_invalid_session_is_reported_before_the_next_begins() {
    let place = place(|_| {}).await;
    let mut bot = Bot::new(&place);
    bot.available().await;
    place.simulator.invalidate_sessions(false);
    let first = bot
        .until(|event| match event {
            Event::SessionLost => Some("lost"),
            Event::Ready(_) => Some("ready"),
            _ => None,
        })
        .await;
    assert_eq!(first, "lost");
    bot.ready().await;
    bot.available().await;
    let posted = place.simulator.post(place.channel, place.alice, "hello");
    assert_eq!(bot.message().await, id(posted));
}

/// Discord asks for 1 to 5 s each time, however few connections failed.
#[tokio::test]
async fn an_invalid_session_is_waited_out() {
    let place = place(|_| {}).await;
    let mut bot = Bot::new(&place);
    bot.available().await;
    for resumable in [true, false] {
        let told = Instant::now();
        place.simulator.invalidate_sessions(resumable);
        let connected = bot.until(|event| match event {
            Event::Ready(_) | Event::Resumed => Some(()),
            _ => None,
        });
        connected.await;
        assert!(told.elapsed() >= Duration::from_secs(1), "{resumable}");
    }
}

#[tokio::test]
async fn close_codes_that_only_a_person_can_fix_say_what_to_do() {
    async fn check(code: u16, says: &str) {
        let place = place(|_| {}).await;
        let mut bot = Bot::new(&place);
        bot.available().await;
        place.simulator.close_gateway(code);
        let reason = timeout(PATIENCE, bot.task).await.unwrap().unwrap();
        let reason = reason.unwrap_err().to_string();
        assert!(reason.contains(says), "{code}: {reason}");
    }
    check(4004, "DISCORD_TOKEN").await;
    check(4011, "shards").await;
    check(4013, "intents").await;
    check(4014, "DISCORD_MESSAGE_CONTENT=off").await;
}

/// Whoever sends it, what we remember and may do is ours and not another's.
#[tokio::test]
async fn a_second_ready_that_names_another_user_is_refused() {
    let place = place(|_| {}).await;
    let mut bot = Bot::new(&place);
    bot.available().await;
    let us = bot.guild_state.current_user().unwrap();
    let ready = r#"{"v":10,"user":{"id":"4242","username":"mallory"},"guilds":[],
        "session_id":"s","resume_gateway_url":"ws://127.0.0.1:1","shard":[0,1],
        "application":{"id":"4242","flags":0}}"#;
    place.simulator.dispatch_raw("READY", ready);
    let reason = timeout(PATIENCE, bot.task).await.unwrap().unwrap();
    let reason = reason.unwrap_err().to_string();
    for part in ["4242", &us.user.to_string(), "DISCORD_TOKEN"] {
        assert!(reason.contains(part), "{part}: {reason}");
    }
    assert_eq!(bot.guild_state.current_user(), Some(us));
    assert_eq!(bot.guild_state.guilds(), [place.guild]);
}

#[tokio::test]
async fn a_refused_intent_and_a_refused_token_end_the_start() {
    let place = place(|world| world.settings.disallowed_intents = 1 << 15).await;
    let reason = Bot::new(&place).task.await.unwrap().unwrap_err();
    let expected = FatalReason::IntentsRefused {
        message_content: true,
        members: false,
    };
    assert_eq!(reason, expected);
    let wrong = GatewaySettings {
        token: "wrong".to_owned(),
        ..settings(&place.simulator)
    };
    let bot = connect(&place.simulator, wrong, Arc::default());
    assert_eq!(bot.task.await.unwrap(), Err(FatalReason::TokenRefused));
}

#[tokio::test]
async fn without_the_content_intent_it_is_not_requested() {
    let place = place(|world| world.settings.disallowed_intents = 1 << 15).await;
    let off = GatewaySettings {
        message_content: false,
        ..settings(&place.simulator)
    };
    let mut bot = connect(&place.simulator, off, Arc::default());
    assert!(!bot.ready().await.content_granted);
}

#[tokio::test]
async fn a_silent_connection_is_dropped_and_resumed() {
    let place = place(|world| world.settings.heartbeat_interval_ms = 200).await;
    let mut bot = Bot::new(&place);
    bot.available().await;
    place.simulator.set_heartbeats_answered(false);
    let closed = |event: &GatewayEvent| matches!(event, GatewayEvent::ClosedByClient { .. });
    place
        .simulator
        .wait_gateway("the end", closed)
        .await
        .unwrap();
    place.simulator.set_heartbeats_answered(true);
    bot.until(|event| matches!(event, Event::Resumed).then_some(()))
        .await;
}

#[tokio::test]
async fn an_event_that_twilight_rejects_costs_only_itself() {
    let place = place(|_| {}).await;
    let mut bot = Bot::new(&place);
    bot.available().await;
    let odd = format!(
        r#"{{"id":"{guild}","name":"Guild","owner_id":"5","roles":[{{"id":"{guild}",
        "permissions":"66560"}}],"channels":[{{"id":"7","type":0,"name":"fine"}},
        {{"id":8,"type":{{}}}}]}}"#,
        guild = place.guild
    );
    place.simulator.dispatch_raw("GUILD_CREATE", &odd);
    bot.available().await;
    assert_eq!(
        bot.guild_state.channel_name(ChannelId::new(7)).as_deref(),
        Some("fine")
    );
    let bare = format!(r#"{{"id":"{}","name":"Guild"}}"#, place.guild);
    place.simulator.dispatch_raw("GUILD_CREATE", &bare);
    bot.until(|event| matches!(event, Event::GuildIncomplete { .. }).then_some(()))
        .await;
    let rest = Rest::new(&place.simulator.token(), Some(&place.simulator.url())).unwrap();
    let deadline = Instant::now() + PATIENCE;
    bot.guild_state
        .fill(&rest, place.guild, deadline)
        .await
        .unwrap();
    let channel = ChannelId::new(place.channel.0);
    assert!(
        !bot.guild_state
            .our_access(channel)
            .forbids(|rights| rights.send)
    );
    place
        .simulator
        .dispatch_raw("MESSAGE_CREATE", r#"{"channel_id":"7","content":"?"}"#);
    let hole = bot
        .until(|event| match event {
            Event::MessagesMissed(hole) => Some(hole.clone()),
            _ => None,
        })
        .await;
    assert_eq!(hole.channel, Some(ChannelId::new(7)));
    assert_eq!(
        (&*hole.event, &*hole.parts),
        ("message_create", &["id"][..])
    );
    let posted = place.simulator.post(place.channel, place.alice, "hello");
    assert_eq!(bot.message().await, id(posted));
}

#[tokio::test]
async fn a_restart_resumes_before_unfinished_work_and_keeps_all_facts() {
    let place = place(|_| {}).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.json");
    let now = UnixMillis(1_800_000_000_000);
    let mut bot = Bot::new(&place);
    bot.available().await;
    let done = place.simulator.post(place.channel, place.alice, "done");
    assert_eq!(bot.message().await, id(done));
    let open = place
        .simulator
        .post(place.channel, place.alice, "not finished");
    let delivery = bot.next().await;
    assert!(matches!(&delivery.event, Event::Message(incoming) if incoming.message.id == id(open)));
    let guild_state = Arc::clone(&bot.guild_state);
    let sessions = bot.stop().await;
    let token = place.simulator.token();
    let nobody = OptedOut::default();
    let us = guild_state.current_user();
    let file = SessionFile::new(now, &token, sessions, us, Vec::new());
    save_guilds(&path, &token, &guild_state, &nobody, Lasts::Process).unwrap();
    save(&path, &file, Lasts::Process).unwrap();

    let missed = place
        .simulator
        .post(place.channel, place.alice, "between two processes");
    let mut left = load(&path, &token, now).unwrap();
    let guild_state = Arc::<GuildState>::default();
    left.restore(&guild_state);
    let resume = GatewaySettings {
        resume: left.session.shards,
        ..settings(&place.simulator)
    };
    let mut bot = connect(&place.simulator, resume, guild_state);
    let mut seen = Vec::new();
    bot.until(|event| {
        match event {
            Event::Message(incoming) => seen.push(incoming.message.id),
            Event::SessionLost => panic!("the session was resumable"),
            _ => {}
        }
        matches!(event, Event::Resumed).then_some(())
    })
    .await;
    assert_eq!(seen, [id(open), id(missed)]);
    let channel = ChannelId::new(place.channel.0);
    assert!(
        !bot.guild_state
            .our_access(channel)
            .forbids(|rights| rights.send)
    );
    assert!(!bot.guild_state.our_role_ids(place.guild).is_empty());
}

#[tokio::test]
async fn each_shard_resumes_its_own_session() {
    let place = place(|world| world.settings.shards = 2).await;
    let mut bot = Bot::new(&place);
    bot.ready().await;
    bot.ready().await;
    let sessions = bot.stop().await;
    let shards: Vec<_> = sessions.iter().map(|one| (one.shard, one.shards)).collect();
    assert_eq!(shards, [(0, 2), (1, 2)]);
    let resume = GatewaySettings {
        resume: sessions,
        ..settings(&place.simulator)
    };
    let mut bot = connect(&place.simulator, resume, Arc::default());
    let resumed = |event: &Event| matches!(event, Event::Resumed).then_some(());
    bot.until(resumed).await;
    bot.until(resumed).await;
}

/// Two of four shards at once, the others five seconds later.
#[tokio::test]
async fn shards_identify_no_faster_than_discord_allows() {
    let place = place(|world| {
        world.settings.shards = 4;
        world.settings.max_concurrency = 2;
        world.settings.identify_interval = Duration::from_secs(5);
    })
    .await;
    let mut bot = Bot::new(&place);
    for _ in 0..4 {
        bot.ready().await;
    }
    let log = place.simulator.gateway_log();
    let refused = |record: &GatewayRecord| matches!(record.event, GatewayEvent::Invalidated { .. });
    assert!(!log.iter().any(refused), "{log:#?}");
}

#[tokio::test]
async fn a_session_that_discord_has_forgotten_is_replaced() {
    let place = place(|_| {}).await;
    let mut bot = Bot::new(&place);
    bot.available().await;
    let sessions = bot.stop().await;
    assert_eq!(sessions.len(), 1);
    place.simulator.forget_sessions();
    let resume = GatewaySettings {
        resume: sessions,
        ..settings(&place.simulator)
    };
    let mut bot = connect(&place.simulator, resume, Arc::default());
    bot.until(|event| matches!(event, Event::SessionLost).then_some(()))
        .await;
    bot.ready().await;
    bot.available().await;
}

#[tokio::test]
async fn a_shutdown_leaves_the_session_resumable() {
    let place = place(|_| {}).await;
    let mut bot = Bot::new(&place);
    bot.available().await;
    bot.stop().await;
    let log = place.simulator.gateway_log();
    let closed = log.iter().find_map(|record| match record.event {
        GatewayEvent::ClosedByClient { code } => Some(code),
        _ => None,
    });
    assert_eq!(closed, Some(Some(4000)));
    let resumed = |record: &GatewayRecord| matches!(record.event, GatewayEvent::Resumed { .. });
    assert!(!log.iter().any(resumed), "{log:#?}");
}

#[tokio::test]
async fn with_few_session_starts_left_it_waits_for_the_reset() {
    let place = place(|world| {
        world.settings.session_starts_remaining = 1;
        world.settings.session_starts_reset_ms = 300;
    })
    .await;
    let mut bot = Bot::new(&place);
    bot.ready().await;
    let log = place.simulator.gateway_log();
    let asked = place.simulator.requests_to("GET", "/gateway/bot");
    let opened = log.first().unwrap().at;
    assert!(opened >= asked[0].at + Duration::from_millis(300));
}

#[tokio::test]
async fn commands_are_registered_once_and_their_calls_arrive() {
    let place = place(|_| {}).await;
    let mut bot = Bot::new(&place);
    let ready = bot.ready().await;
    bot.available().await;
    let rest = Rest::new(&place.simulator.token(), Some(&place.simulator.url())).unwrap();
    let specs = crate::specs::specs();
    let register = async |guild| {
        let registered = commands::register(&rest, ready.application, guild, &specs);
        registered.await.unwrap()
    };
    assert!(register(None).await);
    assert!(!register(None).await);
    let guild = Some(place.guild);
    assert!(register(guild).await);
    assert!(!register(guild).await);
    let asked = Use::slash("ask", &[("question", "why?")]);
    place.simulator.interact(place.channel, place.alice, &asked);
    let message = place
        .simulator
        .post(place.channel, place.alice, "look at this");
    let about = Use::on_message("Ask about this message", message);
    place.simulator.interact(place.channel, place.alice, &about);
    let called = |event: &Event| match event {
        Event::Interaction(call) => Some((
            call.data.clone(),
            call.interaction.place,
            call.message
                .as_ref()
                .map(|found| found.message.content.to_string()),
        )),
        _ => None,
    };
    let asked = CommandData {
        name: "ask".to_owned(),
        options: vec![("question".to_owned(), OptionValue::Text("why?".to_owned()))],
        ..CommandData::default()
    };
    let asked = InteractionData::Command(asked);
    assert_eq!(
        bot.until(called).await,
        (asked, InteractionPlace::Guild, None)
    );
    let found = bot.until(called).await;
    let about = CommandData {
        name: "Ask about this message".to_owned(),
        target: Some(id(message)),
        ..CommandData::default()
    };
    assert_eq!(found.0, InteractionData::Command(about));
    assert_eq!(found.2.as_deref(), Some("look at this"));
}

/// A gateway that sends the frame from `last`, or hangs up if there is none.
async fn broken_gateway(last: fn() -> Option<Frame>) -> (String, Arc<AtomicUsize>) {
    let connections = Arc::new(AtomicUsize::new(0));
    let serve = move |upgrade: WebSocketUpgrade, State(count): State<Arc<AtomicUsize>>| async move {
        count.fetch_add(1, Ordering::SeqCst);
        upgrade.on_upgrade(move |mut socket: WebSocket| async move {
            if let Some(frame) = last() {
                let _ = socket.send(frame).await;
                // Until the client leaves.
                while let Some(Ok(_)) = socket.recv().await {}
            }
        })
    };
    let router = axum::Router::new()
        .fallback(axum::routing::any(serve))
        .with_state(Arc::clone(&connections));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (url, connections)
}

#[tokio::test]
async fn broken_connections_are_retried_with_pauses() {
    async fn check(last: fn() -> Option<Frame>, most: usize) {
        let place = place(|_| {}).await;
        let (url, connections) = broken_gateway(last).await;
        let broken = GatewaySettings {
            url: Some(url),
            ..settings(&place.simulator)
        };
        let bot = connect(&place.simulator, broken, Arc::default());
        // Without pauses it would make thousands in this time.
        tokio::time::sleep(Duration::from_secs(3)).await;
        let made = connections.load(Ordering::SeqCst);
        assert!((2..=most).contains(&made), "{made} connections");
        bot.stop().await;
    }
    tokio::join!(
        check(|| Some(Frame::Binary(vec![1, 2, 3].into())), 5),
        check(|| Some(Frame::Text("{}".into())), 5),
        check(|| Some(Frame::Close(None)), 5),
        // A connection that ends without a close frame is noticed only after some of them.
        check(|| None, 150),
    );
}
