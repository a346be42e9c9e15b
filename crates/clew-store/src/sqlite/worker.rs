//! The threads that own the connections: one writes, some read. Async code
//! sends them jobs through bounded queues and awaits the answers.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{mpsc, oneshot, watch};

use super::fault::{Fault, Outcome};
use super::session::Session;
use crate::Error;
use clew_context::outside::has_threads;

/// Jobs queued per thread, some seconds of work. If it is full, callers wait.
const QUEUE: usize = 1024;
/// Most jobs in one transaction, so that the first is not kept waiting.
const GROUP: usize = 128;

/// Jobs between two checkpoints of the log: some megabytes.
const JOBS_A_CHECKPOINT: usize = 128;

/// Work to do with a connection.
trait Job: Send {
    /// Does the work and keeps its result. May run again if a shared
    /// transaction was lost. Returns whether it succeeded.
    fn run(&mut self, session: &Session) -> bool;
    /// Replaces the result with a failure.
    fn fail(&mut self, fault: Fault);
    /// Sends the result.
    fn answer(self: Box<Self>);
    /// Whether it must not share a transaction.
    fn is_alone(&self) -> bool;
}

/// A job whose work returns a `T`.
struct Task<T, W> {
    operation: &'static str,
    alone: bool,
    place: Arc<str>,
    work: W,
    outcome: Option<Outcome<T>>,
    answer: oneshot::Sender<Result<T, Error>>,
    /// Counts as pending on its thread.
    pending: Pending,
}

impl<T, W> Job for Task<T, W>
where
    T: Send,
    W: FnMut(&Session) -> Outcome<T> + Send,
{
    fn run(&mut self, session: &Session) -> bool {
        let outcome = self.outcome.insert((self.work)(session));
        outcome.is_ok()
    }

    fn fail(&mut self, fault: Fault) {
        self.outcome = Some(Err(fault));
    }

    fn answer(self: Box<Self>) {
        let this = *self;
        // First, since whoever gets the answer may ask for more.
        drop(this.pending);
        if let Some(outcome) = this.outcome {
            let outcome = outcome.map_err(|fault| fault.named(this.operation, &this.place));
            // The caller may be gone; the work is done anyway.
            drop(this.answer.send(outcome));
        }
    }

    fn is_alone(&self) -> bool {
        self.alone
    }
}

/// Sends jobs to one or more threads.
pub(super) struct Queue {
    place: Arc<str>,
    /// Empty once closed.
    threads: Mutex<Vec<Thread>>,
    ended: watch::Receiver<()>,
    /// Works on whichever thread asks, instead of threads of its own.
    here: Arc<Mutex<Option<Here>>>,
}

/// A connection without a thread.
struct Here {
    session: Session,
    writes: bool,
}

/// Each job a thread has not answered holds one reference.
type Pending = Arc<()>;

/// Sends jobs to one thread.
struct Thread {
    jobs: mpsc::Sender<Box<dyn Job>>,
    pending: Pending,
}

impl Queue {
    /// Starts the one write thread.
    pub(super) fn to_writer(session: Session) -> Result<Self, Error> {
        if !has_threads() {
            return Ok(Self::here(session, true));
        }
        Self::start(vec![session], write_until_closed)
    }

    /// Starts a read thread per connection.
    pub(super) fn to_readers(mut sessions: Vec<Session>) -> Result<Self, Error> {
        if !has_threads()
            && let Some(session) = sessions.pop()
        {
            return Ok(Self::here(session, false));
        }
        Self::start(sessions, read_until_closed)
    }

    /// Without threads: each job is done as soon as it is asked for.
    fn here(session: Session, writes: bool) -> Self {
        let (_, ended) = watch::channel(());
        Self {
            place: Arc::clone(&session.place),
            threads: Mutex::default(),
            ended,
            here: Arc::new(Mutex::new(Some(Here { session, writes }))),
        }
    }

