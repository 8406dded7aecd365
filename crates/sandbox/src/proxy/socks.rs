//! One SOCKS 5 connection through the user's own proxy: its request is checked on the way.
//!
//! The client and that proxy authenticate directly; only a request for a permitted host is passed on.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use centurion_protocol::HostName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Routes;
use super::connection::own_proxy;

const VERSION: u8 = 5;
/// The time limit for the negotiation.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn serve(mut client: TcpStream, routes: &Routes) -> io::Result<()> {
    let port = routes.socks.ok_or(io::ErrorKind::Unsupported)?;
    let mut proxy = timeout(PATIENCE, own_proxy(port)).await??;
    if !timeout(PATIENCE, agree(&mut client, &mut proxy, routes)).await?? {
        return Ok(());
    }
    copy_bidirectional(&mut client, &mut proxy).await?;
    Ok(())
}

/// Relays the negotiation until the request; `false` if the request is not permitted.
async fn agree(client: &mut TcpStream, proxy: &mut TcpStream, routes: &Routes) -> io::Result<bool> {
    /// The supported authentication methods: none, and a name with a password.
    const NOTHING: u8 = 0;
    const PASSWORD: u8 = 2;
    const REFUSED: u8 = 0xff;

    let [version, count] = read(client).await?;
    if version != VERSION {
        return Err(unclear());
    }
    let mut offered = vec![0; usize::from(count)];
    client.read_exact(&mut offered).await?;
    offered.retain(|way| [NOTHING, PASSWORD].contains(way));
    let Ok(count @ 1..) = u8::try_from(offered.len()) else {
        client.write_all(&[VERSION, REFUSED]).await?;
        return Ok(false);
    };
    proxy.write_all(&[[VERSION, count].as_slice(), &offered].concat()).await?;
    let [_, chosen] = pass::<2>(proxy, client).await?;
    match chosen {
        NOTHING => {}
        PASSWORD => {
            pass::<1>(client, proxy).await?;
            for _ in ["name", "password"] {
                let [length] = pass(client, proxy).await?;
                let mut text = vec![0; usize::from(length)];
                client.read_exact(&mut text).await?;
                proxy.write_all(&text).await?;
            }
            let [_, status] = pass::<2>(proxy, client).await?;
            if status != 0 {
                return Ok(false);
            }
        }
        _ => return Ok(false),
    }
    request(client, proxy, routes).await
}

/// Passes on a request for a permitted host.
async fn request(
    client: &mut TcpStream,
    proxy: &mut TcpStream,
    routes: &Routes,
) -> io::Result<bool> {
    const CONNECT: u8 = 1;
    const NOT_ALLOWED: u8 = 2;
    const NOT_SUPPORTED: u8 = 7;

    let [version, command, _, kind] = read(client).await?;
    if version != VERSION {
        return Err(unclear());
    }
    let host = match kind {
        1 => HostName::parse(&Ipv4Addr::from(read::<4>(client).await?).to_string()),
        4 => HostName::parse(&Ipv6Addr::from(read::<16>(client).await?).to_string()),
        3 => {
            let [length] = read(client).await?;
            let mut name = vec![0; usize::from(length)];
            client.read_exact(&mut name).await?;
            str::from_utf8(&name).ok().and_then(HostName::parse)
        }
        _ => return Err(unclear()),
    };
    let port: [u8; 2] = read(client).await?;
    // Only connections: the other commands could reach a host that was not named.
    let refusal = match command {
        CONNECT if host.as_ref().is_some_and(|host| routes.domains.pass_on(host)) => None,
        CONNECT => Some(NOT_ALLOWED),
        _ => Some(NOT_SUPPORTED),
    };
    // In the form that was decided about, not as written.
    let address = host.as_ref().and_then(written);
    let (Some(address), None) = (address, refusal) else {
        let code = refusal.unwrap_or(NOT_ALLOWED);
        client.write_all(&[VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
        client.shutdown().await?;
        return Ok(false);
    };
    proxy.write_all(&[[VERSION, command, 0].as_slice(), &address, &port].concat()).await?;
    Ok(true)
}

/// A host in the form of SOCKS: its kind, then itself.
fn written(host: &HostName) -> Option<Vec<u8>> {
    Some(match host {
        HostName::Address(IpAddr::V4(address)) => [&[1][..], &address.octets()].concat(),
        HostName::Address(IpAddr::V6(address)) => [&[4][..], &address.octets()].concat(),
        HostName::Domain(name) => {
            [&[3, u8::try_from(name.len()).ok()?][..], name.as_bytes()].concat()
        }
    })
}

async fn read<const N: usize>(from: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// Reads from one side and sends it to the other.
async fn pass<const N: usize>(from: &mut TcpStream, to: &mut TcpStream) -> io::Result<[u8; N]> {
    let bytes = read(from).await?;
    to.write_all(&bytes).await?;
    Ok(bytes)
}

fn unclear() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "this is not SOCKS 5")
}
