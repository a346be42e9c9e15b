//! Tests of what belongs to a conversation, on texts of our own.

use proptest::prelude::*;

use super::choose::{Candidate, Rule, choose, wanted};
use super::group::group;
use super::weights::LEARNT;
use super::*;
use crate::model::ProxyId;

const NAMES: [&str; 6] = ["ann", "bob", "cay", "dan", "eve", "fay"];
const ANN: usize = 0;
const BOB: usize = 1;
const CAY: usize = 2;
const DAN: usize = 3;
const EVE: usize = 4;
const MINUTE: i64 = 60_000;

fn person(who: usize) -> Speaker<'static> {
    Speaker::User(UserId::new(who as u64))
}

fn said(who: usize, minute: i64, text: &str) -> Utterance<'_> {
    Utterance {
        speaker: person(who),
        name: NAMES[who],
        at: UnixMillis(minute * MINUTE),
        text,
        mentions: Vec::new(),
        reply: Reply::Unknown,
    }
}

/// Messages a minute apart.
fn talk<'a>(lines: &[(usize, &'a str)]) -> Vec<Utterance<'a>> {
    let lines = (0..).zip(lines);
    lines
        .map(|(minute, (who, text))| said(*who, minute, text))
        .collect()
}

/// What is chosen for the last one, by index and tie, each message taking its text.
fn chosen(utterances: &[Utterance<'_>], room: usize) -> Vec<(usize, Tie)> {
    let verdicts = judge(utterances);
    let candidates: Vec<Candidate<'_>> = verdicts
        .iter()
        .zip(utterances)
        .map(|(verdict, said)| Candidate {
            verdict: *verdict,
            chars: said.text.chars().count(),
            speaker: said.speaker,
        })
        .collect();
    let asker = utterances.last().map_or(person(ANN), |said| said.speaker);
    let mut chosen: Vec<(usize, Tie)> = choose(&candidates, asker, room, Rule::default())
        .into_iter()
        .map(|index| (index, verdicts[index].tie))
        .collect();
    chosen.sort_unstable();
    chosen
}

fn indexes(chosen: &[(usize, Tie)]) -> Vec<usize> {
    chosen.iter().map(|(index, _)| *index).collect()
}

/// Two conversations in one channel.
const MIXED: [(usize, &str); 9] = [
    (
        ANN,
        "my printer only prints blank pages, does anybody know why?",
    ),
    (CAY, "dan: did the rye bread rise this time?"),
    (BOB, "ann: is the toner cartridge sealed?"),
    (DAN, "cay: hardly, the dough stayed flat"),
    (ANN, "bob: I took the strip off, still blank"),
    (CAY, "dan: then the sourdough is too young, feed it twice"),
    (BOB, "ann: try the cleaning page in its menu"),
    (DAN, "cay: ok, tomorrow"),
    (ANN, "bob: where in the menu?"),
];

#[test]
fn of_two_conversations_the_askers_is_chosen() {
    assert_eq!(indexes(&chosen(&talk(&MIXED), 2_000)), [0, 2, 4, 6]);
    let mut other = talk(&MIXED);
    other.push(said(CAY, 9, "dan: and with more water"));
    assert_eq!(indexes(&chosen(&other, 2_000)), [1, 3, 5, 7]);
}

#[test]
fn mentions_name_like_names_at_the_beginning() {
    let mut mentioned: Vec<Utterance<'_>> = talk(&MIXED);
    for said in &mut mentioned {
        if let Some((name, text)) = said.text.split_once(": ") {
            let named = NAMES.iter().position(|one| *one == name).unwrap();
            said.mentions = vec![UserId::new(named as u64)];
            said.text = text;
        }
    }
    assert_eq!(indexes(&chosen(&mentioned, 2_000)), [0, 2, 4, 6]);
    let at: Vec<String> = MIXED.iter().map(|(_, text)| format!("@{text}")).collect();
    let at: Vec<(usize, &str)> = MIXED
        .iter()
        .zip(&at)
        .map(|((who, _), text)| (*who, &**text))
        .collect();
    let with_at = chosen(&talk(&at), 2_000);
    assert_eq!(indexes(&with_at), [0, 2, 4, 6]);
    assert!(with_at.contains(&(6, Tie::Named)), "{with_at:?}");
}

#[test]
fn a_name_is_whose_it_was_first() {
    let mut stolen = talk(&MIXED);
    // Eve takes Bob's name, and says something in between.
    stolen.insert(
        8,
        Utterance {
            name: "bob",
            ..said(EVE, 8, "buy my coins")
        },
    );
    let indexes = indexes(&chosen(&stolen, 2_000));
    assert!(indexes.contains(&6) && !indexes.contains(&8), "{indexes:?}");
}

/// Whom the last line names, by the names given.
fn named(names: &[&str], lines: &[(usize, &str)]) -> Vec<usize> {
    let mut utterances = talk(lines);
    for (utterance, (who, _)) in utterances.iter_mut().zip(lines) {
        utterance.name = names[*who];
    }
    let authors: Vec<usize> = lines.iter().map(|(who, _)| *who).collect();
    let named = names::named(&utterances, &authors, names.len(), None);
    named.last().cloned().unwrap_or_default()
}

#[test]
fn names_are_found_anywhere_in_a_text() {
    let names = ["ann", "Danbhfive", "Daniel Day", "cay"];
    let heard = [(0, "hi"), (1, "hi"), (2, "hi")];
    for (text, expected) in [
        ("ok danbhfive", vec![1]),
        ("cay: ann, or (Danb)?", vec![0, 1]),
        ("danbhfive's and @Dani", vec![1, 2]),
        ("ann: as danbhfive said", vec![0, 1]),
        // Of two names the beginning, or too short a one.
        ("ask dan", vec![]),
        ("an answer", vec![]),
    ] {
        let lines = [heard.as_slice(), &[(3, text)]].concat();
        assert_eq!(named(&names, &lines), expected, "{text}");
    }
}

#[test]
fn a_word_that_others_use_is_no_name() {
    let names = ["Mark", "bob", "cay"];
    let asked = [(0, "hi"), (1, "hi"), (2, "thanks mark")];
    assert_eq!(named(&names, &asked), [0]);
    let before = [(1, "a question mark there")];
    assert!(named(&names, &[before.as_slice(), &asked].concat()).is_empty());
    // At the beginning it still is one.
    let addressed = [(0, "hi"), (2, "mark: hi")];
    assert_eq!(
        named(&names, &[before.as_slice(), &addressed].concat()),
        [0]
    );
}

#[test]
fn whoever_was_silent_for_long_is_not_named_within_a_text() {
    let mut lines = vec![(0, "hi")];
    lines.extend([(1, "and"); 41]);
    let ask = |lines: &[(usize, &'static str)]| {
        named(
            &["annabel", "bob", "cay"],
            &[lines, &[(2, "ok annabel")]].concat(),
        )
    };
    assert!(ask(&lines).is_empty());
    assert_eq!(ask(&lines[..40]), [0]);
}

/// Which of the lines from the `from`th on name Mark, who may have written nothing.
fn naming_mark(from: usize, lines: &[(usize, &str)]) -> Vec<usize> {
    let mut utterances = talk(lines);
    for said in utterances
        .iter_mut()
        .filter(|said| said.speaker == person(ANN))
    {
        said.name = "Mark";
    }
    let naming = naming(&utterances, (person(ANN), "Mark"), from);
    let naming = naming.into_iter().enumerate().skip(from);
    naming.filter_map(|(at, is)| is.then_some(at)).collect()
}

#[test]
fn whoever_is_absent_is_named_however_long() {
    let mut lines = vec![(BOB, "hi"), (ANN, "bye")];
    lines.extend([(BOB, "and"); 50]);
    lines.extend([(CAY, "ask mark"), (CAY, "a marker"), (BOB, "mark: so")]);
    assert_eq!(naming_mark(2, &lines), [52, 54]);
    assert_eq!(naming_mark(1, &lines[2..]), [50, 52]);
    // A word that others used before is no name within a text.
    lines[0] = (BOB, "what a mark");
    assert_eq!(naming_mark(2, &lines), [54]);
}

#[test]
fn rare_words_of_any_script_tie() {
    #[track_caller]
    fn check(about: [&str; 2], asked: &str) {
        let lines = [
            (ANN, about[0]),
            (BOB, "what a rain today"),
            (CAY, "lunch?"),
            (DAN, "in ten minutes"),
            (BOB, "about time"),
            (CAY, "see you at the gate"),
            (ANN, about[1]),
            (DAN, "the lift is out of order"),
            (BOB, "take the stairs then"),
            (EVE, asked),
        ];
        let verdicts = judge(&talk(&lines));
        assert_eq!(verdicts[6].tie, Tie::SameTopic, "{asked}");
        assert_eq!(verdicts[0].tie, Tie::SameTopic, "{asked}");
        assert_eq!(verdicts[3].tie, Tie::Answers, "{asked}");
    }
    check(
        [
            "the kafka broker lost its quorum",
            "quorum is back, kafka broker restarted",
        ],
        "why did the kafka broker lose its quorum?",
    );
    check(
        [
            "брокер потерял кворум",
            "кворум есть, брокер опять потерял его",
        ],
        "почему брокер потерял кворум?",
    );
    check(
        ["印刷機のトナーが空です", "印刷機のトナーを交換しました"],
        "印刷機のトナーはどこで買えますか？",
    );
}

#[test]
fn rare_words_tie_the_newest_to_what_was_said_over_a_hundred_messages_ago() {
    let others: Vec<String> = (0..120)
        .map(|number| format!("w{number} x{number}"))
        .collect();
    let mut lines = vec![(ANN, "the gauge of the barometer sticks")];
    lines.extend(others.iter().map(|text| (BOB, text.as_str())));
    lines.push((ANN, "does the barometer stick again?"));
    let window = Window::new(&talk(&lines), 0);
    assert!(window.is_on_topic(0), "the barometer");
    assert!(!window.is_on_topic(1), "nothing in common");
}

#[test]
fn a_net_adds_what_features_say_together() {
    let mut net = LEARNT.net.clone();
    net.inputs.fill(0.0);
    net.bias.fill(0.0);
    net.outputs.fill(0.0);
    // Both features are needed, each 1: 2 * max(0, 1 + 1 - 1).
    net.inputs[3 * weights::UNITS] = 1.0;
    net.inputs[4 * weights::UNITS] = 1.0;
    (net.bias[0], net.outputs[0]) = (-1.0, 2.0);
    let score = |features: [f32; 2]| net.score(3, &features);
    assert!((score([1.0, 1.0]) - 2.0).abs() < 1e-6);
    assert!(score([1.0, 0.0]).abs() < 1e-6);
}

#[test]
fn no_beginning_is_quite_sure_where_something_was_said_just_before() {
    let mut weights = LEARNT.clone();
    weights.begin[0] = 100.0;
    let picks = |minutes: &[i64]| {
        let lines = minutes.iter().zip([ANN, BOB, CAY]);
        let lines: Vec<_> = lines.map(|(at, who)| said(who, *at, "hello")).collect();
        sample(&lines, &weights).unwrap().picks
    };
    assert_eq!(picks(&[0, 10]), [(0, 0.02)]);
    assert_eq!(picks(&[0, 5, 10]), [(1, 0.01)]);
    assert_eq!(picks(&[0, 11]), []);
}

#[test]
fn who_begins_with_a_name_addresses_somebody() {
    let texts = ["zoe: hi", "@zoe hi", "<@1> hi", "well, no", "hi zoe:", ""];
    let addresses = texts.map(names::addresses);
    assert_eq!(addresses, [true, true, true, true, false, false]);
}

#[test]
fn replies_are_certain() {
    let mut lines = talk(&MIXED);
    lines[7].reply = Reply::To(0);
    lines[8] = Utterance {
        reply: Reply::To(7),
        ..said(EVE, 8, "really?")
    };
    let window = Window::new(&lines, 0);
    let answers = Answers::new(&window, &LEARNT);
    assert!((answers.share(8, 7) - 1.0).abs() < 1e-6);
    assert!((answers.share(8, 0) - 1.0).abs() < 1e-6);
    let verdicts = judge(&lines);
    assert_eq!((verdicts[7].tie, verdicts[0].tie), (Tie::Reply, Tie::Reply));
    // What is replied to is not here, so it is none of these.
    lines[8].reply = Reply::Elsewhere;
    let answers = Answers::new(&Window::new(&lines, 0), &LEARNT);
    assert!((0..8).all(|other| answers.share(8, other) == 0.0));
}

#[test]
fn below_the_floor_nothing_is_chosen() {
    let verdict = |belongs| Verdict {
        belongs,
        tie: Tie::Answers,
    };
    let chosen = |surest| {
        let candidates = [surest, 0.2, 0.1].map(|belongs| Candidate {
            verdict: verdict(belongs),
            chars: 10,
            speaker: person(BOB),
        });
        choose(&candidates, person(ANN), 2_000, Rule::default()).len()
    };
    let floor = Rule::default().floor;
    assert_eq!([chosen(floor), chosen(floor - 0.01)], [3, 0]);
}

#[test]
fn where_all_talk_together_the_nearest_are_taken() {
    let chosen = |of_last: f32| {
        let candidate = |index: usize| Candidate {
            verdict: Verdict {
                belongs: if index < 10 { 0.95 } else { of_last },
                tie: Tie::Answers,
            },
            chars: 100,
            speaker: person(index % 3),
        };
        let candidates: Vec<Candidate<'_>> = (0..20).map(candidate).collect();
        let mut chosen = choose(&candidates, person(EVE), 1_000, Rule::default());
        chosen.sort_unstable();
        chosen
    };
    assert_eq!(chosen(0.9), (10..20).collect::<Vec<usize>>());
    assert_eq!(chosen(0.3), (0..10).collect::<Vec<usize>>());
}

#[test]
fn nobody_talks_with_a_feed() {
    let links: Vec<String> = (0..5)
        .map(|build| format!("build {build} failed: https://ci.example/{build}"))
        .collect();
    let mut lines = MIXED[..8].to_vec();
    lines.extend(links.iter().map(|link| (EVE, &**link)));
    lines.push(MIXED[8]);
    let shares = |lines: &[Utterance<'_>]| {
        let answers = Answers::new(&Window::new(lines, 0), &LEARNT);
        let others = (0..12).flat_map(|one| (8.max(one + 1)..14).map(move |other| (one, other)));
        let of_feed = others.filter(|(one, other)| *one >= 8 || *other < 13);
        of_feed
            .map(|(one, other)| answers.share(one, other))
            .sum::<f32>()
    };
    let mut talk = talk(&lines);
    assert!(shares(&talk) == 0.0);
    talk[12].reply = Reply::To(2);
    assert!(shares(&talk) >= 1.0, "a reply is certain");
    talk[12].reply = Reply::Unknown;
    talk[12].text = "is anybody looking at these builds?";
    assert!(shares(&talk) > 1.0, "one who writes without links is none");
}

#[test]
fn where_nothing_belongs_nothing_is_chosen() {
    let mut lines = talk(&MIXED[..8]);
    lines.push(said(
        EVE,
        3 * 24 * 60,
        "which holidays does Norway have in May?",
    ));
    assert_eq!(chosen(&lines, 2_000), []);
    assert_eq!(chosen(&lines[8..], 2_000), []);
    assert_eq!(chosen(&[], 2_000), []);
}

#[test]
fn a_flood_takes_at_most_half_of_the_room() {
    let everybody = "ann bob cay dan printer toner cartridge strip menu page bread ".repeat(3);
    let mut lines = talk(&MIXED[..7]);
    for minute in 7..150 {
        let mut flood = said(EVE, 8, &everybody);
        flood.at = UnixMillis(7 * MINUTE + minute);
        flood.mentions = (0..200).map(UserId::new).collect();
        lines.push(flood);
    }
    lines.push(said(ANN, 9, "bob: where in the menu?"));
    let chosen = chosen(&lines, 2_000);
    let theirs = chosen
        .iter()
        .filter(|(index, _)| lines[*index].speaker == person(EVE));
    let theirs: usize = theirs
        .map(|(index, _)| lines[*index].text.chars().count())
        .sum();
    assert!(theirs <= 1_000, "{theirs}");
    for index in [2, 4, 6] {
        assert!(indexes(&chosen).contains(&index), "{chosen:?}");
    }
}

/// Whoever writes through an app can choose any names.
#[test]
fn all_names_of_an_app_take_half_of_the_room_together() {
    let named = |name| Speaker::Proxied(ProxyId::new(1), name);
    let speakers = ["luna", "sol", "luna", "mars", "sol"].map(named);
    let candidate = |speaker| Candidate {
        verdict: Verdict {
            belongs: 0.9,
            tie: Tie::Named,
        },
        chars: 100,
        speaker,
    };
    let candidates = speakers.map(candidate);
    let chosen = |asker| choose(&candidates, asker, 500, Rule::default());
    assert_eq!(chosen(person(ANN)), [4, 3]);
    // What the asker says through the app is not counted as the others'.
    assert_eq!(chosen(named("luna")), [4, 3, 2, 0]);
    assert_eq!(wanted(&candidates, person(ANN), Rule::default()).len(), 5);
}

#[test]
fn only_the_newest_are_looked_at() {
    let mut lines: Vec<Utterance<'_>> = (0..300).map(|minute| said(BOB, minute, "hm")).collect();
    lines.push(Utterance {
        reply: Reply::To(20),
        ..said(ANN, 300, "so?")
    });
    let verdicts = judge(&lines);
    assert_eq!(verdicts.len(), 300);
    assert!(verdicts[..100].iter().all(|verdict| verdict.belongs == 0.0));
    lines[300].reply = Reply::To(250);
    assert_eq!(judge(&lines)[250].tie, Tie::Reply);
}

prop_compose! {
    fn utterance()(
        who in 0..NAMES.len(),
        gap in 0..3_000_000_i64,
        text in "\\PC{0,30}|[a-e]{1,2}( [a-e]{1,2}){0,6}|(ann|bob|@cay)[:, ].{0,9}",
        mentions in prop::collection::vec(0..9_u64, 0..3),
        reply in prop_oneof![
            4 => Just(Reply::Unknown),
            1 => (0..60_usize).prop_map(Reply::To),
            1 => Just(Reply::Elsewhere),
        ],
    ) -> (usize, i64, String, Vec<u64>, Reply) {
        (who, gap, text, mentions, reply)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_is_said_the_choice_is_bounded_and_the_same_again(
        lines in prop::collection::vec(utterance(), 1..50),
        room in 0..400_usize,
    ) {
        let mut at = 0;
        let utterances: Vec<Utterance<'_>> = lines
            .iter()
            .map(|(who, gap, text, mentions, reply)| {
                at += gap;
                Utterance {
                    at: UnixMillis(at),
                    mentions: mentions.iter().copied().map(UserId::new).collect(),
                    reply: *reply,
                    ..said(*who, 0, text)
                }
            })
            .collect();
        let verdicts = judge(&utterances);
        prop_assert_eq!(verdicts.len(), utterances.len() - 1);
        for verdict in &verdicts {
            prop_assert!((0.0..=1.0).contains(&verdict.belongs), "{:?}", verdicts);
        }
        let chosen = chosen(&utterances, room);
        let chars: usize = chosen
            .iter()
            .map(|(index, _)| utterances[*index].text.chars().count())
            .sum();
        prop_assert!(chars <= room);
        prop_assert!(chosen.windows(2).all(|two| two[0].0 < two[1].0));
        prop_assert_eq!(self::chosen(&utterances, room), chosen);
    }
}

#[test]
fn after_half_a_day_only_a_tie_that_lasts_counts() {
    let after = |minutes: i64, text: &'static str| {
        judge(&[
            said(ANN, 0, "my kettle does not boil"),
            said(BOB, minutes, text),
        ])[0]
    };
    let half_a_day = 12 * 60;
    for (minutes, is_too_long) in [(half_a_day, false), (half_a_day + 1, true)] {
        let (then, now) = (UnixMillis(0), UnixMillis(minutes * MINUTE));
        assert_eq!(is_too_long_ago(Tie::Answers, then, now), is_too_long);
    }
    for (minutes, may_belong) in [(1, true), (half_a_day + 1, false)] {
        let verdict = after(minutes, "is it plugged in?");
        assert_eq!(verdict.tie, Tie::Answers);
        assert_eq!(verdict.belongs > 0.0, may_belong, "{minutes}: {verdict:?}");
    }
    let named = after(2 * half_a_day, "ann: is it plugged in?");
    assert!(named.tie == Tie::Named && named.belongs > 0.0, "{named:?}");
}

#[test]
fn all_messages_are_grouped_into_their_conversations() {
    let lines = [
        (ANN, "does anybody know why grub hangs after the upgrade?"),
        (BOB, "my printer only prints blank pages, any ideas?"),
        (CAY, "ann: which version of grub is it?"),
        (DAN, "bob: did you clean the heads of the printer?"),
        (ANN, "cay: grub 2.06"),
        (BOB, "dan: twice, still blank pages"),
    ];
    let mut talk = talk(&lines);
    assert_eq!(group(&talk), [0, 1, 0, 1, 0, 1]);
    talk[5].reply = Reply::To(4);
    assert_eq!(group(&talk), [0, 1, 0, 1, 0, 0], "a reply is certain");
    talk[5].reply = Reply::Elsewhere;
    assert_eq!(group(&talk)[5], 5);
    assert!(group(&[]).is_empty());
}

#[test]
fn a_reply_to_long_ago_joins_its_conversation() {
    let mut lines = vec![(EVE, "where is the map of the harbour?")];
    lines.extend((0..450).map(|at| (at % 2, "zzz")));
    let mut talk = talk(&lines);
    let last = talk.len() - 1;
    talk[last].reply = Reply::To(0);
    let groups = group(&talk);
    assert_eq!((groups.len(), groups[last]), (lines.len(), 0));
    assert!(
        (0..)
            .zip(&groups)
            .all(|(at, first)| *first <= at && groups[*first] == *first)
    );
}
