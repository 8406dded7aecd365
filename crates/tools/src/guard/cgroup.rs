//! A control group of the kernel (cgroup) for one command, where this process may make one: it limits the command
//! together with everything that it starts.
//!
//! The guard makes the group, the launch step enters it before the command runs, and the process above the guard
//! removes it. Both versions of control groups are supported; `/proc/self` tells the version and the directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, getpid};

use super::CommandLimits;

/// The prefix of a group's directory name, before the number of its guard.
const NAME: &str = "centurion-";

/// A resource that a group can limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Controller {
    Memory,
    Processes,
}

impl Controller {
    const ALL: [Self; 2] = [Self::Memory, Self::Processes];

    fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Processes => "pids",
        }
    }

    fn limit(self, limits: CommandLimits) -> Option<u64> {
        match self {
            Self::Memory => limits.memory,
            Self::Processes => limits.processes,
        }
    }

    /// The files that hold the limit: the first must exist.
    fn files(self, version: Version) -> &'static [&'static str] {
        match (self, version) {
            (Self::Memory, Version::One) => {
                &["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"]
            }
            (Self::Memory, Version::Two) => &["memory.max"],
            (Self::Processes, _) => &["pids.max"],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// Makes the groups of a guard's command, as many as possible.
pub(super) fn make(guard: Pid, limits: CommandLimits) {
    for controller in Controller::ALL {
        let Some(limit) = controller.limit(limits) else { continue };
        let Some(parent) = Parent::find(controller) else { continue };
        parent.remove_abandoned();
        let group = parent.group(guard);
        // Without a group, each process has its own limit.
        if fs::create_dir(&group).is_ok() && set(&group, controller, parent.version, limit).is_err()
        {
            let _ = fs::remove_dir(&group);
        }
    }
}

/// Enters the groups that the guard has made. Returns the limits that remain for each process.
pub(super) fn enter(guard: Pid, limits: CommandLimits) -> CommandLimits {
    let mut left = limits;
    for controller in Controller::ALL {
        let Some(parent) = Parent::find(controller).filter(|_| controller.limit(limits).is_some())
        else {
            continue;
        };
        let me = getpid().as_raw_pid().to_string();
        let entered = write(&parent.group(guard).join("cgroup.procs"), &me);
        match (controller, entered) {
            (_, Err(_)) => {}
            (Controller::Memory, Ok(())) => left.memory = None,
            (Controller::Processes, Ok(())) => left.processes = None,
        }
    }
    left
}

/// Removes the groups of a guard's command, whose processes are gone.
pub(super) fn remove(guard: Pid) {
    for parent in Controller::ALL.into_iter().filter_map(Parent::find) {
        let _ = fs::remove_dir(parent.group(guard));
    }
}

/// Whether commands can be limited as a whole on this machine.
pub fn is_available() -> bool {
    Controller::ALL.into_iter().all(|controller| {
        Parent::find(controller).is_some_and(|parent| {
            let probe = parent.directory.join(format!("{NAME}probe-{}", getpid().as_raw_pid()));
            fs::create_dir(&probe).is_ok() && fs::remove_dir(&probe).is_ok()
        })
    })
}

fn set(group: &Path, controller: Controller, version: Version, limit: u64) -> io::Result<()> {
    let (limit, mut files) = (limit.to_string(), controller.files(version).iter());
    if let Some(first) = files.next() {
        write(&group.join(first), &limit)?;
    }
    for other in files {
        // Not every kernel counts swapped pages.
        let _ = write(&group.join(other), &limit);
    }
    Ok(())
}

/// Writes to an existing file of the kernel; never creates one.
fn write(path: &Path, value: &str) -> io::Result<()> {
    use std::io::Write as _;
    fs::File::options().write(true).open(path)?.write_all(value.as_bytes())
}

/// A directory in which groups can be made.
#[derive(Debug, PartialEq, Eq)]
struct Parent {
    directory: PathBuf,
    version: Version,
}

impl Parent {
    fn find(controller: Controller) -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let (own, version) = own_directory(controller, &groups, &mounts)?;
        match version {
            Version::One => Some(Self { directory: own, version }),
            // A group with processes cannot have groups below it, but it may have one beside it.
            Version::Two => [Some(own.as_path()), own.parent()]
                .into_iter()
                .flatten()
                .find(|directory| is_controlled(directory, controller))
                .map(|directory| Self { directory: directory.to_owned(), version }),
        }
    }

    fn group(&self, guard: Pid) -> PathBuf {
        self.directory.join(format!("{NAME}{}", guard.as_raw_pid()))
    }

    /// Removes the groups of guards that were killed together with the process above them.
    fn remove_abandoned(&self) {
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let guard = name.to_str().and_then(|name| name.strip_prefix(NAME)?.parse::<u32>().ok());
            if guard.is_some_and(|guard| !Path::new(&format!("/proc/{guard}")).exists()) {
                // A group that still holds a process stays.
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

fn is_controlled(directory: &Path, controller: Controller) -> bool {
    fs::read_to_string(directory.join("cgroup.subtree_control"))
        .is_ok_and(|names| names.split_whitespace().any(|name| name == controller.name()))
}

/// The directory of this process's group, by the kernel's lists of groups and mounts.
fn own_directory(controller: Controller, groups: &str, mounts: &str) -> Option<(PathBuf, Version)> {
    let has = |list: &str| list.split(',').any(|name| name == controller.name());
    // `4:memory:/path` in version 1, `0::/path` in version 2.
    let own = |is_it: &dyn Fn(&str) -> bool| {
        groups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let names = fields.next()?;
            is_it(names).then(|| fields.next()).flatten()
        })
    };
    // `30 20 0:26 /root /mounted/at rw - cgroup cgroup rw,memory`.
    let mounted = |is_it: &dyn Fn(&str, &str) -> bool| {
        mounts.lines().find_map(|line| {
            let (place, kind) = line.split_once(" - ")?;
            let mut place = place.split(' ').skip(3);
            let (root, at) = (place.next()?, place.next()?);
            let mut kind = kind.split(' ');
            is_it(kind.next()?, kind.nth(1)?).then_some((root, at))
        })
    };
    let (path, (root, at), version) = match own(&has) {
        Some(path) => {
            (path, mounted(&|kind, options| kind == "cgroup" && has(options))?, Version::One)
        }
        None => (own(&str::is_empty)?, mounted(&|kind, _| kind == "cgroup2")?, Version::Two),
    };
    let below = Path::new(path).strip_prefix(root).ok()?;
    Some((Path::new(at).join(below), version))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "22 1 0:20 / /proc rw - proc proc rw\n\
         30 20 0:26 / /sys/fs/cgroup/memory rw,nosuid shared:9 - cgroup cgroup rw,memory\n\
         31 20 0:27 /box /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn a_group_is_found_in_either_version() {
        let first = "4:memory:/a b/c\n3:cpu,cpuacct:/\n0::/box/user\n";
        assert_eq!(
            own_directory(Controller::Memory, first, MOUNTS),
            Some(("/sys/fs/cgroup/memory/a b/c".into(), Version::One))
        );
        assert_eq!(
            own_directory(Controller::Processes, first, MOUNTS),
            Some(("/sys/fs/cgroup/unified/user".into(), Version::Two))
        );
        assert_eq!(own_directory(Controller::Processes, "0::/elsewhere", MOUNTS), None);
        assert_eq!(own_directory(Controller::Memory, first, ""), None);
        assert_eq!(own_directory(Controller::Memory, "nonsense", "nonsense"), None);
    }
}
