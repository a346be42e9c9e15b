//! What a process left behind: for the next one, and for who looks after the folder.

use serde_json::json;

use super::*;
use crate::{Erasure, Kind};

fn resume(settings: &mut OutputSettings) {
    settings.resume = true;
}

#[tokio::test]
async fn what_is_broken_is_removed_when_outputs_are_found_again() {
    let kept = Kept::new(resume).await;
    let torn = kept.save(of(BOB, "torn")).await.filepath;
    kept.save(of(ADA, "whole")).await;
    std::fs::write(&torn, b"{\"toolName\": \"to").unwrap();
    let kept = kept.restart(resume).await;
    assert_eq!(kept.names().await, ["whole"]);
    assert!(!torn.exists(), "no purge would find it");
    assert_eq!(kept.files().len(), 1);
}

/// What the folder holds of others stays.
#[tokio::test]
async fn an_erasure_without_a_bot_reaches_owners_and_sources() {
    let kept = Kept::new(resume).await;
    kept.save(of(ADA, "hers")).await;
    kept.save(NewOutput {
        sources: vec![message(5, ADA)],
        ..of(BOB, "from her message")
    })
    .await;
    let stays = kept.save(of(BOB, "his")).await;
    std::fs::write(kept.folder.path().join("notes.json"), "mine").unwrap();
    let folder = OutputFolder::new(kept.folder.path());
    // While a bot has the folder it can be looked into, not changed.
    let of_ada = Erasure::User(ADA);
    assert_eq!(folder.would_go(of_ada).await.unwrap(), 2);
    assert_eq!(folder.stats().await.unwrap().entries, 3);
    let error = folder.purge(&of_ada.purge()).await.unwrap_err();
    assert!(matches!(error, Error::Open { .. }), "{error}");
    let Kept {
        outputs,
        folder: files,
        ..
    } = kept;
    drop(outputs);
    let lines = folder.lines(Some(ADA)).await.unwrap();
    let read: Vec<Value> = lines.iter().map(|line| line.parse().unwrap()).collect();
    let expected = json!({
        "kind": "tool_output", "tool": "hers", "args": {}, "result": "x".repeat(100),
        "timestamp": START.rfc3339(),
    });
    assert_eq!(read, [expected], "what was made from her words is not hers");
    assert_eq!(folder.lines(None).await.unwrap().len(), 3);

    let purged = folder.purge(&of_ada.purge()).await.unwrap();
    assert_eq!(purged.iter().collect::<Vec<_>>(), [(Kind::Outputs, 2)]);
    assert_eq!(folder.would_go(of_ada).await.unwrap(), 0);
    assert!(stays.filepath.exists());
    assert!(files.path().join("notes.json").exists());

    std::fs::write(&stays.filepath, b"torn").unwrap();
    assert!(folder.lines(None).await.unwrap().is_empty());
    assert_eq!(folder.would_go(of_ada).await.unwrap(), 1, "it may be hers");
    assert_eq!(folder.purge(&of_ada.purge()).await.unwrap().total(), 1);
}

#[tokio::test]
async fn without_a_folder_there_is_nothing_to_erase() {
    let parent = tempfile::tempdir().unwrap();
    let folder = OutputFolder::new(parent.path().join("outputs"));
    assert_eq!(folder.purge(&Purge::User(ADA)).await.unwrap().total(), 0);
    assert_eq!(folder.lines(None).await.unwrap().len(), 0);
    assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
}
