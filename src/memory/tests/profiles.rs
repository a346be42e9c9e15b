//! Facts: what is learnt, told, makes room and goes with its words.

use clew_context::model::Profiles;
use clew_discord::session::Missed;

use super::*;

fn fact(subject: Subject, id: u64, by: UserId, at: i64) -> Fact {
    Fact {
        id: FactId(id),
        subject,
        text: format!("fact {id}"),
        origin: Origin::Everywhere,
        by,
        at: UnixMillis(at),
        link: Some((HERE, MessageId::new(id))),
        pinned: false,
        seen: 1,
        last_used: UnixMillis(at),
    }
}

/// The facts that a prompt shows.
async fn told(s: &Scene, here: &Place, readable: Readable) -> Profiles {
    let ids = Ids::default();
    let facts = s.memory.profiles(&ids, here, readable, ("words", "")).await;
    facts.profiles
}

/// Ada edits message 10 at that time; none for a preview.
async fn edited(s: &Scene, at: Option<i64>) {
    let edit = Edit {
        message: MessageId::new(10),
        words: Some("ginger".to_owned()),
        at: at.map(UnixMillis),
    };
    let (guild, channel) = (Some(GUILD), HERE);
    s.reconcile(DiscordChange::Edited {
        guild,
        channel,
        edit,
    })
    .await;
}

/// An edit takes back what was learnt before it.
#[tokio::test]
async fn what_was_learnt_from_other_words_goes_with_them() {
    let subject = Subject::User(ADA);
    for (at, left) in [(Some(4), 1), (Some(5), 1), (Some(6), 0), (None, 1)] {
        let s = scene().await;
        let learnt = [fact(subject, 10, ADA, 5)];
        s.memory.stores.lasting.put_facts(&learnt).await.unwrap();
        edited(&s, at).await;
        let facts = s.memory.facts_of(subject).await.unwrap();
        assert_eq!(facts.len(), left, "{at:?}");
    }
}

/// Also while a store takes its time to forget it.
#[tokio::test]
async fn a_fact_of_words_that_were_edited_away_is_not_told() {
    let s = scene().await;
    let (ids, here) = (Ids::default(), place(GUILD, HERE, ADA));
    let subject = Subject::User(ADA);
    let learnt = [fact(subject, 10, ADA, 5), fact(subject, 11, ADA, 5)];
    s.memory.stores.lasting.put_facts(&learnt).await.unwrap();
    for (message, at) in [(10, 6), (11, 5)] {
        let edit = Edit {
            message: MessageId::new(message),
            words: None,
            at: Some(UnixMillis(at)),
        };
        let noted = &s.memory.changes.noted;
        noted.edited(Some(GUILD), HERE, std::slice::from_ref(&edit));
    }
    let readable = s.memory.read_facts(&ids, &here).await;
    let profiles = told(&s, &here, readable).await;
    assert_eq!(profiles.user, ["fact 11"]);
}

/// Facts by users who opted out and facts whose message may be deleted are left out.
#[tokio::test]
async fn facts_of_a_server_are_those_that_may_be_told() {
    let s = scene().await;
    let subject = Subject::Server(GUILD);
    let facts = [
        fact(subject, 10, ADA, 5),
        fact(subject, 11, BORIS, 5),
        fact(subject, 12, ADA, 5),
    ];
    s.memory.stores.lasting.put_facts(&facts).await.unwrap();
    s.opt_outs.set([BORIS].into_iter().collect());
    s.memory.reconcile(deleted(12));
    let (ids, here) = (Ids::default(), place(GUILD, HERE, ADA));
    let readable = s.memory.read_facts(&ids, &here).await;
    let profiles = told(&s, &here, readable).await;
    assert_eq!(profiles.server, ["fact 10"]);
    // After a gap their messages are asked for, and nothing is told meanwhile.
    s.memory.missed(Missed::Everything);
    let profiles = told(&s, &here, readable).await;
    assert_eq!(profiles.server, [""; 0]);
    let due = s.memory.doubts.due().now_or_never().unwrap().hand_over();
    assert_eq!(due, [10, 12].map(|id| (HERE, MessageId::new(id))));
}

