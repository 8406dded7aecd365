//! Attempts to reach listeners outside.

use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::{fs, io};

use centurion_sandbox::{Network, UnixSockets};

use crate::cell::Cell;

/// Listeners outside, of every kind.
pub(crate) struct Listeners {
    tcp: TcpListener,
    udp: UdpSocket,
    stream: UnixListener,
    datagram: UnixDatagram,
    abstracted: UnixListener,
    name: String,
}

impl Listeners {
    /// The Unix sockets are in a writable directory: no file permission protects them.
    pub(crate) fn new(cell: &Cell) -> Self {
        let name = cell.root.file_name().unwrap().to_string_lossy().into_owned();
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let listeners = Self {
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            stream: UnixListener::bind(cell.project.join("stream")).unwrap(),
            datagram: UnixDatagram::bind(cell.project.join("datagram")).unwrap(),
            abstracted: UnixListener::bind_addr(&address).unwrap(),
            name,
        };
        for socket in ["stream", "datagram"] {
            let open = fs::Permissions::from_mode(0o777);
            fs::set_permissions(cell.project.join(socket), open).unwrap();
        }
        listeners.tcp.set_nonblocking(true).unwrap();
        listeners.udp.set_nonblocking(true).unwrap();
        listeners.stream.set_nonblocking(true).unwrap();
        listeners.datagram.set_nonblocking(true).unwrap();
        listeners.abstracted.set_nonblocking(true).unwrap();
        listeners
    }

    /// Commands that reach one listener each, with their kind.
    pub(crate) fn attacks(&self) -> Vec<(&'static str, String)> {
        let tcp = self.tcp.local_addr().unwrap().port();
        let udp = self.udp.local_addr().unwrap().port();
        let perl = |code: &str| format!("perl -MSocket -e '{code}'");
        let inet = |kind: &str, port: u16| {
            perl(&format!(
                "socket(S, AF_INET, {kind}, 0) or die $!; \
                 connect(S, sockaddr_in({port}, inet_aton(\"127.0.0.1\"))) or die $!; \
                 defined(send(S, \"x\", 0)) or die $!"
            ))
        };
        let unix = |kind: &str, path: &str| {
            perl(&format!(
                "socket(S, AF_UNIX, {kind}, 0) or die $!; \
                 connect(S, pack(\"S a*\", AF_UNIX, \"{path}\")) or die $!; \
                 defined(send(S, \"x\", 0)) or die $!"
            ))
        };
        // A pair that is connected to itself, and then to another peer.
        let pair = |kind: &str| {
            perl(&format!(
                "socketpair(S, T, AF_UNIX, {kind}, 0) or die $!; \
                 defined(send(S, \"x\", 0, pack(\"S a*\", AF_UNIX, \"datagram\"))) or \
                 (connect(S, pack(\"S a*\", AF_UNIX, \"datagram\")) and defined(send(S, \"x\", 0))) \
                 or die $!"
            ))
        };
        vec![
            ("tcp", inet("SOCK_STREAM", tcp)),
            ("tcp by bash", format!("echo x > /dev/tcp/127.0.0.1/{tcp}")),
            ("udp", inet("SOCK_DGRAM", udp)),
            ("unix stream", unix("SOCK_STREAM", "stream")),
            ("unix datagram", unix("SOCK_DGRAM", "datagram")),
            ("unix raw", unix("SOCK_RAW", "datagram")),
            ("unix pair", pair("SOCK_DGRAM")),
            ("unix raw pair", pair("SOCK_RAW")),
            ("abstract", unix("SOCK_STREAM", &format!("\\0{}", self.name))),
        ]
    }

    /// The listeners that were reached since the last call.
    pub(crate) fn reached(&self) -> Vec<&'static str> {
        let mut buffer = [0; 8];
        let received = [
            ("tcp", self.tcp.accept().map(drop)),
            ("udp", self.udp.recv(&mut buffer).map(drop)),
            ("stream", self.stream.accept().map(drop)),
            ("datagram", self.datagram.recv(&mut buffer).map(drop)),
            ("abstract", self.abstracted.accept().map(drop)),
        ];
        let was_reached = |result: &io::Result<()>| match result {
            Ok(()) => true,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
                false
            }
        };
        received.iter().filter(|(_, result)| was_reached(result)).map(|(name, _)| *name).collect()
    }
}

#[test]
fn no_host_outside_can_be_reached() {
    for network in [Network::Off, Network::Loopback] {
        for cell in Cell::all(Cell::open(network.clone())) {
            let listeners = Listeners::new(&cell);
            for (way, attack) in listeners.attacks() {
                let said = cell.run(&attack);
                // A datagram can be sent without reaching a listener.
                assert!(!said.ok || way == "udp", "{way}: {said:?} {:?}", cell.plan.method);
                assert_eq!(listeners.reached(), [""; 0], "{way} {:?}", cell.plan.method);
            }
        }
    }
}

