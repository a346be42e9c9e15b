//! A second visit, step by step: mentions by completion, replies, edits, reactions, files,
//! faults, other people, posts, a narrow screen.

use fantoccini::key::Key;
use serde_json::json;

use super::chrome::Chrome;
use super::playground;

/// The last message of the chat.
const LAST: &str = "document.querySelector('#messages > :last-child')";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_visitor_replies_edits_breaks_discord_and_is_somebody_else() {
    let playground = playground().await;
    let chrome = Chrome::open(playground.link()).await;
    mentions_by_completion(&chrome).await;
    replies(&chrome).await;
    breaks_discord(&chrome).await;
    is_somebody_else(&chrome).await;
    edits_and_deletes(&chrome).await;
    reacts(&chrome).await;
    attaches(&chrome).await;
    keeps_what_is_refused(&chrome).await;
    opens_a_post(&chrome).await;
    looks_on_a_narrow_screen(&chrome).await;
    assert_eq!(chrome.console().await, Vec::<String>::new());
    drop(chrome);
    playground.stop().await.unwrap();
}

/// `@` opens people and the bot; the keys choose.
async fn mentions_by_completion(chrome: &Chrome) {
    chrome
        .until("document.activeElement.id === 'text' && document.getElementById('text').value")
        .await;
    chrome
        .run("document.getElementById('text').value = '';")
        .await;
    chrome.keys("@").await;
    let offered = "document.querySelectorAll('#completions [role=\"option\"]')";
    chrome.until(&format!("{offered}.length > 4")).await;
    chrome.keys(&Key::Down.to_string()).await;
    let second = chrome
        .until(&format!(
            "{offered}[1].getAttribute('aria-selected') === 'true' && {offered}[1].querySelector('b').textContent"
        ))
        .await;
    chrome.keys(&Key::Enter.to_string()).await;
    chrome
        .until(&format!(
            "document.getElementById('completions').hidden
             && document.getElementById('text').value.includes({second})"
        ))
        .await;
    chrome.keys(&format!("@clew{}", Key::Enter)).await;
    chrome
        .until("document.getElementById('text').value.includes('@Clew ')")
        .await;
    chrome
        .keys(&format!("which hose do we need?{}", Key::Enter))
        .await;
    chrome
        .until("document.querySelector('#messages .message:nth-last-child(2) .mention[data-user]')")
        .await;
    chrome
        .until("document.querySelector('#why .chip.good')")
        .await;
}

/// A reply by its button.
async fn replies(chrome: &Chrome) {
    chrome
        .run(&format!(
            "{LAST}.focus(); {LAST}.querySelector('[data-act=\"reply\"]').click();"
        ))
        .await;
    chrome
        .until("document.getElementById('composing').textContent.includes('Replying to')")
        .await;
    chrome
        .keys(&format!("and how long is it?{}", Key::Enter))
        .await;
    chrome
        .until(
            "[...document.querySelectorAll('.message:not(.ours)')]
                .some((row) => row.querySelector('.quotation') && row.innerText.includes('and how long is it?'))",
        )
        .await;
    // It replied to the bot, so it is answered.
    chrome
        .until(&format!("{LAST}.classList.contains('ours')"))
        .await;
    chrome
        .until("document.querySelector('#why .chip.good') && document.querySelector('#why header q').textContent.includes('how long')")
        .await;
}

/// With a fault the bot answers all the same, and the context says what is missing.
async fn breaks_discord(chrome: &Chrome) {
    chrome.click("#tab-faults").await;
    chrome.click("#fault-status-403").await;
    chrome
        .until("document.getElementById('faults-on').innerText.includes('403')")
        .await;
    go_to(chrome, "Which charger").await;
    chrome
        .keys(&format!("@clew{} can I use it?{}", Key::Enter, Key::Enter))
        .await;
    chrome
        .until("document.querySelector('#why .notice.warn')?.innerText.includes('forbidden')")
        .await;
    chrome
        .until(&format!("{LAST}.classList.contains('ours')"))
        .await;
    chrome.click("#no-faults").await;
    chrome
        .until("document.getElementById('faults-on').hidden")
        .await;
}

/// Goes to a place by a part of its name; the focus is back in the field then.
async fn go_to(chrome: &Chrome, name: &str) {
    chrome.click("#jump").await;
    chrome.until("document.querySelector('dialog[open]')").await;
    chrome.keys(&format!("{name}{}", Key::Enter)).await;
    chrome
        .until(&format!(
            "document.getElementById('place-name').textContent.includes({}) && !document.querySelector('dialog')",
            json!(name)
        ))
        .await;
}

/// What is posted then bears the name of who one is.
async fn is_somebody_else(chrome: &Chrome) {
    become_noor(chrome).await;
    go_to(chrome, "general").await;
    chrome.keys(&format!("good morning{}", Key::Enter)).await;
    chrome
        .until(&format!(
            "{LAST}.innerText.includes('good morning') && {LAST}.innerText.includes('Noor')"
        ))
        .await;
}

async fn become_noor(chrome: &Chrome) {
    chrome
        .run(
            "const you = document.getElementById('you');
             you.value = [...you.options].find((each) => each.text === 'Noor').value;
             you.dispatchEvent(new Event('change'));",
        )
        .await;
}