    fn start(
        sessions: Vec<Session>,
        run: impl Fn(&Session, mpsc::Receiver<Box<dyn Job>>) + Send + Copy + 'static,
    ) -> Result<Self, Error> {
        let mut threads = Vec::new();
        let (ending, ended) = watch::channel(());
        let ending = Arc::new(ending);
        let place = sessions
            .first()
            .map_or_else(|| "".into(), |session| Arc::clone(&session.place));
        for session in sessions {
            let (jobs, received) = mpsc::channel(QUEUE);
            let ending = Arc::clone(&ending);
            let started = thread::Builder::new()
                .name("sqlite".to_owned())
                .spawn(move || {
                    run(&session, received);
                    // Drop the connection before announcing it.
                    drop(session);
                    drop(ending);
                });
            let operation = "start a thread for the store";
            started.map_err(|error| Error::unavailable(operation, error))?;
            threads.push(Thread {
                jobs,
                pending: Pending::default(),
            });
        }
        Ok(Self {
            place,
            threads: Mutex::new(threads),
            ended,
            here: Arc::default(),
        })
    }

    /// Runs work on a thread. Unless `alone`, it runs in a transaction that it
    /// may share with other jobs.
    pub(super) fn ask<T, W>(
        &self,
        operation: &'static str,
        alone: bool,
        work: W,
    ) -> impl Future<Output = Result<T, Error>> + Send + use<T, W>
    where
        T: Send + 'static,
        W: FnMut(&Session) -> Outcome<T> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let place = Arc::clone(&self.place);
        let thread = self.least_busy();
        let here = Arc::clone(&self.here);
        async move {
            let closed = || Error::unavailable(operation, "the store is closed");
            let (jobs, pending) = thread.unzip();
            let job = Box::new(Task {
                operation,
                alone,
                place,
                work,
                outcome: None,
                answer,
                pending: pending.unwrap_or_default(),
            });
            match jobs {
                Some(jobs) => jobs.send(job).await.map_err(|_| closed())?,
                None => lock(&here).as_ref().ok_or_else(closed)?.carry_out(job),
            }
            answered.await.map_err(|_| closed())?
        }
    }

    /// The first of the least busy threads. While one is enough, the others
    /// sleep and their connections cache no pages.
    fn least_busy(&self) -> Option<(mpsc::Sender<Box<dyn Job>>, Pending)> {
        let threads = lock(&self.threads);
        let thread = threads
            .iter()
            .min_by_key(|thread| Arc::strong_count(&thread.pending))?;
        Some((thread.jobs.clone(), Arc::clone(&thread.pending)))
    }

    /// Finishes all queued jobs and releases the connections.
    pub(super) async fn close(&self) {
        lock(&self.threads).clear();
        lock(&self.here).take();
        let mut ended = self.ended.clone();
        while ended.changed().await.is_ok() {}
    }
}

