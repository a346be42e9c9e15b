//! Disks that fail, and bounds that hold whatever comes.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use serde_json::json;

use super::super::*;
use super::{ADA, START, of, scope};
use clew_context::model::fixed_clock;

/// A disk on which something does not work.
#[derive(Debug, Default)]
struct Failing {
    disk: InMemory,
    refuses_writes: AtomicBool,
    refuses_removals: AtomicBool,
}

impl Failing {
    fn check(flag: &AtomicBool, path: &Path) -> Result<(), Error> {
        if flag.load(Ordering::Relaxed) {
            return Err(Error::Io {
                operation: "write",
                path: path.to_owned(),
                source: std::io::Error::from(std::io::ErrorKind::StorageFull),
            });
        }
        Ok(())
    }
}

impl FileSystem for Failing {
    fn open(&self, folder: &Path) -> Result<(), Error> {
        self.disk.open(folder)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), Error> {
        Self::check(&self.refuses_writes, path)?;
        self.disk.write(path, bytes)
    }

    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, Error> {
        self.disk.read(path)
    }

    fn remove(&self, path: &Path) -> Result<bool, Error> {
        Self::check(&self.refuses_removals, path)?;
        self.disk.remove(path)
    }

    fn list(&self, folder: &Path) -> Result<Vec<PathBuf>, Error> {
        self.disk.list(folder)
    }
}

#[tokio::test]
async fn a_full_disk_costs_one_output_and_removals_are_tried_again() {
    let files = Arc::new(Failing::default());
    let system: Arc<dyn FileSystem> = files.clone();
    let settings = OutputSettings::new("outputs");
    let outputs = ToolOutputs::open(settings, system, fixed_clock(START));
    let outputs = outputs.await.unwrap();
    outputs.save_context(of(ADA, "a")).await.unwrap();
    files.refuses_writes.store(true, Ordering::Relaxed);
    let error = outputs.save_context(of(ADA, "b")).await.unwrap_err();
    assert!(
        matches!(error, SaveError::Store(Error::Io { .. })),
        "{error}"
    );
    assert_eq!(outputs.len(), 1);

    files.refuses_removals.store(true, Ordering::Relaxed);
    outputs.purge(&Purge::User(ADA), START).await.unwrap_err();
    assert!(
        outputs.is_empty(),
        "it is not shown although its file is left"
    );
    files.refuses_removals.store(false, Ordering::Relaxed);
    outputs.sweep().await.unwrap();
    let left = files.list(Path::new("outputs")).unwrap();
    assert!(left.is_empty(), "{left:?}");
}

proptest! {
    /// Whatever is saved, by whom and with which name: the bounds hold, each
    /// file has its pointer, and no lookup crosses a scope.
    #[test]
    fn the_bounds_always_hold(
        saves in prop::collection::vec((0_u64..4, 0_usize..400, ".{0,80}"), 1..40),
        pointers in 1_usize..8,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let files = Arc::new(InMemory::default());
            let system: Arc<dyn FileSystem> = files.clone();
            let mut settings = OutputSettings::new("outputs");
            settings.limits.pointers = pointers;
            settings.limits.bytes = 3_000;
            let outputs = ToolOutputs::open(settings, system, fixed_clock(START));
            let outputs = outputs.await.unwrap();
            for (user, size, tool) in saves {
                let user = UserId::new(100 + user);
                let output = NewOutput {
                    result: json!("x".repeat(size)),
                    ..of(user, &tool)
                };
                match outputs.save_context(output).await {
                    Ok(pointer) => {
                        let found = outputs.pointers_in(scope(user)).await.unwrap();
                        prop_assert!(found.contains(&pointer));
                        prop_assert!(found.iter().all(|one| one.owner == user));
                    }
                    Err(error) => prop_assert!(false, "{error}"),
                }
                let all = outputs.all_pointers().await.unwrap();
                prop_assert!(all.len() <= pointers);
                prop_assert!(all.iter().map(|one| one.file_bytes).sum::<u64>() <= 3_000);
                let left: HashSet<PathBuf> = files.list(Path::new("outputs")).unwrap().into_iter().collect();
                let named: HashSet<PathBuf> = all.into_iter().map(|one| one.filepath).collect();
                prop_assert_eq!(left, named);
            }
            Ok(())
        })?;
    }
}
