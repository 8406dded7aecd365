//! The terminal with the real binary: in a pseudo terminal whose screen is an emulator, and in a real tmux.

#[path = "terminal/finds.rs"]
mod finds;
#[path = "terminal/starts.rs"]
mod starts;
#[path = "terminal/talk.rs"]
mod talk;
#[path = "terminal/tmux.rs"]
mod tmux;
#[path = "terminal/tty.rs"]
mod tty;
#[path = "terminal/undone.rs"]
mod undone;
#[path = "terminal/whole_window.rs"]
mod whole_window;
