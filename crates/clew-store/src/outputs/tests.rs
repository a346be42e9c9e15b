//! What is kept of results, how it is found again, and when it goes.

mod left;
mod meanwhile;
mod saving;
mod trouble;

use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::json;

use super::*;
use clew_context::model::{ChannelId, MessageId, fixed_clock};

const GUILD: GuildId = GuildId::new(1);
const CHANNEL: ChannelId = ChannelId::new(2);
const ADA: UserId = UserId::new(11);
const BOB: UserId = UserId::new(12);
const START: UnixMillis = UnixMillis(1_767_323_045_678);

/// Outputs in a folder on disk, with a clock of their own.
struct Kept {
    outputs: ToolOutputs,
    folder: tempfile::TempDir,
    now: Arc<AtomicI64>,
}

impl Kept {
    async fn new(change: impl FnOnce(&mut OutputSettings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let now = Arc::new(AtomicI64::new(START.0));
        let outputs = open(folder.path(), &now, change).await;
        Self {
            outputs,
            folder,
            now,
        }
    }

    /// Ends the process and begins the next one.
    async fn restart(self, change: impl FnOnce(&mut OutputSettings)) -> Self {
        let Self {
            outputs,
            folder,
            now,
        } = self;
        drop(outputs);
        let outputs = open(folder.path(), &now, change).await;
        Self {
            outputs,
            folder,
            now,
        }
    }

    fn wait(&self, span: Duration) {
        let millis = i64::try_from(span.as_millis()).unwrap();
        self.now.fetch_add(millis, Ordering::Relaxed);
    }

    fn now(&self) -> UnixMillis {
        UnixMillis(self.now.load(Ordering::Relaxed))
    }

    async fn save(&self, output: NewOutput) -> ContextPointer {
        self.outputs.save_context(output).await.unwrap()
    }

    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let name = |entry: std::fs::DirEntry| entry.file_name().into_string().unwrap();
        let names = entries.map(|entry| name(entry.unwrap()));
        names.filter(|name| !name.starts_with('.')).collect()
    }

    async fn names(&self) -> Vec<String> {
        let pointers = self.outputs.all_pointers().await.unwrap();
        pointers.into_iter().map(|one| one.tool_name).collect()
    }
}

async fn open(
    folder: &Path,
    now: &Arc<AtomicI64>,
    change: impl FnOnce(&mut OutputSettings),
) -> ToolOutputs {
    let mut settings = OutputSettings::new(folder);
    change(&mut settings);
    let now = Arc::clone(now);
    let clock: Clock = Arc::new(move || UnixMillis(now.load(Ordering::Relaxed)));
    ToolOutputs::open(settings, Arc::new(Disk::default()), clock)
        .await
        .unwrap()
}

fn output(tool: &str, args: &Value, result: Value) -> NewOutput {
    NewOutput {
        tool_name: tool.to_owned(),
        args: args.as_object().unwrap().clone(),
        result,
        task_id: None,
        query_id: None,
        scope: scope(ADA),
        guild: Some(GUILD),
        owner: ADA,
        sources: Vec::new(),
        asked: START,
        began: START,
    }
}

fn of(owner: UserId, tool: &str) -> NewOutput {
    NewOutput {
        owner,
        scope: scope(owner),
        ..output(tool, &json!({}), json!("x".repeat(100)))
    }
}

const fn scope(user: UserId) -> Scope {
    Scope::Member {
        guild: GUILD,
        channel: CHANNEL,
        user,
    }
}

fn message(id: u64, author: UserId) -> ContentSource {
    ContentSource {
        guild: Some(GUILD),
        channel: CHANNEL,
        message: Some(MessageId::new(id)),
        author: Some(author),
    }
}

fn made_from(tool: &str, sources: Vec<ContentSource>) -> NewOutput {
    NewOutput {
        sources,
        ..output(tool, &json!({}), json!("secret"))
    }
}

