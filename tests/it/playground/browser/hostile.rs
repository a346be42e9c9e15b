//! Nothing that people write runs in the page, whether the browser holds the policy or not.

use clew::playground::Playground;
use clew_simulator::{ChannelKind, Draft, File, Id};
use fantoccini::key::Key;
use serde_json::json;

use super::chrome::Chrome;
use super::playground;

/// What runs if it is taken for markup or script: it sets `window.ran`.
const PAYLOADS: [&str; 44] = [
    "<script>window.ran=1</script>",
    "<script src=data:,window.ran=1></script>",
    "<ScRiPt>window.ran=1</sCrIpT >",
    "<scr<script>ipt>window.ran=1</scr</script>ipt>",
    "<img src=x onerror=window.ran=1>",
    "<img/src=x/onerror=window.ran=1>",
    "<IMG SRC=x ONERROR=\"window.ran=1\">",
    "\"><img src=x onerror=window.ran=1>",
    "'><svg onload=window.ran=1>",
    "<svg><script>window.ran=1</script></svg>",
    "<svg/onload=window.ran=1>",
    "<svg><animate onbegin=window.ran=1 attributeName=x dur=1s>",
    "<math><mtext><table><mglyph><style><img src=x onerror=window.ran=1>",
    "<body onload=window.ran=1>",
    "<iframe srcdoc=\"<script>parent.ran=1</script>\"></iframe>",
    "<iframe src=\"javascript:parent.ran=1\"></iframe>",
    "<object data=\"javascript:window.ran=1\"></object>",
    "<embed src=\"javascript:window.ran=1\">",
    "<details open ontoggle=window.ran=1>",
    "<input autofocus onfocus=window.ran=1>",
    "<select autofocus onfocus=window.ran=1>",
    "<video><source onerror=window.ran=1></video>",
    "<audio src=x onerror=window.ran=1>",
    "<marquee onstart=window.ran=1>x</marquee>",
    "<form action=\"javascript:window.ran=1\"><button autofocus>x</button></form>",
    "<base href=\"javascript:window.ran=1//\">",
    "<meta http-equiv=refresh content=\"0;url=javascript:window.ran=1\">",
    "<style>@import 'javascript:window.ran=1';*{animation-name:x}</style>",
    "<link rel=stylesheet href=data:text/css,*%7Bcolor:red%7D>",
    "<template><script>window.ran=1</script></template>",
    "<noscript><p title=\"</noscript><img src=x onerror=window.ran=1>\">",
    "<a href=\"javascript:window.ran=1\">x</a>",
    "<a href=javascript&colon;window.ran=1>x</a>",
    "[x](javascript:window.ran=1)",
    "[x](<java\tscript:window.ran=1>)",
    "[x](data:text/html,<script>window.ran=1</script>)",
    "![x](x\" onerror=\"window.ran=1)",
    "[x](http://a\" onmouseover=\"window.ran=1)",
    "<https://a\"onmouseover=window.ran=1>",
    "`</code><img src=x onerror=window.ran=1>`",
    "```</code></pre><script>window.ran=1</script>",
    "<@1\" onclick=\"window.ran=1> <#1><img src=x onerror=window.ran=1>",
    "{{constructor.constructor('window.ran=1')()}}${window.ran=1}",
    "\u{202e}<script>1=nar.wodniw</script>\u{2066}<img src=x onerror=window.ran=1>\u{0}",
];
/// Elements that only markup of others could bring into the page.
const FOREIGN: &str = "script:not([src=\"/main.js\"]), style, iframe, object, embed, base, \
                       meta[http-equiv], form[action], video, audio, math, marquee, template, \
                       img, svg:not(.icon)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_people_write_runs() {
    let playground = playground().await;
    let (place, thread) = write_everywhere(&playground);
    let link = format!("{}#{place}", playground.link());
    let chrome = Chrome::open(playground.link()).await;
    looks_at_everything(&chrome, &link, thread).await;
    // A test of the test: with the policy, a handler that got in would not run.
    runs_markup(&chrome).await;
    chrome
        .until("window.policy?.effectiveDirective.startsWith('script-src')")
        .await;
    chrome.console().await;

    chrome.hold_policy(false).await;
    looks_at_everything(&chrome, &link, thread).await;
    runs_markup(&chrome).await;
    chrome.until("window.ran === 'probe'").await;
    drop(chrome);
    playground.stop().await.unwrap();
}

/// Puts markup of ours into the page, as the server's is put in.
async fn runs_markup(chrome: &Chrome) {
    chrome
        .run(
            "document.addEventListener('securitypolicyviolation', (event) => { window.policy = event; });
             const box = document.createElement('div');
             document.body.append(box);
             box.innerHTML = '<img src=\"data:,\" onerror=\"window.ran = \\'probe\\'\">';",
        )
        .await;
}

/// Puts each payload into every text that people or apps can write. Returns a channel with
/// most of it, and a thread in which they talk.
fn write_everywhere(playground: &Playground) -> (Id, Id) {
    playground.discord().world(|world| {
        let guild = world.guild("<img src=x onerror=window.ran=1>");
        let forum = world.channel(guild, ChannelKind::Forum, "<b onclick=window.ran=1>forum");
        let place = world.channel(guild, ChannelKind::Text, "<svg onload=window.ran=1>");
        let webhook = world.fresh_id();
        let people: Vec<Id> = world.users().map(|user| user.id).collect();
        for person in people {
            world.join(guild, person);
        }
        let thread = world.thread(place, ChannelKind::PublicThread, PAYLOADS[4], webhook);
        for payload in PAYLOADS {
            let person = world.member(guild, payload);
            world.seed(thread, person, Draft::new(payload));
            let embed = json!({
                "title": payload, "description": payload, "url": "javascript:window.ran=1",
                "author": {"name": payload}, "footer": {"text": payload},
                "fields": [{"name": payload, "value": payload}],
            });
            let draft = Draft::new(payload)
                .embed(embed)
                .attachment(File::text(payload, payload))
                .sticker(payload)
                .poll(payload, &[payload]);
            let first = world.seed(place, person, draft);
            world.seed(place, person, Draft::new(payload).reply_to(first));
            world.seed(place, person, Draft::new("").forward_of(place, first));
            world.seed(place, webhook, Draft::new(payload).webhook(payload));
            world.thread_from(place, first, payload, person);
            let tag = world.tag(forum, payload);
            world.forum_post(forum, person, payload, &[tag], Draft::new(payload));
        }
        (place, thread)
    })
}

