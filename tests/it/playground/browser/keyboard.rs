//! The page without a mouse: everything is reached, seen to have the focus, and used.

use std::collections::HashSet;

use fantoccini::key::Key;
use serde_json::{Value, json};

use super::chrome::Chrome;
use super::playground;

/// More presses of Tab than the page has places for it.
const MOST_TABS: usize = 150;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_done_without_a_mouse() {
    let playground = playground().await;
    let chrome = Chrome::open(playground.link()).await;
    asks_and_goes_through_messages(&chrome).await;
    changes_a_setting(&chrome).await;
    sets_a_fault(&chrome).await;
    reaches_everything(&chrome).await;
    opens_and_leaves_a_dialog(&chrome).await;
    goes_to_places(&chrome).await;
    switches_single_keys_off(&chrome).await;
    drop(chrome);
    playground.stop().await.unwrap();
}

async fn press(chrome: &Chrome, key: Key) {
    chrome.keys(&key.to_string()).await;
}

async fn asks_and_goes_through_messages(chrome: &Chrome) {
    chrome
        .until("document.activeElement.id === 'text' && document.activeElement.value")
        .await;
    press(chrome, Key::Enter).await;
    chrome
        .until("document.querySelector('#why .chip.good')")
        .await;
    // From the field to the messages, up one, and its controls.
    chrome.chord(Key::Shift.into(), Key::Tab.into()).await;
    chrome.chord(Key::Shift.into(), Key::Tab.into()).await;
    chrome.run("document.activeElement.blur();").await;
    chrome.keys("m").await;
    chrome
        .until("document.activeElement === document.querySelector('#messages > :last-child')")
        .await;
    press(chrome, Key::Up).await;
    chrome
        .until(
            "document.activeElement === document.querySelector('#messages > :nth-last-child(2)')",
        )
        .await;
    press(chrome, Key::Enter).await;
    chrome
        .until("document.activeElement.closest('.toolbar') && document.activeElement.dataset.act")
        .await;
    press(chrome, Key::Right).await;
    chrome
        .until("document.activeElement.dataset.act === 'reply'")
        .await;
    press(chrome, Key::Enter).await;
    chrome
        .until(
            "document.activeElement.id === 'text' && !document.getElementById('composing').hidden",
        )
        .await;
    press(chrome, Key::Escape).await;
    chrome
        .until("document.getElementById('composing').hidden")
        .await;
    chrome.run("document.activeElement.blur();").await;
    chrome.keys("m").await;
    press(chrome, Key::Home).await;
    chrome
        .until("document.activeElement === document.querySelector('#messages > :first-child')")
        .await;
    press(chrome, Key::End).await;
    press(chrome, Key::Delete).await;
    chrome
        .until("document.activeElement.closest('dialog') && document.activeElement.textContent === 'Delete'")
        .await;
    press(chrome, Key::Escape).await;
    chrome
        .until("document.activeElement === document.querySelector('#messages > :last-child')")
        .await;
}

async fn changes_a_setting(chrome: &Chrome) {
    chrome.keys("s").await;
    chrome
        .until("document.activeElement.id === 'tab-tune'")
        .await;
    press(chrome, Key::Tab).await;
    chrome
        .until("document.activeElement.type === 'range'")
        .await;
    press(chrome, Key::Right).await;
    chrome
        .until("document.querySelector('#tune-result .env')")
        .await;
    chrome.chord(Key::Shift.into(), Key::Tab.into()).await;
    chrome
        .run("document.getElementById('tab-tune').focus();")
        .await;
    press(chrome, Key::Right).await;
    chrome
        .until("document.activeElement.id === 'tab-faults' && document.activeElement.ariaSelected === 'true'")
        .await;
}

async fn sets_a_fault(chrome: &Chrome) {
    press(chrome, Key::Tab).await;
    chrome
        .until("document.activeElement.type === 'radio'")
        .await;
    press(chrome, Key::Down).await;
    chrome
        .until("!document.getElementById('faults-on').hidden && document.activeElement.type === 'radio'")
        .await;
    press(chrome, Key::Up).await;
    chrome
        .until("document.getElementById('faults-on').hidden")
        .await;
}

