//! The parts of an event and of a turn that process what others wrote.

use std::sync::Arc;

use clew::engine::{deliver, extract};
use clew_context::discord::convert;
use clew_context::engine::chain::ChainLink;
use clew_context::engine::conversation::{Reply, Utterance, judge};
use clew_context::engine::eligible::Us;
use clew_context::engine::links::GatheredLinks;
use clew_context::engine::place::GatheredPlace;
use clew_context::engine::prepare::{PromptInput, prepare};
use clew_context::engine::route::{RouteFacts, Rules, route};
use clew_context::engine::select::{Gathered, GatheredThread, NamedMessage};
use clew_context::engine::target::Target;
use clew_context::engine::turn::{Collected, TurnInput, WindowUpdate};
use clew_context::engine::window::{View, Window, WindowLimits};
use clew_context::model::{
    Access, AgentDoc, Cause, Channel, ChannelId, ChannelKind, HistoryMessage, Limits, Message,
    Profiles, Proxies, RoleId, Scene, Speaker, ThreadState, TurnRequest, UnixMillis, UserId,
};
use clew_discord::guild_state::GuildState;
use divan::black_box;
use serde_json::{Value, json};

use super::messages;
use super::texts::Writer;

/// A piece of work on what others wrote.
pub(super) struct Part {
    pub(super) name: &'static str,
    /// The limit: nothing occupies the loop for more than 5 ms, and no turn takes more than 50 ms of CPU.
    pub(super) most_ms: f64,
    /// Whether the cost depends on the texts.
    pub(super) texts: bool,
    pub(super) prepare: fn(&mut Writer) -> Box<dyn FnMut()>,
}

const LOOP: f64 = 5.0;
const TURN: f64 = 50.0;

const fn part(
    name: &'static str,
    most_ms: f64,
    prepare: fn(&mut Writer) -> Box<dyn FnMut()>,
) -> Part {
    Part {
        name,
        most_ms,
        texts: true,
        prepare,
    }
}

const fn world(name: &'static str, prepare: fn(&mut Writer) -> Box<dyn FnMut()>) -> Part {
    Part {
        name,
        most_ms: LOOP,
        texts: false,
        prepare,
    }
}

pub(super) const ALL: [Part; 16] = [
    Part {
        // Over 500 KB, so it is parsed beside the loop.
        most_ms: TURN,
        ..world(
            "beside the loop: GUILD_CREATE, 500 channels, 1,000 threads",
            guild_create,
        )
    },
    world("event: GUILD_UPDATE there", guild_update),
    world("event: CHANNEL_UPDATE there", channel_update),
    world("event: GUILD_ROLE_UPDATE there", role_update),
    world("event: THREAD_DELETE there", thread_delete),
    world("turn: who may read a channel there", access),
    part("event: a message is read", LOOP, read_message),
    part("event: a message is routed", LOOP, routed),
    part("event: a message enters a full window", LOOP, windowed),
    part("turn: a page of 100 is read", TURN, read_page),
    part("turn: prompt of a thread, 300 messages known", TURN, thread),
    part("turn: prompt of a chain of 40", TURN, chain),
    part(
        "turn: the conversation among 200 messages",
        TURN,
        conversation,
    ),
    part(
        "turn: a question's own words, to be stored",
        LOOP,
        own_words,
    ),
    part("turn: words to learn from", LOOP, learnt),
    part(
        "turn: an answer of 100,000 characters is split",
        LOOP,
        split,
    ),
];

fn us() -> Us {
    Us {
        user: UserId::new(1),
        name: "Clew".to_owned(),
        roles: vec![RoleId::new(2)],
        proxies: Proxies::default(),
    }
}

fn known(writer: &mut Writer, number: u64) -> Message {
    let json = messages::message(writer, number).to_string();
    convert::message(&json).unwrap()
}

fn read_message(writer: &mut Writer) -> Box<dyn FnMut()> {
    let json = messages::message(writer, 3).to_string();
    Box::new(move || drop(black_box(convert::incoming(&json))))
}

