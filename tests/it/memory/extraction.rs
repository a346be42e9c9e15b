//! Extractions on their own: changes while the model works take effect, and extractions run one at a time.

use std::sync::Arc;
use std::time::Duration;

use clew::llm;
use clew::memory::{
    DiscordChange, Edit, Exchange, ExtractionInput, Fetched, Memory, Place, Stores,
};
use clew::model::Vision;
use clew::telemetry::{Ids, Telemetry};
use clew_context::model::{
    ChannelId, GuildId, MessageId, OptOuts, TurnId, UnixMillis, UserId, fixed_clock,
};
use clew_store::Store;
use clew_store::model::{Change, Fact, Origin, Scope, ScopeKind, SettingsChange, Subject};

use super::place::settings;
use crate::support::START;
use crate::support::bot::prompt;
use crate::support::model::{Behaviour, FakeModel, Gate};

const GUILD: GuildId = GuildId::new(1);
const ADA: UserId = UserId::new(10);
const FACT: &str = r#"{"facts":[{"text":"Grows tomatoes on the roof."}]}"#;

struct Scene {
    model: FakeModel,
    servers: llm::ModelServers,
    memory: Memory,
    store: Arc<Store>,
}

async fn scene() -> Scene {
    let model = FakeModel::start().await;
    let model_settings = llm::ModelSettings {
        base_url: model.url(),
        api_key: None,
        model: "fake".to_owned(),
        timeout: Duration::from_secs(20),
        max_output_tokens: 500,
        context_tokens: None,
        max_answer_bytes: 1 << 20,
        temperature: None,
        vision: Vision::Off,
    };
    let servers = llm::ModelServers::new(model_settings, Vec::new(), 0);
    let (telemetry, _) = Telemetry::to_memory("mem.ctx", fixed_clock(START));
    let store = Arc::new(Store::in_memory().await.unwrap());
    let stores = Stores {
        lasting: Arc::clone(&store),
        conversations: Arc::clone(&store),
        transcripts: None,
        outputs: None,
    };
    let mut settings = settings();
    settings.memory.in_memory_only = true;
    settings.memory.learn = true;
    let opt_outs = Arc::new(OptOuts::default());
    let clock = fixed_clock(START);
    let memory = Memory::open(stores, settings, opt_outs, clock, telemetry).await;
    Scene {
        model,
        servers: servers.unwrap(),
        memory: memory.unwrap(),
        store,
    }
}

fn extraction(guild: Option<GuildId>) -> ExtractionInput {
    let channel = ChannelId::new(2);
    ExtractionInput {
        ids: Ids::default(),
        place: Place {
            scope: Scope::of(ScopeKind::Member, guild, channel, false, ADA),
            agent: "clew".parse().unwrap(),
            guild,
            channel,
            asker: ADA,
            rolling_window: Duration::from_hours(24),
        },
        asker: "Ada".to_owned(),
        words: "I grow tomatoes on the roof".to_owned(),
        others: Vec::new(),
        message: Some(MessageId::new(3)),
        // Later than all events of these tests, so that only those during the extraction have an effect.
        asked: UnixMillis(i64::MAX),
        worded: UnixMillis(i64::MAX),
    }
}

impl Scene {
    fn gated(&self) -> Gate {
        let (extraction, gate) = Behaviour::gated(&[FACT]);
        self.model.script(extraction);
        gate
    }

    async fn learn(&self) -> Vec<Fact> {
        self.memory
            .extract_facts(&self.servers, extraction(Some(GUILD)))
            .await
    }

    /// What is learnt if this happens while the model works.
    async fn learn_during(&self, event: impl Future<Output = ()>) -> Vec<Fact> {
        let gate = self.gated();
        let asked = self.model.requests().len() + 1;
        let meanwhile = async {
            self.model.wait_requests(asked).await;
            event.await;
            gate.open();
        };
        tokio::join!(self.learn(), meanwhile).0
    }

    async fn known(&self) -> Vec<Fact> {
        self.memory.facts_of(Subject::User(ADA)).await.unwrap()
    }
}