/// A fact without a message is never in doubt; one whose channel may not be read is kept, and
/// told again once its message is shown.
#[tokio::test]
async fn facts_from_before_a_gap_are_told_once_they_are_confirmed() {
    let s = scene().await;
    let (ids, here) = (Ids::default(), place(GUILD, HERE, ADA));
    let closed = ChannelId::new(8);
    let subject = Subject::User(ADA);
    let facts = [
        Fact {
            link: None,
            ..fact(subject, 11, ADA, 5)
        },
        Fact {
            link: Some((closed, MessageId::new(12))),
            ..fact(subject, 12, ADA, 5)
        },
    ];
    s.memory.stores.lasting.put_facts(&facts).await.unwrap();
    let told = async || {
        let readable = s.memory.read_facts(&ids, &here).await;
        let profiles = told(&s, &here, readable).await;
        profiles.user
    };
    assert_eq!(told().await, ["fact 11", "fact 12"]);
    s.pass(1_000);
    s.memory.missed(Missed::Everything);
    assert_eq!(told().await, ["fact 11"]);
    s.memory.doubts.refused(closed, s.memory.now());
    assert_eq!(told().await, ["fact 11"]);
    assert!(s.memory.doubts.due().now_or_never().is_none());
    s.memory.permissions_changed(|_| true);
    assert_eq!(told().await, ["fact 11"]);
    let due = s.memory.doubts.due().now_or_never().unwrap().hand_over();
    assert_eq!(due, [(closed, MessageId::new(12))]);
    let seen = [MessageId::new(12)];
    s.memory.doubts.settle(closed, seen, s.memory.now());
    assert_eq!(told().await, ["fact 11", "fact 12"]);
}

/// Facts that could not be read, or whose user has opted out since, are not asked for
/// again.
#[tokio::test]
async fn facts_that_may_not_be_read_are_not_told() {
    let s = scene().await;
    let (ids, here) = (Ids::default(), place(GUILD, HERE, ADA));
    let subject = Subject::User(ADA);
    let remembered = s.memory.remember(subject, "figs", Origin::Everywhere, ADA);
    remembered.await.unwrap().unwrap();
    let readable = s.memory.read_facts(&ids, &here).await;
    let profiles = told(&s, &here, readable).await;
    assert_eq!(profiles.user, ["figs"]);
    s.opt_outs.set([ADA].into_iter().collect());
    let profiles = told(&s, &here, readable).await;
    assert_eq!(profiles.user, [""; 0]);

    let s = scene().await;
    s.memory.stores.lasting.close().await.unwrap();
    let readable = s.memory.read_facts(&ids, &here).await;
    assert_eq!(s.told("store_failed").len(), 1);
    let lasting = &s.memory.stores.lasting;
    let now = s.memory.circuit(lasting).seen();
    s.memory.found(lasting, now, circuit::Sides::default());
    let profiles = told(&s, &here, readable).await;
    assert!(profiles.user.is_empty() && profiles.server.is_empty());
    assert_eq!(s.told("store_failed").len(), 1);
}

/// It is removed from the disk as well, at once.
#[tokio::test]
async fn what_makes_room_for_a_fact_is_gone() {
    let s = scene().await;
    let subject = Subject::User(ADA);
    for text in ["figs", "plums", "pears"] {
        let remembered = s.memory.remember(subject, text, Origin::Everywhere, ADA);
        remembered.await.unwrap().unwrap();
        s.pass(1);
    }
    let stored = s
        .memory
        .stores
        .lasting
        .facts(subject, usize::MAX)
        .await
        .unwrap();
    let texts: BTreeSet<&str> = stored.iter().map(|fact| &*fact.text).collect();
    assert_eq!(texts, ["pears", "plums"].into());
}

/// A learnt fact that makes room goes with the next save, or with an edit of its words.
#[tokio::test]
async fn what_made_room_goes_from_the_disk_with_its_words() {
    let s = scene().await;
    let subject = Subject::User(ADA);
    let stored = [fact(subject, 10, ADA, 5), fact(subject, 11, ADA, 6)];
    let lasting = &s.memory.stores.lasting;
    lasting.put_facts(&stored).await.unwrap();
    let learnt = vec![fact(subject, 12, ADA, 7)];
    s.memory.learnt_while(learnt, || true).await.unwrap();
    let on_disk = async || {
        let facts = lasting.facts(subject, usize::MAX).await.unwrap();
        let ids: BTreeSet<u64> = facts.iter().map(|fact| fact.id.0).collect();
        ids
    };
    assert_eq!(on_disk().await, [10, 11].into());
    edited(&s, Some(8)).await;
    assert_eq!(on_disk().await, [11].into());
    s.memory.flush().await;
    assert_eq!(on_disk().await, [11, 12].into());
}

#[tokio::test]
async fn a_subject_is_full_of_what_people_asked_for() {
    let s = scene().await;
    let subject = Subject::User(ADA);
    let facts = |pinned: [bool; 2]| {
        [(10, pinned[0]), (11, pinned[1])].map(|(id, pinned)| Fact {
            pinned,
            ..fact(subject, id, ADA, 5)
        })
    };
    let is_full = |facts: &[Fact]| s.memory.is_full(subject, facts);
    assert!(is_full(&facts([true, true])));
    assert!(!is_full(&facts([true, false])));
    assert!(!is_full(&facts([true, true])[..1]));
}