fn routed(writer: &mut Writer) -> Box<dyn FnMut()> {
    let (message, us, rules) = (known(writer, 3), us(), Rules::default());
    Box::new(move || {
        let facts = RouteFacts {
            kind: Some(ChannelKind::Text),
            ..RouteFacts::default()
        };
        black_box(route(&message, &us, &rules, facts));
    })
}

fn windowed(writer: &mut Writer) -> Box<dyn FnMut()> {
    let message = known(writer, 1);
    let mut window = Window::new(WindowLimits {
        per_channel: 200,
        max_bytes: 8 << 20,
    });
    let mut number = 0;
    Box::new(move || {
        number += 1;
        let mut message = message.clone();
        message.id = clew_context::model::MessageId::new(number << 22);
        black_box(window.created(message));
    })
}

fn page(writer: &mut Writer, messages: u64) -> Vec<Arc<Message>> {
    (0..messages)
        .map(|number| Arc::new(known(writer, number)))
        .collect()
}

fn read_page(writer: &mut Writer) -> Box<dyn FnMut()> {
    let page: Vec<Value> = (0..100)
        .map(|number| messages::message(writer, number))
        .collect();
    let json = Value::from(page).to_string();
    Box::new(move || drop(black_box(convert::page(json.as_bytes()))))
}

fn thread(writer: &mut Writer) -> Box<dyn FnMut()> {
    let messages = page(writer, 300);
    let gathered = Gathered::Thread(GatheredThread {
        starter: NamedMessage::Known(Arc::clone(&messages[0])),
        pointed_at: NamedMessage::Known(Arc::clone(&messages[1])),
        target: Some(Arc::clone(&messages[298])),
        messages: messages.clone(),
        history: true,
        ..GatheredThread::default()
    });
    prompt(writer, &messages[299], gathered)
}

fn conversation(writer: &mut Writer) -> Box<dyn FnMut()> {
    let texts: Vec<String> = (0..=200).map(|_| writer.text(4_000)).collect();
    let utterances = move |texts: &[String]| {
        let said = (0..).zip(texts);
        let said = said.map(|(number, text)| Utterance {
            speaker: Speaker::User(UserId::new(number % 50)),
            name: &text[..text.ceil_char_boundary(32)],
            at: UnixMillis(number.cast_signed() * 60_000),
            text,
            mentions: (0..100).map(UserId::new).collect(),
            reply: Reply::Unknown,
        });
        judge(&said.collect::<Vec<_>>())
    };
    Box::new(move || drop(black_box(utterances(&texts))))
}

fn chain(writer: &mut Writer) -> Box<dyn FnMut()> {
    let messages = page(writer, 41);
    let links = messages[..40].iter().rev();
    let links = links
        .map(|message| ChainLink::Message(Arc::clone(message)))
        .collect();
    prompt(
        writer,
        &messages[40],
        Gathered::Chain {
            links,
            cut: None,
            around: Vec::new(),
        },
    )
}

/// Assembles a whole prompt from what was gathered.
fn prompt(writer: &mut Writer, trigger: &Arc<Message>, gathered: Gathered) -> Box<dyn FnMut()> {
    let channel = Channel {
        name: writer.text(100),
        parent_kind: Some(ChannelKind::Forum),
        parent_name: Some(writer.text(100)),
        tags: (0..5).map(|_| writer.text(20)).collect(),
        thread: Some(ThreadState::default()),
        ..Channel::new(ChannelId::new(2), ChannelKind::PublicThread)
    };
    let request = TurnRequest::new(Arc::clone(trigger), Cause::Mention);
    let collected = Collected {
        turn: TurnInput {
            channel: Some(channel),
            asker_access: Access::FULL,
            ..TurnInput::new(request, us(), View::default(), Limits::default())
        },
        scene: Scene::Thread,
        gathered,
        links: GatheredLinks::default(),
        place: GatheredPlace::default(),
        target: Target {
            reply_to: None,
            adopted: None,
            withheld: false,
        },
        fetches: 0,
        stages: Vec::new(),
        fallbacks: Vec::new(),
        asker_opted_out: false,
        window_update: WindowUpdate::default(),
    };
    let row = |writer: &mut Writer, row: u64| HistoryMessage {
        ours: row % 2 == 1,
        author: None,
        message: None,
        timestamp: UnixMillis(0),
        restored: false,
        text: writer.text(4_000),
    };
    let history: Vec<HistoryMessage> = (0..30).map(|number| row(writer, number)).collect();
    let profiles = Profiles {
        user: (0..5).map(|_| writer.text(300)).collect(),
        server: (0..7).map(|_| writer.text(300)).collect(),
    };
    let docs = [AgentDoc {
        name: "facts".to_owned(),
        text: writer.text(50_000),
    }];
    Box::new(move || {
        let input = PromptInput {
            history: &history,
            profiles: &profiles,
            docs: &docs,
            ..PromptInput::new("Be kind.", b"key", "here")
        };
        black_box(prepare(&collected, &input));
    })
}

