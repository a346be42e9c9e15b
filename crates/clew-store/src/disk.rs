//! Files that exist whole or not at all, whatever kills the process.
//!
//! Every call blocks, so run it on a thread that may; see [`blocking`].

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::Error;
use clew_context::outside;

/// The bits of a mode that say what accounts outside the group may do.
const OTHERS: u32 = 0o007;
/// Suffix of temporary files. None of our other files ends like this, so
/// leftovers of a killed process can be recognised.
const TEMPORARY: &str = ".clew-tmp";
/// Separates the name and the number of a file that was set aside.
const SET_ASIDE: &str = ".corrupt-";
/// Most files set aside under one name. Beyond that, the fault has to be found
/// rather than collected again.
const MOST_SET_ASIDE: u32 = 10_000;

/// Replaces a file durably: temporary file in the same folder, fsync, rename,
/// fsync of the folder. Creates missing folders. Only the owner may read the
/// file.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    write_with(path, |file| file.write_all(bytes))
}

/// As [`write()`], with the content that `fill` writes.
pub(super) fn write_with(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Error> {
    let fill = |file: &mut tempfile::NamedTempFile| {
        let mut buffered = BufWriter::new(&mut *file);
        fill(&mut buffered)?;
        buffered.flush()?;
        drop(buffered);
        file.as_file().sync_all()
    };
    replace(path, fill)?;
    sync_folder(folder_of(path))
}

/// Reads a file; `None` if there is none. A file over `most` bytes is refused
/// unread.
pub(super) fn read(path: &Path, most: u64) -> Result<Option<Vec<u8>>, Error> {
    let failed = Error::io("read", path);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut bytes = Vec::new();
    let limit = most.saturating_add(1);
    file.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    if u64::try_from(bytes.len()).is_ok_and(|read| read <= most) {
        return Ok(Some(bytes));
    }
    let why = format!("it is larger than {most} bytes");
    Err(Error::corrupt("read", path.display(), why))
}

/// Writes a file whole, without waiting for the disk: it outlives the process, and
/// perhaps not a power failure.
pub(super) fn write_unsynced(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    replace(path, |file| file.write_all(bytes))
}

/// Puts a file in the place of another once it is filled. Creates missing folders.
fn replace(
    path: &Path,
    fill: impl FnOnce(&mut tempfile::NamedTempFile) -> io::Result<()>,
) -> Result<(), Error> {
    let folder = folder_of(path);
    create_folders(folder)?;
    let mut builder = tempfile::Builder::new();
    let made = builder.prefix(".").suffix(TEMPORARY).tempfile_in(folder);
    let replaced = made.and_then(|mut made| {
        fill(&mut made)?;
        made.persist(path)?;
        Ok(())
    });
    replaced.map_err(Error::io("write", path))
}

/// Removes a file durably. Returns whether it existed.
pub(super) fn remove(path: &Path) -> Result<bool, Error> {
    match fs::remove_file(path) {
        Ok(()) => sync_folder(folder_of(path)).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io("remove", path)(error)),
    }
}

/// Holds a lock file that names its holder. The operating system releases it
/// however the process ends.
#[derive(Debug)]
pub(super) struct Hold {
    _file: File,
}

/// Takes a lock file, or returns who holds it.
pub(super) fn hold(path: &Path) -> Result<Result<Hold, String>, Error> {
    let failed = Error::io("lock", path);
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false);
    let mut file = options.mode(0o600).open(path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::Error(source)) => return Err(failed(source)),
        Err(TryLockError::WouldBlock) => {
            let pid = fs::read_to_string(path).unwrap_or_default();
            let pid = pid.trim();
            let known = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
            return Ok(Err(format!("pid {}", if known { pid } else { "unknown" })));
        }
    }
    file.set_len(0).map_err(failed)?;
    writeln!(file, "{}", std::process::id()).map_err(failed)?;
    Ok(Ok(Hold { _file: file }))
}

