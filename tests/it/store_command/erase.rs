//! `clew store erase`: says what would be removed, removes it with consent, and
//! leaves not a byte.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use clew::app::system_clock;
use clew_context::model::{ChannelId, UserId};
use clew_store::outputs::{Disk, OutputSettings, ToolOutputs};
use clew_store::{Erasure, Purged, Record};

use super::world::{
    ADA, CHANNEL, GRACE, GUILD, Home, MARKER, at, everything, everything_with, logged, plain,
};
#[cfg(feature = "postgres")]
use crate::support::postgres::{Postgres, dump_all};

/// Each back end with everything that it can hold.
async fn each() -> Vec<(Home, Option<String>)> {
    let few = everything_with(20);
    #[cfg_attr(
        not(feature = "postgres"),
        expect(unused_mut, reason = "two back ends are all")
    )]
    let mut homes = vec![
        (Home::new("sqlite:var/clew.db"), few.clone(), None),
        (Home::new("files:context"), plain(), None),
    ];
    #[cfg(feature = "postgres")]
    {
        let database = Postgres::shared().fresh_database().await;
        homes.push((Home::new(&database.url), few, Some(database.admin_url)));
    }
    let mut filled = Vec::new();
    for (home, records, admin) in homes {
        home.fill(&records).await;
        home.log(&logged(ADA)).await;
        home.log(&logged(GRACE)).await;
        home.leave_outputs().await;
        filled.push((home, admin));
    }
    filled
}

#[tokio::test]
async fn nothing_goes_without_consent() {
    for (home, _) in each().await {
        let files = || ["logs", "var/tool_outputs"].map(|name| bytes_below(&home.path(name)));
        let (before, before_files) = (home.lines().await, files());
        let (code, out, errors) = home.run(&["erase", "--user", "7"]);
        assert_eq!((code, errors.as_str()), (3, ""), "{out}");
        assert!(
            out.starts_with("Would erase of user 7:\nmessages "),
            "{out}"
        );
        assert!(
            out.contains("\ndirect message logs            2\n"),
            "{out}"
        );
        assert!(
            out.contains("\nresults of tools               2\n"),
            "{out}"
        );
        let end = "The opt-out stays: nothing of this user is kept from now on.\nNothing was \
                   changed. Stop the bot and say --yes to erase it.\n";
        assert!(out.ends_with(end), "{out}");
        assert_eq!(home.lines().await, before);
        assert_eq!(files(), before_files);
    }
}

