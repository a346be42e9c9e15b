//! Discord's answers, and what happens to the messages that it was asked for.

mod clocks;
mod load;

use clew_context::model::UnixMillis;
use clew_discord::session::Missed;
use clew_simulator::{ChannelKind, Fault, Id, Simulator, World};
use futures_util::FutureExt;

use super::*;
use crate::config::MemoryConfig;
use crate::memory::tests::{ADA, GUILD, HERE, Scene, place, scene, scene_with, settings};

/// A channel on the simulator, with messages in it.
struct Channel {
    discord: Simulator,
    rest: Rest,
    id: ChannelId,
    messages: Vec<MessageId>,
}

async fn channel() -> Channel {
    let mut world = World::new();
    let guild = world.guild("Works");
    let ada = world.member(guild, "Ada");
    let here = world.channel(guild, ChannelKind::Text, "help");
    let messages = (0..5)
        .map(|_| MessageId::new(world.seed(here, ada, "saffron").0))
        .collect();
    let discord = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&discord.token(), Some(&discord.url())).unwrap();
    Channel {
        discord,
        rest,
        id: ChannelId::new(here.0),
        messages,
    }
}

fn refusing(status: u16, code: u64, path: &str) -> Fault {
    Fault::status("GET", path, status, code, "no")
}

impl Channel {
    /// How often any of its messages was asked for.
    fn asked(&self) -> usize {
        let path = format!("/channels/{}/messages/", self.id);
        self.discord.requests_to("GET", &path).len()
    }

    /// A stored turn whose question and answer are the channel's first two
    /// messages, and whether these still exist is in doubt.
    async fn doubted(&self) -> (Scene, Vec<StoredMessage>) {
        let s = scene().await;
        let here = place(GUILD, self.id, ADA);
        let mut exchange = s.exchange(self.messages[0].get(), "saffron");
        // The next id is not that of the next message if a millisecond lies between them.
        exchange.messages = vec![self.messages[1]];
        let ids = Ids::default();
        s.memory.record(&ids, &here, &exchange, None).await;
        let rows = s.rows(&here).await;
        s.pass(1_000);
        s.memory.missed(Missed::Everything);
        (s, rows)
    }
}

