//! Ordinary work, which a sandbox must not hinder.

use centurion_sandbox::Network;

use crate::cell::Cell;

const WORK: [&str; 17] = [
    "echo a > file && cat file && rm file",
    "mkdir -p a/b && mv a c && cp -a c d && rm -r c d",
    "echo a > one && ln one two && ln -s one three && cat two three && mv one a-new-name",
    "mkdir x y && echo a > x/f && mv x/f y/f && cat y/f",
    "t=$(mktemp) && echo a > $t && cat $t && rm $t",
    "d=$(mktemp -d) && touch $d/f && rm -r $d",
    "seq 1 1000 | sort -rn | head -1 | grep 1000",
    "cat <<< here && cat <(echo substituted) && echo out | tee copy",
    "echo a > /dev/null && head -c 8 /dev/urandom | wc -c && head -c 8 /dev/zero | wc -c",
    "(echo a > /dev/stdout && echo a > /dev/stderr) 2>&1 | cat && echo a | cat /dev/stdin",
    "mkfifo f; (echo through > f &); cat f; rm f",
    "sleep 0.01 & wait $!; kill -0 $$; (exec sh -c 'kill -TERM $$'); true",
    "printf 'all: out\\nout: in\\n\\tcp in out\\n' > Makefile; echo a > in; make -s -j2 && cat out",
    "git init -q g && cd g && git config user.email a@b && git config user.name a && \
     echo a > a && git add a && git commit -qm one && git switch -qc b && echo b > a && \
     git commit -qam two && git rebase -q HEAD~1 && git gc -q && git worktree add -q ../w && git log",
    "chmod 755 . && touch -d 2001-01-01 old && test old -ot . && chmod 600 old && rm old",
    "perl -e 'pipe(R, W); if (fork() == 0) { print W 1; exit 0 } close W; print <R>; wait'",
    "perl -MSocket -e 'socketpair(S, T, AF_UNIX, SOCK_STREAM, 0) or die $!'",
];

#[test]
fn ordinary_work_continues() {
    for network in [Network::Off, Network::Loopback, Network::Open] {
        for cell in Cell::all(Cell::open(network.clone())) {
            for work in WORK {
                let said = cell.run(work);
                assert!(said.ok, "{work}: {said:?} {:?} as {:?}", cell.plan.method, cell.user);
            }
            cell.assert_untouched("ordinary work");
        }
    }
}

#[test]
fn the_same_user_stands_in_the_same_directory() {
    for cell in Cell::all(|_| ()) {
        let inside = cell.run("id -u; id -g; pwd; pwd -P");
        assert_eq!(inside.text, cell.run_free("id -u; id -g; pwd; pwd -P").text);
    }
}

#[test]
fn a_terminal_of_its_own_can_be_had() {
    for cell in Cell::all(|_| ()).iter().filter(|cell| cell.has_namespaces()) {
        let said = cell.run("perl -e 'open(P, \"+<\", \"/dev/ptmx\") or die $!; print \"got it\"'");
        assert_eq!(said.text, "got it", "{said:?}");
    }
}