/// Takes from a file what accounts outside its group may do with it. Returns whether there
/// was anything to take; nothing if there is no such file.
pub(super) fn close_to_others(path: &Path) -> Result<bool, Error> {
    let failed = Error::io("close to others", path);
    let mut permissions = match fs::metadata(path) {
        Ok(file) => file.permissions(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(failed(error)),
    };
    let mode = permissions.mode();
    if mode & OTHERS == 0 {
        return Ok(false);
    }
    permissions.set_mode(mode & !OTHERS);
    fs::set_permissions(path, permissions).map_err(failed)?;
    Ok(true)
}

/// Renames an unreadable file to `NAME.corrupt-<n>`, with the first free `n`
/// from 1, and returns the new path.
pub(super) fn set_aside(path: &Path) -> Result<PathBuf, Error> {
    let failed = Error::io("set aside", path);
    for number in 1..=MOST_SET_ASIDE {
        let mut name = path.as_os_str().to_owned();
        name.push(format!("{SET_ASIDE}{number}"));
        let aside = PathBuf::from(name);
        // Reserve the name first, so that the rename replaces only our own
        // file.
        match OpenOptions::new().write(true).create_new(true).open(&aside) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(failed(error)),
        }
        fs::rename(path, &aside).map_err(failed)?;
        sync_folder(folder_of(path))?;
        return Ok(aside);
    }
    Err(failed(io::Error::other("too many were set aside already")))
}

/// Creates a folder and its parents durably.
pub(super) fn create_folders(folder: &Path) -> Result<(), Error> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    let above = folder_of(folder);
    create_folders(above)?;
    match fs::create_dir(folder) {
        Ok(()) => sync_folder(above),
        Err(_) if folder.is_dir() => Ok(()),
        Err(error) => Err(Error::io("create the folder", folder)(error)),
    }
}

/// Takes over a folder of ours that nobody else is writing to: removes the temporary files
/// that a killed process left in it and below, and closes the others to other accounts.
/// Returns how many were removed.
pub(super) fn take_over(folder: &Path) -> Result<u64, Error> {
    let mut swept = 0;
    let mut kept = Vec::new();
    files_below(folder, &mut |file| {
        if is_temporary(file) {
            swept += u64::from(remove(file)?);
        } else if is_open_to_others(file) {
            kept.push(file.to_owned());
        }
        Ok(())
    })?;
    close_files(folder, kept);
    Ok(swept)
}

/// Closes these files of a folder to accounts outside their group, which could open them until
/// now, and says so. Where that is not ours to do, it says what to do instead.
pub fn close_files(folder: &Path, files: impl IntoIterator<Item = PathBuf>) {
    let (mut closed, mut left) = (0, 0);
    for file in files {
        match close_to_others(&file) {
            Ok(was_open) => closed += u64::from(was_open),
            Err(_) => left += 1,
        }
    }
    if closed > 0 {
        tracing::warn!(folder = %folder.display(), files = closed,
            "other accounts could open files of ours: closed to them now");
    }
    if left > 0 {
        tracing::warn!(folder = %folder.display(), files = left,
            "other accounts can open files that hold what people said, and they are not ours to \
             close: chmod -R o-rwx the folder");
    }
}

/// Links are not followed: what they lead to is not ours.
fn is_open_to_others(file: &Path) -> bool {
    let found = fs::symlink_metadata(file);
    found.is_ok_and(|file| file.is_file() && file.permissions().mode() & OTHERS != 0)
}

/// Visits every file in a folder and its subfolders.
pub(super) fn files_below(
    folder: &Path,
    visit: &mut dyn FnMut(&Path) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in entries(&folder)? {
            if entry.is_folder {
                folders.push(entry.path);
            } else {
                visit(&entry.path)?;
            }
        }
    }
    Ok(())
}