/// Erasing also covers what is still being learnt.
#[tokio::test]
async fn changes_during_an_extraction_count() {
    let scene = scene().await;
    let memory = &scene.memory;
    let erase = async { drop(memory.erase(ADA).await.unwrap()) };
    assert_eq!(scene.learn_during(erase).await, []);
    let off = SettingsChange {
        learning: Change::Set(false),
        ..SettingsChange::default()
    };
    let switch_off = async { drop(memory.change_settings(GUILD, &off).await.unwrap()) };
    assert_eq!(scene.learn_during(switch_off).await, []);
    let on = SettingsChange {
        learning: Change::Set(true),
        ..SettingsChange::default()
    };
    memory.change_settings(GUILD, &on).await.unwrap();
    let opt_out = async { drop(memory.opt_out(ADA).await.unwrap()) };
    assert_eq!(scene.learn_during(opt_out).await, []);
    assert_eq!(scene.known().await, []);
    memory.opt_in(ADA).await.unwrap();
    let new = scene.learn_during(async {}).await;
    assert_eq!(new.len(), 1);
    assert_eq!(scene.known().await, new);
}

/// What is known already is shown to the model as well: it must stand before a retry, too.
#[tokio::test]
async fn a_retry_shows_no_fact_whose_message_was_deleted_meanwhile() {
    let scene = scene().await;
    scene.learn_during(async {}).await;
    let (busy, gate) = Behaviour::status(500, "busy").held();
    scene.model.script(busy);
    let later = ExtractionInput {
        message: Some(MessageId::new(4)),
        ..extraction(Some(GUILD))
    };
    let asked = scene.model.requests().len() + 1;
    let meanwhile = async {
        scene.model.wait_requests(asked).await;
        scene.memory.reconcile(DiscordChange::Deleted {
            guild: Some(GUILD),
            channel: ChannelId::new(2),
            ids: vec![MessageId::new(3)],
        });
        gate.open();
    };
    let learning = scene.memory.extract_facts(&scene.servers, later);
    assert_eq!(tokio::join!(learning, meanwhile).0, []);
    assert_eq!(scene.model.requests().len(), asked, "no retry");
}

/// When a trigger is edited, the first attempt's rows are replaced, and are not part of the next attempt's history.
#[tokio::test]
async fn a_turns_first_attempt_is_not_in_its_own_history() {
    let scene = scene().await;
    let (ids, place) = (Ids::default(), extraction(Some(GUILD)).place);
    let exchange = Exchange {
        turn: TurnId(7),
        trigger: Some(MessageId::new(7)),
        asker_name: "Ada".to_owned(),
        words: "hello".to_owned(),
        target: None,
        asked: START,
        answered: START,
        answer: "hi".to_owned(),
        messages: vec![MessageId::new(8)],
        tools: Vec::new(),
        sources: Vec::new(),
        inherited: Vec::new(),
        receipt: None,
    };
    scene.memory.record(&ids, &place, &exchange, None).await;
    assert_eq!(
        scene
            .memory
            .earlier(&ids, &place, TurnId(7), "")
            .await
            .history,
        []
    );
    let next = scene
        .memory
        .earlier(&ids, &place, TurnId(9), "")
        .await
        .history;
    assert_eq!(next.len(), 2);
}

/// The author has withdrawn the earlier words.
#[tokio::test]
async fn an_edit_takes_back_what_was_learnt() {
    let scene = scene().await;
    let edited = |at| DiscordChange::Edited {
        guild: None,
        channel: ChannelId::new(2),
        edit: Edit {
            message: MessageId::new(3),
            words: Some("I grow nothing".to_owned()),
            at,
        },
    };
    let new = scene.learn_during(async {}).await;
    scene.memory.flush().await;
    for at in [None, Some(UnixMillis(START.0 - 1))] {
        scene.memory.reconcile(edited(at));
        scene.memory.reconcile_all().await;
        assert_eq!(
            scene.known().await,
            new,
            "an edit that only adds a preview, or repeats the text"
        );
    }
    scene
        .memory
        .reconcile(edited(Some(UnixMillis(START.0 + 1))));
    scene.memory.reconcile_all().await;
    assert_eq!(scene.known().await, []);
    assert_eq!(
        scene
            .store
            .facts(Subject::User(ADA), usize::MAX)
            .await
            .unwrap(),
        []
    );
}

