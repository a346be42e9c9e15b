//! What the images of running turns may take in memory, so that no server and no user
//! takes it from the others. A request to a model needs up to three times as much again
//! while it is sent.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::model::Payer;
use clew_context::engine::images;

/// Bytes of images of all running turns.
const IN_ALL: u64 = 4 * images::MAX_BYTES;
/// Of those in one server.
const OF_GUILD: u64 = 2 * images::MAX_BYTES;
const OF_USER: u64 = images::MAX_BYTES;

/// The room of all turns.
#[derive(Debug, Default)]
pub struct ImageRoom(Mutex<Vec<(Payer, u64)>>);

/// Part of the room, given back when this is dropped.
#[derive(Debug)]
pub(super) struct ImageShare {
    room: Arc<ImageRoom>,
    payer: Payer,
    bytes: u64,
}

impl ImageRoom {
    /// Takes so many bytes, if there are as many.
    pub(super) fn take(self: &Arc<Self>, payer: Payer, bytes: u64) -> Option<ImageShare> {
        let mut taken = self.0.lock();
        let has_room = |most: u64, counts: &dyn Fn(&Payer) -> bool| {
            let counted = taken.iter().filter(|(payer, _)| counts(payer));
            counted.map(|(_, bytes)| bytes).sum::<u64>() + bytes <= most
        };
        let has_room = has_room(IN_ALL, &|_| true)
            && has_room(OF_USER, &|other| other.spender == payer.spender)
            && (payer.guild.is_none() || has_room(OF_GUILD, &|other| other.guild == payer.guild));
        if !has_room {
            return None;
        }
        taken.push((payer, bytes));
        Some(ImageShare {
            room: Arc::clone(self),
            payer,
            bytes,
        })
    }
}

impl Drop for ImageShare {
    fn drop(&mut self) {
        let mut taken = self.room.0.lock();
        let own = (self.payer, self.bytes);
        if let Some(at) = taken.iter().position(|one| *one == own) {
            taken.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clew_context::model::{GuildId, UserId};

    fn payer(user: u64, guild: u64) -> Payer {
        Payer {
            spender: UserId::new(user).into(),
            guild: (guild > 0).then(|| GuildId::new(guild)),
            limits: clew_store::model::RoleLimits::default(),
        }
    }

    #[test]
    fn users_and_servers_have_their_share() {
        let room = Arc::<ImageRoom>::default();
        let most = images::MAX_BYTES;
        let first = room.take(payer(1, 1), most);
        assert!(first.is_some());
        assert!(room.take(payer(1, 2), 1).is_none(), "the same user");
        let second = room.take(payer(2, 1), most);
        assert!(second.is_some());
        assert!(room.take(payer(3, 1), 1).is_none(), "the same server");
        let others = [payer(4, 0), payer(5, 0)].map(|one| room.take(one, most));
        assert!(others.iter().all(Option::is_some), "direct messages");
        assert!(room.take(payer(6, 2), 1).is_none(), "all is taken");
        drop(second);
        assert!(room.take(payer(3, 1), most).is_some());
        drop((first, others));
        assert!(room.0.lock().is_empty());
    }
}
