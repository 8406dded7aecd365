//! `centurion auth status`: whether there is a way to reach a model, and which. Says nothing about the key itself.

use std::process::ExitCode;
use std::sync::Arc;

use centurion_config::settings::Settings;
use centurion_model::{Anthropic, OpenAi};
use centurion_protocol::Env;
use clap::{Parser, Subcommand};
use serde_json::json;

use crate::configuration::{Configuration, SettingsArgs};
use crate::output::Output;
use crate::surroundings::Surroundings;

/// Shows how models are reached.
#[derive(Debug, Parser)]
#[command(name = "centurion auth")]
pub(crate) struct AuthArgs {
    #[command(subcommand)]
    action: AuthAction,
}

#[derive(Debug, Subcommand)]
enum AuthAction {
    /// Say where the key of the models comes from; fails if there is none
    Status {
        /// Print JSON, which is what is printed if nothing else is asked for
        #[arg(long, conflicts_with = "text")]
        json: bool,
        /// Print a sentence
        #[arg(long)]
        text: bool,
    },
}

/// The source of a key.
struct KeySource {
    method: &'static str,
    provider: &'static str,
    /// The variable or setting that has it.
    key: &'static str,
}

pub(crate) fn run(args: &AuthArgs) -> anyhow::Result<ExitCode> {
    let AuthAction::Status { text, .. } = args.action;
    let surroundings = Surroundings::observe()?;
    let configuration = Configuration::load(&surroundings, &SettingsArgs::default())?;
    let env = Arc::new(configuration.settings.overlay(&surroundings.env));
    let source = source(&configuration.settings, &env);
    let output = Output::default();
    match (&source, !text) {
        (Some(source), true) => output.json_line(&json!({
            "loggedIn": true,
            "authMethod": source.method,
            "apiProvider": source.provider,
            "apiKeySource": source.key,
        })),
        (None, true) => output.json_line(
            &json!({"loggedIn": false, "authMethod": "none", "apiProvider": "firstParty"}),
        ),
        (Some(source), false) => output.write_text(&format!("The key is from {}.\n", source.key)),
        (None, false) => output.write_text(
            "There is no key.\nhelp: set ANTHROPIC_API_KEY, or OPENAI_BASE_URL and OPENAI_API_KEY\n",
        ),
    }
    Ok(if source.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The source that a run would use.
fn source(settings: &Settings, env: &Env) -> Option<KeySource> {
    let has = |name: &str| env.get(name).is_some_and(|value| !value.trim().is_empty());
    let of_anthropic = |method, key| KeySource { method, provider: "firstParty", key };
    if has("ANTHROPIC_AUTH_TOKEN") {
        return Some(of_anthropic("auth_token", "ANTHROPIC_AUTH_TOKEN"));
    }
    if has("ANTHROPIC_API_KEY") {
        return Some(of_anthropic("api_key", "ANTHROPIC_API_KEY"));
    }
    if settings.api_key_helper().is_some() {
        return Some(of_anthropic("api_key_helper", "apiKeyHelper"));
    }
    if Anthropic::is_configured(env) {
        // A gateway that keeps the key itself.
        return Some(of_anthropic("gateway", "ANTHROPIC_BASE_URL"));
    }
    OpenAi::is_configured(env).then_some(KeySource {
        method: "api_key",
        provider: "openai",
        key: if has("OPENAI_API_KEY") { "OPENAI_API_KEY" } else { "OPENAI_BASE_URL" },
    })
}