#[tokio::test]
async fn every_result_goes_to_disk_and_a_pointer_stays_in_memory() {
    let kept = Kept::new(|_| ()).await;
    let args = json!({"query": "auth error", "limit": 3});
    let query = ToolOutputs::hash_query("why does login fail?");
    let saved = NewOutput {
        task_id: Some(7),
        query_id: Some(query.clone()),
        sources: vec![message(5, BOB)],
        ..output("search_code", &args, json!({"hits": [1, 2]}))
    };
    let pointer = kept.save(saved).await;

    let text = std::fs::read(&pointer.filepath).unwrap();
    let file: Value = serde_json::from_slice(&text).unwrap();
    let expected = json!({
        "toolName": "search_code",
        "toolDescription": "search code limit: 3; query: auth error",
        "args": args,
        "timestamp": "2026-01-02T03:04:05.678Z",
        "asked": "2026-01-02T03:04:05.678Z",
        "began": "2026-01-02T03:04:05.678Z",
        "taskId": 7,
        "queryId": query,
        "scope": "member/1/2/11",
        "guild": "1",
        "owner": "11",
        "sources": [{"guild": "1", "channel": "2", "message": "5", "author": "12"}],
        "bytes": 14,
        "serial": 0,
        "result": {"hits": [1, 2]},
    });
    assert_eq!(file, expected);
    assert_eq!(pointer.filepath, kept.folder.path().join(&pointer.filename));
    assert_eq!(pointer.tool_name, "search_code");
    assert_eq!(pointer.tool_description, file["toolDescription"]);
    assert_eq!(pointer.args, *args.as_object().unwrap());
    assert_eq!((pointer.task_id, pointer.query_id), (Some(7), Some(query)));
    assert_eq!((pointer.scope, pointer.owner), (scope(ADA), ADA));
    assert_eq!(
        (pointer.guild, &*pointer.sources),
        (Some(GUILD), &[message(5, BOB)][..])
    );
    assert_eq!((pointer.bytes, pointer.time), (14, START));

    let small = kept.save(output("tiny", &json!({}), json!(1))).await;
    assert_eq!(kept.files().len(), 2, "small results go to disk, too");
    let file: Value = serde_json::from_slice(&std::fs::read(small.filepath).unwrap()).unwrap();
    assert_eq!((file.get("taskId"), file.get("queryId")), (None, None));
    assert_eq!(kept.outputs.len(), 2);
    assert!(kept.outputs.is_inline(PERSIST_THRESHOLD));
    assert!(!kept.outputs.is_inline(PERSIST_THRESHOLD + 1));
    assert_eq!(kept.outputs.context_dir(), kept.folder.path());
}

#[tokio::test]
async fn a_file_is_named_after_tool_arguments_time_and_count() {
    let kept = Kept::new(|_| ()).await;
    let one = kept.save(output(
        "grep",
        &json!({"a": 1, "b": [{"c": 2, "d": 3}]}),
        json!(1),
    ));
    let one = one.await.filename;
    let same = kept.save(output(
        "grep",
        &json!({"b": [{"d": 3, "c": 2}], "a": 1}),
        json!(1),
    ));
    let same = same.await.filename;
    let other = kept.save(output("grep", &json!({"a": 2}), json!(1)));
    let other = other.await.filename;
    let parts = |name: &str| -> Vec<String> {
        let stem = name.strip_suffix(".json").unwrap();
        stem.split('_').map(ToOwned::to_owned).collect()
    };
    let (one, same, other) = (parts(&one), parts(&same), parts(&other));
    assert_eq!(one.len(), 5);
    assert_eq!(one[0], "grep");
    assert_eq!(one[1], same[1], "the order of keys is of no account");
    assert_ne!(one[1], other[1]);
    assert_eq!(one[2], START.0.to_string());
    assert_eq!([&*one[3], &*same[3], &*other[3]], ["0", "1", "2"]);

    let odd = format!("../../etc/pass wd\0{}", "é".repeat(200));
    let pointer = kept.save(output(&odd, &json!({}), json!(1))).await;
    assert_eq!(pointer.filepath.parent(), Some(kept.folder.path()));
    let tool = pointer.filename.split("_44136fa").next().unwrap();
    assert_eq!(tool.len(), 64, "{tool}");
    let is_safe = |one: u8| one.is_ascii_alphanumeric() || b"_-".contains(&one);
    assert!(tool.bytes().all(is_safe), "{tool}");
    assert_eq!(pointer.tool_name, odd, "the real name is inside");
}

