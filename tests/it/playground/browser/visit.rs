//! A visit, step by step: asking in a thread, seeing why, trying caps.

use fantoccini::key::Key;
use serde_json::json;

use super::chrome::Chrome;
use super::playground;

/// The last message of the chat.
const LAST: &str = "document.querySelector('#messages > :last-child')";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_visitor_asks_in_a_thread_sees_why_and_tries_caps() {
    let playground = playground().await;
    let chrome = Chrome::open(playground.link()).await;
    asks(&chrome).await;
    sees_why(&chrome).await;
    tries_caps(&chrome).await;
    assert_eq!(chrome.console().await, Vec::<String>::new());
    drop(chrome);
    playground.stop().await.unwrap();
}

/// The question is there already: Enter sends it, and the answer grows.
async fn asks(chrome: &Chrome) {
    chrome
        .until("document.getElementById('text').value.startsWith('@')")
        .await;
    chrome
        .until("!document.getElementById('hint').hidden")
        .await;
    chrome.until("document.activeElement.id === 'text'").await;
    watch_lengths(chrome).await;
    chrome.keys(&Key::Enter.to_string()).await;
    chrome
        .until(&format!("{LAST}.classList.contains('ours')"))
        .await;
    chrome
        .until("document.querySelector('#why .chip.good')?.textContent === 'answered'")
        .await;
    let lengths = chrome.value("window.lengths.size").await;
    assert!(lengths.as_u64() > Some(1), "the answer came at once");
}

/// Notes how long the last message is, whenever the chat changes.
async fn watch_lengths(chrome: &Chrome) {
    chrome
        .run(&format!(
            "window.lengths = new Set();
             new MutationObserver(() => {{
                 const last = {LAST};
                 if (last.classList.contains('ours')) window.lengths.add(last.innerText.length);
             }}).observe(document.getElementById('messages'), {{childList: true, subtree: true}});"
        ))
        .await;
}

/// What went in is marked in the chat, what did not has its cap, and the rest stands beside it.
async fn sees_why(chrome: &Chrome) {
    let marked = chrome
        .until("document.querySelectorAll('.message[data-mark=\"in\"]').length")
        .await;
    assert!(marked.as_u64() >= Some(5), "{marked}");
    chrome
        .until("document.querySelectorAll('.message[data-mark=\"question\"]').length === 1")
        .await;
    chrome
        .until(
            "[...document.querySelectorAll('.message[data-mark=\"out\"] .mark')]
                .some((mark) => mark.textContent.includes('MEM_MAX_AGE_MIN'))",
        )
        .await;
    chrome
        .until("document.querySelector('#why .cap h3').textContent.includes('MEM_MAX_AGE_MIN')")
        .await;
    let parts = chrome
        .run(
            "const parts = [...document.querySelectorAll('#why details')];
             for (const part of parts) part.open = true;
             return parts.map((part) => part.querySelector('summary').firstChild.textContent);",
        )
        .await;
    let expected = json!([
        "In the prompt",
        "Left out",
        "Facts",
        "Recalled",
        "Stored history",
        "Prompt as sent",
        "Context block",
        "Calls to Discord",
        "Timings",
        "Telemetry"
    ]);
    assert_eq!(parts, expected);
    for shown in [
        "Leak at the stern",
        "collect_ok",
        "/messages",
        "system",
        "whole turn",
    ] {
        chrome
            .until(&format!(
                "document.getElementById('why').textContent.includes({})",
                json!(shown)
            ))
            .await;
    }
    // An item leads to its message.
    chrome.click("#why .cap .item").await;
    chrome
        .until("document.activeElement.dataset.mark === 'out'")
        .await;
}

/// A slider collects again at once; nothing is posted.
async fn tries_caps(chrome: &Chrome) {
    let before = chrome
        .value("document.querySelectorAll('.message').length")
        .await;
    chrome.click("#tab-tune").await;
    set(chrome, "MEM_MAX_AGE_MIN", 0).await;
    chrome
        .until("document.querySelector('#tune-result [data-part=\"came\"]')")
        .await;
    chrome
        .until("document.querySelectorAll('.message[data-mark=\"came\"]').length > 5")
        .await;
    set(chrome, "MEM_MAX_MSGS", 5).await;
    chrome
        .until("document.querySelectorAll('.message[data-mark=\"went\"]').length > 0")
        .await;
    chrome
        .until("document.querySelector('#tune-result [data-part=\"blocks\"] .line.removed')")
        .await;
    let env = "document.querySelector('#tune-result .env').textContent";
    chrome
        .until(&format!(
            "{env}.includes('MEM_MAX_AGE_MIN=0') && {env}.includes('MEM_MAX_MSGS=5')"
        ))
        .await;
    chrome
        .run(
            "navigator.clipboard.writeText = async (text) => { window.copied = text; };
             [...document.querySelectorAll('#tune-result button')]
                 .find((button) => button.textContent === 'Copy as .env').click();",
        )
        .await;
    let copied = chrome.until("window.copied").await;
    let mut lines: Vec<&str> = copied.as_str().unwrap().lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["MEM_MAX_AGE_MIN=0", "MEM_MAX_MSGS=5"]);
    chrome
        .run(
            "[...document.querySelectorAll('#tune-result button')]
                 .find((button) => button.textContent === 'Undo all').click();",
        )
        .await;
    chrome
        .until("document.querySelectorAll('.message[data-mark=\"went\"]').length === 0")
        .await;
    let after = chrome
        .value("document.querySelectorAll('.message').length")
        .await;
    assert_eq!(before, after, "something was posted");
}

/// Moves a slider to a value.
async fn set(chrome: &Chrome, name: &str, value: u32) {
    chrome
        .run(&format!(
            "const slider = document.getElementById('setting-{name}');
             slider.value = String(slider.steps.indexOf({value}));
             slider.dispatchEvent(new Event('input', {{bubbles: true}}));"
        ))
        .await;
}
