//! Slash commands: suggested while they are typed, called, and answered to one person or to all.

use fantoccini::key::Key;
use serde_json::json;

use super::chrome::Chrome;
use super::playground;

/// The last message of the chat.
const LAST: &str = "document.querySelector('#messages > :last-child')";
/// The suggestions that are open.
const OPEN: &str = "[...document.querySelectorAll('#completions [role=\"option\"] b')].map((one) => one.textContent)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_are_typed_called_and_answered() {
    let playground = playground().await;
    let chrome = Chrome::open(playground.link()).await;
    chrome
        .until("document.activeElement.id === 'text' && document.activeElement.value")
        .await;
    chrome
        .run("document.getElementById('text').value = '';")
        .await;
    asks(&chrome).await;
    remembers_and_forgets(&chrome).await;
    presses(&chrome).await;
    names_people_and_roles(&chrome).await;
    hides_from_others(&chrome).await;
    summarises(&chrome).await;
    assert_eq!(chrome.console().await, Vec::<String>::new());
    drop(chrome);
    playground.stop().await.unwrap();
}

async fn is_open(chrome: &Chrome, label: &str) {
    chrome
        .until(&format!("{OPEN}.includes({})", json!(label)))
        .await;
}

/// The last message has this text, and is for one person alone or for all.
async fn told(chrome: &Chrome, text: &str, for_one: bool) {
    chrome
        .until(&format!(
            "{LAST}.innerText.includes({}) && {LAST}.innerText.includes('Only Mira can see this') === {for_one}",
            json!(text)
        ))
        .await;
}

/// The name is completed up to the option that the command needs.
async fn asks(chrome: &Chrome) {
    chrome.keys("/as").await;
    is_open(chrome, "/ask").await;
    chrome.keys(&Key::Enter.to_string()).await;
    chrome
        .until("document.getElementById('text').value === '/ask question:'")
        .await;
    chrome
        .until("document.getElementById('usage').innerText.includes('[private:]')")
        .await;
    chrome
        .keys(&format!("is the hose dry?{}", Key::Enter))
        .await;
    told(chrome, "Mira used /ask", false).await;
    chrome
        .until("document.querySelector('#why .chip.good') && document.querySelector('#why header q').textContent === '/ask'")
        .await;
    chrome
        .until("document.getElementById('text').value === '' && document.getElementById('usage').hidden")
        .await;
}

/// Choices are suggested by name, and sent by what they stand for.
async fn remembers_and_forgets(chrome: &Chrome) {
    chrome
        .keys(&format!("/memory remember text:I row{}", Key::Enter))
        .await;
    told(chrome, "I row", true).await;
    chrome.keys("/forget").await;
    is_open(chrome, "/memory forget").await;
    chrome.keys(&Key::Enter.to_string()).await;
    is_open(chrome, "I row").await;
    chrome.keys(&Key::Enter.to_string()).await;
    chrome
        .until("document.getElementById('text').value.includes('fact:I row')")
        .await;
    chrome.keys(&Key::Enter.to_string()).await;
    press(chrome, "Forget").await;
    // A wrong value is told, and stays in the field.
    chrome
        .keys(&format!("/context clear everyone:perhaps{}", Key::Enter))
        .await;
    chrome
        .until("document.getElementById('toasts').innerText.includes('everyone')")
        .await;
    chrome
        .until("document.getElementById('text').value === '/context clear everyone:perhaps'")
        .await;
    chrome
        .run("document.getElementById('text').value = '';")
        .await;
    let said = chrome.console().await;
    assert!(said.iter().all(|line| line.contains("400")), "{said:?}");
}

/// Presses a button of the last message, which takes its buttons away.
async fn press(chrome: &Chrome, label: &str) {
    let button = format!(
        "[...{LAST}.querySelectorAll('.buttons button')].find((one) => one.textContent === {})",
        json!(label)
    );
    chrome.until(&format!("{button} !== undefined")).await;
    chrome.run(&format!("{button}.click();")).await;
    chrome
        .until(&format!("{LAST}.querySelector('.buttons') === null"))
        .await;
}

/// A button of an answer changes it.
async fn presses(chrome: &Chrome) {
    chrome
        .keys(&format!("/privacy erase{}{}", Key::Enter, Key::Enter))
        .await;
    press(chrome, "Cancel").await;
    told(chrome, "", true).await;
}

/// What stands for a person or a role is typed by name.
async fn names_people_and_roles(chrome: &Chrome) {
    chrome.keys("/block member member:@Sam").await;
    is_open(chrome, "@Samuel").await;
    chrome.keys(&format!("{0}{0}", Key::Enter)).await;
    told(chrome, "I no longer answer @Samuel here.", true).await;
    chrome.keys("/settings limits questions:3 role:boat").await;
    is_open(chrome, "boat crew").await;
    chrome.keys(&format!("{0}{0}", Key::Enter)).await;
    told(chrome, "boat crew", true).await;
}

/// Who is somebody else from now on does not see what was for one alone.
async fn hides_from_others(chrome: &Chrome) {
    chrome
        .run(
            "const you = document.getElementById('you');
             you.value = [...you.options].find((each) => each.text === 'Noor').value;
             you.dispatchEvent(new Event('change'));",
        )
        .await;
    chrome
        .until("!document.getElementById('messages').innerText.includes('Only Mira can see this')")
        .await;
    chrome
        .until(&format!("{LAST}.innerText.includes('Mira used /ask')"))
        .await;
}

/// A message has commands of its own, and a link in their answer leads there.
async fn summarises(chrome: &Chrome) {
    chrome
        .run("document.querySelector('#messages > .message:not(.ours)').focus();")
        .await;
    chrome.keys("a").await;
    let command = "[...document.querySelectorAll('dialog[open] button')].find((one) => one.textContent === 'Summarise from here')";
    chrome.until(&format!("{command} !== undefined")).await;
    chrome.run(&format!("{command}.click();")).await;
    let link = format!("{LAST}.querySelector('.embed a')");
    chrome.until(&format!("{link} !== null")).await;
    let message = chrome
        .value(&format!("{link}.href.split('/').at(-1)"))
        .await;
    chrome.run(&format!("{link}.click();")).await;
    chrome
        .until(&format!("document.activeElement.dataset.id === {message}"))
        .await;
}