/// Bytes of all files in a folder and its subfolders; a file that goes meanwhile
/// counts nothing.
pub(super) fn size_below(folder: &Path) -> Result<u64, Error> {
    let mut bytes = 0;
    files_below(folder, &mut |file| {
        bytes += fs::metadata(file).map_or(0, |about| about.len());
        Ok(())
    })?;
    Ok(bytes)
}

/// Whether the file was set aside by [`set_aside`].
pub(super) fn is_set_aside(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.contains(SET_ASIDE))
}

fn is_temporary(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with('.') && name.ends_with(TEMPORARY))
}

#[derive(Debug)]
pub(super) struct FolderEntry {
    /// Its full path.
    pub(super) path: PathBuf,
    /// Whether it is a folder; links are not followed.
    pub(super) is_folder: bool,
}

/// A folder's entries, sorted by name; empty if there is no folder.
pub(super) fn entries(folder: &Path) -> Result<Vec<FolderEntry>, Error> {
    let failed = Error::io("list", folder);
    let listed = match fs::read_dir(folder) {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut found = Vec::new();
    for entry in listed {
        let entry = entry.map_err(failed)?;
        found.push(FolderEntry {
            is_folder: entry.file_type().map_err(failed)?.is_dir(),
            path: entry.path(),
        });
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// Runs work on a thread that may block.
pub(super) async fn blocking<T: Send + 'static>(
    operation: &'static str,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let ended = outside::blocking(work).await;
    ended.map_err(|error| Error::unavailable(operation, error))?
}

/// The folder that contains a path.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(folder: &Path) -> Result<(), Error> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(Error::io("sync the folder", folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/c.json");
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(read(&path, 3).unwrap().unwrap(), b"two");
        assert_eq!(entries(path.parent().unwrap()).unwrap().len(), 1);
        assert!(remove(&path).unwrap());
        assert!(!remove(&path).unwrap());
        assert_eq!(read(&path, 3).unwrap(), None);
    }

    #[test]
    fn a_file_over_the_bound_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large");
        write(&path, b"four").unwrap();
        let error = read(&path, 3).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    }

    #[test]
    fn what_is_set_aside_never_replaces_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        for (text, name) in [("one", "x.json.corrupt-1"), ("two", "x.json.corrupt-2")] {
            write(&path, text.as_bytes()).unwrap();
            let aside = set_aside(&path).unwrap();
            assert_eq!(aside, folder.path().join(name));
            assert_eq!(read(&aside, 9).unwrap().unwrap(), text.as_bytes());
            assert!(!path.exists());
        }
    }

    #[test]
    fn what_a_kill_left_is_swept_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join("a/kept.json");
        write(&kept, b"1").unwrap();
        write(&folder.path().join(".profile"), b"1").unwrap();
        fs::write(folder.path().join(".x.clew-tmp"), "torn").unwrap();
        fs::write(folder.path().join("a/.y.clew-tmp"), "torn").unwrap();
        assert_eq!(take_over(folder.path()).unwrap(), 2);
        assert_eq!(take_over(folder.path()).unwrap(), 0);
        assert!(kept.exists() && folder.path().join(".profile").exists());
    }

    /// The group is the operator's, and what a link leads to somebody's.
    #[test]
    fn what_others_could_open_is_closed_to_them() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::NamedTempFile::new().unwrap();
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        set(elsewhere.path(), 0o644);
        std::os::unix::fs::symlink(elsewhere.path(), folder.path().join("link")).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        for (before, after) in [(0o644, 0o640), (0o666, 0o660), (0o600, 0o600)] {
            let file = folder.path().join(format!("a/{before}.json"));
            write(&file, b"1").unwrap();
            set(&file, before);
            take_over(folder.path()).unwrap();
            assert_eq!(mode(&file), after);
        }
        assert_eq!(mode(elsewhere.path()), 0o644);
    }

    #[test]
    fn a_file_where_a_folder_should_be_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let error = write(&file.join("x.json"), b"1").unwrap_err();
        assert!(error.to_string().contains("file"), "{error}");
    }
}
