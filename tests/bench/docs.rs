//! How well passages of documents are found, and what they spare a prompt: `cargo bench -- docs`.
//!
//! Two manuals with 30 questions each: this project's documents, and a part of Node.js's (licence: MIT), which
//! Debian's package `nodejs` installs. Passages' length and what counts
//! how much were chosen on every other question.

use std::fs;
use std::path::Path;
use std::time::Instant;

use clew_context::engine::docs::Docs;
use clew_context::model::AgentDoc;

use super::process::milliseconds;

/// What a prompt gets of them, in Unicode scalars: the default, and more.
const BUDGETS: [usize; 3] = [8_000, 16_000, 24_000];
/// Questions, and those of which the passage is first, among the first, and in each prompt.
const COUNTS: usize = 3 + BUDGETS.len();
/// Among so many passages the right one should be.
const FIRST: usize = 5;

/// A question as people ask it, and a line of each passage that answers it.
type Question = (&'static str, &'static [&'static str]);

struct Manual {
    name: &'static str,
    folder: &'static str,
    files: &'static [&'static str],
    questions: [Question; 30],
}

const OURS: Manual = Manual {
    name: "this project's documents",
    folder: env!("CARGO_MANIFEST_DIR"),
    files: &[
        "README.md",
        "docs/conversation.md",
        "docs/decisions.md",
        "docs/measurements.md",
        "docs/operating.md",
        "docs/playground.md",
        "docs/privacy.md",
        "docs/proxies.md",
        "docs/recall.md",
        "docs/replay.md",
        "docs/report.md",
        "docs/settings.md",
    ],
    questions: OUR_QUESTIONS,
};
const NODE: Manual = Manual {
    name: "Node.js",
    folder: "/usr/share/doc/nodejs/api",
    files: &[
        "child_process.md",
        "os.md",
        "path.md",
        "readline.md",
        "timers.md",
        "zlib.md",
    ],
    questions: NODE_QUESTIONS,
};

const OUR_QUESTIONS: [Question; 30] = [
    (
        "can the bot see our messages when nobody mentions it?",
        &["It holds the newest 200 messages of a channel, in memory only."],
    ),
    (
        "how long do you keep what I asked?",
        &["your questions and its answers; conversations that you saved"],
    ),
    (
        "how do I make it forget everything about me?",
        &["Erase it: `/privacy erase` all"],
    ),
    (
        "does what I tell it in private show up on the server?",
        &["What you tell it in a direct message is not used in a"],
    ),
    (
        "where are my questions sent?",
        &["To the model server: your question"],
    ),
    (
        "I left the server, is my data still there?",
        &["server goes about a day after you leave"],
    ),
    (
        "which permissions does it need when I invite it?",
        &["Permissions: View Channels; Read Message History"],
    ),
    (
        "it doesn't start and says something about a privileged intent",
        &["\"refused a privileged intent\""],
    ),
    (
        "why did it react with a muted speaker to my question?",
        &["a 🔇 reaction"],
    ),
    (
        "my sqlite database is broken, how do I repair it?",
        &["sqlite3 var/clew.db.damaged .recover"],
    ),
    (
        "how do I save a copy of everything while the bot is running?",
        &["clew store backup"],
    ),
    (
        "what should I do before I install a new version?",
        &["Before an update, make a backup"],
    ),
    (
        "how can I move from sqlite to postgres?",
        &["clew store copy sqlite:var/clew.db configured"],
    ),
    (
        "can it use a second model if the first one is down?",
        &["are unreachable, silent for"],
    ),
    (
        "how do I monitor it with prometheus?",
        &["OpenMetrics, or Prometheus's text format"],
    ),
    (
        "it was offline for ten minutes. does it still answer what people asked meanwhile?",
        &[
            "asked while the bot was away is answered",
            "A start within five minutes resumes the session",
        ],
    ),
    (
        "how many people can ask at the same time?",
        &["`MAX_CONCURRENT_TURNS` | `32`"],
    ),
    (
        "can I limit how many tokens each member uses a day?",
        &["`TOKENS_PER_DAY` | `0,0`"],
    ),
    (
        "how do I keep it from answering in some channels?",
        &["`DENIED` |  | where and whom not"],
    ),
    (
        "can it answer every message in our help channel without a mention?",
        &[
            "`AUTO_REPLY_CHANNELS` |  | channels where",
            "every message in `AUTO_REPLY_CHANNELS`",
        ],
    ),
    (
        "its answers are too long, how do I make them shorter?",
        &["`LLM_MAX_OUTPUT_TOKENS` | `1024`"],
    ),
    (
        "we use pluralkit, does it read those messages?",
        &[
            "at them, except those that you list",
            "What these apps post counts as people's words",
        ],
    ),
    (
        "several people talk at once here. how does it know which messages belong to my question?",
        &["Each message answers one of the 100 before it"],
    ),
    (
        "can it remember something that I told it weeks ago?",
        &["A prompt shows the newest exchanges with the bot, and of earlier ones"],
    ),
    (
        "how much money does it cost us per day?",
        &["and cost by day, server, model and agent"],
    ),
    (
        "how do I find good limits for our own channels?",
        &["Export a few weeks of the channels"],
    ),
    (
        "can I try it in the browser without discord?",
        &[
            "starts a simulated Discord, the real bot and a page",
            "opens a small Discord of your own in the browser",
        ],
    ),
    (
        "who else can open the playground?",
        &["Whoever has the link (it carries a token) can do everything"],
    ),
    (
        "why does it run on a single thread, wouldn't more be faster?",
        &["The bot runs on one thread, with the system's allocator."],
    ),
    (
        "how do I set up an agent with its own documents?",
        &["An agent is a folder `AGENTS_DIR/NAME`"],
    ),
];

/// Few of them share a word with what answers them.
const NODE_QUESTIONS: [Question; 30] = [
    (
        "I can't start my build.bat from node on windows 10, execFile just fails. what do I do?",
        &["terminal, and therefore cannot be launched using"],
    ),
    (
        "exec cuts off what my command prints after about a megabyte, why?",
        &["stderr. If exceeded, the child process is terminated and any output is"],
    ),
    (
        "how do I start something in the background that lives on when my script quits?",
        &["continue running after the parent exits"],
    ),
    (
        "is it safe to put what a visitor typed into exec?",
        &["Never pass unsanitized user input to this"],
    ),
    (
        "how does the parent send a message to a forked worker?",
        &["When an IPC channel has been established between the parent and child"],
    ),
    (
        "what's the difference between the exit and the close event of a child?",
        &["streams of a child process have been closed. This is distinct from the"],
    ),
    (
        "which error do I get if the program that I spawn isn't installed?",
        &["is also emitted when the command"],
    ),
    (
        "if I kill a child on linux, do the processes that it started die, too?",
        &["On Linux, child processes of child processes will not be terminated"],
    ),
    (
        "how many workers should I start on this machine?",
        &["Returns an estimate of the default amount of parallelism"],
    ),
    (
        "where do temp files go on windows, and which variable changes that?",
        &["On Windows, the result can be overridden by"],
    ),
    (
        "how do I find my computer's IP address in the LAN?",
        &["Returns an object containing network interfaces that have been assigned a"],
    ),
    (
        "can I give my process less CPU than others, like nice does?",
        &["input must be an integer between"],
    ),
    (
        "I want to throw output away. what is /dev/null on every system?",
        &["The platform-specific file path of the null device"],
    ),
    (
        "how do I get the name and login shell of who runs the script?",
        &["Returns information about the currently effective user"],
    ),
    (
        "how do I get .jpg out of photo.jpg?",
        &["method returns the extension of the"],
    ),
    (
        "how can I turn a relative path into an absolute one?",
        &["method resolves a sequence of paths or path segments into"],
    ),
    (
        "can I use isAbsolute to keep uploads from escaping their folder?",
        &["not safe for mitigating path traversals"],
    ),
    (
        "how do I get from one folder to another, as in ../../other?",
        &["method returns the relative path from"],
    ),
    (
        "what stands between the entries of the PATH variable on each system?",
        &["Provides the platform-specific path delimiter"],
    ),
    (
        "how do I read a huge file line by line?",
        &["A common use case for `readline` is to consume an input file one line at a"],
    ),
    (
        "how do I ask something in the terminal and await the reply?",
        &["const answer = await rl.question("],
    ),
    (
        "can my CLI suggest commands when somebody presses tab?",
        &["function takes the current line entered by the user"],
    ),
    (
        "how do I keep passwords out of what the up arrow brings back?",
        &["could be useful to prevent certain lines to be added to the history, like"],
    ),
    (
        "a setTimeout keeps my program from exiting. how do I stop that?",
        &["object will not require the Node.js event loop"],
    ),
    (
        "my interval of 30 days fires all the time, why?",
        &["When `delay` is larger than `2147483647`"],
    ),
    (
        "how do I abort a sleep made with the promise version of setTimeout?",
        &["may be used to cancel the timer. When canceled"],
    ),
    (
        "gzip eats too much RAM, can I make it use less?",
        &["to reduce the default memory requirements from 256K to 128K"],
    ),
    (
        "unzip throws because my file is incomplete. can I get what is there anyway?",
        &["truncated data. However, if it is known that the data is incomplete"],
    ),
    (
        "how do I compute a checksum of a buffer?",
        &["Computes a 32-bit"],
    ),
    (
        "how can the browser get what is compressed so far at once?",
        &["output as currently possible"],
    ),
];

pub(crate) fn print() {
    println!("\ndocs: the right passage of a manual, by question");
    for manual in [OURS, NODE] {
        print_manual(&manual);
    }
}

fn print_manual(manual: &Manual) {
    let name = manual.name;
    let Some(all) = read(manual) else {
        println!("  {name}: {} lacks it", manual.folder);
        return;
    };
    let whole: usize = all.iter().map(|doc| doc.text.chars().count()).sum();
    let began = Instant::now();
    let docs = Docs::new(all, BUDGETS[0]);
    let cut = milliseconds(began.elapsed());
    let wider = BUDGETS[1..]
        .iter()
        .map(|budget| Docs::new(docs.all().to_vec(), *budget));
    let wider: Vec<Docs> = wider.collect();
    let mut found = [[0; COUNTS]; 2];
    let mut sizes = Vec::new();
    for (at, (question, lines)) in manual.questions.iter().enumerate() {
        let answers = |text: &str| lines.iter().any(|line| text.contains(line));
        assert!(docs.all().iter().any(|doc| answers(&doc.text)), "{lines:?}");
        let best = docs.best(question, "");
        let place = best.iter().position(|(_, doc)| answers(&doc.text));
        let is_given = |docs: &Docs| {
            let given = docs.for_prompt(0, || ((*question).to_owned(), String::new()));
            given.iter().any(|doc| answers(&doc.text))
        };
        let chars = |doc: &AgentDoc| doc.name.chars().count() + doc.text.chars().count();
        let given = docs.for_prompt(0, || ((*question).to_owned(), String::new()));
        sizes.push(given.iter().map(chars).sum::<usize>());
        let counted = [
            true,
            place == Some(0),
            place.is_some_and(|place| place < FIRST),
            is_given(&docs),
            is_given(&wider[0]),
            is_given(&wider[1]),
        ];
        for (count, is_so) in found[at % 2].iter_mut().zip(counted) {
            *count += usize::from(is_so);
        }
        if place.is_none_or(|place| place >= FIRST) {
            let place = place.map_or("nowhere".to_owned(), |place| (place + 1).to_string());
            println!("    {place}: {question}");
        }
    }
    let began = Instant::now();
    for (question, _) in manual.questions {
        divan::black_box(docs.for_prompt(0, || ((*question).to_owned(), String::new())));
    }
    let took = milliseconds(began.elapsed()) / manual.questions.len() as f64;
    let [chosen, others] = found;
    let all: [usize; COUNTS] = std::array::from_fn(|at| chosen[at] + others[at]);
    for (half, of) in [("chosen on", chosen), ("others", others), ("all", all)] {
        let [first, five, short, long, longer] =
            [1, 2, 3, 4, 5].map(|at| of[at] as f64 / of[0] as f64);
        println!(
            "  {name}, {half}: first {first:.2}, among {FIRST} {five:.2}, in prompts with {BUDGETS:?} \
             characters {short:.2} {long:.2} {longer:.2}"
        );
    }
    sizes.sort_unstable();
    let (median, most) = (sizes[sizes.len() / 2], sizes[sizes.len() - 1]);
    println!("  characters of a prompt: {whole} whole, {median} by passage (median; most {most})");
    println!("  cut in {cut:.1} ms, {took:.2} ms a question");
}

fn read(manual: &Manual) -> Option<Vec<AgentDoc>> {
    let read = |name: &&str| {
        let text = fs::read_to_string(Path::new(manual.folder).join(name)).ok()?;
        Some(AgentDoc {
            name: (*name).to_owned(),
            text: text.trim().to_owned(),
        })
    };
    manual.files.iter().map(read).collect()
}
