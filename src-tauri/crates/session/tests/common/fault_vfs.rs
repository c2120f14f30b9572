//! SQLite's own file system with faults: it fails at the n-th operation, and forgets what was not flushed when power fails.
//!
//! Files stay those of SQLite's VFS; only reading, writing, cutting, flushing and deleting pass through here. One process
//! has one plan, so tests that use it take [`lock`] first.
#![allow(unsafe_code, dead_code)] // SQLite's C interface, and two test programs that each use a part of this

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rusqlite::ffi::{
    SQLITE_FULL, SQLITE_IOERR, SQLITE_IOERR_DELETE, SQLITE_IOERR_FSYNC, SQLITE_IOERR_READ,
    SQLITE_IOERR_TRUNCATE, SQLITE_IOERR_WRITE, SQLITE_OK, sqlite3_file, sqlite3_io_methods, sqlite3_vfs,
    sqlite3_vfs_find, sqlite3_vfs_register,
};

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskFault {
    /// Every operation can fail, reading too.
    Io,
    /// Writes fail for want of space.
    Full,
    /// Half of what is written arrives, and then the write fails.
    ShortWrite,
    /// Flushes fail.
    Flush,
    /// Power fails: nothing after it happens, and what was not flushed may be lost.
    Power,
}

/// The plan and its state.
#[derive(Default)]
struct FaultPlan {
    fault: Option<DiskFault>,
    /// Operations that still succeed.
    n_left: u64,
    is_sticky: bool,
    n_failed: u64,
    n_operations: u64,
    files: HashMap<PathBuf, TrackedFile>,
}

/// A file as it would be after a power cut, and what was not flushed.
#[derive(Default)]
struct TrackedFile {
    durable: Vec<u8>,
    changes: Vec<Change>,
}

#[derive(Debug)]
enum Change {
    Write { at: u64, bytes: Vec<u8> },
    Cut { n_bytes: u64 },
}

impl Change {
    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Self::Write { at, bytes } => {
                let at = usize::try_from(*at).expect("files are small here");
                if to.len() < at + bytes.len() {
                    to.resize(at + bytes.len(), 0);
                }
                to[at..at + bytes.len()].copy_from_slice(bytes);
            }
            Self::Cut { n_bytes } => to.truncate(usize::try_from(*n_bytes).expect("files are small here")),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Read,
    Write,
    Truncate,
    Sync,
    Delete,
}

impl FaultPlan {
    /// The fault of this operation, if it fails.
    fn next_fault(&mut self, operation: Operation) -> Option<DiskFault> {
        let fault = self.fault?;
        let is_meant = match fault {
            DiskFault::Io => true,
            DiskFault::Power => operation != Operation::Read,
            DiskFault::Full | DiskFault::ShortWrite => operation == Operation::Write,
            DiskFault::Flush => operation == Operation::Sync,
        };
        let is_off = fault == DiskFault::Power && self.n_failed > 0;
        if !is_meant && !is_off {
            return None;
        }
        self.n_operations += 1;
        if self.n_left > 0 {
            self.n_left -= 1;
            return None;
        }
        if self.n_failed > 0 && !self.is_sticky {
            return None;
        }
        self.n_failed += 1;
        Some(fault)
    }
}

static PLAN: OnceLock<Mutex<FaultPlan>> = OnceLock::new();
/// Open files by address: their path and their own methods.
static OPEN: OnceLock<Mutex<HashMap<usize, (PathBuf, usize)>>> = OnceLock::new();
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn plan() -> MutexGuard<'static, FaultPlan> {
    PLAN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

fn open_files() -> MutexGuard<'static, HashMap<usize, (PathBuf, usize)>> {
    OPEN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes this file system SQLite's default, for as long as no other test does.
pub fn lock() -> MutexGuard<'static, ()> {
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    register();
    *plan() = FaultPlan::default();
    guard
}

/// Lets the operation after `n_left` others fail, or all from then on.
pub fn fail_at(fault: DiskFault, n_left: u64, is_sticky: bool) {
    let mut plan = plan();
    let is_sticky = is_sticky || fault == DiskFault::Power;
    *plan = FaultPlan { fault: Some(fault), n_left, is_sticky, ..FaultPlan::default() };
}

/// Ends all faults. Returns how many operations failed.
pub fn mend() -> u64 {
    let mut plan = plan();
    plan.fault = None;
    plan.n_failed
}

