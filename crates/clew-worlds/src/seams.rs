//! Where the bot meets the world: requests, the gateway, the store.

pub(crate) mod cluster;
pub(crate) mod gateway;
pub(crate) mod model;
pub(crate) mod net;
pub(crate) mod store;
