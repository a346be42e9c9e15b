//! The last of twelve defects that a predecessor was shown to have; the others concern collectors and are
//! tested in `clew-context`.

use clew::telemetry::event::{Event, TailFallback, TailOk};
use clew_context::model::{Fallback, MessageId};

/// Events of the thread tail are logged under a subsystem of their own.
#[tokio::test]
async fn defect_12_tail_events_are_those_of_mem_thread() {
    for event in [
        Event::from(TailOk {
            k: 5,
            reply_target: Some(MessageId::new(1)),
            count: 5,
        }),
        Event::from(TailFallback {
            reason: Fallback::Timeout,
        }),
    ] {
        assert_eq!(event.subsys().as_str(), "mem.thread");
    }
}
