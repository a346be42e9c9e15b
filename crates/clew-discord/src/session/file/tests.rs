//! The session file and the guild file are read as they were written, or say why not.

use clew_context::model::{ApplicationId, GuildId, UserId};

use super::*;
use crate::session::Missed;

const NOW: UnixMillis = UnixMillis(1_800_000_000_000);

fn guild_state() -> GuildState {
    let guild_state = GuildState::default();
    guild_state.set_current_user(CurrentUser {
        user: UserId::new(1),
        name: "clew".to_owned(),
        application: ApplicationId::new(2),
    });
    guild_state.apply(
        "GUILD_CREATE",
        r#"{"id":"3","name":"G","owner_id":"4","roles":[{"id":"3","name":"@everyone",
        "permissions":"1024"}],"channels":[{"id":"5","type":0,"name":"general",
        "permission_overwrites":[{"id":"3","type":0,"allow":"0","deny":"1024"}]}],
        "members":[{"user":{"id":"1","username":"clew"},"roles":["6"]}]}"#,
    );
    guild_state
}

fn file() -> SessionFile {
    let shards = vec![ShardSession {
        shard: 0,
        shards: 1,
        id: "abc".to_owned(),
        resume_url: Some("ws://127.0.0.1:1".to_owned()),
        sequence: 42,
        unfinished_since: Some(NOW.0 - 1),
        outages: [(GuildId::new(4), NOW.0 - 2)].into(),
    }];
    let gaps = vec![Gap {
        at: NOW.0,
        missed: Missed::Guild(GuildId::new(3)),
    }];
    let us = guild_state().current_user();
    SessionFile::new(NOW, "token", shards, us, gaps)
}

fn save_all(path: &Path, guild_state: &GuildState, opted_out: &OptedOut) {
    for lasts in [Lasts::Process, Lasts::System] {
        save_guilds(path, "token", guild_state, opted_out, lasts).unwrap();
        save(path, &file(), lasts).unwrap();
    }
}

#[test]
fn what_is_written_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("var/session.json");
    let before = guild_state();
    save_all(&path, &before, &OptedOut::default());
    let mut read = load(&path, "token", NOW).unwrap();
    assert_eq!(read.session, file());
    let after = GuildState::default();
    read.restore(&after);
    let guild = before.snapshot(GuildId::new(3)).unwrap();
    assert_eq!(guild.channels.len(), 1);
    assert_eq!(after.snapshot(guild.id), Some(guild));
    assert_eq!(after.current_user().unwrap().user, UserId::new(1));
    let names: Vec<_> = fs::read_dir(path.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn what_is_forgotten_still_says_how_late_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.json");
    forget(&path, NOW).unwrap();
    assert!(matches!(load(&path, "token", NOW), Err(Absent::Missing)));
    save_all(&path, &guild_state(), &OptedOut::default());
    // The clock was set back meanwhile.
    for now in [NOW.0 - 90_000, NOW.0 + 1_000, NOW.0 - 90_000] {
        forget(&path, UnixMillis(now)).unwrap();
    }
    let Err(Absent::Over(Heard { alive, .. })) = load(&path, "token", NOW) else {
        panic!("it is not over");
    };
    assert_eq!(alive, Some(UnixMillis(NOW.0 + 1_000)));
    assert!(!path.with_file_name(GUILD_FILE).exists());
    save_all(&path, &guild_state(), &OptedOut::default());
    assert!(load(&path, "token", NOW).is_ok());
    fs::write(&path, "{").unwrap();
    forget(&path, NOW).unwrap();
    assert!(!path.exists());
}

/// While something is caught up, the sessions stay as they were noted.
#[test]
fn who_is_alive_and_notes_nothing_else_says_how_late_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.json");
    note_alive(&path, NOW, Lasts::Process).unwrap();
    assert!(!path.exists());
    save_all(&path, &guild_state(), &OptedOut::default());
    for now in [NOW.0 + 9_000, NOW.0 - 90_000] {
        note_alive(&path, UnixMillis(now), Lasts::Process).unwrap();
    }
    let read = load(&path, "token", NOW).unwrap().session;
    assert_eq!(read.heard().alive, Some(UnixMillis(NOW.0 + 9_000)));
    assert_eq!(read.heard().whole_until, file().heard().whole_until);
}

