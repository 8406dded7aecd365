//! The messages to the proxy when a command starts: one from outside, which marks the command's life, and from inside,
//! with the descriptors that the command hands over.

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

use crate::ProxyProtocol;

/// The time that a connected client may take to identify itself.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// The longest message.
const LONGEST: usize = 256;

#[derive(Debug)]
pub(super) enum Greeting {
    /// The command with this name is served until this connection ends.
    Hold { id: String },
    /// The command asks for hosts here.
    Listener { id: String, way: ProxyProtocol, listener: TcpListener },
    /// The holder of this descriptor makes the command's connections.
    Connections { id: String, calls: OwnedFd },
}

/// A descriptor that a command hands over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandedDescriptor {
    Listener(ProxyProtocol),
    Connections,
}

impl HandedDescriptor {
    const ALL: [Self; 3] = [
        Self::Listener(ProxyProtocol::Http),
        Self::Listener(ProxyProtocol::Socks),
        Self::Connections,
    ];

    fn word(self) -> &'static str {
        match self {
            Self::Listener(ProxyProtocol::Http) => "http",
            Self::Listener(ProxyProtocol::Socks) => "socks",
            Self::Connections => "connections",
        }
    }
}

/// The word before the name in a hold.
const HOLD: &str = "hold";

/// Announces a command. It is served until the connection is closed.
pub(crate) fn hold(proxy: impl AsFd, id: &str) -> io::Result<()> {
    send(proxy.as_fd(), HOLD, id, &[])
}

/// Hands over a descriptor of a command.
pub(crate) fn hand_over(
    proxy: impl AsFd,
    gift: HandedDescriptor,
    id: &str,
    file: impl AsFd,
) -> io::Result<()> {
    send(proxy.as_fd(), gift.word(), id, &[file.as_fd()])
}

fn send(proxy: BorrowedFd<'_>, word: &str, id: &str, files: &[BorrowedFd<'_>]) -> io::Result<()> {
    let text = format!("{word} {id}");
    if id.is_empty() || text.len() > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the command has no usable name"));
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        message.push(SendAncillaryMessage::ScmRights(files));
    }
    sendmsg(proxy, &[IoSlice::new(text.as_bytes())], &mut message, SendFlags::NOSIGNAL)?;
    Ok(())
}

pub(super) async fn receive(stream: &UnixStream) -> io::Result<Greeting> {
    let (text, file) = stream.async_io(Interest::READABLE, || receive_now(stream.as_fd())).await?;
    let unclear = || io::Error::new(io::ErrorKind::InvalidData, "it is not clear what was said");
    let (word, id) = text.split_once(' ').filter(|(_, id)| !id.is_empty()).ok_or_else(unclear)?;
    let id = id.to_owned();
    let Some(file) = file else {
        return if word == HOLD { Ok(Greeting::Hold { id }) } else { Err(unclear()) };
    };
    let gift =
        HandedDescriptor::ALL.into_iter().find(|gift| gift.word() == word).ok_or_else(unclear)?;
    let way = match gift {
        HandedDescriptor::Connections => return Ok(Greeting::Connections { id, calls: file }),
        HandedDescriptor::Listener(way) => way,
    };
    let listener = StdListener::from(file);
    listener.set_nonblocking(true)?;
    Ok(Greeting::Listener { id, way, listener: TcpListener::from_std(listener)? })
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
        Ok(text) => Ok((text.to_owned(), file)),
        Err(error) => Err(io::Error::new(io::ErrorKind::InvalidData, error)),
    }
}