#[tokio::test]
async fn no_byte_of_a_user_stays() {
    for (home, admin) in each().await {
        let (_, would, _) = home.run(&["erase", "--user", "7"]);
        let (code, out, errors) = home.run(&["erase", "--user", "7", "--yes"]);
        assert_eq!((code, errors.as_str()), (0, ""), "{out}");
        let counts = |text: &str| {
            text.lines()
                .skip(1)
                .take_while(|line| !line.starts_with("The"))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(counts(&out), counts(&would), "what was said went");
        assert!(out.starts_with("Erased of user 7:\n"), "{out}");
        assert!(out.ends_with("The opt-out stays: nothing of this user is kept from now on.\n"));
        let all = bytes_below(&home.path("."));
        assert!(!holds(&all, MARKER), "{out}");
        assert!(holds(&all, "Grace"), "others stay");
        if let Some(admin) = admin {
            let rows = rows_of(&admin);
            assert!(!rows.contains(MARKER) && rows.contains("Grace"), "{out}");
        }
        let opted_out = Record::OptOut(ADA, at(60)).to_line();
        assert!(home.lines().await.contains(&opted_out));
        let (code, out, _) = home.run(&["erase", "--user", "7"]);
        assert_eq!(code, 0);
        assert!(out.starts_with("There is nothing of user 7.\n"), "{out}");
    }
}

/// An erasure takes exactly what it announced.
#[tokio::test]
async fn what_would_go_goes() {
    let targets = [
        Erasure::User(ADA),
        Erasure::User(UserId::new(404)),
        Erasure::Guild(GUILD),
        Erasure::Channel(CHANNEL),
        Erasure::Channel(ChannelId::new(70)),
        Erasure::Before(at(12)),
        Erasure::Before(at(1_000_000)),
    ];
    for target in targets {
        for (home, _) in each().await {
            let store = home.open_own().await;
            let would = target.would_go(&store).await.unwrap();
            let went = store.purge(&target.purge()).await.unwrap();
            assert_eq!(would, went, "{target:?} {store:?}");
            assert_eq!(target.would_go(&store).await.unwrap(), Purged::default());
            store.close().await.unwrap();
        }
    }
}

#[tokio::test]
async fn servers_channels_and_dates_are_erased_too() {
    let check = async |arguments: &[&str], goes: &str, stays: &str, outputs: usize| {
        let home = Home::new("sqlite:var/clew.db");
        home.fill(&everything()).await;
        home.log(&logged(ADA)).await;
        home.leave_outputs().await;
        let mut arguments = [&["erase", "--yes"], arguments].concat();
        let (code, out, errors) = home.run(&arguments);
        assert_eq!((code, errors.as_str()), (0, ""), "{out}");
        let (_, left, _) = home.run(&["export"]);
        assert!(!left.contains(goes), "{arguments:?} {out}");
        assert!(left.contains(stays), "{arguments:?} {out}");
        let of_tools = left.matches(r#""kind":"tool_output""#).count();
        assert_eq!(of_tools, outputs, "{arguments:?} {out}");
        arguments.retain(|argument| *argument != "--yes");
        assert_eq!(home.run(&arguments).0, 0, "nothing is left to ask for");
    };
    check(&["--guild", "11"], "member/11/", "dm/7", 0).await;
    check(&["--channel", "22"], "member/11/22", "thread/11/23", 0).await;
    let of_channel = &["--channel", "70"];
    check(of_channel, "direct_message_log", "member/11/22", 3).await;
    check(&["--before", "2100-01-01"], MARKER, r#""kind":"marker""#, 0).await;
}

/// A bot with these settings would not look at the folder, but an earlier one wrote there.
#[tokio::test]
async fn results_of_tools_are_erased_whatever_the_bot_keeps_now() {
    let home = Home::new("sqlite:var/clew.db");
    home.fill(&plain()).await;
    home.leave_outputs().await;
    fs::write(
        home.path(".env"),
        "IN_MEMORY_CONTEXT_ONLY=true\nTOOL_MAX_ROUNDS=0\n",
    )
    .unwrap();
    let (code, out, errors) = home.run(&["erase", "--user", "7", "--yes"]);
    assert_eq!((code, errors.as_str()), (0, ""), "{out}");
    let left = bytes_below(&home.path("var/tool_outputs"));
    assert!(!holds(&left, MARKER) && holds(&left, "Grace"), "{out}");
}

/// What cannot all be erased is not erased in part, and not called erased.
#[tokio::test]
async fn nothing_is_erased_while_a_bot_has_any_of_it() {
    let home = Home::new("sqlite:var/clew.db");
    home.fill(&everything()).await;
    home.leave_outputs().await;
    let before = home.lines().await;
    let folder = home.path("var/tool_outputs");
    let settings = OutputSettings::new(&folder);
    let bot = ToolOutputs::open(settings, Arc::new(Disk::default()), system_clock());
    let bot = bot.await.unwrap();
    let (code, out, errors) = home.run(&["erase", "--user", "7", "--yes"]);
    assert_eq!((code, out.as_str()), (2, ""), "{errors}");
    assert!(errors.contains("TOOL_OUTPUT_DIR"), "{errors}");
    assert_eq!(home.lines().await, before);
    bot.close().await.unwrap();
}

/// The bytes of all files below a folder.
fn bytes_below(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            bytes.extend(bytes_below(&path));
        } else {
            bytes.extend(fs::read(&path).unwrap());
        }
    }
    bytes
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

/// All rows of a database, as text.
#[cfg(feature = "postgres")]
fn rows_of(admin_url: &str) -> String {
    dump_all(admin_url)
}

#[cfg(not(feature = "postgres"))]
fn rows_of(_: &str) -> String {
    String::new()
}
