//! A real bash that runs texts and reports the programs that they ran.
//!
//! One long-lived shell forks for each text and evaluates it there, as the Bash tool does with `eval`. No program is
//! ever found: the shell calls a function of ours with the words instead, which reports them. A text that names no path
//! can run nothing on this machine, and the texts name none.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Between words, after a record, after a text.
const WORD: u8 = 0x1f;
const RECORD: u8 = 0x1e;
const DONE: u8 = 0x1d;

/// A text that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(2);

/// A text that runs more programs never ends.
const MOST_RECORDS: usize = 300;

/// `gen` prints a command; programs whose name begins with `n` fail. A record has the text's number, the
/// directory, the file that was sourced (if one was) and the words.
const SCRIPT: &str = r#"
exec 210<&0 211>&1 </dev/null >/dev/null 2>&1
command_not_found_handle() {
    builtin local IFS=$'\x1f' frame sourced=
    for frame in "${!FUNCNAME[@]}"; do
        builtin [ "${FUNCNAME[frame]}" = source ] && sourced=${BASH_SOURCE[frame]}
    done
    builtin printf '%s\x1f%s\x1f%s\x1f%s\x1e' "$TEXT_NUMBER" "$PWD" "$sourced" "$*" >&211
    builtin [ "$1" = gen ] && builtin printf 'bb f1'
    builtin [ "${1#n}" = "$1" ]
}
FUNCNEST=30
while IFS= read -r -d '' TEXT_NUMBER <&210 && IFS= read -r -d '' text <&210; do
    ( builtin eval "$text"; builtin wait ) 210<&-
    builtin printf '\x1d' >&211
done
"#;

/// The effects of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deeds {
    /// The words of each program that ran.
    pub(crate) ran: Vec<Vec<String>>,
    /// The directory of each.
    pub(crate) places: Vec<PathBuf>,
    /// Files that were created, removed or changed.
    pub(crate) changed: Vec<String>,
}

/// A shell and its directory.
pub(crate) struct Bash {
    root: PathBuf,
    work: PathBuf,
    shell: Option<Running>,
    number: u64,
    files: BTreeMap<String, Vec<u8>>,
    links: Vec<(String, String)>,
}

/// A program that ran.
struct Record {
    place: PathBuf,
    /// The file whose lines ran it, if one was sourced.
    sourced: PathBuf,
    words: Vec<String>,
}

struct Running {
    child: Child,
    stdin: ChildStdin,
    bytes: Receiver<Vec<u8>>,
    unread: Vec<u8>,
}

impl Bash {
    /// A directory deep enough that a few `cd ..` stay inside.
    pub(crate) fn new(root: &Path, files: &[(&str, &str)], links: &[(&str, &str)]) -> Self {
        let work = root.join("1/2/3/4/5/6/7/8/work");
        let files = files
            .iter()
            .map(|(name, content)| ((*name).to_owned(), content.as_bytes().to_vec()))
            .collect();
        let links = links.iter().map(|(name, to)| ((*name).to_owned(), (*to).to_owned())).collect();
        let bash = Self { root: root.to_owned(), work, shell: None, number: 0, files, links };
        bash.reset();
        bash
    }

    pub(crate) fn work(&self) -> &Path {
        &self.work
    }

