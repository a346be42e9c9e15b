//! What stands where: nothing covers the newest message, and no word is torn apart.

use fantoccini::key::Key;
use serde_json::{Value, json};

use super::chrome::Chrome;
use super::playground;

/// How many of the newest message's pixels are out of sight.
const COVERED: &str =
    "document.querySelector('#messages > :last-child').getBoundingClientRect().bottom
    - document.getElementById('scroller').getBoundingClientRect().bottom";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_covers_the_newest_message() {
    let playground = playground().await;
    let chrome = Chrome::open(playground.link()).await;
    for (width, height) in [(1440, 900), (1280, 720), (1024, 640), (390, 700)] {
        chrome.size(width, height).await;
        chrome.go(playground.link()).await;
        chrome
            .until("!document.getElementById('hint').hidden")
            .await;
        chrome.until(&format!("{COVERED} <= 0")).await;
    }
    // What grows while it is written is followed as well.
    chrome.keys(&Key::Enter.to_string()).await;
    chrome
        .until("document.querySelector('#messages > :last-child').classList.contains('ours')")
        .await;
    chrome
        .until("document.querySelector('#why .chip.good')")
        .await;
    chrome.until(&format!("{COVERED} <= 0")).await;
    drop(chrome);
    playground.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_of_tables_stay_whole_and_what_is_too_wide_scrolls() {
    let playground = playground().await;
    let chrome = Chrome::open(playground.link()).await;
    chrome
        .until("document.activeElement.id === 'text' && document.activeElement.value")
        .await;
    chrome.keys(&Key::Enter.to_string()).await;
    chrome
        .until("document.querySelector('#why .chip.good')")
        .await;
    for width in [1280, 1024, 390] {
        chrome.size(width, 720).await;
        chrome.click(".views [data-view=\"why\"]").await;
        open_all(&chrome, "why").await;
        assert_eq!(torn(&chrome, "why").await, json!([]), "{width}");
        chrome.click(".views [data-view=\"tune\"]").await;
        chrome
            .run(
                "const slider = document.getElementById('setting-MEM_MAX_MSGS');
                 slider.value = String(slider.steps.indexOf(slider.steps.includes(4) ? 4 : 5));
                 slider.dispatchEvent(new Event('input'));",
            )
            .await;
        chrome
            .until("document.querySelector('#tune-result .compare')")
            .await;
        open_all(&chrome, "tune").await;
        assert_eq!(torn(&chrome, "tune").await, json!([]), "{width}");
        // What was changed is seen without scrolling.
        let hidden = "(() => { const box = document.querySelector('#tune-result .table'); return box.scrollWidth - box.clientWidth; })()";
        assert_eq!(chrome.value(hidden).await, json!(0), "{width}");
        let wide = chrome.value("document.documentElement.scrollWidth").await;
        assert_eq!(wide, json!(width));
    }
    drop(chrome);
    playground.stop().await.unwrap();
}

/// A command is read as one, at every width that has room for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_in_answers_stay_on_one_line() {
    let playground = playground().await;
    let chrome = Chrome::open(playground.link()).await;
    chrome
        .until("document.activeElement.id === 'text' && document.activeElement.value")
        .await;
    chrome.run("document.activeElement.value = '';").await;
    chrome.keys("/help ").await;
    chrome.keys(&Key::Enter.to_string()).await;
    let commands = "[...document.querySelectorAll('#messages > :last-child .content code')]";
    chrome.until(&format!("{commands}.length > 9")).await;
    let height = "parseFloat(getComputedStyle(one).fontSize) * 2.2";
    let torn = format!(
        "{commands}.filter((one) => one.getBoundingClientRect().height > {height} \
         || one.getClientRects().length > 1).map((one) => one.textContent)"
    );
    for width in [1440, 1280, 1024, 390, 360] {
        chrome.size(width, 800).await;
        assert_eq!(chrome.value(&torn).await, json!([]), "{width}");
    }
    drop(chrome);
    playground.stop().await.unwrap();
}

async fn open_all(chrome: &Chrome, pane: &str) {
    chrome
        .run(&format!(
            "for (const part of document.querySelectorAll('#{pane} details')) part.open = true;"
        ))
        .await;
    chrome
        .until(&format!(
            "[...document.querySelectorAll('#{pane} .part-body')].every((body) => body.hasChildNodes())"
        ))
        .await;
}

/// Words of a pane's tables that stand on two lines, and tables that neither fit nor scroll.
async fn torn(chrome: &Chrome, pane: &str) -> Value {
    chrome
        .run(&format!(
            "const torn = [];
             for (const box of document.querySelectorAll('#{pane} table')) {{
                 const texts = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
                 while (texts.nextNode()) {{
                     for (const word of texts.currentNode.data.matchAll(/\\S+/gu)) {{
                         const range = document.createRange();
                         range.setStart(texts.currentNode, word.index);
                         range.setEnd(texts.currentNode, word.index + word[0].length);
                         const lines = new Set([...range.getClientRects()].map((rect) => Math.round(rect.top)));
                         if (lines.size > 1) torn.push(word[0]);
                     }}
                 }}
                 const parent = box.parentElement;
                 if (!parent.matches('.table[tabindex=\"0\"][aria-label]') || getComputedStyle(parent).overflowX !== 'auto') torn.push('table');
             }}
             return torn;"
        ))
        .await
}
