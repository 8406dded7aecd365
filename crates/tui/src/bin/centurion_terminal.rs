//! A program in a terminal, for the tests of this crate: it draws one frame and waits for keys.

use std::process::ExitCode;

use centurion_tui::{
    Capabilities, Frame, InlineSurface, Input, KeeperProgram, KeyCode, Line, Look, Place, Surface,
    Terminal, TerminalOptions,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(centurion_tui::KEEPER_ARGUMENT) {
        return centurion_tui::run_keeper(|| {});
    }
    if show().await.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// `q` ends the program, `p` makes it panic, `s` gives the terminal back for a moment; other keys are shown.
async fn show() -> std::io::Result<()> {
    let keeper = KeeperProgram {
        program: std::env::current_exe()?,
        args: vec![centurion_tui::KEEPER_ARGUMENT.into()],
    };
    let mut terminal = Terminal::enter(TerminalOptions { is_plain: false, keeper: Some(keeper) })?;
    let size = terminal.size();
    let mut surface = InlineSurface::new(size, Look::default(), Capabilities::default());
    let mut text = "ready".to_owned();
    loop {
        let line = Line::from(format!("> {text}").as_str());
        let frame = Frame {
            live: vec![Line::from("above the cursor"), line],
            cursor: Some(Place { row: 1, column: 2 }),
            ..Frame::default()
        };
        let mut out = Vec::new();
        surface.draw(&frame, size, &mut out);
        terminal.keep_rows(surface.rows_above_cursor(), false);
        terminal.write(&out).await?;
        for input in terminal.next().await? {
            match input {
                Input::Key(key) if key.code == KeyCode::Char('q') => return Ok(()),
                Input::Key(key) if key.code == KeyCode::Char('p') => panic!("asked to"),
                Input::Key(key) if key.code == KeyCode::Char('s') => {
                    terminal.suspend()?;
                    terminal.resume()?;
                    "resumed".clone_into(&mut text);
                }
                Input::Key(key) => text = format!("{:?}", key.code),
                Input::Paste(paste) => text = format!("pasted {}", paste.len()),
                _ => {}
            }
        }
    }
}
