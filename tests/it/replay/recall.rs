//! `--recall`: which earlier exchanges with the bot would be recalled.

use super::at;
use super::run::{CHANNEL, export, ids, lines, replay_with, row};

#[test]
fn a_replay_tells_what_would_be_recalled() {
    let folder = tempfile::tempdir().unwrap();
    let answer = |second, reply| {
        let mut answer = row(second, 900, "Noted.");
        answer.reply = Some(reply);
        answer
    };
    let (day, later) = (86_400, 9_000);
    let rows = [
        row(1, 1, "<@900> the spare pump is on shelf 14"),
        answer(2, 1),
        row(3, 2, "<@900> the pump of the yard is on shelf 3"),
        answer(4, 3),
        row(later, 1, "<@900> how much grease does the winch take?"),
        answer(later + 1, later),
        row(2 * day, 1, "<@900> on which shelf is the pump?"),
    ];
    let files = [export(folder.path(), CHANNEL, &rows)];
    for flags in ["--recall", "--recall --warm"] {
        let found = lines(&files, flags);
        let asked = found.last().unwrap();
        assert_eq!(ids(asked, "recalled"), [at(1)], "{flags}");
        assert!(found[..3].iter().all(|one| one.get("recalled").is_none()));
        let one = format!("{flags} --trigger {}", at(2 * day));
        assert_eq!(ids(&lines(&files, &one)[0], "recalled"), [at(1)], "{flags}");
    }
    // A day's window still shows them.
    let window = [("CONTEXT_ROLLING_WINDOW_S", "259200")];
    let (text, _) = replay_with(&files, "--recall", &window).unwrap();
    assert!(!text.contains("recalled"), "{text}");
    let (text, _) = replay_with(&files, "--recall", &[]).unwrap();
    assert!(text.contains(&format!("recalled: {}", at(1))), "{text}");
    assert!(lines(&files, "")[3].get("recalled").is_none());
}
