use super::*;

const HERE: ChannelId = ChannelId::new(7);
const ELSEWHERE: ChannelId = ChannelId::new(8);

fn deleted(channel: ChannelId, id: u64) -> Mend {
    Mend::Deleted {
        guild: None,
        channel,
        ids: vec![MessageId::new(id)],
    }
}

fn edited(id: u64, words: &str, at: Option<i64>) -> Mend {
    Mend::Edited {
        guild: None,
        channel: HERE,
        edit: Edit {
            message: MessageId::new(id),
            author: UserId::new(5),
            words: words.to_owned(),
            at: at.map(UnixMillis),
        },
    }
}

#[test]
fn deletions_of_one_channel_in_a_row_become_one() {
    let all = together(vec![deleted(HERE, 1), deleted(HERE, 2), deleted(HERE, 3)]);
    let ids = [1, 2, 3].map(MessageId::new).to_vec();
    let one = Mend::Deleted {
        guild: None,
        channel: HERE,
        ids,
    };
    assert_eq!(all, [one]);
}

#[test]
fn what_stands_between_deletions_keeps_them_apart() {
    let mends = vec![
        deleted(HERE, 1),
        deleted(ELSEWHERE, 2),
        deleted(HERE, 3),
        edited(4, "words", Some(1)),
        deleted(HERE, 5),
    ];
    assert_eq!(together(mends.clone()), mends);
}

#[test]
fn of_the_edits_of_a_message_the_last_one_by_a_person_is_done() {
    let mends = vec![
        edited(4, "first", Some(1)),
        edited(6, "another's", Some(1)),
        edited(4, "last", Some(2)),
        edited(4, "last, with a preview", None),
    ];
    assert_eq!(together(mends.clone()), mends[1..]);
}