#[tokio::test]
async fn pointers_are_found_by_query_and_task_within_a_scope() {
    let kept = Kept::new(|_| ()).await;
    let query = ToolOutputs::hash_query("q");
    assert_eq!(json!(query), "8e35c2cd3bf6");
    assert_ne!(query, ToolOutputs::hash_query("r"));
    for (tool, owner, query_id, task_id) in [
        ("a", ADA, Some(query.clone()), Some(1)),
        ("b", ADA, None, Some(2)),
        ("c", BOB, Some(query.clone()), None),
    ] {
        let output = NewOutput {
            task_id,
            query_id,
            ..of(owner, tool)
        };
        kept.save(output).await;
    }
    let names = |pointers: Vec<ContextPointer>| -> Vec<String> {
        pointers.into_iter().map(|one| one.tool_name).collect()
    };
    let outputs = &kept.outputs;
    assert_eq!(
        names(outputs.all_pointers().await.unwrap()),
        ["a", "b", "c"]
    );
    let of_query = outputs.pointers_for_query(scope(ADA), &query).await;
    assert_eq!(names(of_query.unwrap()), ["a"]);
    let of_task = outputs.pointers_for_task(2).await;
    assert_eq!(names(of_task.unwrap()), ["b"]);
    let bobs = outputs.pointers_in(scope(BOB)).await.unwrap();
    let id = bobs[0].id.clone();
    assert_eq!(names(bobs), ["c"]);
    assert!(outputs.pointer(scope(BOB), &id).await.unwrap().is_some());
    assert!(outputs.pointer(scope(ADA), &id).await.unwrap().is_none());
}

#[tokio::test]
async fn loading_gives_what_can_be_read_and_names_the_rest() {
    let kept = Kept::new(|_| ()).await;
    let mut paths = Vec::new();
    for tool in ["whole", "gone", "torn", "last"] {
        let pointer = kept.save(output(tool, &json!({}), json!(tool))).await;
        paths.push(pointer.filepath);
    }
    std::fs::remove_file(&paths[1]).unwrap();
    std::fs::write(&paths[2], b"{\"toolName\": \"to").unwrap();
    let foreign = kept.folder.path().join("foreign.json");
    std::fs::copy(&paths[0], &foreign).unwrap();
    paths.push(foreign);
    paths.push(PathBuf::from("/etc/passwd"));

    let loaded = kept.outputs.load_contexts(&paths).await;
    let results: Vec<_> = loaded.contexts.iter().map(|one| &one.result).collect();
    assert_eq!(results, ["whole", "last"]);
    let failed: Vec<_> = loaded.failed.iter().map(|(path, _)| path).collect();
    assert_eq!(failed, [&paths[1], &paths[2], &paths[4], &paths[5]]);
    assert!(matches!(loaded.failed[0].1, LoadError::Gone));
    let torn = loaded.failed[1].1.to_string();
    assert!(torn.contains(paths[2].to_str().unwrap()), "{torn}");
}