/// Operations that the plan has counted.
pub fn n_operations() -> u64 {
    plan().n_operations
}

/// Puts the files into a state that a power cut may leave. Of each change that was not flushed, as many blocks of 512
/// bytes arrived as `n_blocks_kept` says, given their number.
pub fn lose_unflushed(mut n_blocks_kept: impl FnMut(usize) -> usize) {
    let files = std::mem::take(&mut plan().files);
    for (path, file) in files {
        if !path.exists() {
            continue;
        }
        let mut bytes = file.durable;
        for change in file.changes {
            match change {
                Change::Write { at, bytes: mut written } => {
                    let kept = n_blocks_kept(written.len().div_ceil(512)) * 512;
                    written.truncate(kept);
                    if !written.is_empty() {
                        Change::Write { at, bytes: written }.apply(&mut bytes);
                    }
                }
                Change::Cut { .. } => {
                    if n_blocks_kept(1) > 0 {
                        change.apply(&mut bytes);
                    }
                }
            }
        }
        std::fs::write(&path, bytes).expect("a file of the test");
    }
}

/// The system's VFS, and ours.
struct SystemVfs {
    system: *mut sqlite3_vfs,
}

// SAFETY: SQLite's VFS objects live as long as the process and are not changed after their registration.
unsafe impl Send for SystemVfs {}
// SAFETY: as above.
unsafe impl Sync for SystemVfs {}

static SYSTEM: OnceLock<SystemVfs> = OnceLock::new();

fn register() {
    SYSTEM.get_or_init(|| {
        // SAFETY: SQLite initializes itself, and gives the default VFS, which lives as long as the process.
        let system = unsafe { sqlite3_vfs_find(std::ptr::null()) };
        assert!(!system.is_null(), "SQLite has a VFS");
        // SAFETY: as above; the copy has the same fields, and the methods that are not replaced only read those.
        let mut ours = unsafe { *system };
        ours.pNext = std::ptr::null_mut();
        ours.zName = c"faults".as_ptr();
        ours.xOpen = Some(open);
        ours.xDelete = Some(delete);
        // SAFETY: the object is never freed.
        let code = unsafe { sqlite3_vfs_register(Box::leak(Box::new(ours)), 1) };
        assert_eq!(code, SQLITE_OK);
        SystemVfs { system }
    });
}

fn system() -> *mut sqlite3_vfs {
    SYSTEM.get().expect("it is registered before any file is opened").system
}

/// SAFETY: `name` is null or a C string of SQLite.
unsafe fn path_of(name: *const c_char) -> PathBuf {
    if name.is_null() {
        return PathBuf::new();
    }
    // SAFETY: by the caller.
    let name = unsafe { CStr::from_ptr(name) };
    PathBuf::from(name.to_string_lossy().into_owned())
}

unsafe extern "C" fn open(
    _: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite's own arguments, given to its own VFS.
    unsafe {
        let Some(real) = (*system()).xOpen else { return SQLITE_IOERR };
        let code = real(system(), name, file, flags, out);
        let methods = (*file).pMethods;
        if code != SQLITE_OK || methods.is_null() {
            return code;
        }
        open_files().insert(file as usize, (path_of(name), methods as usize));
        (*file).pMethods = wrap_methods(methods);
        code
    }
}

/// The methods of SQLite's file with ours in place. One table per kind of file; they are never freed.
// SAFETY: the caller gives a table of SQLite, which is constant.
unsafe fn wrap_methods(methods: *const sqlite3_io_methods) -> *const sqlite3_io_methods {
    static TABLES: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());
    let mut tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, ours)) = tables.iter().find(|(real, _)| *real == methods as usize) {
        return *ours as *const sqlite3_io_methods;
    }
    // SAFETY: a table of SQLite, which is constant.
    let mut ours = unsafe { *methods };
    ours.xClose = Some(close);
    ours.xRead = Some(read);
    ours.xWrite = Some(write);
    ours.xTruncate = Some(truncate);
    ours.xSync = Some(sync);
    let ours: *const sqlite3_io_methods = Box::leak(Box::new(ours));
    tables.push((methods as usize, ours as usize));
    ours
}

