//! What the program tells its operators in the readable log.

use super::Place;
use super::process::{Process, connected};
use crate::support::model::Behaviour;

/// The only line with this in it.
#[track_caller]
fn line(log: &str, of: &str) -> String {
    let found: Vec<&str> = log.lines().filter(|line| line.contains(of)).collect();
    assert_eq!(found.len(), 1, "{of}: {log}");
    found[0].to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_one_line_without_a_word_of_it() {
    let place = Place::new(&[]).await;
    let process = Process::start(&place.stage, &[]);
    connected(&place).await;
    place.stage.model.script(Behaviour::text(&["xylophone"]));
    let asked = place.ask(place.thread, "what is a xylophone?");
    place.says(place.thread, "xylophone").await;
    process.says("a turn is over", 1).await;
    let log = process.log();
    let line = line(&log, "a turn is over");
    for part in [
        " INFO ".to_owned(),
        format!("guild={}", place.guild),
        format!("channel={}", place.thread),
        format!("user={}", place.ada),
        format!("trigger={asked}"),
        "case=\"thread\" outcome=\"answered\" agent=\"default\" model=\"fake\" ms=".to_owned(),
        "ms_to_model=".to_owned(),
    ] {
        assert!(line.contains(&part), "{part}: {line}");
    }
    assert!(!log.contains("xylophone"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_a_pseudonym_has_it_in_the_log_too() {
    let place = Place::new(&[("TELEMETRY_IDS", "keyed")]).await;
    let process = Process::start(&place.stage, &[]);
    connected(&place).await;
    place.ask(place.thread, "who am I?");
    process.says("a turn is over", 1).await;
    let line = line(&process.log(), "a turn is over");
    assert!(
        line.contains(&format!("channel={}", place.thread)),
        "{line}"
    );
    assert!(!line.contains(&place.ada.to_string()), "{line}");
}