impl Here {
    fn carry_out(&self, mut job: Box<dyn Job>) {
        let Self { session, writes } = self;
        if *writes {
            write_group(session, job, || None);
        } else {
            job.run(session);
            job.answer();
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_until_closed(session: &Session, mut jobs: mpsc::Receiver<Box<dyn Job>>) {
    while let Some(mut job) = jobs.blocking_recv() {
        job.run(session);
        job.answer();
    }
}

/// Callers that deleted something are answered once no trace is left in the
/// files, which is ensured once for all that wait.
fn write_until_closed(session: &Session, jobs: mpsc::Receiver<Box<dyn Job>>) {
    thread::scope(|scope| {
        // The sender is dropped with this closure, however it ends, which ends
        // the other thread.
        let (due, asked) = sync_channel(1);
        if let Some(connection) = session.checkpointer.take() {
            scope.spawn(move || checkpoint_when_asked(&connection, &asked));
        }
        write_all(session, jobs, &due);
    });
}

/// Checkpoints the log while others keep reading and writing.
fn checkpoint_when_asked(connection: &Connection, asked: &Receiver<()>) {
    while asked.recv().is_ok() {
        let done = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        if let Err(error) = done {
            // The log grows until the writer checkpoints it itself.
            tracing::debug!(%error, "a checkpoint was put off");
        }
    }
}

fn write_all(
    session: &Session,
    mut jobs: mpsc::Receiver<Box<dyn Job>>,
    checkpoint: &SyncSender<()>,
) {
    let mut done = 0;
    while let Some(first) = jobs.blocking_recv() {
        done += write_group(session, first, || jobs.try_recv().ok());
        if done >= JOBS_A_CHECKPOINT {
            done = 0;
            // A checkpoint already requested is enough.
            let _ = checkpoint.try_send(());
        }
    }
}

/// Does a job and others that wait already. Returns how many.
fn write_group(
    session: &Session,
    first: Box<dyn Job>,
    mut waiting: impl FnMut() -> Option<Box<dyn Job>>,
) -> usize {
    let mut done = 0;
    let (mut group, mut deleting) = (Vec::new(), Vec::new());
    let mut next = Some(first);
    while let Some(mut job) = next {
        if job.is_alone() {
            deleting.extend(commit(session, std::mem::take(&mut group)));
            job.run(session);
            deleting.extend(answer(session, vec![job]));
        } else {
            group.push(job);
        }
        done += 1;
        let is_room = group.len().max(deleting.len()) < GROUP;
        next = is_room.then(&mut waiting).flatten();
    }
    deleting.extend(commit(session, group));
    session.scrub();
    for job in deleting {
        job.answer();
    }
    done
}

/// Runs jobs in one transaction or, if that fails, each in its own, and answers
/// once committed. Returns those whose answers must wait.
fn commit(session: &Session, mut group: Vec<Box<dyn Job>>) -> Vec<Box<dyn Job>> {
    let is_done = group.len() > 1 && commit_together(session, &mut group).is_ok();
    if !is_done {
        for job in &mut group {
            commit_one(session, job.as_mut());
        }
    }
    answer(session, group)
}

/// Answers finished jobs, unless they deleted texts.
fn answer(session: &Session, jobs: Vec<Box<dyn Job>>) -> Vec<Box<dyn Job>> {
    if session.takes_scrub() {
        return jobs;
    }
    for job in jobs {
        job.answer();
    }
    Vec::new()
}

fn commit_one(session: &Session, job: &mut dyn Job) {
    let began = Transaction::new_unchecked(&session.connection, TransactionBehavior::Immediate);
    match began {
        Ok(transaction) if job.run(session) => {
            if let Err(error) = transaction.commit() {
                job.fail(error.into());
            }
        }
        // Rolls back when dropped.
        Ok(_) => {}
        Err(error) => job.fail(error.into()),
    }
}

/// Runs each job in a savepoint of one transaction. On error the whole
/// transaction was lost.
fn commit_together(session: &Session, group: &mut [Box<dyn Job>]) -> Outcome<()> {
    let connection = &session.connection;
    let began = Transaction::new_unchecked(connection, TransactionBehavior::Immediate);
    let transaction = match began {
        Ok(transaction) => transaction,
        Err(error) => {
            // Nobody can write now; a separate try for each job would only
            // multiply the wait.
            let error = Arc::new(error);
            for job in group {
                job.fail(Fault::Sql(Arc::clone(&error)));
            }
            return Ok(());
        }
    };
    let say = |sql| connection.prepare_cached(sql)?.execute([]);
    for job in group {
        say("SAVEPOINT job")?;
        let is_good = job.run(session);
        // Some errors, such as a full disk, roll back everything.
        if connection.is_autocommit() {
            return Err(Fault::Unfit("the transaction was rolled back"));
        }
        if !is_good {
            say("ROLLBACK TO job")?;
        }
        say("RELEASE job")?;
    }
    Ok(transaction.commit()?)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::SnapshotFiles;
    use crate::sqlite::session::SqliteSettings;

    /// A second thread would cache its own pages, and be woken for nothing.
    #[tokio::test]
    async fn a_second_thread_reads_only_while_the_first_is_at_work() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clew.db");
        let snapshots = SnapshotFiles::in_memory();
        let writer = Session::writer(&path, snapshots, &SqliteSettings::default()).unwrap();
        let readers = [(); 2].map(|()| Session::reader(&writer, &path).unwrap());
        let queue = Queue::to_readers(readers.into()).unwrap();
        let whose = || queue.ask("look who reads", true, |_| Ok(thread::current().id()));
        let first = whose().await.unwrap();
        for _ in 0..10 {
            assert_eq!(whose().await.unwrap(), first);
        }
        let (release, held) = channel::<()>();
        let busy = queue.ask("wait", true, move |_| {
            let _ = held.recv();
            Ok(thread::current().id())
        });
        assert_ne!(whose().await.unwrap(), first);
        drop(release);
        assert_eq!(busy.await.unwrap(), first);
        assert_eq!(whose().await.unwrap(), first);
        queue.close().await;
    }
}
