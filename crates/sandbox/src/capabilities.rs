//! Gives up every privilege, for good.

use rustix::io::{Errno, Result};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs,
};

/// Drops all capabilities: neither this process nor any program it becomes has or gains one.
pub(crate) fn drop_all() -> Result<()> {
    set_no_new_privs(true)?;
    // Root gets capabilities again with every program that it starts, from the bounding set. A process that may not
    // change that set has no privilege to lose there.
    if capabilities(None)?.effective.contains(CapabilitySet::SETPCAP) {
        for number in 0..u64::BITS {
            match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number))
            {
                Ok(()) => {}
                // The kernel has no more of them.
                Err(Errno::INVAL) => break,
                Err(error) => return Err(error),
            }
        }
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
}
