//! The session of a member's process: it has no conversation of its own and works for the lead of a team.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::Session;
use crate::agent::lead_link::{LeadHearing, LinkEnd};
use crate::agent::member_frames::FromMember;
use crate::delegate::spawn::carry_out;

impl Session {
    /// Carries out the runs that the lead begins, until the lead is gone or has no more use for it.
    pub async fn serve_lead(self, mut hearing: LeadHearing) -> LinkEnd {
        let shared = Arc::clone(&self.shared);
        let Some(lead) = shared.delegation.lead.clone() else { return LinkEnd::Dismissed };
        let main = Arc::clone(&self.driver.dispatch.agent);
        let (begun, mut runs) = mpsc::unbounded_channel();
        lead.tell(FromMember::Ready);
        let working = async {
            while let Some(run) = runs.recv().await {
                let report = carry_out(&shared, &main, run).await;
                lead.tell_ended(report);
            }
        };
        let parting = tokio::select! {
            biased;
            parting = hearing.hear(&lead, &shared, &begun) => parting,
            () = working => LinkEnd::Dismissed,
        };
        // No member outlives its lead: what an orphan has started ends with its process.
        if parting == LinkEnd::Dismissed {
            self.end_agents().await;
            self.end().await;
        }
        parting
    }
}