async fn looks_at_everything(chrome: &Chrome, link: &str, thread: Id) {
    chrome.go(link).await;
    reads_all_messages(chrome).await;
    chrome
        .run("for (const more of document.querySelectorAll('#places button.more')) if (more.textContent.endsWith(' more')) more.click();")
        .await;
    let names = chrome
        .value("[...document.getElementById('you').options].map((each) => each.textContent)")
        .await;
    for payload in PAYLOADS {
        assert!(names.as_array().unwrap().contains(&json!(payload)));
    }
    chrome.run(&format!("location.hash = '#{thread}';")).await;
    asks(chrome).await;
    chrome.click("#jump").await;
    chrome
        .until("document.querySelector('dialog[open] [role=\"option\"]')")
        .await;
    chrome.keys(&Key::Escape.to_string()).await;
    chrome.run("document.getElementById('text').focus();").await;
    chrome.keys("@img").await;
    chrome
        .until("document.querySelector('#completions [role=\"option\"]')")
        .await;
    chrome.keys(&Key::Escape.to_string()).await;
    sees_the_forum(chrome).await;
    let foreign = chrome
        .value(&format!(
            "[...document.querySelectorAll({})].map((each) => each.outerHTML)",
            json!(FOREIGN)
        ))
        .await;
    assert_eq!(foreign, json!([]));
    assert_eq!(chrome.value("window.ran ?? null").await, json!(null));
    let said = chrome.console().await;
    assert_eq!(said, Vec::<String>::new());
}

/// Scrolls to the channel's beginning, which brings all of it into the page.
async fn reads_all_messages(chrome: &Chrome) {
    chrome
        .until(
            "(() => {
                 const scroller = document.getElementById('scroller');
                 scroller.scrollTop = 0;
                 scroller.dispatchEvent(new Event('scroll'));
                 return document.getElementById('older').textContent.includes('beginning');
             })()",
        )
        .await;
    is_clean(chrome).await;
    let rows = chrome
        .value("document.querySelectorAll('.message').length")
        .await;
    assert!(rows.as_u64() >= Some(4 * PAYLOADS.len() as u64), "{rows}");
    let shown = chrome
        .value("document.getElementById('messages').innerText.includes('<script>window.ran=1</script>')")
        .await;
    assert_eq!(shown, json!(true), "markup is shown as text");
}

/// No handlers, no addresses but of the web, and nothing ran.
async fn is_clean(chrome: &Chrome) {
    let bad = chrome
        .run(
            "const bad = [];
             for (const each of document.querySelectorAll('*')) {
                 for (const { name, value } of each.attributes) {
                     const address = ['href', 'src', 'action', 'formaction', 'xlink:href'].includes(name);
                     const ours = each.closest('head') || /^https?:/.test(each.href ?? '');
                     if (name.startsWith('on') || name === 'style' && each.closest('.content') || address && !ours) bad.push(each.outerHTML);
                 }
             }
             return bad;",
        )
        .await;
    assert_eq!(bad, json!([]));
    assert_eq!(chrome.value("window.ran ?? null").await, json!(null));
}

/// The bot's answer, its context and both blocks have the payloads in them, too.
async fn asks(chrome: &Chrome) {
    chrome
        .until("document.getElementById('place-name').textContent.startsWith('<img')")
        .await;
    let turns = chrome
        .value("document.querySelectorAll('.ours').length")
        .await;
    chrome.run("document.getElementById('text').focus();").await;
    let question = format!(
        "@clew{} <img src=x onerror=window.ran=1>{}",
        Key::Enter,
        Key::Enter
    );
    chrome.keys(&question).await;
    chrome
        .until(&format!(
            "document.querySelectorAll('.ours').length > {turns}
             && document.querySelector('#why .chip.good')
             && document.querySelectorAll('#why .item').length > 10"
        ))
        .await;
    chrome
        .run(
            "for (const part of document.querySelectorAll('#why details')) part.open = true;
             for (const more of document.querySelectorAll('#why .items .link')) more.click();
             document.getElementById('tab-tune').click();
             const slider = document.getElementById('setting-MEM_MAX_MSGS');
             slider.value = '4';
             slider.dispatchEvent(new Event('input'));",
        )
        .await;
    chrome
        .until("document.querySelector('#tune-result [data-part=\"went\"]')")
        .await;
    is_clean(chrome).await;
}

async fn sees_the_forum(chrome: &Chrome) {
    chrome
        .run("[...document.querySelectorAll('#places .forum')].find((each) => each.textContent.includes('onclick')).click();")
        .await;
    chrome
        .until(&format!(
            "document.querySelectorAll('#posts .post').length === {}",
            PAYLOADS.len()
        ))
        .await;
    is_clean(chrome).await;
    chrome.click("#place-actions .primary").await;
    chrome.until("document.querySelector('dialog[open]')").await;
    is_clean(chrome).await;
    chrome.keys(&Key::Escape.to_string()).await;
}