    /// Restores the directory.
    fn reset(&self) {
        for entry in std::fs::read_dir(&self.root).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }
                .unwrap();
        }
        std::fs::create_dir_all(&self.work).unwrap();
        for (name, content) in &self.files {
            let path = self.work.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        for (name, target) in &self.links {
            std::os::unix::fs::symlink(target, self.work.join(name)).unwrap();
        }
    }

    /// Runs a text and returns its effects; `None` if it hangs.
    pub(crate) fn run(&mut self, text: &str) -> Option<Deeds> {
        if self.shell.is_none() {
            self.shell = Some(Running::start(&self.work, &self.root));
        }
        self.number += 1;
        let number = self.number.to_string();
        let running = self.shell.as_mut().unwrap();
        let mut request = number.clone().into_bytes();
        request.push(0);
        request.extend_from_slice(text.as_bytes());
        request.push(0);
        let ran = running.stdin.write_all(&request).ok().and_then(|()| running.records(&number));
        let Some(mut records) = ran else {
            self.shell = None;
            self.reset();
            return None;
        };
        let changed = self.changes();
        if !changed.is_empty() {
            // The shell must not be in a directory that is gone.
            self.shell = None;
            self.reset();
        }
        records.retain(|record| !self.was_there(&record.sourced, &changed));
        let (places, ran) = records.into_iter().map(|record| (record.place, record.words)).unzip();
        Some(Deeds { ran, places, changed })
    }

    /// Whether a sourced file existed from the start: the text only names it, and its content is not judged.
    fn was_there(&self, sourced: &Path, changed: &[String]) -> bool {
        let links = self.links.iter().map(|(name, _)| name);
        let names: Vec<_> = self.files.keys().chain(links).collect();
        let is_ours = |name: &&String| Path::new(name).file_name() == sourced.file_name();
        names.iter().any(is_ours) && !names.iter().any(|name| changed.contains(name))
    }

    /// The changed files below the root.
    fn changes(&self) -> Vec<String> {
        let mut found = BTreeMap::new();
        collect(&self.root, &mut found);
        let mut changed = Vec::new();
        for (name, content) in &self.files {
            let path = self.work.join(name);
            if found.remove(&path).as_ref() != Some(content) {
                changed.push(name.clone());
            }
        }
        for (name, target) in &self.links {
            let path = self.work.join(name);
            let is_there = std::fs::read_link(&path).is_ok_and(|to| to == Path::new(target));
            if found.remove(&path).is_none() || !is_there {
                changed.push(name.clone());
            }
        }
        let relative = |path: PathBuf| {
            let inside = path.strip_prefix(&self.work).map(Path::to_owned);
            inside.unwrap_or(path).display().to_string()
        };
        changed.extend(found.into_keys().map(relative));
        changed
    }
}

fn collect(directory: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            collect(&entry.path(), found);
        } else {
            found.insert(entry.path(), std::fs::read(entry.path()).unwrap_or_default());
        }
    }
}

impl Running {
    fn start(work: &Path, home: &Path) -> Self {
        let mut child = Command::new("/bin/bash")
            .args(["--norc", "--noprofile", "-c", SCRIPT])
            .env_clear()
            .env("PATH", home.join("no-programs"))
            .env("HOME", home)
            .env("LC_ALL", "C.UTF-8")
            .current_dir(work)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let (sender, bytes) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 8192];
            while let Ok(length) = stdout.read(&mut buffer) {
                if length == 0 || sender.send(buffer[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child, stdin, bytes, unread: Vec::new() }
    }

    /// The records of one text, up to its end.
    fn records(&mut self, number: &str) -> Option<Vec<Record>> {
        let mut records = Vec::new();
        loop {
            while let Some(end) = self.unread.iter().position(|byte| [RECORD, DONE].contains(byte))
            {
                let record: Vec<u8> = self.unread.drain(..=end).collect();
                if record.last() == Some(&DONE) {
                    return Some(records);
                }
                if records.len() > MOST_RECORDS {
                    return None;
                }
                let words = record[..end].split(|byte| *byte == WORD);
                let mut words = words.map(|word| String::from_utf8_lossy(word).into_owned());
                // A process of an earlier text does not belong to this one.
                if words.next().as_deref() == Some(number) {
                    let mut path = || PathBuf::from(words.next().unwrap_or_default());
                    let (place, sourced) = (path(), path());
                    records.push(Record { place, sourced, words: words.collect() });
                }
            }
            match self.bytes.recv_timeout(PATIENCE) {
                Ok(bytes) => self.unread.extend(bytes),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        let killed =
            Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        killed.unwrap();
        self.child.wait().unwrap();
    }
}
