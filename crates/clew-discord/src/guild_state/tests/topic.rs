//! Topics and guidelines: how much of them is kept, for whom, and in the session file.

use super::*;

#[test]
fn a_topic_is_kept_cut_and_is_its_threads_too() {
    let state = known();
    let topic = |channel| state.channel(id(channel)).unwrap().topic;
    assert_eq!(topic(12), "");
    let guidelines = |text: &str| {
        let text = serde_json::to_string(text).unwrap();
        let forum = format!(r#"{{"id":"12","guild_id":"1","type":15,"topic":{text}}}"#);
        assert!(state.apply("CHANNEL_UPDATE", &forum).is_none());
    };
    guidelines("one question a post");
    assert_eq!([topic(12), topic(20)], ["one question a post"; 2]);
    assert_eq!(topic(21), "");
    guidelines(&"é".repeat(4_096));
    assert_eq!(topic(20).chars().count(), 500);
    assert!(topic(20).contains("é [... 3,62"), "{}", topic(20));
    let restored = GuildState::default();
    restored.set_current_user(us());
    restored.restore(vec![state.snapshot(GUILD).unwrap()]);
    assert_eq!(restored.channel(id(20)).unwrap().topic, topic(20));
    guidelines("");
    let none = state.snapshot(GUILD).unwrap();
    assert!(!serde_json::to_string(&none).unwrap().contains("topic"));
}
