//! How often somebody may be told what they missed: it asks the model several times.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use clew_context::model::{ChannelId, GuildId, UserId};

/// Between two of one person.
const OF_USER: Duration = Duration::from_mins(5);
/// Between two about one channel.
const OF_CHANNEL: Duration = Duration::from_mins(1);
/// How many run at a time in one server...
const IN_GUILD: usize = 2;
/// ...and in all: each holds up to 2,000 messages for minutes.
const IN_ALL: usize = 8;
/// How many are remembered before those that are over are removed.
const MANY: usize = 1_024;

/// When each person was last told, and each channel last told of.
#[derive(Debug, Default)]
pub struct CatchUpPace(Mutex<Times>);

#[derive(Debug, Default)]
struct Times {
    users: HashMap<UserId, Instant>,
    channels: HashMap<ChannelId, Instant>,
    /// The servers of those that run.
    running: Vec<Option<GuildId>>,
}

/// One that runs, until it is dropped.
#[derive(Debug)]
pub struct RunningCatchUp<'a> {
    pace: &'a CatchUpPace,
    guild: Option<GuildId>,
}

impl Drop for RunningCatchUp<'_> {
    fn drop(&mut self) {
        let running = &mut self.pace.0.lock().running;
        if let Some(at) = running.iter().position(|guild| *guild == self.guild) {
            running.swap_remove(at);
        }
    }
}

impl CatchUpPace {
    /// Counts one more, which runs until what is returned is dropped.
    ///
    /// # Errors
    /// How long to wait, if it is too soon or too many run; then nothing is counted.
    pub fn take(
        &self,
        user: UserId,
        channel: ChannelId,
        guild: Option<GuildId>,
        now: Instant,
    ) -> Result<RunningCatchUp<'_>, Duration> {
        let mut times = self.0.lock();
        let Times {
            users,
            channels,
            running,
        } = &mut *times;
        let of_guild = running
            .iter()
            .filter(|one| guild.is_some() && **one == guild);
        let of_guild = of_guild.count();
        if of_guild >= IN_GUILD || running.len() >= IN_ALL {
            return Err(OF_CHANNEL);
        }
        if users.len().max(channels.len()) >= MANY {
            users.retain(|_, last| now - *last < OF_USER);
            channels.retain(|_, last| now - *last < OF_CHANNEL);
        }
        let left = |last: Option<&Instant>, pause: Duration| {
            last.map_or(Duration::ZERO, |last| pause.saturating_sub(now - *last))
        };
        let left = left(users.get(&user), OF_USER).max(left(channels.get(&channel), OF_CHANNEL));
        if !left.is_zero() {
            return Err(left);
        }
        users.insert(user, now);
        channels.insert(channel, now);
        running.push(guild);
        Ok(RunningCatchUp { pace: self, guild })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_and_a_channel_wait() {
        let (pace, start) = (CatchUpPace::default(), Instant::now());
        let take = |user, channel, seconds| {
            let now = start + Duration::from_secs(seconds);
            let taken = pace.take(UserId::new(user), ChannelId::new(channel), None, now);
            taken.map(drop).map_err(|left| left.as_secs())
        };
        assert_eq!(take(1, 1, 0), Ok(()));
        assert_eq!(take(1, 2, 10), Err(290));
        assert_eq!(take(2, 1, 10), Err(50));
        assert_eq!(take(2, 2, 10), Ok(()));
        assert_eq!(take(3, 1, 60), Ok(()));
        assert_eq!(take(1, 3, 300), Ok(()));
    }

    #[test]
    fn few_run_at_a_time() {
        let (pace, now) = (CatchUpPace::default(), Instant::now());
        let take = |number: u64, guild: u64| {
            let guild = Some(GuildId::new(guild));
            pace.take(UserId::new(number), ChannelId::new(number), guild, now)
        };
        let two = [take(1, 1).unwrap(), take(2, 1).unwrap()];
        assert_eq!(take(3, 1).err(), Some(OF_CHANNEL));
        let others: Vec<_> = (2..8)
            .map(|guild| take(10 + guild, guild).unwrap())
            .collect();
        assert_eq!(take(30, 9).err(), Some(OF_CHANNEL));
        drop((two, others));
        assert!(take(3, 1).is_ok());
    }

    #[test]
    fn those_that_are_over_are_forgotten() {
        let (pace, start) = (CatchUpPace::default(), Instant::now());
        for number in 1..=10 * MANY as u64 {
            let now = start + Duration::from_secs(number);
            let _ = pace.take(UserId::new(number), ChannelId::new(number), None, now);
        }
        assert!(pace.0.lock().users.len() <= MANY);
    }
}
