//! Conversations are removed from memory once no prompt would include them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use clew::memory::{Exchange, Memory, Place, Stores};
use clew::telemetry::{Ids, Telemetry};
use clew_context::model::{
    ChannelId, Clock, GuildId, MessageId, OptOuts, TurnId, UnixMillis, UserId,
};
use clew_store::Store;
use clew_store::model::{AgentName, Scope, ScopeKind};

use super::place::{HOUR, START_MS, settings};

const HOURS: Duration = Duration::from_hours(1);

fn place(channel: u64, window: Duration) -> Place {
    let (guild, channel, asker) = (GuildId::new(1), ChannelId::new(channel), UserId::new(3));
    Place {
        scope: Scope::of(ScopeKind::Member, Some(guild), channel, false, asker),
        agent: AgentName::default_agent(),
        guild: Some(guild),
        channel,
        asker,
        rolling_window: window,
    }
}

fn exchange(turn: u64, asked: i64) -> Exchange {
    Exchange {
        turn: TurnId(turn),
        trigger: Some(MessageId::new(turn)),
        asker_name: "Ada".to_owned(),
        words: "saffron".to_owned(),
        target: None,
        asked: UnixMillis(asked),
        answered: UnixMillis(asked),
        answer: "so: saffron".to_owned(),
        messages: vec![MessageId::new(turn + 1)],
        tools: Vec::new(),
        sources: Vec::new(),
        inherited: Vec::new(),
        receipt: None,
    }
}

#[tokio::test]
async fn what_no_window_reaches_is_removed_from_memory() {
    let now = Arc::new(AtomicI64::new(START_MS));
    let clock: Clock = {
        let now = Arc::clone(&now);
        Arc::new(move || UnixMillis(now.load(Ordering::SeqCst)))
    };
    let (telemetry, _) = Telemetry::to_memory("mem.ctx", Arc::clone(&clock));
    let conversations = Arc::new(Store::in_memory().await.unwrap());
    let stores = Stores {
        lasting: Arc::new(Store::in_memory().await.unwrap()),
        conversations: Arc::clone(&conversations),
        transcripts: None,
        outputs: None,
    };
    let mut settings = settings();
    settings.memory.rolling_window = HOURS;
    settings.memory.in_memory_only = true;
    settings.memory.save_interval = HOURS;
    settings.memory.guild_retention = HOURS;
    let opt_outs = Arc::new(OptOuts::default());
    let memory = Memory::open(stores, settings, opt_outs, clock, telemetry).await;
    let memory = memory.unwrap();
    let ids = Ids::default();
    let ask = async |channel: u64, window: Duration, turn: u64| {
        let place = place(channel, window);
        memory.earlier(&ids, &place, TurnId(turn), "").await;
        let asked = now.load(Ordering::SeqCst);
        memory
            .record(&ids, &place, &exchange(turn, asked), None)
            .await;
    };
    let rows = async |channel: u64| {
        let scope = place(channel, HOURS).scope;
        let stats = conversations.conversation(scope, UnixMillis(0)).await;
        stats.unwrap().message_count
    };
    ask(1, HOURS, 10).await;
    now.fetch_add(HOUR / 2, Ordering::SeqCst);
    ask(2, HOURS, 20).await;
    now.fetch_add(HOUR * 3 / 4, Ordering::SeqCst);
    memory.sweep().await;
    assert_eq!((rows(1).await, rows(2).await), (0, 2));
    // An agent with a longer window keeps what its prompts may need.
    ask(3, 4 * HOURS, 30).await;
    now.fetch_add(HOUR * 3, Ordering::SeqCst);
    memory.sweep().await;
    assert_eq!((rows(2).await, rows(3).await), (2, 2));
    now.fetch_add(HOUR * 2, Ordering::SeqCst);
    memory.sweep().await;
    assert_eq!((rows(2).await, rows(3).await), (0, 0));
}
