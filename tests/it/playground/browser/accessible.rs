//! axe-core finds nothing against WCAG 2 A and AA and its best practices, such as landmarks
//! and the order of headings: light, dark, wide and narrow.

use fantoccini::key::Key;
use serde_json::json;

use super::chrome::Chrome;
use super::playground;

/// See `axe/README.md`.
const AXE: &str = include_str!("../axe/axe.min.js");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_speaks_against_wcag_aa_and_best_practices() {
    let playground = playground().await;
    let chrome = Chrome::open(playground.link()).await;
    chrome.scheme("light").await;
    chrome.run(AXE).await;
    check(&chrome, "the start").await;
    ask(&chrome).await;
    call(&chrome).await;
    for scheme in ["light", "dark"] {
        chrome.scheme(scheme).await;
        chrome.size(1440, 900).await;
        check_panes(&chrome, scheme).await;
        check_dialogs(&chrome, scheme).await;
        check_narrow(&chrome, scheme).await;
    }
    drop(chrome);
    playground.stop().await.unwrap();
}

/// The switch holds against what the system wants, over a reload, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn light_or_dark_is_chosen_and_kept() {
    let playground = playground().await;
    let chrome = Chrome::open(playground.link()).await;
    let ground = "getComputedStyle(document.body).backgroundColor";
    chrome.scheme("light").await;
    chrome
        .until(&format!("{ground} === 'rgb(255, 255, 255)'"))
        .await;
    chrome.scheme("dark").await;
    chrome
        .until(&format!("{ground} === 'rgb(23, 24, 29)'"))
        .await;
    chrome.click("#theme").await;
    chrome
        .until(&format!("{ground} === 'rgb(255, 255, 255)'"))
        .await;
    chrome.go(playground.link()).await;
    chrome
        .until(&format!("{ground} === 'rgb(255, 255, 255)'"))
        .await;
    drop(chrome);
    playground.stop().await.unwrap();
}

async fn ask(chrome: &Chrome) {
    chrome
        .until("document.activeElement.id === 'text' && document.activeElement.value")
        .await;
    chrome.keys(&Key::Enter.to_string()).await;
    chrome
        .until("document.querySelector('#why .chip.good')")
        .await;
}

/// A command that is being typed, and its answer, for one person and with buttons.
async fn call(chrome: &Chrome) {
    chrome.keys("/priv").await;
    chrome
        .until("document.querySelectorAll('#completions [role=\"option\"]').length > 1")
        .await;
    check(chrome, "suggested commands").await;
    chrome.keys("acy erase ").await;
    chrome
        .until("!document.getElementById('usage').hidden")
        .await;
    check(chrome, "a command").await;
    chrome.keys(&Key::Enter.to_string()).await;
    chrome
        .until("document.querySelector('#messages .buttons button')")
        .await;
    check(chrome, "an answer with buttons").await;
}

async fn check_panes(chrome: &Chrome, scheme: &str) {
    chrome.click("#tab-why").await;
    chrome
        .run("for (const part of document.querySelectorAll('#why details')) part.open = true;")
        .await;
    check(chrome, &format!("why, {scheme}")).await;
    chrome.click("#tab-tune").await;
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
    chrome
        .run("for (const part of document.querySelectorAll('#tune details')) part.open = true;")
        .await;
    check(chrome, &format!("tune, {scheme}")).await;
    chrome.click("#tab-faults").await;
    check(chrome, &format!("faults, {scheme}")).await;
    chrome
        .run("document.querySelector('#messages > :last-child').focus();")
        .await;
    check(chrome, &format!("a message with its controls, {scheme}")).await;
}

async fn check_dialogs(chrome: &Chrome, scheme: &str) {
    for opener in ["#help", "#jump", "#place-actions button"] {
        chrome.click(opener).await;
        chrome.until("document.querySelector('dialog[open]')").await;
        check(chrome, &format!("{opener}, {scheme}")).await;
        chrome.keys(&Key::Escape.to_string()).await;
        chrome.until("!document.querySelector('dialog')").await;
    }
}

async fn check_narrow(chrome: &Chrome, scheme: &str) {
    chrome.size(390, 844).await;
    for view in ["places", "chat", "why", "tune", "faults"] {
        chrome
            .click(&format!(".views [data-view=\"{view}\"]"))
            .await;
        check(chrome, &format!("{view}, narrow, {scheme}")).await;
    }
}

/// Fails with each violation: its rule, and where.
async fn check(chrome: &Chrome, place: &str) {
    let found = chrome
        .run_async(
            "axe.run(document, {
                 runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
                 resultTypes: ['violations'],
             }).then(({ violations, passes }) => done({
                 checked: passes.length > 0,
                 violations: violations.map(({ id, nodes }) =>
                     [id, ...nodes.slice(0, 3).map((node) => node.html.slice(0, 200))]),
             }))",
        )
        .await;
    assert_eq!(found, json!({"checked": true, "violations": []}), "{place}");
}
