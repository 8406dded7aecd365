//! One connection through the proxy: a tunnel, or a plain request that is passed on.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use centurion_protocol::HostName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use super::Routes;
use super::domains::Domains;
use super::request::{Head, HeadError, Request};

/// The longest head of a request.
const LONGEST_HEAD: usize = 64 * 1024;
/// The time limit for a request, and for reaching a host.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn serve(mut client: TcpStream, routes: &Routes) -> io::Result<()> {
    let (request, rest) = match timeout(PATIENCE, read_request(&mut client)).await {
        Ok(Ok(Ok(request))) => request,
        Ok(Ok(Err(error))) => {
            return refuse(&mut client, "400 Bad Request", &error.to_string()).await;
        }
        Ok(Err(error)) => return Err(error),
        Err(_) => {
            let late = HeadError::Incomplete.to_string();
            return refuse(&mut client, "408 Request Timeout", &late).await;
        }
    };
    let host = &request.host;
    let is_allowed = match routes.http {
        None => routes.domains.allow(host),
        Some(_) => routes.domains.pass_on(host),
    };
    if !is_allowed {
        let why = format!("the sandbox does not allow to reach {host}");
        return refuse(&mut client, "403 Forbidden", &why).await;
    }
    let reached = match routes.http {
        None => timeout(PATIENCE, connect(&routes.domains, host, request.port)).await,
        Some(port) => timeout(PATIENCE, own_proxy(port)).await,
    };
    let mut server = match reached {
        Ok(Ok(server)) => server,
        Ok(Err(error)) => {
            let why = format!("{host} cannot be reached: {error}");
            return refuse(&mut client, "502 Bad Gateway", &why).await;
        }
        Err(_) => {
            let why = format!("{host} does not answer");
            return refuse(&mut client, "504 Gateway Timeout", &why).await;
        }
    };
    match (routes.http, &request.plain) {
        (Some(_), Some(_)) => server.write_all(&request.to_proxy()).await?,
        (Some(_), None) => {
            server.write_all(&request.to_proxy()).await?;
            if !open_tunnel(&mut client, &mut server).await? {
                return Ok(());
            }
        }
        (None, Some(path)) => server.write_all(&request.to_server(path)).await?,
        (None, None) => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?,
    }
    server.write_all(&rest).await?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

/// Passes on the answer of the user's own proxy to `CONNECT`; returns whether there is a tunnel now. Without one,
/// nothing more is passed on to that proxy: it would read it as a request of its own, to any host.
async fn open_tunnel(client: &mut TcpStream, server: &mut TcpStream) -> io::Result<bool> {
    let mut bytes = Vec::new();
    let reading = async {
        loop {
            if server.read_buf(&mut bytes).await? == 0 || bytes.len() > LONGEST_HEAD {
                return Ok(None);
            }
            let mut headers = [httparse::EMPTY_HEADER; 64];
            let mut answer = httparse::Response::new(&mut headers);
            match answer.parse(&bytes) {
                Ok(httparse::Status::Complete(_)) => return Ok(answer.code),
                Ok(httparse::Status::Partial) => {}
                Err(_) => return Ok(None),
            }
        }
    };
    let code: Option<u16> = timeout(PATIENCE, reading).await.unwrap_or(io::Result::Ok(None))?;
    if code.is_some_and(|code| (200..300).contains(&code)) {
        client.write_all(&bytes).await?;
        return Ok(true);
    }
    let why = match code {
        Some(code) => format!("the user's own proxy refuses: {code}"),
        None => "the user's own proxy gives no answer".to_owned(),
    };
    refuse(client, "502 Bad Gateway", &why).await?;
    Ok(false)
}

/// Connects to the user's own proxy on this machine.
pub(super) async fn own_proxy(port: u16) -> io::Result<TcpStream> {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.map_err(|error| {
        io::Error::new(error.kind(), format!("the proxy on port {port} does not listen: {error}"))
    })
}

/// Reads a client's request, and the bytes that it has sent beyond that.
async fn read_request(
    client: &mut TcpStream,
) -> io::Result<Result<(Box<Request>, Vec<u8>), HeadError>> {
    let mut bytes = Vec::new();
    loop {
        if client.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match Head::parse(&bytes) {
            Head::Request(request, end) => {
                let rest = bytes.split_off(end);
                return Ok(Ok((request, rest)));
            }
            Head::Refused(error) => return Ok(Err(error)),
            Head::Partial if bytes.len() > LONGEST_HEAD => return Ok(Err(HeadError::TooLong)),
            Head::Partial => {}
        }
    }
}

/// Connects to one of the addresses of the host's name, if the rules for the host permit the address.
async fn connect(domains: &Domains, host: &HostName, port: u16) -> io::Result<TcpStream> {
    let mut error = io::Error::new(io::ErrorKind::NotFound, "its name leads nowhere outside");
    let addresses: Vec<SocketAddr> = match host {
        HostName::Address(address) => vec![(*address, port).into()],
        HostName::Domain(name) => lookup_host((name.as_str(), port)).await?.collect(),
    };
    for address in addresses {
        if domains.mean(host, &address) {
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(failed) => error = failed,
            }
        }
    }
    Err(error)
}

async fn refuse(client: &mut TcpStream, status: &str, why: &str) -> io::Result<()> {
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{why}\n",
        why.len() + 1
    );
    client.write_all(answer.as_bytes()).await?;
    client.shutdown().await
}
