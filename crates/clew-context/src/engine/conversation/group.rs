//! All messages of a list, grouped into the conversations that they make. Pure.
//!
//! Each message is linked with the one that it most probably answers, if it probably answers
//! one; conversations are what is connected. Invariant: the work is bounded per message, since
//! each is judged against at most `WINDOW` before it.

use super::answers::Answers;
use super::features::{REACH, Window};
use super::weights::LEARNT;
use super::{Reply, Utterance};

/// Messages that are judged together; the later half has all its [`REACH`] before it.
const WINDOW: usize = 2 * REACH;
/// The likeliest message is answered if this is at least so many times as likely as that
/// something new begins.
const LEAST_ODDS: f32 = 1.0;

/// The conversation of each message, as the index of its first message. Oldest first, as they
/// are given; the same messages give the same groups.
pub fn group(utterances: &[Utterance<'_>]) -> Vec<usize> {
    let mut firsts = Vec::with_capacity(utterances.len());
    for from in (0..utterances.len()).step_by(REACH) {
        let until = utterances.len().min(from + WINDOW);
        let window = Window::new(&utterances[from..until], from);
        let answers = Answers::new(&window, &LEARNT);
        let unseen = utterances[..until].iter().enumerate().skip(firsts.len());
        for (message, utterance) in unseen {
            let answered = match utterance.reply {
                Reply::To(earlier) => Some(earlier).filter(|earlier| *earlier < message),
                Reply::Elsewhere => None,
                Reply::Unknown => answered(&answers, message - from).map(|earlier| from + earlier),
            };
            firsts.push(answered.map_or(message, |earlier| firsts[earlier]));
        }
        if until == utterances.len() {
            break;
        }
    }
    firsts
}

/// The message that this one probably answers; `None` if it begins something new.
fn answered(answers: &Answers, message: usize) -> Option<usize> {
    let surest = answers
        .picks(message)
        .max_by(|one, other| one.1.total_cmp(&other.1));
    let (earlier, share) = surest?;
    (share >= LEAST_ODDS * answers.begins(message)).then_some(earlier)
}
