//! Processes run until they are ended, and end when they are asked to.

use super::{Verdict, verdict};
use crate::evidence::Evidence;
use crate::history::What;

/// Who is asked to stop does so in time, without an error.
pub(crate) fn stops(evidence: &Evidence) -> Verdict {
    let mut asked = Vec::new();
    let mut found = None;
    for happened in &evidence.history {
        match &happened.what {
            What::AskedToStop { process } => asked.push(*process),
            What::Ended {
                process,
                error: Some(error),
            } if asked.contains(process) => {
                found.get_or_insert(format!(
                    "{} ms: process {process} was asked to stop: {error}",
                    happened.at
                ));
            }
            _ => {}
        }
    }
    verdict(asked.len(), found)
}

/// No process ends by itself.
pub(crate) fn runs(evidence: &Evidence) -> Verdict {
    let (mut asked, mut started, mut found) = (Vec::new(), 0, None);
    for happened in &evidence.history {
        match &happened.what {
            What::Started { .. } => started += 1,
            What::AskedToStop { process } => asked.push(*process),
            What::Ended { process, error } if !asked.contains(process) => {
                found.get_or_insert(format!(
                    "{} ms: process {process} ended by itself: {error:?}",
                    happened.at
                ));
            }
            _ => {}
        }
    }
    verdict(started, found)
}