#[tokio::test]
async fn relevance_is_the_number_of_shared_words_then_age() {
    let kept = Kept::new(|_| ()).await;
    let mut paths = Vec::new();
    for query in ["authentication error in login", "weather", "error", "error"] {
        let pointer = kept
            .save(output("search", &json!({"query": query}), json!(1)))
            .await;
        paths.push(pointer.filepath);
    }
    let pointers = kept.outputs.all_pointers().await.unwrap();
    let select = |query| ToolOutputs::select_relevant_contexts(query, &pointers);
    let best = select("Authentication ERROR?");
    assert_eq!(best, [&paths[0], &paths[3], &paths[2]].map(Clone::clone));
    assert_eq!(
        select("in an of"),
        paths,
        "words of two letters say nothing"
    );
    assert_eq!(
        select("nothing of this"),
        paths,
        "all where nothing matches"
    );
    assert_eq!(ToolOutputs::offers("error", &pointers, 2).len(), 2);
    assert!(ToolOutputs::offers("nothing of this", &pointers, 8).is_empty());
}

#[tokio::test]
async fn scripts_without_spaces_count_by_pairs() {
    let kept = Kept::new(|_| ()).await;
    for query in ["認証エラーの原因", "天気予報", "배포 오류", "ข้อผิดพลาด"]
    {
        kept.save(output("search", &json!({"q": query}), json!(1)))
            .await;
    }
    let pointers = kept.outputs.all_pointers().await.unwrap();
    let found = |query| -> Vec<&str> {
        let found = ToolOutputs::offers(query, &pointers, 8);
        found
            .iter()
            .map(|one| one.args["q"].as_str().unwrap())
            .collect()
    };
    assert_eq!(found("エラーが出ます"), ["認証エラーの原因"]);
    assert_eq!(found("明日の天気"), ["天気予報"]);
    assert_eq!(found("오류"), ["배포 오류"]);
    assert_eq!(found("ผิดพลาด"), ["ข้อผิดพลาด"]);
    assert!(found("x認y").is_empty(), "a single character is no pair");
}

#[tokio::test]
async fn the_newest_stay_when_there_are_too_many() {
    let kept = Kept::new(|settings| settings.limits.pointers = 2).await;
    for tool in ["a", "b", "c"] {
        kept.save(of(ADA, tool)).await;
    }
    assert_eq!(kept.names().await, ["b", "c"]);
    assert_eq!(kept.files().len(), 2);
}

#[tokio::test]
async fn the_newest_stay_when_they_take_too_much() {
    let kept = Kept::new(|settings| settings.limits.bytes = 1_000).await;
    for tool in ["a", "b", "c", "d"] {
        kept.save(of(ADA, tool)).await;
    }
    assert_eq!(kept.names().await, ["c", "d"]);
    let sizes = kept.files().into_iter();
    let sizes = sizes.map(|name| kept.folder.path().join(name).metadata().unwrap().len());
    assert!(sizes.sum::<u64>() <= 1_000);

    let huge = output("huge", &json!({}), json!("x".repeat(1_000)));
    let error = kept.outputs.save_context(huge).await.unwrap_err();
    assert!(matches!(error, SaveError::TooLarge { most: 1_000, .. }));
    assert_eq!(kept.names().await, ["c", "d"], "nobody had to go for it");
}

#[tokio::test]
async fn whoever_has_most_makes_room() {
    let kept = Kept::new(|settings| settings.limits.pointers = 4).await;
    kept.save(of(BOB, "bobs")).await;
    for tool in ["a", "b", "c", "d", "e"] {
        kept.save(of(ADA, tool)).await;
    }
    assert_eq!(kept.names().await, ["bobs", "c", "d", "e"]);
    let elsewhere = NewOutput {
        guild: Some(GuildId::new(9)),
        ..of(ADA, "elsewhere")
    };
    kept.save(elsewhere).await;
    assert_eq!(kept.names().await, ["bobs", "d", "e", "elsewhere"]);
}