/// Tab goes through the whole page and out of it; each stop can be seen. What the page
/// draws anew meanwhile, for a result that comes late, is gone through once more.
async fn reaches_everything(chrome: &Chrome) {
    for _ in 0..3 {
        let Err(left) = tab_through(chrome).await else {
            return;
        };
        let is_drawn_anew = left.as_array().unwrap().iter().any(Value::is_null);
        assert!(is_drawn_anew, "Tab does not reach {left}");
    }
    panic!("the page is drawn anew all the time");
}

/// The error has what Tab did not reach; null for what is no longer on the page.
async fn tab_through(chrome: &Chrome) -> Result<(), Value> {
    let wanted = chrome
        .run(
            "let number = 0;
             const all = [...document.querySelectorAll('button, select, input, textarea, summary, [tabindex=\"0\"]')];
             // Within these the arrow keys move.
             const groups = '[role=\"tablist\"], .toolbar, #messages';
             return all
                 .filter((each) => each.tabIndex >= 0 || !each.closest(groups))
                 .filter((each) => each.checkVisibility() && each.type !== 'file')
                 .filter((each) => each.type !== 'radio' || each.checked)
                 .map((each) => (each.dataset.stop = String(number++)));",
        )
        .await;
    let mut missing: HashSet<String> = serde_json::from_value(wanted).unwrap();
    chrome
        .run("document.activeElement.blur(); getSelection().removeAllRanges(); document.getElementById('you').focus();")
        .await;
    for _ in 0..MOST_TABS {
        let stop = chrome
            .run(
                "const at = document.activeElement;
                 const style = getComputedStyle(at.id === 'text' ? at.closest('form') : at);
                 const seen = style.outlineStyle !== 'none' && style.outlineWidth !== '0px' || style.boxShadow !== 'none';
                 return [at.dataset.stop ?? null, seen, at.outerHTML.slice(0, 120)];",
            )
            .await;
        let [id, seen, html] = [&stop[0], &stop[1], &stop[2]];
        if let Value::String(id) = id {
            missing.remove(id);
            assert_eq!(*seen, json!(true), "no focus to be seen: {html}");
        }
        if missing.is_empty() {
            return Ok(());
        }
        press(chrome, Key::Tab).await;
    }
    let left = chrome
        .value(&format!(
            "{}.map((id) => document.querySelector(`[data-stop=\"${{id}}\"]`)?.outerHTML.slice(0, 160))",
            json!(missing)
        ))
        .await;
    Err(left)
}

async fn opens_and_leaves_a_dialog(chrome: &Chrome) {
    chrome
        .run("document.getElementById('theme').focus();")
        .await;
    chrome.keys("?").await;
    chrome.until("document.querySelector('dialog[open]')").await;
    for _ in 0..5 {
        press(chrome, Key::Tab).await;
        let inside = "document.activeElement === document.body || document.activeElement.closest('dialog') !== null";
        assert_eq!(chrome.value(inside).await, json!(true));
    }
    press(chrome, Key::Escape).await;
    chrome
        .until("!document.querySelector('dialog') && document.activeElement.id === 'theme'")
        .await;
}

async fn goes_to_places(chrome: &Chrome) {
    chrome.chord(Key::Control.into(), 'k').await;
    chrome
        .until("document.activeElement.role === 'combobox'")
        .await;
    chrome.keys("workshop").await;
    press(chrome, Key::Enter).await;
    chrome
        .until("document.getElementById('place-name').textContent === '#workshop'")
        .await;
    chrome.chord(Key::Alt.into(), Key::Down.into()).await;
    chrome
        .until("document.getElementById('place-name').textContent !== '#workshop'")
        .await;
    chrome.run("document.activeElement.blur();").await;
    chrome.keys("p").await;
    chrome
        .until("document.activeElement.getAttribute('aria-current') === 'page'")
        .await;
    press(chrome, Key::Up).await;
    press(chrome, Key::Enter).await;
    chrome
        .until("document.getElementById('place-name').textContent === '#workshop'")
        .await;
}

/// Shortcuts of a single key can be switched off, for people whose input they get in the way of.
async fn switches_single_keys_off(chrome: &Chrome) {
    chrome.keys("?").await;
    chrome
        .until("document.querySelector('dialog [type=\"checkbox\"]').focus() || true")
        .await;
    chrome.keys(" ").await;
    press(chrome, Key::Escape).await;
    chrome.until("!document.querySelector('dialog')").await;
    chrome
        .run("document.getElementById('theme').focus();")
        .await;
    chrome.keys("c").await;
    assert_eq!(
        chrome.value("document.activeElement.id").await,
        json!("theme")
    );
}