/// No message is known to be edited.
fn unedited(_: &Message) -> Option<Edit> {
    None
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

/// What a turn does about its rows.
async fn confirm(
    memory: &Memory,
    rows: &mut Vec<StoredMessage>,
    recalled: &BTreeSet<TurnId>,
    (rest, edit_of): (&Rest, EditOf<'_>),
    deadline: Instant,
) -> Words {
    let mut confirming = Confirming::new(rest, edit_of, deadline);
    memory
        .confirm(rows, recalled, |_| true, &mut confirming)
        .await;
    memory.leave_out_rest(&Ids::default(), rows, confirming)
}

/// A refusal applies to the whole channel, a message that is gone to its turn; a page that
/// settles nothing is followed by one message, and what is left is asked for later.
#[tokio::test]
async fn what_discord_says_decides_what_is_shown() {
    let channel = channel().await;
    let (page, single) = ("/channels/*/messages", "/channels/*/messages/*");
    for ((shown, fault, told, left, due), is_recalled) in [
        (1, None, [1, 1, 0, 0], 1, 0),
        (1, Some((single, 404, 10_008)), [1, 1, 1, 0], 0, 0),
        (1, Some((single, 403, 50_001)), [1, 1, 0, 1], 0, 0),
        (1, Some((single, 404, 10_003)), [1, 1, 0, 1], 0, 0),
        (1, Some((single, 500, 0)), [1, 1, 0, 1], 0, 1),
        (1, Some((single, 400, 0)), [1, 1, 0, 1], 0, 0),
        (2, None, [2, 1, 0, 0], 2, 0),
        (2, Some((page, 403, 50_001)), [2, 1, 0, 2], 0, 0),
        (2, Some((page, 500, 0)), [2, 1, 0, 2], 0, 2),
        (2, Some((page, 400, 0)), [2, 2, 0, 1], 0, 1),
    ]
    .into_iter()
    .flat_map(|case| [(case, false), (case, true)])
    {
        let (s, mut rows) = channel.doubted().await;
        rows.truncate(shown);
        channel.discord.end_faults();
        if let Some((path, status, code)) = fault {
            channel.discord.fault(refusing(status, code, path));
        }
        let memory = &s.memory;
        let turns = rows.iter().map(|row| row.turn);
        let recalled = turns.filter(|_| is_recalled).collect();
        let asked = (&channel.rest, &unedited as EditOf<'_>);
        confirm(memory, &mut rows, &recalled, asked, soon()).await;
        let event = &s.told("confirmed")[0];
        let names = ["asked", "calls", "gone", "unanswered"];
        assert_eq!(names.map(|name| &event[name]), told, "{fault:?}");
        assert_eq!(rows.len(), left, "{fault:?} {is_recalled}");
        // What is settled is not asked for by the next turn.
        let again = memory
            .doubts
            .take_unconfirmed(rows.iter().flat_map(traces), 9);
        assert_eq!(again.keys.len(), 0, "{fault:?}");
        let later = memory.doubts.due().now_or_never();
        assert_eq!(
            later.map_or(0, |asking| asking.keys.len()),
            due,
            "{fault:?}"
        );
    }
}

/// Without its question nothing of a turn is shown, whatever Discord says of the answer. The
/// page lacks it, which proves nothing.
#[tokio::test]
async fn a_question_that_is_gone_takes_its_answer() {
    for is_recalled in [false, true] {
        let channel = channel().await;
        channel
            .discord
            .delete(Id(channel.id.get()), Id(channel.messages[0].get()));
        let (s, mut rows) = channel.doubted().await;
        let turns = rows.iter().map(|row| row.turn);
        let recalled = turns.filter(|_| is_recalled).collect();
        let asked = (&channel.rest, &unedited as EditOf<'_>);
        confirm(&s.memory, &mut rows, &recalled, asked, soon()).await;
        assert_eq!(rows, [], "{is_recalled}");
        assert_eq!(channel.asked(), 0);
        let due = s.memory.doubts.due().await.hand_over();
        assert_eq!(due, [(channel.id, channel.messages[0])]);
    }
}

/// What a page shows of what is stored is confirmed for everybody, with the words that it has there.
#[tokio::test]
async fn one_page_confirms_for_everybody() {
    let channel = channel().await;
    let (s, _) = channel.doubted().await;
    let of = |at: &[usize]| -> Vec<_> {
        let row = |at: &usize| row(channel.id, channel.messages[*at]);
        at.iter().map(row).collect()
    };
    let mut rows = of(&[3, 4]);
    let edit = Edit {
        message: channel.messages[0],
        words: Some("ginger".to_owned()),
        at: Some(UnixMillis(5)),
    };
    let edit_of = |message: &Message| (message.id == edit.message).then(|| edit.clone());
    let asked = (&channel.rest, &edit_of as EditOf<'_>);
    confirm(&s.memory, &mut rows, &BTreeSet::new(), asked, soon()).await;
    assert_eq!(rows.len(), 2);
    s.memory.reconcile_all().await;
    let stored_and_not = of(&[0, 2]);
    let traces = stored_and_not.iter().flat_map(traces);
    let left = s.memory.doubts.take_unconfirmed(traces, 9);
    assert_eq!(left.hand_over(), [(channel.id, channel.messages[2])]);
    let stored = s.rows(&place(GUILD, channel.id, ADA)).await;
    assert_eq!(stored[0].content, "ginger");
}

/// A page that was read before a gap says nothing about what came after it.
#[tokio::test]
async fn a_gap_while_a_page_is_read_is_after_it() {
    let channel = channel().await;
    let (s, mut rows) = channel.doubted().await;
    let missed = |_: &Message| {
        s.memory.missed(Missed::Everything);
        None
    };
    let asked = (&channel.rest, &missed as EditOf<'_>);
    confirm(&s.memory, &mut rows, &BTreeSet::new(), asked, soon()).await;
    assert_eq!(rows, []);
}

/// Two requests at the same time where two channels are asked about: the one of the newest row,
/// and the one of what is recalled. Others wait for the background.
#[tokio::test]
async fn the_newest_and_what_is_recalled_come_first() {
    let s = scene().await;
    let mut world = World::new();
    let guild = world.guild("Works");
    let ada = world.member(guild, "Ada");
    let channels = ["recalled", "older", "newest"];
    let channels = channels.map(|name| world.channel(guild, ChannelKind::Text, name));
    let mut rows: Vec<_> = channels
        .map(|channel| {
            let message = world.seed(channel, ada, "saffron");
            row(ChannelId::new(channel.0), MessageId::new(message.0))
        })
        .into();
    let discord = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&discord.token(), Some(&discord.url())).unwrap();
    s.memory.missed(Missed::Everything);
    let recalled = BTreeSet::from([rows[0].turn]);
    let left = [rows[0].clone(), rows[2].clone()];
    let asked = (&rest, &unedited as EditOf<'_>);
    confirm(&s.memory, &mut rows, &recalled, asked, soon()).await;
    assert_eq!(rows, left);
}

/// Many rows of one channel cost two pages at most. What these do not show is not shown.
#[tokio::test]
async fn many_rows_from_before_a_gap_are_confirmed_by_pages() {
    let mut world = World::new();
    let guild = world.guild("Works");
    let ada = world.member(guild, "Ada");
    let here = world.channel(guild, ChannelKind::Text, "help");
    let messages: Vec<_> = (0..230).map(|_| world.seed(here, ada, "saffron")).collect();
    let discord = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&discord.token(), Some(&discord.url())).unwrap();
    let id = ChannelId::new(here.0);
    for (deleted, faults, requests, from, gone) in [
        (vec![], vec![], 2, 30, vec![]),
        // The pages reach further where they lack some.
        (vec![229, 60, 30], vec![], 2, 27, vec![229, 60, 30]),
        // The page is refused, and with it the channel.
        (vec![], vec![(403, 50_001)], 1, 230, vec![]),
    ] {
        discord.end_faults();
        for at in &deleted {
            discord.delete(here, messages[*at]);
        }
        for (status, code) in faults {
            discord.fault(refusing(status, code, "/channels/*/messages"));
        }
        let s = scene().await;
        let mut rows: Vec<_> = messages
            .iter()
            .map(|message| row(id, MessageId::new(message.0)))
            .collect();
        s.memory.missed(Missed::Everything);
        let memory = &s.memory;
        let asked = (&rest, &unedited as EditOf<'_>);
        confirm(memory, &mut rows, &BTreeSet::new(), asked, soon()).await;
        let told = s.told("confirmed");
        assert_eq!(told[0]["calls"], requests);
        let left: BTreeSet<u64> = rows.iter().map(|row| row.turn.0).collect();
        let shown = (from..230).filter(|at| !gone.contains(at));
        assert_eq!(left, shown.map(|at| messages[at].0).collect());
    }
    // Without an answer nothing is shown, and nothing is purged.
    let s = scene().await;
    s.memory.missed(Missed::Everything);
    let mut rows: Vec<_> = (0..9).map(|n| row(HERE, MessageId::new(10 + n))).collect();
    let long_ago = Instant::now();
    let (memory, asked) = (&s.memory, (&rest, &unedited as EditOf<'_>));
    confirm(memory, &mut rows, &BTreeSet::new(), asked, long_ago).await;
    assert_eq!(rows, []);
    memory.reconcile_all().await;
    assert!(s.told("purged").is_empty());
}

/// A question with the words that are stored is settled; other words go into the
/// prompt and the store.
#[tokio::test]
async fn an_edit_that_was_missed_is_made_up_for() {
    let channel = channel().await;
    for (words, at, shown, is_new) in [
        ("saffron", Some(5), 2, false),
        (" saffron ", Some(5), 2, false),
        ("ginger", Some(5), 2, true),
        ("ginger", Some(5), 1, true),
        ("ginger", None, 2, false),
    ] {
        let (s, mut rows) = channel.doubted().await;
        rows.truncate(shown);
        let question = channel.messages[0];
        let edit = Edit {
            message: question,
            words: Some(words.to_owned()),
            at: at.map(UnixMillis),
        };
        let edit_of = |message: &Message| (message.id == question).then(|| edit.clone());
        let (memory, asked) = (&s.memory, (&channel.rest, &edit_of as EditOf<'_>));
        confirm(memory, &mut rows, &BTreeSet::new(), asked, soon()).await;
        let expected = if is_new { "ginger" } else { "saffron" };
        assert_eq!(rows[0].content, expected, "{words} {at:?}");
        assert!(rows.get(1).is_none_or(|row| row.content == "so: saffron"));
        memory.reconcile_all().await;
        let stored = s.rows(&place(GUILD, channel.id, ADA)).await;
        assert_eq!(stored[0].content, expected, "{words} {at:?}");
        let reconciled = memory.doubts.due().now_or_never();
        assert!(reconciled.is_none(), "settled");
    }
}

/// So it is if no turn asks for it: by a page, or by itself.
#[tokio::test]
async fn an_edit_is_made_up_for_in_the_background() {
    for is_paged in [true, false] {
        let channel = channel().await;
        let (s, _) = channel.doubted().await;
        let question = channel.messages[0];
        if !is_paged {
            let page = refusing(400, 0, "/channels/*/messages");
            channel.discord.fault(page);
        }
        let edit = Edit {
            message: question,
            words: Some("ginger".to_owned()),
            at: Some(UnixMillis(5)),
        };
        let edit_of = |message: &Message| (message.id == question).then(|| edit.clone());
        let memory = &s.memory;
        let ids = channel.messages[..2].iter().copied();
        memory.doubts.lacking((None, channel.id), ids, memory.now());
        let round = memory.doubts.due().await;
        memory.ask_round(&channel.rest, round, &edit_of).await;
        memory.reconcile_all().await;
        let stored = s.rows(&place(GUILD, channel.id, ADA)).await;
        assert_eq!(stored[0].content, "ginger", "{is_paged}");
    }
}

/// What no page shows is asked for by itself. After three in a row without an answer the
/// others are left for later; messages that are gone are purged at once.
#[tokio::test]
async fn who_does_not_answer_is_left_in_peace() {
    let channel = channel().await;
    let some = |at: &[usize], status: u16, code: u64| {
        for at in at {
            let path = format!("/channels/*/messages/{}", channel.messages[*at]);
            channel.discord.fault(refusing(status, code, &path));
        }
    };
    for (silent, gone, asked) in [
        (vec![0, 1, 2, 3, 4], vec![], 3),
        (vec![0, 1, 3, 4], vec![2], 5),
        (vec![], vec![0, 1, 3], 5),
    ] {
        let before = channel.asked();
        let s = scene().await;
        let memory = &s.memory;
        channel.discord.end_faults();
        let page = refusing(400, 0, "/channels/*/messages");
        channel.discord.fault(page);
        some(&silent, 500, 0);
        some(&gone, 404, 10_008);
        let ids = channel.messages.iter().copied();
        memory.doubts.lacking((None, channel.id), ids, memory.now());
        let round = memory.doubts.due().await;
        let left = memory.ask_round(&channel.rest, round, &unedited).await;
        let keys = |at: &[usize]| -> Vec<Key> {
            let key = |at: &usize| (channel.id, channel.messages[*at]);
            at.iter().map(key).collect()
        };
        assert_eq!(channel.asked() - before, asked);
        let now = memory.doubts.due().now_or_never();
        assert!(now.is_none(), "asked for later");
        let all = keys(&[0, 1, 2, 3, 4]);
        let (shown, hidden): (Vec<Key>, Vec<Key>) =
            all.iter().partition(|key| !is_hidden(memory, **key));
        if asked < all.len() {
            assert_eq!((left, hidden), (all.clone(), all));
        } else {
            assert_eq!(left, keys(&silent));
            assert_eq!(shown.len(), all.len() - silent.len() - gone.len());
            let are_hidden = |keys: &[Key]| keys.iter().all(|key| hidden.contains(key));
            assert!(are_hidden(&keys(&gone)) && are_hidden(&keys(&silent)));
        }
    }
}

/// Whether a row made of this message is left out.
fn is_hidden(memory: &Memory, (channel, id): Key) -> bool {
    let mut rows = vec![row(channel, id)];
    memory.leave_out_doubtful(&mut rows);
    rows.is_empty()
}

fn row(channel: ChannelId, id: MessageId) -> StoredMessage {
    StoredMessage {
        scope: place(GUILD, channel, ADA).scope,
        agent: place(GUILD, channel, ADA).agent,
        turn: TurnId(id.get()),
        ordinal: 0,
        role: StoredRole::User,
        guild: Some(GUILD),
        channel,
        owner: ADA,
        author_name: None,
        content: "saffron".to_owned(),
        tool_calls: None,
        tool_call_id: None,
        timestamp: UnixMillis(5),
        message: Some(id),
        parts: Vec::new(),
        target: None,
        restored_from: None,
        sources: Vec::new(),
    }
}

/// They share a purge, since each one costs writes.
#[tokio::test]
async fn messages_of_one_channel_that_are_gone_go_together() {
    let s = scene().await;
    let [here, there] = [HERE, ChannelId::new(8)].map(|channel| place(GUILD, channel, ADA));
    for (place, question) in [(&here, 10), (&here, 20), (&there, 30), (&there, 40)] {
        s.ask(place, question, "saffron").await;
    }
    let gone = [(HERE, 10), (HERE, 20), (there.channel, 30)];
    s.memory
        .gone(&gone.map(|(channel, id)| (channel, MessageId::new(id))));
    s.memory.reconcile_all().await;
    let told = s.told("purged");
    let entries: Vec<_> = told.iter().map(|one| &one["entries"]).collect();
    assert_eq!(entries, [4, 2]);
    let left = (s.rows(&here).await.len(), s.rows(&there).await.len());
    assert_eq!(left, (0, 2));
}

/// Without its question, nobody could tell what an answer is about.
#[tokio::test]
async fn an_answer_goes_with_its_question_but_not_the_other_way_round() {
    for (deleted, left) in [(10, 0), (11, 1), (12, 1), (99, 2)] {
        let s = scene().await;
        let question = row(HERE, MessageId::new(10));
        let answer = StoredMessage {
            role: StoredRole::Assistant,
            message: Some(MessageId::new(11)),
            parts: vec![MessageId::new(12)],
            ..question.clone()
        };
        let mut rows = vec![question.clone(), answer];
        s.memory.reconcile(DiscordChange::Deleted {
            guild: Some(GUILD),
            channel: HERE,
            ids: vec![MessageId::new(deleted)],
        });
        s.memory.leave_out_doubtful(&mut rows);
        assert_eq!(rows.len(), left, "{deleted}");
        assert!(rows.first().is_none_or(|row| *row == question));
    }
}

/// A page covers one channel, from one message to another.
#[tokio::test]
async fn what_a_page_lacks_is_what_it_would_show() {
    let s = scene().await;
    let there = ChannelId::new(8);
    let mut rows: Vec<StoredMessage> = [(HERE, 9), (HERE, 10), (HERE, 12), (HERE, 20), (HERE, 21)]
        .into_iter()
        .chain([(there, 15)])
        .map(|(channel, id)| row(channel, MessageId::new(id)))
        .collect();
    let page = Fetched {
        at: s.memory.now(),
        guild: Some(GUILD),
        channel: HERE,
        from: MessageId::new(10),
        to: MessageId::new(20),
        present: BTreeSet::from([MessageId::new(12)]),
        edited: Vec::new(),
    };
    s.memory.fetched(page, &mut rows);
    s.memory.leave_out_doubtful(&mut rows);
    let left: Vec<_> = rows.iter().map(|row| row.turn.0).collect();
    assert_eq!(left, [9, 12, 21, 15]);
    // Those on the page are confirmed, others are not.
    s.memory.doubts.missed(Missed::Everything, UnixMillis(6));
    let asking = s
        .memory
        .doubts
        .take_unconfirmed(rows.iter().flat_map(traces), 9);
    let keys: Vec<u64> = asking.hand_over().iter().map(|(_, id)| id.get()).collect();
    assert_eq!(keys, [9, 21, 15]);
}

/// Messages that the window shows are confirmed, with the words that they have there, unless
/// a later edit was heard of.
#[tokio::test]
async fn what_the_window_shows_is_not_asked_for() {
    let (s, channel) = (scene().await, channel().await);
    let [plain, not_held, edited, edited_twice, _] = channel.messages[..] else {
        panic!("five messages");
    };
    let mut rows = [plain, not_held, edited, edited_twice].map(|id| row(channel.id, id));
    let mut held = Vec::new();
    for id in [plain, edited, edited_twice] {
        let read = channel.rest.reader().message(channel.id, id, soon());
        held.push(read.await.unwrap());
    }
    let edit = |message: MessageId, at: i64| Edit {
        message,
        words: Some("ginger".to_owned()),
        at: Some(UnixMillis(at)),
    };
    let edit_of = |message: &Message| (message.id != plain).then(|| edit(message.id, 8));
    s.reconcile(DiscordChange::Edited {
        guild: None,
        channel: channel.id,
        edit: edit(edited_twice, 9),
    })
    .await;
    s.memory.missed(Missed::Everything);
    let found = |channel, id| {
        let mut held = held.iter();
        held.find(|one| (one.channel, one.id) == (channel, id))
    };
    let mut confirming = Confirming::new(&channel.rest, &edit_of, soon());
    s.memory.confirmed(&mut rows, found, &mut confirming);
    let says = confirming.says;
    let key = |id| (channel.id, id);
    let at = Some(UnixMillis(8));
    assert_eq!(says, Words::from([(key(plain), None), (key(edited), at)]));
    assert_eq!(rows[2].content, "ginger");
    let traces = rows.iter().flat_map(traces);
    let asking = s.memory.doubts.take_unconfirmed(traces, 9);
    let left = [not_held, edited, edited_twice].map(key);
    assert_eq!(asking.hand_over(), left, "the stores lack the words of one");
}

/// `LOAD_PAST_CONVERSATIONS` counts rows, and may leave an answer alone. Its question decides
/// all the same whether it is shown.
#[tokio::test]
async fn an_answer_alone_is_shown_once_its_question_is_confirmed() {
    let load_past = 1;
    let s = scene_with(MemoryConfig {
        load_past,
        ..settings()
    })
    .await;
    let here = place(GUILD, HERE, ADA);
    s.pass(-1_000);
    s.ask(&here, 10, "saffron").await;
    s.pass(2_000);
    let shown = async || {
        let rows = s.rows(&here).await.into_iter();
        rows.map(|row| row.content).collect::<Vec<_>>()
    };
    assert_eq!(shown().await, ["so: saffron"]);
    s.memory.missed(Missed::Everything);
    assert_eq!(shown().await, [""; 0]);
    let due = s.memory.doubts.due().now_or_never().unwrap().hand_over();
    assert_eq!(due, [(HERE, MessageId::new(10))]);
    s.memory
        .doubts
        .settle(HERE, [MessageId::new(10)], s.memory.now());
    assert_eq!(shown().await, ["so: saffron"]);
}

/// The stores may not take the new words for as long as they are slow or fail.
#[tokio::test]
async fn a_question_has_its_new_words_before_the_stores_have_them() {
    let s = scene().await;
    let here = place(GUILD, HERE, ADA);
    s.ask(&here, 10, "saffron").await;
    s.memory.reconcile(DiscordChange::Edited {
        guild: Some(GUILD),
        channel: HERE,
        edit: Edit {
            message: MessageId::new(10),
            words: Some("ginger".to_owned()),
            at: Some(s.memory.now()),
        },
    });
    assert_eq!(s.rows(&here).await[0].content, "ginger");
    assert_eq!(s.memory.changes.edits_waiting(|_, _| true).len(), 1);
    s.memory.reconcile_all().await;
    assert_eq!(s.rows(&here).await[0].content, "ginger");
    assert!(s.memory.changes.edits_waiting(|_, _| true).is_empty());
}