/// What was said before says it still, also to an extraction that waits.
#[tokio::test]
async fn what_is_forgotten_during_an_extraction_is_not_learnt_again() {
    let scene = scene().await;
    let new = scene.learn_during(async {}).await;
    let gate = scene.gated();
    let asked = scene.model.requests().len() + 1;
    let meanwhile = async {
        scene.model.wait_requests(asked).await;
        let forgotten = scene.memory.forget(Subject::User(ADA), new[0].id).await;
        assert_eq!(forgotten.unwrap().as_ref(), new.first());
        gate.open();
    };
    let (one, waiting, ()) = tokio::join!(scene.learn(), scene.learn(), meanwhile);
    assert_eq!((one, waiting), (Vec::new(), Vec::new()));
    assert_eq!(scene.known().await, []);
    assert_eq!(
        scene.model.requests().len(),
        asked,
        "what waited is dropped"
    );
    assert_eq!(scene.learn_during(async {}).await.len(), 1, "said anew");
}

/// Until a flush, a learnt fact is in memory only.
#[tokio::test]
async fn a_flush_saves_what_was_learnt() {
    let scene = scene().await;
    let new = scene.learn_during(async {}).await;
    let subject = Subject::User(ADA);
    assert_eq!(scene.store.facts(subject, usize::MAX).await.unwrap(), []);
    scene.memory.flush().await;
    assert_eq!(scene.store.facts(subject, usize::MAX).await.unwrap(), new);
}

/// An extraction is not shown facts that may not be used in its place.
#[tokio::test]
async fn an_extraction_is_shown_only_facts_that_may_be_used_there() {
    let scene = scene().await;
    let remember = |text, origin| scene.memory.remember(Subject::User(ADA), text, origin, ADA);
    for (text, origin) in [
        ("in private", Origin::Direct),
        ("over there", Origin::Guild(GuildId::new(2))),
        ("right here", Origin::Guild(GUILD)),
        ("all over", Origin::Everywhere),
    ] {
        remember(text, origin).await.unwrap().unwrap();
    }
    scene.learn().await;
    let data = prompt(&scene.model.requests()[0]);
    assert!(
        data.contains(r#""known":["right here","all over"]"#),
        "{data}"
    );
}

#[tokio::test]
async fn lessons_run_one_at_a_time_and_few_wait() {
    let scene = scene().await;
    let gate = scene.gated();
    let extractions = futures_util::future::join_all((0..20).map(|_| scene.learn()));
    let open = async {
        scene.model.wait_requests(1).await;
        assert_eq!(scene.model.requests().len(), 1);
        gate.open();
    };
    let (learnt, ()) = tokio::join!(extractions, open);
    assert_eq!(learnt.concat().len(), 1);
    assert_eq!(scene.model.requests().len(), 1 + 8, "the rest is dropped");
}

/// If a fetched page lacks a message, facts learnt from it are left out of that very turn.
#[tokio::test]
async fn facts_from_a_missing_message_are_left_out() {
    let scene = scene().await;
    scene.learn_during(async {}).await;
    let (ids, place) = (Ids::default(), extraction(Some(GUILD)).place);
    let readable = scene.memory.read_facts(&ids, &place).await;
    let said = || async {
        let told = scene
            .memory
            .profiles(&ids, &place, readable, ("", ""))
            .await;
        told.profiles.user.len()
    };
    let page = |after: i64, present: &[u64]| Fetched {
        at: UnixMillis(START.0 + after),
        guild: Some(GUILD),
        channel: ChannelId::new(2),
        from: MessageId::new(0),
        to: MessageId::new(9),
        present: present.iter().map(|id| MessageId::new(*id)).collect(),
        edited: Vec::new(),
    };
    scene.memory.fetched(page(0, &[3]), &mut []);
    assert_eq!(said().await, 1);
    scene.memory.fetched(page(1, &[4]), &mut []);
    assert_eq!(said().await, 0);
}
