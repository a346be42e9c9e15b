//! How faults are counted.

use super::FaultAct;
use crate::world::{ModelTrouble, StoreTrouble};

impl FaultAct {
    /// How each is counted.
    pub(crate) const NAMES: [&'static str; 26] = [
        "model_status",
        "model_breaks_off",
        "model_hangs",
        "model_slow",
        "model_empty",
        "store_fails",
        "store_applied_but_lost",
        "store_full",
        "store_held",
        "store_hangs",
        "rest_status",
        "rest_limited",
        "rest_late",
        "rest_broken",
        "rest_truncated",
        "rest_short",
        "rest_hangs",
        "gateway_drops",
        "gateway_closes",
        "gateway_asks_to_reconnect",
        "gateway_invalidates",
        "gateway_forgets",
        "heartbeats_unanswered",
        "events_late",
        "events_twice",
        "clock_jumps",
    ];

    /// How it is counted.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Model(ModelTrouble::Status(_), _) => "model_status",
            Self::Model(ModelTrouble::BreaksOff, _) => "model_breaks_off",
            Self::Model(ModelTrouble::Hangs(_), _) => "model_hangs",
            Self::Model(ModelTrouble::Slow(_), _) => "model_slow",
            Self::Model(ModelTrouble::Empty, _) => "model_empty",
            Self::Store(StoreTrouble::Fails, _) => "store_fails",
            Self::Store(StoreTrouble::AppliedButLost, _) => "store_applied_but_lost",
            Self::Store(StoreTrouble::Full, _) => "store_full",
            Self::Store(StoreTrouble::Held, _) => "store_held",
            Self::Store(StoreTrouble::Hangs(_), _) => "store_hangs",
            Self::RestStatus { .. } => "rest_status",
            Self::RestLimited { .. } => "rest_limited",
            Self::RestLate { .. } => "rest_late",
            Self::RestBroken { .. } => "rest_broken",
            Self::RestTruncated { .. } => "rest_truncated",
            Self::RestShort { .. } => "rest_short",
            Self::RestHangs { .. } => "rest_hangs",
            Self::GatewayDrops => "gateway_drops",
            Self::GatewayCloses => "gateway_closes",
            Self::GatewayAsksToReconnect => "gateway_asks_to_reconnect",
            Self::GatewayInvalidates { .. } => "gateway_invalidates",
            Self::GatewayForgets => "gateway_forgets",
            Self::HeartbeatsUnanswered { .. } => "heartbeats_unanswered",
            Self::EventsLate { .. } => "events_late",
            Self::EventsTwice { .. } => "events_twice",
            Self::ClockJumps { .. } => "clock_jumps",
        }
    }
}