#[test]
fn what_was_begun_says_since_when() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.json");
    let later = UnixMillis(NOW.0 + 9_000);
    begin(&path, "token", NOW, Some(later)).unwrap();
    let mut left = load(&path, "token", later).unwrap();
    let heard = Heard {
        alive: Some(later),
        whole_until: Some(NOW),
    };
    assert_eq!(left.session.heard(), heard);
    let guild_state = GuildState::default();
    left.restore(&guild_state);
    assert_eq!(guild_state.current_user(), None);
    forget(&path, NOW).unwrap();
    let over = load(&path, "token", NOW).unwrap_err();
    let heard = Heard {
        whole_until: None,
        ..heard
    };
    assert_eq!(over.heard(), heard);
}

#[test]
fn without_the_servers_it_still_says_since_when() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.json");
    save_all(&path, &guild_state(), &OptedOut::default());
    fs::write(path.with_file_name(GUILD_FILE), "{").unwrap();
    let absent = load(&path, "token", NOW).unwrap_err();
    // Nobody takes over what is known of the outage either.
    assert_eq!(absent.heard().whole_until, Some(UnixMillis(NOW.0 - 2)));
    assert_eq!(file().heard().whole_until, Some(UnixMillis(NOW.0 - 1)));
}

/// It knows nothing of age restriction.
#[test]
fn with_servers_of_an_older_form_a_session_begins_anew_and_nothing_is_lost_by_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.json");
    save_all(&path, &guild_state(), &OptedOut::default());
    let guilds = path.with_file_name(GUILD_FILE);
    let text = fs::read_to_string(&guilds).unwrap();
    fs::write(&guilds, text.replacen("\"version\":3", "\"version\":2", 1)).unwrap();
    let absent = load(&path, "token", NOW).unwrap_err();
    assert!(matches!(absent, Absent::NoGuilds { .. }), "{absent}");
    assert!(absent.is_ordinary() && absent.heard().whole_until.is_some());
}

#[test]
fn only_the_owner_may_read_it_and_the_token_is_not_in_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.json");
    save_all(&path, &guild_state(), &OptedOut::default());
    for path in [path.clone(), path.with_file_name(GUILD_FILE)] {
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains("\"token\":\"token\""), "{text}");
    }
}

#[track_caller]
fn check(text: &str, token: &str, now: i64, expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.json");
    save_all(&path, &guild_state(), &OptedOut::default());
    fs::write(&path, text).unwrap();
    let found = load(&path, token, UnixMillis(now)).map(|_| ());
    let found = found.map_or_else(|absent| absent.to_string(), |()| "usable".to_owned());
    assert!(found.contains(expected), "{found}");
}

#[test]
fn a_file_that_is_of_no_use_says_why() {
    let good = serde_json::to_string(&file()).unwrap();
    check(&good, "token", NOW.0, "usable");
    check(&good, "token", NOW.0 + 299_000, "usable");
    check(&good, "token", NOW.0 + 301_000, "301 s old");
    check(&good, "token", NOW.0 - 301_000, "s old");
    check(&good, "another", NOW.0, "another token");
    check(&good[..good.len() / 2], "token", NOW.0, "damaged");
    check("", "token", NOW.0, "damaged");
    check(
        &good.replacen("\"version\":2", "\"version\":1", 1),
        "token",
        NOW.0,
        "damaged",
    );
    let missing = load(Path::new("/nowhere/session.json"), "token", NOW);
    assert!(matches!(missing, Err(Absent::Missing)));
}

#[test]
fn titles_of_people_who_opted_out_are_not_written() {
    let guild_state = guild_state();
    for (thread, owner) in [(8, 20), (9, 21)] {
        let thread = format!(
            r#"{{"id":"{thread}","guild_id":"3","type":11,"parent_id":"5","owner_id":"{owner}",
            "name":"title of {owner}"}}"#
        );
        guild_state.apply("THREAD_CREATE", &thread);
    }
    let opted_out = [UserId::new(20)].into_iter().collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.json");
    save_all(&path, &guild_state, &opted_out);
    let text = fs::read_to_string(path.with_file_name(GUILD_FILE)).unwrap();
    assert!(
        !text.contains("title of 20") && text.contains("title of 21"),
        "{text}"
    );
}