/// Every type of a pair that fits into the field, with and without flags: whatever the kernel makes of it, it reaches
/// no listener. Pairs for a command's own processes still work.
#[test]
fn no_type_of_a_pair_reaches_a_process_outside() {
    let attempt = "perl -MSocket -e '
        for my $kind (0 .. 15) {
            for my $flags (0, 04000, 02000000, 02004000) {
                socketpair(S, T, AF_UNIX, $kind | $flags, 0) or next;
                print \"$kind \" if $flags == 0;
                for my $name (\"stream\", \"datagram\") {
                    my $to = pack(\"S a*\", AF_UNIX, $name);
                    send(S, \"x\", 0, $to);
                    connect(S, $to) and send(S, \"x\", 0);
                }
            }
        }'";
    for network in [Network::Off, Network::Open] {
        for cell in Cell::all(Cell::open(network.clone())) {
            let listeners = Listeners::new(&cell);
            let said = cell.run(attempt);
            assert_eq!(said.text, "1 5 ", "{:?}", cell.plan.method);
            assert_eq!(listeners.reached(), [""; 0], "{:?}", cell.plan.method);
        }
    }
}

#[test]
fn the_attacks_work_where_there_is_no_sandbox() {
    let cell = Cell::any();
    let listeners = Listeners::new(&cell);
    for (way, attack) in listeners.attacks() {
        let said = cell.run_free(&attack);
        assert!(said.ok, "{way}: {said:?}");
        assert_eq!(listeners.reached().len(), 1, "{way}");
    }
}

#[test]
fn an_open_network_does_not_open_unix_sockets() {
    for cell in Cell::all(Cell::open(Network::Open)) {
        let listeners = Listeners::new(&cell);
        for (way, attack) in listeners.attacks() {
            let said = cell.run(&attack);
            let is_network = ["tcp", "tcp by bash", "udp"].contains(&way);
            assert_eq!(said.ok, is_network, "{way}: {said:?} {:?}", cell.plan.method);
            assert_eq!(listeners.reached().len(), usize::from(is_network), "{way}");
        }
    }
}

#[test]
fn unix_sockets_can_be_allowed() {
    for cell in Cell::all(|sandbox| sandbox.unix_sockets = UnixSockets::Allowed) {
        let listeners = Listeners::new(&cell);
        for (way, attack) in listeners.attacks() {
            let said = cell.run(&attack);
            let is_file = way.starts_with("unix ");
            // An abstract name belongs to a network; without namespaces it is the machine's.
            let is_reachable = is_file || (way == "abstract" && !cell.has_namespaces());
            let reached = listeners.reached().len();
            assert_eq!(
                reached,
                usize::from(is_reachable),
                "{way}: {said:?} {:?}",
                cell.plan.method
            );
        }
    }
}

#[test]
fn no_other_kind_of_socket_can_be_had() {
    for cell in Cell::all(Cell::open(Network::Open)) {
        for (name, family, kind, protocol) in [
            ("packet", libc::AF_PACKET, libc::SOCK_RAW, 0x300),
            ("raw", libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP),
            ("raw, version 6", libc::AF_INET6, libc::SOCK_RAW, libc::IPPROTO_ICMPV6),
            ("old packet", libc::AF_INET, 10, 0x300),
            ("virtual machine", libc::AF_VSOCK, libc::SOCK_STREAM, 0),
            ("cryptography", libc::AF_ALG, libc::SOCK_SEQPACKET, 0),
            ("bluetooth", libc::AF_BLUETOOTH, libc::SOCK_RAW, 0),
            ("events", libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_KOBJECT_UEVENT),
            ("audit", libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_AUDIT),
        ] {
            let attack = format!("perl -e 'socket(S, {family}, {kind}, {protocol}) or die $!'");
            let said = cell.run(&attack);
            assert!(!said.ok, "{name}: {said:?} {:?}", cell.plan.method);
        }
    }
}

#[test]
fn a_command_reaches_its_own_processes_where_that_is_allowed() {
    let attempt = "perl -MSocket -e '
        socket(L, AF_INET, SOCK_STREAM, 0) or die $!;
        bind(L, sockaddr_in(0, INADDR_LOOPBACK)) or die $!; listen(L, 1) or die $!;
        my ($port) = sockaddr_in(getsockname(L));
        if (fork() == 0) {
            socket(S, AF_INET, SOCK_STREAM, 0) or die $!;
            connect(S, sockaddr_in($port, INADDR_LOOPBACK)) or die $!;
            send(S, \"hello\", 0); exit 0;
        }
        $SIG{ALRM} = sub { die \"nobody came\" }; alarm 5;
        accept(C, L) or die $!; recv(C, my $text, 5, 0); print $text;'";
    for cell in Cell::all(Cell::open(Network::Loopback)) {
        let said = cell.run(attempt);
        assert_eq!(said.text == "hello", cell.has_namespaces(), "{said:?}");
    }
}
