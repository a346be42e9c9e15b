//! Saving: several at a time, and what a log tells of it.

use std::collections::HashSet;
use std::io;

use futures_util::future::join_all;
use serde_json::json;
use tracing::Level;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::FmtSpan;

use super::*;

#[tokio::test]
async fn equal_calls_at_the_same_time_have_files_of_their_own() {
    let kept = Kept::new(|_| ()).await;
    let result = |at: usize| output("grep", &json!({"words": "pump"}), json!(at));
    let saved = join_all((0..20).map(|at| kept.save(result(at)))).await;
    let names: HashSet<&String> = saved.iter().map(|one| &one.filename).collect();
    assert_eq!(names.len(), 20);
    let paths: Vec<PathBuf> = saved.iter().map(|one| one.filepath.clone()).collect();
    let loaded = kept.outputs.load_contexts(&paths).await;
    let results: Vec<Value> = loaded.contexts.into_iter().map(|one| one.result).collect();
    assert_eq!(results, (0..20).map(|at| json!(at)).collect::<Vec<_>>());
}

/// What is logged, as text.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn saving_and_loading_are_spans() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(Level::DEBUG)
        .with_span_events(FmtSpan::CLOSE)
        .with_ansi(false)
        .with_writer(log.clone())
        .finish();
    // With one subscriber alone, tracing lets whichever thread comes to a line first
    // decide for all whether it is logged. A second one prevents that.
    let _other = tracing::Dispatch::new(tracing_subscriber::registry());
    let _logged = tracing::subscriber::set_default(subscriber);
    let kept = Kept::new(|_| ()).await;
    let pointer = kept.save(output("grep", &json!({}), json!("secret"))).await;
    kept.outputs
        .load_contexts(std::slice::from_ref(&pointer.filepath))
        .await;
    let told = log.text();
    let saved = format!(
        "save_context{{tool=\"grep\" file=\"{}\" bytes={}}}",
        pointer.filename, pointer.file_bytes
    );
    assert!(told.contains(&saved), "{told}");
    let loaded = format!("load_context{{file={}}}", pointer.filepath.display());
    assert!(told.contains(&loaded), "{told}");
    assert!(!told.contains("secret"), "{told}");
}