/// The last message of one's own is edited with the up key, and deleted after a question.
async fn edits_and_deletes(chrome: &Chrome) {
    chrome
        .keys(&format!("a slip of the pen{}", Key::Enter))
        .await;
    chrome
        .until(&format!("{LAST}.innerText.includes('a slip of the pen')"))
        .await;
    chrome
        .until("document.getElementById('text').value === ''")
        .await;
    chrome.keys(&Key::Up.to_string()).await;
    chrome
        .until("document.getElementById('text').value === 'a slip of the pen'")
        .await;
    // It is still an edit after a look at another channel.
    go_to(chrome, "workshop").await;
    chrome
        .until("document.getElementById('text').value === '' && document.getElementById('composing').hidden")
        .await;
    go_to(chrome, "general").await;
    chrome
        .until("document.getElementById('composing').textContent.includes('Editing')")
        .await;
    chrome.keys(&format!(", mended{}", Key::Enter)).await;
    chrome
        .until(&format!(
            "{LAST}.innerText.includes('a slip of the pen, mended') && {LAST}.innerText.includes('edited')"
        ))
        .await;
    chrome
        .run(&format!(
            "{LAST}.focus(); {LAST}.querySelector('[data-act=\"remove\"]').click();"
        ))
        .await;
    chrome.click("dialog .danger").await;
    chrome
        .until("!document.getElementById('messages').innerText.includes('a slip of the pen')")
        .await;
}

/// A reaction is added from a dialog and taken back by a click.
async fn reacts(chrome: &Chrome) {
    chrome
        .run(&format!(
            "{LAST}.focus(); {LAST}.querySelector('[data-act=\"react\"]').click();"
        ))
        .await;
    chrome.click("dialog .emoji button").await;
    let reaction = format!("{LAST}.querySelector('.reaction')");
    chrome
        .until(&format!(
            "{reaction}.innerText.includes('1') && {reaction}.ariaPressed === 'true'"
        ))
        .await;
    // Whoever loads the page again knows whose it is.
    let here = chrome.value("location.href").await;
    chrome.go(here.as_str().unwrap()).await;
    become_noor(chrome).await;
    chrome
        .until(&format!("{reaction}.ariaPressed === 'true'"))
        .await;
    chrome.run(&format!("{reaction}.click()")).await;
    chrome.until(&format!("{reaction} === null")).await;
}

/// A text file is chosen, shown above the field, and posted.
async fn attaches(chrome: &Chrome) {
    chrome
        .run(
            "const files = new DataTransfer();
             files.items.add(new File(['rope, 12 m'], 'list.txt', {type: 'text/plain'}));
             const input = document.getElementById('file');
             input.files = files.files;
             input.dispatchEvent(new Event('change', {bubbles: true}));",
        )
        .await;
    chrome
        .until("document.getElementById('files').innerText.includes('list.txt')")
        .await;
    chrome.keys(&format!("what we need{}", Key::Enter)).await;
    chrome
        .until(&format!(
            "{LAST}.innerText.includes('what we need') && {LAST}.innerText.includes('list.txt')"
        ))
        .await;
    chrome
        .until("document.getElementById('files').hidden")
        .await;
}

/// A message that is too long is refused with the reason, and stays in the field.
async fn keeps_what_is_refused(chrome: &Chrome) {
    chrome
        .run(
            "document.getElementById('text').value = 'x'.repeat(2001);
             document.getElementById('text').focus();",
        )
        .await;
    chrome.keys(&Key::Enter.to_string()).await;
    chrome
        .until("document.getElementById('toasts').innerText.includes('2000')")
        .await;
    chrome
        .until("document.getElementById('text').value.length === 2001")
        .await;
    chrome
        .run("document.getElementById('text').value = '';")
        .await;
    // The browser notes each refusal.
    let said = chrome.console().await;
    assert!(said.iter().all(|line| line.contains("400")), "{said:?}");
}

/// A post of the forum, with a tag.
async fn opens_a_post(chrome: &Chrome) {
    chrome.click("#jump").await;
    chrome.until("document.querySelector('dialog[open]')").await;
    chrome.keys(&format!("how-to{}", Key::Enter)).await;
    chrome
        .until("document.querySelectorAll('#posts .post').length >= 3")
        .await;
    chrome.click("#place-actions .primary").await;
    chrome.until("document.querySelector('dialog[open]')").await;
    chrome.keys("Rope for the new mast").await;
    chrome.keys(&Key::Tab.to_string()).await;
    chrome.keys("Which one, and how long?").await;
    chrome.click("dialog [name=\"tags\"]").await;
    chrome.click("dialog [type=\"submit\"]").await;
    chrome
        .until(
            "document.getElementById('place-name').textContent === 'Rope for the new mast'
             && document.querySelector('#place-about .tag')",
        )
        .await;
    chrome
        .until(&format!("{LAST}.innerText.includes('how long?')"))
        .await;
}

/// Down to 360 px each part is a view of its own, and nothing sticks out.
async fn looks_on_a_narrow_screen(chrome: &Chrome) {
    chrome.size(360, 640).await;
    for view in ["places", "chat", "why", "tune", "faults"] {
        chrome
            .click(&format!(".views [data-view=\"{view}\"]"))
            .await;
        let panes = chrome
            .value(
                "['places', 'chat', 'why', 'tune', 'faults'].filter((id) =>
                    document.getElementById(id).getClientRects().length > 0)",
            )
            .await;
        assert_eq!(panes, json!([view]));
        let wide = chrome.value("document.documentElement.scrollWidth").await;
        assert_eq!(wide, json!(360), "{view}");
    }
    chrome.size(1440, 900).await;
}
