//! Lanes: turns of one thread, direct conversation or member of a channel run
//! one after the other, a few wait, all together stay under a limit. Pure.

use std::collections::{HashMap, VecDeque};

use clew_context::model::{ChannelId, UserId};

/// What runs one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Lane {
    /// A thread or a direct conversation.
    Conversation(ChannelId),
    /// One person in an ordinary channel.
    Member(ChannelId, UserId),
}

/// What became of something submitted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Submitted<T> {
    /// It runs now.
    Starts(T),
    /// It waits.
    Waits,
    /// `TURN_QUEUE_PER_CHANNEL` wait in its lane already.
    LaneFull(T),
    /// `MAX_CONCURRENT_TURNS` run, and as many lanes wait for a place.
    Busy(T),
}

/// All lanes. A lane exists while something runs or waits in it.
#[derive(Debug)]
pub(super) struct Lanes<T> {
    max_running: usize,
    max_waiting: usize,
    running: usize,
    by_lane: HashMap<Lane, State<T>>,
    /// Lanes that could run but for the limit, the longest waiting first.
    ready: VecDeque<Lane>,
}

#[derive(Debug)]
struct State<T> {
    runs: bool,
    waiting: VecDeque<T>,
}

impl<T> Lanes<T> {
    pub(super) fn new(max_running: usize, max_waiting: usize) -> Self {
        Self {
            max_running,
            max_waiting,
            running: 0,
            by_lane: HashMap::new(),
            ready: VecDeque::new(),
        }
    }

    pub(super) fn submit(&mut self, lane: Lane, work: T) -> Submitted<T> {
        if let Some(state) = self.by_lane.get_mut(&lane) {
            if state.waiting.len() >= self.max_waiting {
                return Submitted::LaneFull(work);
            }
            state.waiting.push_back(work);
            return Submitted::Waits;
        }
        if self.running < self.max_running {
            self.running += 1;
            self.by_lane.insert(
                lane,
                State {
                    runs: true,
                    waiting: VecDeque::new(),
                },
            );
            return Submitted::Starts(work);
        }
        if self.ready.len() >= self.max_running {
            return Submitted::Busy(work);
        }
        self.by_lane.insert(
            lane,
            State {
                runs: false,
                waiting: VecDeque::from([work]),
            },
        );
        self.ready.push_back(lane);
        Submitted::Waits
    }

    /// What ran in a lane is done. Gives what runs next, of whatever lane:
    /// lanes take turns.
    pub(super) fn finished(&mut self, lane: Lane) -> Option<(Lane, T)> {
        self.running -= 1;
        if let Some(state) = self.by_lane.get_mut(&lane) {
            state.runs = false;
            if state.waiting.is_empty() {
                self.by_lane.remove(&lane);
            } else {
                self.ready.push_back(lane);
            }
        }
        self.next()
    }

    fn next(&mut self) -> Option<(Lane, T)> {
        while let Some(lane) = self.ready.pop_front() {
            let Some(state) = self.by_lane.get_mut(&lane) else {
                continue;
            };
            match state.waiting.pop_front() {
                Some(work) => {
                    state.runs = true;
                    self.running += 1;
                    return Some((lane, work));
                }
                None => {
                    self.by_lane.remove(&lane);
                }
            }
        }
        None
    }

    /// Everything that waits.
    pub(super) fn waiting_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.by_lane
            .values_mut()
            .flat_map(|state| state.waiting.iter_mut())
    }

    /// Takes out what waits and is not wanted any more.
    pub(super) fn remove_waiting(&mut self, unwanted: impl Fn(&T) -> bool) -> Vec<T> {
        let mut removed = Vec::new();
        for state in self.by_lane.values_mut() {
            let (gone, kept) = std::mem::take(&mut state.waiting)
                .into_iter()
                .partition(|work| unwanted(work));
            state.waiting = kept;
            removed.extend::<VecDeque<T>>(gone);
        }
        removed
    }

    pub(super) fn running(&self) -> usize {
        self.running
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn thread(id: u64) -> Lane {
        Lane::Conversation(ChannelId::new(id))
    }

    #[test]
    fn a_lane_runs_one_after_the_other_and_refuses_what_is_too_much() {
        let mut lanes = Lanes::new(8, 2);
        assert_eq!(lanes.submit(thread(1), 'a'), Submitted::Starts('a'));
        assert_eq!(lanes.submit(thread(1), 'b'), Submitted::Waits);
        assert_eq!(lanes.submit(thread(1), 'c'), Submitted::Waits);
        assert_eq!(lanes.submit(thread(1), 'd'), Submitted::LaneFull('d'));
        assert_eq!(lanes.submit(thread(2), 'e'), Submitted::Starts('e'));
        assert_eq!(lanes.finished(thread(1)), Some((thread(1), 'b')));
        assert_eq!(lanes.finished(thread(1)), Some((thread(1), 'c')));
        assert_eq!(lanes.finished(thread(1)), None);
        assert_eq!(lanes.submit(thread(1), 'f'), Submitted::Starts('f'));
    }

    #[test]
    fn all_together_stay_under_the_limit_and_lanes_take_turns() {
        let mut lanes = Lanes::new(1, 2);
        assert_eq!(lanes.submit(thread(1), 'a'), Submitted::Starts('a'));
        assert_eq!(lanes.submit(thread(1), 'b'), Submitted::Waits);
        assert_eq!(lanes.submit(thread(2), 'c'), Submitted::Waits);
        assert_eq!(lanes.submit(thread(3), 'd'), Submitted::Busy('d'));
        assert_eq!(lanes.finished(thread(1)), Some((thread(2), 'c')));
        assert_eq!(lanes.finished(thread(2)), Some((thread(1), 'b')));
        assert_eq!(lanes.finished(thread(1)), None);
        assert_eq!(lanes.running(), 0);
    }

    #[test]
    fn what_waits_can_be_taken_out() {
        let mut lanes = Lanes::new(1, 2);
        lanes.submit(thread(1), 'a');
        lanes.submit(thread(1), 'b');
        lanes.submit(thread(2), 'c');
        assert_eq!(lanes.remove_waiting(|work| *work == 'c'), ['c']);
        assert_eq!(lanes.finished(thread(1)), Some((thread(1), 'b')));
        assert_eq!(lanes.finished(thread(1)), None);
    }
}
