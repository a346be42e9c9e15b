//! Whether several processes share the store.

use super::check::Checker;
use super::memory::MemoryConfig;
use super::problem::Problem;
use super::variable as var;
use clew_store::model::StoreAddress;

/// `CLUSTER`, which needs a store that several processes can share, and nothing that stays behind
/// on the machine of one.
pub(super) fn read(check: &mut Checker, memory: &MemoryConfig) -> bool {
    let cluster = check.switch(&var::CLUSTER);
    if !cluster {
        return false;
    }
    let needs = match &memory.store {
        StoreAddress::Postgres(_) if memory.dm_logs_dir.is_none() => {
            if check.is_set(&var::TOOL_OUTPUT_RESUME) {
                let why = "with CLUSTER=on: what tools gave is kept in memory";
                check.warn_of_no_effect(&var::TOOL_OUTPUT_RESUME, why);
            }
            return true;
        }
        StoreAddress::Postgres(_) => {
            "off, since DM_LOGS_DIR keeps logs on one machine, where an erasure by another does not \
             reach them"
        }
        StoreAddress::Sqlite(_) | StoreAddress::Files(_) => {
            "off, since only CONTEXT_STORE=postgres://... is shared by several processes"
        }
    };
    check.problem(Problem::value(&var::CLUSTER, "on", needs));
    true
}
