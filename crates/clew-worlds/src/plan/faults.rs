//! How faults are counted.

use super::FaultAct;
use crate::process::Lack;
use crate::world::{ModelTrouble, StoreTrouble};

/// The table of faults, each with its name.
macro_rules! faults {
    ($($fault:pat => $name:literal,)+) => {
        impl FaultAct {
            pub(crate) const NAMES: &[&str] = &[$($name),+];

            /// How it is counted.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $($fault => $name,)+
                }
            }
        }
    };
}

faults! {
    FaultAct::Model(ModelTrouble::Status(_), _) => "model_status",
    FaultAct::Model(ModelTrouble::BreaksOff, _) => "model_breaks_off",
    FaultAct::Model(ModelTrouble::Hangs(_), _) => "model_hangs",
    FaultAct::Model(ModelTrouble::Slow(_), _) => "model_slow",
    FaultAct::Model(ModelTrouble::Empty, _) => "model_empty",
    FaultAct::Store(StoreTrouble::Fails, _) => "store_fails",
    FaultAct::Store(StoreTrouble::AppliedButLost, _) => "store_applied_but_lost",
    FaultAct::Store(StoreTrouble::Full, _) => "store_full",
    FaultAct::Store(StoreTrouble::Held, _) => "store_held",
    FaultAct::Store(StoreTrouble::Hangs(_), _) => "store_hangs",
    FaultAct::RestStatus { .. } => "rest_status",
    FaultAct::RestLimited { .. } => "rest_limited",
    FaultAct::RestLate { .. } => "rest_late",
    FaultAct::RestBroken { .. } => "rest_broken",
    FaultAct::RestTruncated { .. } => "rest_truncated",
    FaultAct::RestShort { .. } => "rest_short",
    FaultAct::RestHangs { .. } => "rest_hangs",
    FaultAct::GatewayDrops => "gateway_drops",
    FaultAct::GatewayCloses => "gateway_closes",
    FaultAct::GatewayAsksToReconnect => "gateway_asks_to_reconnect",
    FaultAct::GatewayInvalidates { .. } => "gateway_invalidates",
    FaultAct::GatewayForgets => "gateway_forgets",
    FaultAct::HeartbeatsUnanswered { .. } => "heartbeats_unanswered",
    FaultAct::EventsLate { .. } => "events_late",
    FaultAct::EventsTwice { .. } => "events_twice",
    FaultAct::ClockJumps { .. } => "clock_jumps",
    FaultAct::DatabaseGone { .. } => "database_gone",
    FaultAct::Drained => "drained",
    FaultAct::Resharded { .. } => "resharded",
    FaultAct::Lacks { lack: Lack::Database, .. } => "parted",
    FaultAct::Lacks { lack: Lack::Time, .. } => "paused",
    FaultAct::Lacks { lack: Lack::Discord, .. } => "offline",
}
