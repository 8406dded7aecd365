//! One connection through the proxy: a tunnel, or a plain request that is passed on.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use super::Routes;
use super::domains::is_meant;

/// No head of a request is longer.
const LONGEST_HEAD: usize = 64 * 1024;
/// How long a request may take to be made, and a host to be reached.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn serve(mut client: TcpStream, routes: &Routes) -> io::Result<()> {
    let (head, rest) = match timeout(PATIENCE, read_head(&mut client)).await {
        Ok(Ok(parts)) => parts,
        Ok(Err(error)) => return Err(error),
        Err(_) => {
            return refuse(&mut client, "408 Request Timeout", "the request is incomplete").await;
        }
    };
    let Some(request) = Request::parse(&head) else {
        let why = "this is a proxy: ask for https with CONNECT, or for an http address";
        return refuse(&mut client, "400 Bad Request", why).await;
    };
    let host = request.host.as_str();
    let is_allowed = match routes.http {
        None => routes.domains.allow(host),
        Some(_) => routes.domains.pass_on(host),
    };
    if !is_allowed {
        let why = format!("the sandbox does not allow to reach {host}");
        return refuse(&mut client, "403 Forbidden", &why).await;
    }
    let reached = match routes.http {
        None => timeout(PATIENCE, connect(host, request.port)).await,
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
        (Some(_), _) => server.write_all(request.to_proxy().as_bytes()).await?,
        (None, Some(path)) => server.write_all(request.to_server(path).as_bytes()).await?,
        (None, None) => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?,
    }
    server.write_all(&rest).await?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

/// The proxy that the user runs on this machine.
pub(super) async fn own_proxy(port: u16) -> io::Result<TcpStream> {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.map_err(|error| {
        io::Error::new(error.kind(), format!("the proxy on port {port} does not listen: {error}"))
    })
}

/// The head of a request without its empty line, and what came after it.
async fn read_head(client: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    const END: &[u8] = b"\r\n\r\n";
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(END.len()).position(|window| window == END) {
            let rest = bytes.split_off(end + END.len());
            bytes.truncate(end);
            let head = String::from_utf8(bytes)
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the head is not text"))?;
            return Ok((head, rest));
        }
        if bytes.len() > LONGEST_HEAD {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the head is too long"));
        }
        if client.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Request<'h> {
    host: String,
    port: u16,
    /// The host and port as they were written.
    place: &'h str,
    method: &'h str,
    /// The path at the server; `None` for a tunnel.
    plain: Option<String>,
    version: &'h str,
    headers: Vec<&'h str>,
}

impl<'h> Request<'h> {
    fn parse(head: &'h str) -> Option<Self> {
        let (line, headers) = head.split_once("\r\n").unwrap_or((head, ""));
        let mut words = line.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        let headers = headers.split("\r\n").filter(|header| !header.is_empty()).collect();
        if method == "CONNECT" {
            let (host, port) = authority(target)?;
            let (port, plain) = (port?, None);
            return Some(Self { host, port, place: target, method, plain, version, headers });
        }
        let rest = target.strip_prefix("http://")?;
        let (place, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (host, port) = authority(place)?;
        let slash = if path.starts_with('/') { "" } else { "/" };
        let (port, plain) = (port.unwrap_or(80), Some(format!("{slash}{path}")));
        Some(Self { host, port, place, method, plain, version, headers })
    }

    /// What a plain request says to its server.
    fn to_server(&self, path: &str) -> String {
        let secret = ["proxy-authorization"];
        format!("{} {path} {}\r\n{}", self.method, self.version, self.headers(&secret))
    }

    /// What any request says to another proxy.
    fn to_proxy(&self) -> String {
        let target = match &self.plain {
            Some(path) => format!("http://{}{path}", self.place),
            None => self.place.to_owned(),
        };
        format!("{} {target} {}\r\n{}", self.method, self.version, self.headers(&[]))
    }

    /// The headers, without those that are for this proxy or said anew.
    fn headers(&self, dropped: &[&str]) -> String {
        const REPLACED: [&str; 3] = ["host", "connection", "proxy-connection"];
        // The host is the one that was decided about, and one request is all there is.
        let connection = if self.plain.is_some() { "Connection: close\r\n" } else { "" };
        let mut text = format!("Host: {}\r\n{connection}", self.place);
        for header in &self.headers {
            let name = header.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
            if !REPLACED.iter().chain(dropped).any(|dropped| *dropped == name) {
                text.push_str(header);
                text.push_str("\r\n");
            }
        }
        text + "\r\n"
    }
}

/// The host and port of `host:port`; who one is to be there is not for the proxy.
fn authority(text: &str) -> Option<(String, Option<u16>)> {
    let is_plain = |character: char| character.is_ascii_graphic() && !"@/\\%".contains(character);
    if text.is_empty() || !text.chars().all(is_plain) {
        return None;
    }
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            (host, port.strip_prefix(':'))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = match port {
        Some(port) => Some(port.parse().ok()?),
        None => None,
    };
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut error = io::Error::new(io::ErrorKind::NotFound, "its name leads nowhere outside");
    for address in lookup_host((host, port)).await? {
        if is_meant(host, &address) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_strictly() {
        let secret = "Proxy-Authorization: s";
        let tunnel = format!("CONNECT example.com:443 HTTP/1.1\r\nHost: other\r\n{secret}");
        let tunnel = Request::parse(&tunnel).unwrap();
        assert_eq!((tunnel.host.as_str(), tunnel.port), ("example.com", 443));
        assert_eq!(tunnel.plain, None);
        assert_eq!(
            tunnel.to_proxy(),
            format!(
                "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n{secret}\r\n\r\n"
            )
        );
        let plain = format!(
            "GET http://example.com:8080?q HTTP/1.1\r\nHost: evil.org\r\nProxy-Connection: x\r\n\
             {secret}\r\nA: b"
        );
        let plain = Request::parse(&plain).unwrap();
        assert_eq!((plain.host.as_str(), plain.port), ("example.com", 8080));
        assert_eq!(
            plain.to_server(plain.plain.as_deref().unwrap()),
            "GET /?q HTTP/1.1\r\nHost: example.com:8080\r\nConnection: close\r\nA: b\r\n\r\n"
        );
        assert_eq!(
            plain.to_proxy(),
            format!(
                "GET http://example.com:8080/?q HTTP/1.1\r\nHost: example.com:8080\r\n\
                 Connection: close\r\n{secret}\r\nA: b\r\n\r\n"
            )
        );
        for head in [
            "",
            "GET / HTTP/1.1",
            "GET https://example.com/ HTTP/1.1",
            "CONNECT example.com HTTP/1.1",
            "CONNECT :443 HTTP/1.1",
            "CONNECT example.com:many HTTP/1.1",
            "GET http://good.org@evil.org/ HTTP/1.1",
            "GET http://good.org\\evil.org/ HTTP/1.1",
            "GET http://good.org%00.evil.org/ HTTP/1.1",
            "CONNECT [::1:443 HTTP/1.1",
        ] {
            assert_eq!(Request::parse(head), None, "{head:?}");
        }
    }
}
