//! A socket that this process serves, for as long as this is held.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::os::unix::net::{UnixListener as StdListener, UnixStream as StdStream};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::io::Errno;
use tokio::net::UnixListener;
use tokio::task::JoinSet;

use super::SocketError;
use super::connection::{Connection, Process, identify};
use super::directory::{Changing, SocketDirectory};

/// The pause in accepting when the process has reached its limit of open files.
const BREATH: Duration = Duration::from_millis(50);

/// The limits of callers.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a frame.
    pub frame: usize,
    /// Connections of all processes at once.
    pub connections: usize,
    /// Connections of one process at once.
    pub of_one_process: usize,
}

/// A socket with its name in a directory. Dropping it removes the name.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    directory: SocketDirectory,
    name: String,
    /// The file behind the name when it was made.
    file: (u64, u64),
}

impl Listener {
    /// Makes a socket. Takes over the name of a dead process; refuses a name that is served. It may block, so it must
    /// not run on a thread of the runtime, but it needs one.
    pub fn bind(directory: &SocketDirectory, name: &str) -> Result<Self, SocketError> {
        let address = directory.address(name)?;
        let changing = directory.change()?;
        remove_dead(directory, name, &changing)?;
        let listener = StdListener::bind(&address).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => SocketError::Served,
            _ => SocketError::Io(error),
        })?;
        listener.set_nonblocking(true)?;
        let file = directory.file(name)?;
        let socket = UnixListener::from_std(listener)?;
        drop(changing);
        Ok(Self { socket, directory: directory.clone(), name: name.to_owned(), file })
    }

    /// Serves callers until this future is dropped, each in a task of its own that ends with it. Disconnects callers of
    /// other users, and callers beyond the limits, at once.
    pub async fn serve<F>(&self, limits: Limits, serve: impl Fn(Connection) -> F) -> Infallible
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (mut served, callers) = (JoinSet::new(), Arc::<Callers>::default());
        loop {
            let accepted = tokio::select! {
                accepted = self.socket.accept() => accepted,
                Some(_) = served.join_next() => continue,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::debug!(%error, "a caller could not be accepted");
                    tokio::time::sleep(BREATH).await;
                    continue;
                }
            };
            let Ok(process) = identify(&stream) else { continue };
            let Some(slot) = Callers::admit(&callers, process, limits) else { continue };
            let Ok(connection) = Connection::new(stream, limits.frame) else { continue };
            let serving = serve(connection);
            served.spawn(async move {
                serving.await;
                drop(slot);
            });
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // If the directory is locked now, the next process that looks removes the dead name.
        let Ok(changing) = self.directory.change_now() else { return };
        if self.directory.file(&self.name).is_ok_and(|file| file == self.file) {
            let _ = self.directory.remove(&self.name, &changing);
        }
    }
}

/// Removes a name that no process serves. It may block, so it must not run on a thread of the runtime.
pub(crate) fn remove_if_dead(directory: &SocketDirectory, name: &str) -> Result<(), SocketError> {
    let changing = directory.change()?;
    remove_dead(directory, name, &changing)
}

fn remove_dead(
    directory: &SocketDirectory,
    name: &str,
    changing: &Changing,
) -> Result<(), SocketError> {
    if is_dead(directory, name)? {
        directory.remove(name, changing)?;
    }
    Ok(())
}

/// Whether the kernel reports that no process listens. A file that is no socket is dead as well.
fn is_dead(directory: &SocketDirectory, name: &str) -> Result<bool, SocketError> {
    let address = directory.address(name)?;
    // A full queue would make a plain connect wait: a process with one is alive.
    match connect_now(&address) {
        Ok(()) | Err(Errno::AGAIN | Errno::INPROGRESS | Errno::NOENT) => Ok(false),
        Err(Errno::CONNREFUSED) => Ok(true),
        Err(error) => Err(io::Error::from(error).into()),
    }
}

fn connect_now(address: &std::path::Path) -> Result<(), Errno> {
    use rustix::net::{
        AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(address)?)?;
    drop(StdStream::from(socket));
    Ok(())
}

/// The number of connections of each process.
#[derive(Debug, Default)]
struct Callers(Mutex<HashMap<Option<u32>, usize>>);

/// Guard: one connection of a process.
struct ConnectionSlot {
    callers: Arc<Callers>,
    pid: Option<u32>,
}

impl Callers {
    fn admit(callers: &Arc<Self>, process: Process, limits: Limits) -> Option<ConnectionSlot> {
        let mut counts = callers.0.lock();
        let all: usize = counts.values().sum();
        let its = counts.get(&process.pid).copied().unwrap_or_default();
        if all >= limits.connections || its >= limits.of_one_process {
            return None;
        }
        counts.insert(process.pid, its + 1);
        Some(ConnectionSlot { callers: Arc::clone(callers), pid: process.pid })
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut counts = self.callers.0.lock();
        let left = counts.get(&self.pid).copied().unwrap_or_default().saturating_sub(1);
        match left {
            0 => drop(counts.remove(&self.pid)),
            left => drop(counts.insert(self.pid, left)),
        }
    }
}