/// Path and own methods of an open file.
fn own_methods(file: *mut sqlite3_file) -> (PathBuf, &'static sqlite3_io_methods) {
    let files = open_files();
    let (path, methods) = files.get(&(file as usize)).expect("SQLite opened it").clone();
    // SAFETY: the address of a table of SQLite, which is constant.
    (path, unsafe { &*(methods as *const sqlite3_io_methods) })
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    let (_, methods) = own_methods(file);
    open_files().remove(&(file as usize));
    // SAFETY: SQLite's own file, given to its own method.
    methods.xClose.map_or(SQLITE_OK, |close| unsafe { close(file) })
}

unsafe extern "C" fn read(file: *mut sqlite3_file, to: *mut c_void, n_bytes: c_int, at: i64) -> c_int {
    let (_, methods) = own_methods(file);
    if plan().next_fault(Operation::Read).is_some() {
        return SQLITE_IOERR_READ;
    }
    // SAFETY: SQLite's own arguments, given to its own method.
    methods.xRead.map_or(SQLITE_IOERR_READ, |read| unsafe { read(file, to, n_bytes, at) })
}

unsafe extern "C" fn write(file: *mut sqlite3_file, from: *const c_void, n_bytes: c_int, at: i64) -> c_int {
    let (path, methods) = own_methods(file);
    let fault = plan().next_fault(Operation::Write);
    let n_arriving = match fault {
        None => n_bytes,
        Some(DiskFault::ShortWrite) => n_bytes / 2,
        Some(DiskFault::Full) => return SQLITE_FULL,
        Some(DiskFault::Io | DiskFault::Flush | DiskFault::Power) => return SQLITE_IOERR_WRITE,
    };
    // SAFETY: SQLite's own buffer, of at least that many bytes.
    let bytes = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), n_arriving.unsigned_abs() as usize) };
    track(&path, Change::Write { at: at.unsigned_abs(), bytes: bytes.to_vec() });
    // SAFETY: SQLite's own arguments, given to its own method.
    let code =
        methods.xWrite.map_or(SQLITE_IOERR_WRITE, |write| unsafe { write(file, from, n_arriving, at) });
    if fault.is_some() { SQLITE_IOERR_WRITE } else { code }
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, n_bytes: i64) -> c_int {
    let (path, methods) = own_methods(file);
    if plan().next_fault(Operation::Truncate).is_some() {
        return SQLITE_IOERR_TRUNCATE;
    }
    track(&path, Change::Cut { n_bytes: n_bytes.unsigned_abs() });
    // SAFETY: SQLite's own arguments, given to its own method.
    methods.xTruncate.map_or(SQLITE_IOERR_TRUNCATE, |truncate| unsafe { truncate(file, n_bytes) })
}

/// The disk is played: what reached the system counts as flushed from here on, and nothing waits for a real disk.
unsafe extern "C" fn sync(file: *mut sqlite3_file, _flags: c_int) -> c_int {
    let (path, _) = own_methods(file);
    let mut plan = plan();
    if plan.next_fault(Operation::Sync).is_some() {
        return SQLITE_IOERR_FSYNC;
    }
    if let Some(tracked) = plan.files.get_mut(&path) {
        for change in std::mem::take(&mut tracked.changes) {
            change.apply(&mut tracked.durable);
        }
    }
    SQLITE_OK
}

// SAFETY: SQLite calls this with a path that ends with a zero byte.
unsafe extern "C" fn delete(_: *mut sqlite3_vfs, name: *const c_char, sync_dir: c_int) -> c_int {
    if plan().next_fault(Operation::Delete).is_some() {
        return SQLITE_IOERR_DELETE;
    }
    // SAFETY: SQLite's own arguments, given to its own VFS.
    unsafe {
        plan().files.remove(&path_of(name));
        (*system()).xDelete.map_or(SQLITE_IOERR_DELETE, |delete| delete(system(), name, sync_dir))
    }
}

/// Notes a change while power may fail.
fn track(path: &Path, change: Change) {
    let mut plan = plan();
    if plan.fault != Some(DiskFault::Power) || path.as_os_str().is_empty() {
        return;
    }
    let file = plan.files.entry(path.to_owned()).or_insert_with(|| TrackedFile {
        // What is there before the first change counts as flushed.
        durable: std::fs::read(path).unwrap_or_default(),
        changes: Vec::new(),
    });
    file.changes.push(change);
}
