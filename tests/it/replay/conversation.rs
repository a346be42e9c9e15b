//! `--lone conversation`: which messages of a channel belong to a question, and why.

use super::at;
use super::run::{CHANNEL, export, ids, lines, replay, row};

#[test]
fn a_replay_says_why_messages_belong() {
    let folder = tempfile::tempdir().unwrap();
    let rows = [
        row(1, 1, "my winch only turns left, does anybody know why?"),
        row(2, 3, "User 4: did the rye bread rise this time?"),
        row(3, 2, "User 1: is the phase of the winch swapped?"),
        row(4, 4, "User 3: hardly, the dough stayed flat"),
        row(5, 1, "User 2: I looked, the phases are right"),
        row(6, 1, "<@900> where do I find the phases in the plan?"),
    ];
    let files = [export(folder.path(), CHANNEL, &rows)];
    let flags = "--lone conversation";
    for flags in [flags.to_owned(), format!("{flags} --warm")] {
        let found = lines(&files, &flags);
        assert_eq!(ids(&found[0], "included"), [at(1), at(3), at(5)], "{flags}");
        assert_eq!(found[0]["ties"][at(3).to_string()], "named", "{flags}");
        let other = &found[0]["omitted"][0];
        assert_eq!(other["reason"], "other_conversation", "{flags}");
        let (text, _) = replay(&files, &flags).unwrap();
        assert!(text.contains(&format!("{} (named)", at(3))), "{text}");
        let left_out = format!("{} (other_conversation)", at(2));
        assert!(text.contains(&left_out), "{text}");
    }
    let (text, _) = replay(&files, "").unwrap();
    assert!(!text.contains("conversation"), "{text}");
}