#[tokio::test]
async fn age_and_idle_conversations_end_outputs() {
    let hour = Duration::from_hours(1);
    let kept = Kept::new(|settings| {
        settings.limits.age = 3 * hour;
        settings.limits.idle = 2 * hour;
    })
    .await;
    kept.save(of(ADA, "used")).await;
    kept.save(of(BOB, "idle")).await;
    kept.wait(hour + hour / 2);
    assert_eq!(kept.outputs.sweep().await.unwrap(), 0);
    kept.outputs.pointers_in(scope(ADA)).await.unwrap();
    kept.wait(hour);
    assert_eq!(kept.outputs.sweep().await.unwrap(), 1);
    assert_eq!(kept.names().await, ["used"]);
    kept.outputs.pointers_in(scope(ADA)).await.unwrap();
    kept.wait(hour);
    assert_eq!(kept.outputs.sweep().await.unwrap(), 1);
    assert!(kept.outputs.is_empty());
    assert!(kept.files().is_empty());

    kept.save(of(ADA, "again")).await;
    assert_eq!(kept.end_session(BOB).await, 0);
    assert_eq!(kept.end_session(ADA).await, 1);
    assert!(kept.files().is_empty());
}

#[tokio::test]
async fn purges_reach_owners_places_and_sources() {
    let kept = Kept::new(|_| ()).await;
    let elsewhere = ContentSource {
        guild: Some(GuildId::new(8)),
        channel: ChannelId::new(9),
        message: None,
        author: None,
    };
    kept.save(made_from("bobs message", vec![message(5, BOB)]))
        .await;
    kept.save(made_from("another message", vec![message(6, ADA)]))
        .await;
    kept.save(made_from("a channel elsewhere", vec![elsewhere]))
        .await;
    kept.save(of(BOB, "bobs own")).await;
    let purge = async |purge| {
        let purged = kept.purge(&purge).await;
        (purged, kept.names().await)
    };
    let ids = vec![MessageId::new(7)];
    let (purged, _) = purge(Purge::Messages {
        channel: CHANNEL,
        ids,
    })
    .await;
    assert_eq!(purged, 0);
    let ids = vec![MessageId::new(6)];
    let (_, left) = purge(Purge::Messages {
        channel: CHANNEL,
        ids,
    })
    .await;
    assert_eq!(left, ["bobs message", "a channel elsewhere", "bobs own"]);
    let (_, left) = purge(Purge::Channel(ChannelId::new(9))).await;
    assert_eq!(left, ["bobs message", "bobs own"]);
    let (_, left) = purge(Purge::Guild(GuildId::new(8))).await;
    assert_eq!(left.len(), 2);
    let (_, left) = purge(Purge::User(BOB)).await;
    assert!(left.is_empty());
    assert!(kept.files().is_empty());

    kept.save(of(ADA, "here")).await;
    let (_, left) = purge(Purge::Before(START)).await;
    assert_eq!(left, ["here"]);
    let (_, left) = purge(Purge::Member {
        guild: GUILD,
        user: ADA,
    })
    .await;
    assert!(left.is_empty());
}

#[tokio::test]
async fn what_is_purged_while_a_tool_runs_is_never_kept() {
    let kept = Kept::new(|_| ()).await;
    let began = kept.now();
    kept.wait(Duration::from_secs(5));
    kept.purge(&Purge::User(BOB)).await;
    kept.wait(Duration::from_secs(5));
    let late = NewOutput {
        began,
        ..made_from("late", vec![message(5, BOB)])
    };
    let error = kept.outputs.save_context(late.clone()).await.unwrap_err();
    assert!(matches!(error, SaveError::SourceRemoved), "{error}");
    assert!(kept.files().is_empty());
    let of_others = NewOutput {
        sources: vec![message(6, ADA)],
        ..late.clone()
    };
    kept.save(of_others).await;
    let later = NewOutput {
        began: kept.now(),
        ..late
    };
    kept.save(later).await;

    // One that took longer than purges are remembered may hold anything.
    kept.wait(2 * PURGES_KEPT);
    let slow = NewOutput {
        began,
        ..made_from("slow", Vec::new())
    };
    kept.outputs.sweep().await.unwrap();
    let error = kept.outputs.save_context(slow).await.unwrap_err();
    assert!(matches!(error, SaveError::SourceRemoved), "{error}");
}

