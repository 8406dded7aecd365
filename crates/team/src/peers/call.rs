//! Sending a message to another session.

use std::time::Duration;

use thiserror::Error;

use super::wire::{Answer, MOST_TEXT, Request};
use super::{Introduction, Outgoing, PeerAddress, PeerDirectory};
use crate::socket::{Connection, FrameError, Patience, SocketError};

/// The time that the other session has to record a message.
const RECEIPT: Patience =
    Patience { until_next: Some(Duration::from_secs(10)), for_one: Duration::from_secs(5) };
/// The number of attempts when the connection breaks before the acknowledgement.
const ATTEMPTS: usize = 3;
/// The pause before the next attempt, for a session that closed its connection.
const PAUSE: Duration = Duration::from_millis(100);

/// The reason that a message is not known to be delivered.
#[derive(Debug, Error)]
pub enum SendError {
    #[error(
        "it leads to no socket of a session: only sessions of this user on this machine can be reached"
    )]
    Elsewhere,
    #[error("the message has {0} bytes, more than the {MOST_TEXT} that it may have")]
    TooLong(usize),
    #[error("it was not sent: {0}")]
    Unreachable(#[source] SocketError),
    #[error("the session did not take it: {0}")]
    Refused(String),
    #[error("the session keeps it until its user lets it in or declines it")]
    Held,
    #[error("it is not known whether the session has it: {0}")]
    Unknown(String),
}

impl PeerDirectory {
    /// Sends a message, and returns when the other session has recorded it. [`SendError::Held`] if its user decides first.
    pub async fn send(
        &self,
        to: &PeerAddress,
        own: Option<&Introduction>,
        message: &Outgoing,
    ) -> Result<(), SendError> {
        let session = self.session(to).ok_or(SendError::Elsewhere)?;
        if message.text.len() > MOST_TEXT {
            return Err(SendError::TooLong(message.text.len()));
        }
        let mut lost = None;
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                tokio::time::sleep(PAUSE).await;
            }
            // A message that was sent once may have arrived, whatever the next attempt does.
            let mut connection = match self.greet(session, own).await {
                Ok((connection, _)) => connection,
                Err(error) => match lost {
                    None => return Err(SendError::Unreachable(error)),
                    Some(reason) => return Err(SendError::Unknown(reason)),
                },
            };
            match exchange(&mut connection, message).await {
                Ok(Answer::Accepted(id)) if id == message.id => return Ok(()),
                Ok(Answer::Held(id)) if id == message.id => return Err(SendError::Held),
                Ok(Answer::Refused(reason)) => return Err(SendError::Refused(reason)),
                Ok(Answer::Accepted(_) | Answer::Held(_)) => {
                    lost = Some("it answered something else".to_owned());
                }
                Err(error) => lost = Some(error.to_string()),
            }
        }
        Err(SendError::Unknown(lost.unwrap_or_default()))
    }
}

async fn exchange(connection: &mut Connection, message: &Outgoing) -> Result<Answer, FrameError> {
    let Outgoing { id, text, is_notice } = message.clone();
    let request = Request::Message { id, text, notice: is_notice };
    connection.writer.write(&request, RECEIPT.for_one).await?;
    connection.reader.read(RECEIPT).await?.ok_or(FrameError::Torn)
}
