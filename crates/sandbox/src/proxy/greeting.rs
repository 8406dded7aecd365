//! What is said to the proxy when a command starts: once from outside, to be noticed when it ends, and
//! once from inside, with a listener.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::TcpListener as StdListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use tokio::io::Interest;
use tokio::net::{TcpListener, UnixStream};

/// How long somebody who has connected may take to say who it is.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// No name of a command is longer.
const LONGEST: usize = 256;

#[derive(Debug)]
pub(super) enum Greeting {
    /// The command with this name is served until this connection ends.
    Hold { id: String },
    /// The command listens here.
    Listener { id: String, listener: TcpListener },
}

/// Says that a command is about to start. It is served until the connection is closed.
pub(crate) fn hold(proxy: impl AsFd, id: &str) -> io::Result<()> {
    send(proxy.as_fd(), id, &[])
}

/// Gives a command's listener away.
pub(crate) fn hand_over(proxy: impl AsFd, id: &str, listener: &StdListener) -> io::Result<()> {
    send(proxy.as_fd(), id, &[listener.as_fd()])
}

fn send(proxy: BorrowedFd<'_>, id: &str, files: &[BorrowedFd<'_>]) -> io::Result<()> {
    if id.is_empty() || id.len() > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the command has no usable name"));
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        message.push(SendAncillaryMessage::ScmRights(files));
    }
    sendmsg(proxy, &[IoSlice::new(id.as_bytes())], &mut message, SendFlags::NOSIGNAL)?;
    Ok(())
}

pub(super) async fn receive(stream: &UnixStream) -> io::Result<Greeting> {
    let (id, file) = stream.async_io(Interest::READABLE, || receive_now(stream.as_fd())).await?;
    let Some(file) = file else { return Ok(Greeting::Hold { id }) };
    let listener = StdListener::from(file);
    listener.set_nonblocking(true)?;
    Ok(Greeting::Listener { id, listener: TcpListener::from_std(listener)? })
}

fn receive_now(stream: BorrowedFd<'_>) -> io::Result<(String, Option<OwnedFd>)> {
    let mut text = [0; LONGEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = recvmsg(stream, &mut [IoSliceMut::new(&mut text)], &mut message, flags)?;
    let files = message.drain().filter_map(|part| match part {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let file = files.flatten().next();
    let text = text.get(..received.bytes).unwrap_or_default();
    match str::from_utf8(text) {
        Ok(id) if !id.is_empty() => Ok((id.to_owned(), file)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "no name was given")),
    }
}