#[tokio::test]
async fn clearing_removes_pointers_files_or_both() {
    let kept = Kept::new(|_| ()).await;
    std::fs::write(kept.folder.path().join("notes.json"), "mine").unwrap();
    let path = kept.save(of(ADA, "a")).await.filepath;
    kept.outputs.clear_pointers();
    assert!(kept.outputs.is_empty() && path.exists());
    let path = kept.save(of(ADA, "b")).await.filepath;
    kept.outputs.clear_context_dir().await.unwrap();
    assert_eq!(kept.outputs.len(), 1);
    let loaded = kept.outputs.load_contexts(&[path]).await;
    assert!(matches!(loaded.failed[0].1, LoadError::Gone));
    kept.save(of(ADA, "c")).await;
    kept.outputs.clear().await.unwrap();
    assert!(kept.outputs.is_empty());
    assert_eq!(kept.files(), ["notes.json"], "only outputs are removed");
}

#[tokio::test]
async fn a_new_process_starts_without_outputs() {
    let kept = Kept::new(|_| ()).await;
    kept.save(of(ADA, "a")).await;
    let torn = kept.folder.path().join(".x.clew-tmp");
    std::fs::write(&torn, "torn").unwrap();
    std::fs::write(kept.folder.path().join("notes.json"), "mine").unwrap();
    let kept = kept.restart(|_| ()).await;
    assert!(kept.outputs.all_pointers().await.unwrap().is_empty());
    assert_eq!(kept.files(), ["notes.json"]);
    assert!(!torn.exists());
    kept.save(of(ADA, "b")).await;
    kept.outputs.close().await.unwrap();
    assert_eq!(kept.files(), ["notes.json"]);
}

#[tokio::test]
async fn with_resume_outputs_are_found_again_lazily() {
    let resume = |settings: &mut OutputSettings| settings.resume = true;
    let kept = Kept::new(resume).await;
    let pointer = kept.save(made_from("a", vec![message(5, BOB)])).await;
    kept.wait(Duration::from_secs(1));
    kept.save(of(ADA, "b")).await;
    kept.outputs.close().await.unwrap();
    let kept = kept.restart(resume).await;
    assert_eq!(kept.outputs.len(), 0, "not before they are asked for");
    let found = kept.outputs.all_pointers().await.unwrap();
    assert_eq!(found[0], pointer);
    assert_eq!(kept.names().await, ["a", "b"]);
    let saved = kept.save(of(ADA, "c")).await;
    assert_eq!(saved.serial, 2);

    // A purge reaches what nobody asked for yet.
    let kept = kept.restart(resume).await;
    kept.purge(&Purge::User(BOB)).await;
    assert_eq!(kept.names().await, ["b", "c"]);
    let kept = kept
        .restart(|settings| {
            settings.resume = true;
            settings.limits.pointers = 1;
        })
        .await;
    assert_eq!(kept.names().await, ["c"], "the bounds hold");
    assert_eq!(kept.files().len(), 1);
}

#[tokio::test]
async fn a_folder_serves_one_process() {
    let kept = Kept::new(|_| ()).await;
    let settings = OutputSettings::new(kept.folder.path());
    let files = Arc::new(Disk::default());
    let second = ToolOutputs::open(settings, files, fixed_clock(START)).await;
    let error = second.unwrap_err().to_string();
    assert!(error.contains("TOOL_OUTPUT_DIR"), "{error}");
}

#[tokio::test]
async fn in_memory_nothing_reaches_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let settings = OutputSettings::new(folder.path().join("outputs"));
    let files = Arc::new(InMemory::default());
    let outputs = ToolOutputs::open(settings, files, fixed_clock(START));
    let outputs = outputs.await.unwrap();
    let pointer = outputs.save_context(of(ADA, "a")).await.unwrap();
    let loaded = outputs.load_contexts(&[pointer.filepath]).await;
    assert_eq!(loaded.contexts.len(), 1);
    outputs.clear().await.unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
