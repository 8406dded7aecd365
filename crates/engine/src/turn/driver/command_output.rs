//! The output of commands that the program carried out, for the model.

use centurion_journal::JournalError;
use centurion_protocol::markup::contain;

use super::Driver;

impl Driver {
    /// Puts a command that the program carried out and what it printed into the conversation, for the model to know.
    pub(crate) fn say_command_output(
        &mut self,
        name: &str,
        arguments: &str,
        output: &str,
    ) -> Result<(), JournalError> {
        if self.conversation.is_empty() {
            // The preamble goes first.
            self.deliver(Vec::new(), &[])?;
        }
        let (name, arguments) = (contain(name), contain(arguments));
        self.add_notices(&[
            format!(
                "<command-name>/{name}</command-name>\n<command-args>{arguments}</command-args>"
            ),
            format!("<local-command-stdout>\n{}\n</local-command-stdout>", contain(output)),
        ])
    }
}