fn own_words(writer: &mut Writer) -> Box<dyn FnMut()> {
    let (message, us) = (known(writer, 3), us());
    Box::new(move || drop(black_box(us.own_words(&message))))
}

fn learnt(writer: &mut Writer) -> Box<dyn FnMut()> {
    let words = writer.text(4_000);
    Box::new(move || {
        let without = extract::without_others(&words, UserId::new(1));
        drop(black_box(extract::own(&without)));
    })
}

fn split(writer: &mut Writer) -> Box<dyn FnMut()> {
    let answer = writer.text(100_000);
    let overflow = deliver::Overflow::Attached;
    Box::new(move || drop(black_box(deliver::split(&answer, 4, overflow))))
}

/// A server as large as Discord allows, and the guild state that holds it.
fn server(writer: &mut Writer) -> (GuildState, Value) {
    let guild = messages::guild(writer, 500, 100, 1_000);
    let guild_state = GuildState::default();
    guild_state.apply("GUILD_CREATE", &guild.to_string());
    (guild_state, guild)
}

/// Applies the same event again and again.
fn applied(guild_state: GuildState, event: &'static str, data: &Value) -> Box<dyn FnMut()> {
    let data = data.to_string();
    Box::new(move || drop(black_box(guild_state.apply(event, &data))))
}

fn guild_create(writer: &mut Writer) -> Box<dyn FnMut()> {
    let (guild_state, guild) = server(writer);
    applied(guild_state, "GUILD_CREATE", &guild)
}

fn guild_update(writer: &mut Writer) -> Box<dyn FnMut()> {
    let (guild_state, guild) = server(writer);
    let update = json!({"id": "1000", "name": "other", "owner_id": "7", "roles": guild["roles"]});
    applied(guild_state, "GUILD_UPDATE", &update)
}

fn channel_update(writer: &mut Writer) -> Box<dyn FnMut()> {
    let (guild_state, guild) = server(writer);
    let mut channel = guild["channels"][3].clone();
    channel["guild_id"] = json!("1000");
    applied(guild_state, "CHANNEL_UPDATE", &channel)
}

fn role_update(writer: &mut Writer) -> Box<dyn FnMut()> {
    let (guild_state, guild) = server(writer);
    let mut update = json!({"guild_id": "1000", "role": guild["roles"][3]});
    let mut permissions = 0_u64;
    Box::new(move || {
        permissions += 1;
        update["role"]["permissions"] = json!(permissions.to_string());
        black_box(guild_state.apply("GUILD_ROLE_UPDATE", &update.to_string()));
    })
}

fn thread_delete(writer: &mut Writer) -> Box<dyn FnMut()> {
    let (guild_state, _) = server(writer);
    let thread = json!({"id": "20500", "guild_id": "1000", "parent_id": "10000", "type": 11});
    applied(guild_state, "THREAD_DELETE", &thread)
}

fn access(writer: &mut Writer) -> Box<dyn FnMut()> {
    let (guild_state, _) = server(writer);
    let roles: Vec<RoleId> = (1_000..1_250).map(RoleId::new).collect();
    let (user, channel) = (UserId::new(150), ChannelId::new(10_003));
    Box::new(move || {
        black_box(guild_state.access(user, Some(&roles), channel));
    })
}
