//! Recall and precision by labels.

use std::path::{Path, PathBuf};

use clew::replay::Labelled;
use clew::tune::text;
use clew_context::model::{MessageId, Scene};

use super::{harbour, tuned};
use crate::replay::at;

fn write(folder: &Path, text: &str) -> String {
    let path = folder.join("labels.json");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn label(trigger: MessageId, belongs: &[MessageId]) -> String {
    serde_json::json!({"trigger": trigger, "belongs": belongs}).to_string()
}

/// The twelfth message in the channel is a reply at the end of a chain of three, and the one of the thread asks
/// there.
fn two_labels() -> [String; 2] {
    let in_channel = at(60 * 11 + 1);
    let before = |back: i64| at(60 * (11 - back) + 1);
    let in_thread = at(60 * 23 + 2);
    [
        // The chain has three; one of these is not in it.
        label(
            in_channel,
            &[before(1), before(2), before(3), before(5), in_channel],
        ),
        label(in_thread, &[at(60 * 22 + 2), at(60 * 21 + 2)]),
    ]
}

#[test]
fn labels_give_recall_and_precision_by_scene() {
    let folder = tempfile::tempdir().unwrap();
    let files = harbour(folder.path());
    let [one, two] = two_labels();
    for file in [format!("{one}\n{two}\n"), format!("[{one},\n {two}]")] {
        let labels = write(folder.path(), &file);
        let flags = format!("--sweep MEM_MAX_MSGS=1,2,12 --labels {labels}");
        let tuned = tuned(&files, &flags).unwrap();
        assert_eq!((tuned.swept.found, tuned.swept.triggers), (2, None));
        let of = |point: usize, scene| {
            let figures = &tuned.swept.figures[point].scenes[&scene];
            (figures.labels.unwrap(), figures.messages)
        };
        let labelled = |belonging, found| Labelled { belonging, found };
        assert_eq!(of(0, Scene::ReplyChain), (labelled(4, 1), 1));
        assert_eq!(of(1, Scene::ReplyChain), (labelled(4, 2), 2));
        assert_eq!(of(2, Scene::ReplyChain), (labelled(4, 3), 3));
        assert_eq!(of(2, Scene::Thread), (labelled(2, 2), 12));
        let told = text(&tuned);
        assert!(told.contains(" found right\n"), "{told}");
        assert!(told.contains("   75%  100%\n"), "{told}");
        assert!(
            told.contains("of the messages\nshown, how many belong"),
            "{told}"
        );
    }
}

#[test]
fn most_of_what_belongs_decides_not_most_messages() {
    let folder = tempfile::tempdir().unwrap();
    let files = harbour(folder.path());
    let [_, in_thread] = two_labels();
    let labels = write(folder.path(), &in_thread);
    let flags = format!("--sweep MEM_MAX_MSGS=1,2,12,40 --labels {labels} --tokens 100000");
    let tuned = tuned(&files, &flags).unwrap();
    let chosen = &tuned.swept.figures[tuned.choice.suggested.unwrap()].all;
    let most = tuned.swept.figures.iter().map(|one| one.all.messages).max();
    assert_eq!(chosen.labels.unwrap().found, 2);
    assert!(Some(chosen.messages) < most, "{chosen:?}");
}

#[test]
fn a_message_that_is_not_recorded_counts_as_not_found_and_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let files = harbour(folder.path());
    let labels = write(
        folder.path(),
        &label(at(60 * 23 + 2), &[at(60 * 22 + 2), at(7)]),
    );
    let tuned = tuned(&files, &format!("--sweep MEM_MAX_MSGS=5 --labels {labels}")).unwrap();
    assert_eq!(tuned.swept.unknown_labels, 1);
    let told = text(&tuned).replace('\n', " ");
    let counted = "1 of the messages that the labels name is in none of the files";
    assert!(told.contains(counted), "{told}");
}

#[track_caller]
fn check_refused(files: &[PathBuf], folder: &Path, labels: &str, expected: &str) {
    let path = write(folder, labels);
    let error = tuned(files, &format!("--labels {path}")).unwrap_err();
    let error = format!("{error:#}");
    assert_eq!(error.replace(&path, "L"), expected);
}

#[test]
fn labels_that_cannot_be_used_are_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let files = harbour(folder.path());
    let form = "L is no file of labels: it takes objects such as \
                {\"trigger\":\"123\",\"belongs\":[\"121\",\"122\"]}, one a line or in a list";
    let [one, _] = two_labels();
    let check =
        |labels: &str, expected: &str| check_refused(&files, folder.path(), labels, expected);
    check("", "L holds no labels");
    check("[]", "L holds no labels");
    check(
        &format!("{one}\n{{\"trigger\":\"5\"}}\n"),
        &format!("{form}: missing field `belongs` at line 2 column 15"),
    );
    check(
        "[{\"trigger\":\"5\",\"belongs\":[]},\n7]",
        &format!("{form}: invalid type: integer `7`, expected struct Label at line 2 column 1"),
    );
    check(
        &format!("{one}\n{one}"),
        &format!("L names the trigger {} twice: join its ids", at(661)),
    );
    check(
        &label(at(3), &[]),
        &format!(
            "the labels name {}, which is no message of a person in the recording: add the export that \
             holds it, or take the label out",
            at(3)
        ),
    );
}
