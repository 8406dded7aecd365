//! A connection to another process of the same user.

use std::io;
use std::time::Duration;

use rustix::process::geteuid;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use super::{FrameReader, FrameWriter, SocketDirectory, SocketError};

/// The process at the other end, as the kernel knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// `None` if it is in a namespace that this process cannot see.
    pub pid: Option<u32>,
}

/// Frames in both directions, and the process at the other end.
#[derive(Debug)]
pub struct Connection {
    pub peer: Process,
    pub reader: FrameReader<OwnedReadHalf>,
    pub writer: FrameWriter<OwnedWriteHalf>,
}

impl Connection {
    /// Connects to a socket of a directory, for frames of at most this many bytes.
    pub async fn open(
        directory: &SocketDirectory,
        name: &str,
        most: usize,
        patience: Duration,
    ) -> Result<Self, SocketError> {
        let address = directory.address(name)?;
        let stream = timeout(patience, UnixStream::connect(address)).await;
        let stream =
            stream.map_err(|_| SocketError::Late)?.map_err(|error| match error.kind() {
                io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => SocketError::Dead,
                io::ErrorKind::WouldBlock => SocketError::Busy,
                _ => SocketError::Io(error),
            })?;
        Self::new(stream, most)
    }

    /// Refuses processes of other users.
    pub(super) fn new(stream: UnixStream, most: usize) -> Result<Self, SocketError> {
        let peer = identify(&stream)?;
        let (reader, writer) = stream.into_split();
        let (reader, writer) = (FrameReader::new(reader, most), FrameWriter::new(writer, most));
        Ok(Self { peer, reader, writer })
    }
}

/// The process at the other end, if it belongs to the same user.
pub(super) fn identify(stream: &UnixStream) -> Result<Process, SocketError> {
    let credentials = stream.peer_cred()?;
    if credentials.uid() != geteuid().as_raw() {
        return Err(SocketError::ForeignProcess);
    }
    let pid = credentials.pid().and_then(|pid| u32::try_from(pid).ok());
    Ok(Process { pid: pid.filter(|pid| *pid != 0) })
}
