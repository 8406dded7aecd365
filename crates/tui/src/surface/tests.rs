//! Surfaces against two terminals that others wrote: `vt100` cuts what is too long for a narrower window, as xterm
//! does; `avt` breaks it.

mod bounds;
mod emulator;
mod fullscreen;
mod inline;
