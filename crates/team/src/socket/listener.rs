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

/// How long nothing is accepted when the process has no room for another file.
const BREATH: Duration = Duration::from_millis(50);

/// What callers may use at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a frame.
    pub frame: usize,
    /// Connections of all processes at once.
    pub connections: usize,
    /// Connections of one process at once.
    pub of_one_process: usize,
}

/// A socket with its name in a directory. Dropping it takes the name away.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    directory: SocketDirectory,
    name: String,
    /// The file that the name meant when it was given.
    file: (u64, u64),
}

impl Listener {
    /// Makes a socket. A name that a dead process left is taken over; one that is served is refused. It may wait, so
    /// not on a thread of a runtime that must not; it needs a runtime all the same.
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

    /// Serves callers until this future is dropped, each in a task of its own that ends with it. Callers of other
    /// users and more callers than the limits allow are disconnected at once.
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
            let Some(seat) = Callers::seat(&callers, process, limits) else { continue };
            let Ok(connection) = Connection::new(stream, limits.frame) else { continue };
            let serving = serve(connection);
            served.spawn(async move {
                serving.await;
                drop(seat);
            });
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // If the directory cannot be had now, the next process that looks removes what is dead.
        let Ok(changing) = self.directory.change_now() else { return };
        if self.directory.file(&self.name).is_ok_and(|file| file == self.file) {
            let _ = self.directory.remove(&self.name, &changing);
        }
    }
}

/// Removes a name that no process serves. It may wait, so not on a thread of a runtime.
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

/// Whether the kernel says that no process listens. What is no socket is dead as well.
fn is_dead(directory: &SocketDirectory, name: &str) -> Result<bool, SocketError> {
    let address = directory.address(name)?;
    // A full queue would make a plain connect wait: a process that has one lives.
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

/// How many connections each process has.
#[derive(Debug, Default)]
struct Callers(Mutex<HashMap<Option<u32>, usize>>);

/// One connection of a process.
struct Seat {
    callers: Arc<Callers>,
    pid: Option<u32>,
}

impl Callers {
    fn seat(callers: &Arc<Self>, process: Process, limits: Limits) -> Option<Seat> {
        let mut counts = callers.0.lock();
        let all: usize = counts.values().sum();
        let its = counts.get(&process.pid).copied().unwrap_or_default();
        if all >= limits.connections || its >= limits.of_one_process {
            return None;
        }
        counts.insert(process.pid, its + 1);
        Some(Seat { callers: Arc::clone(callers), pid: process.pid })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut counts = self.callers.0.lock();
        let left = counts.get(&self.pid).copied().unwrap_or_default().saturating_sub(1);
        match left {
            0 => drop(counts.remove(&self.pid)),
            left => drop(counts.insert(self.pid, left)),
        }
    }
}
