//! Credentials that begin with a telling prefix and continue in one alphabet.

use crate::FoundSecret;
use crate::scan::{Class, Scan};

/// A sign that ordinary text with the same prefix lacks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// The prefix is telling enough, even in the middle of a word.
    Prefix,
    /// Somewhere behind the prefix stands a digit.
    Digit,
    /// No letter, digit or `_` before the prefix, and a digit behind it.
    OwnWord,
}

/// One shape: prefix, alphabet of the rest, its least length, and what else must hold.
pub(crate) struct Shape {
    pub(crate) prefix: &'static str,
    kind: &'static str,
    alphabet: Class,
    least: usize,
    sign: Sign,
}

const fn shape(
    prefix: &'static str,
    kind: &'static str,
    alphabet: Class,
    least: usize,
    sign: Sign,
) -> Shape {
    Shape { prefix, kind, alphabet, least, sign }
}

/// All shapes. If one prefix begins another, the longer one comes first.
pub(crate) static SHAPES: &[Shape] = {
    use Class::{AnyBase64, Capital, Dotted, Hex, Opaque, Url, Word};
    use Sign::{Digit, OwnWord, Prefix};
    &[
        shape("sk-ant-", "anthropic_key", Url, 16, Prefix),
        shape("sk-proj-", "openai_key", Url, 20, Digit),
        shape("sk-svcacct-", "openai_key", Url, 20, Digit),
        shape("sk-admin-", "openai_key", Url, 20, Digit),
        shape("sk-or-", "openrouter_key", Url, 20, Digit),
        shape("sk-lf-", "langfuse_key", Url, 20, Digit),
        shape("sk-", "openai_key", Url, 20, OwnWord),
        shape("ghp_", "github_token", Word, 30, Prefix),
        shape("gho_", "github_token", Word, 30, Prefix),
        shape("ghu_", "github_token", Word, 30, Prefix),
        shape("ghs_", "github_token", Word, 30, Prefix),
        shape("ghr_", "github_token", Word, 30, Prefix),
        shape("github_pat_", "github_token", Url, 22, Prefix),
        shape("glpat-", "gitlab_token", Dotted, 20, Prefix),
        shape("gldt-", "gitlab_token", Url, 20, Digit),
        shape("glrt-", "gitlab_token", Dotted, 20, Digit),
        shape("glcbt-", "gitlab_token", Url, 20, Digit),
        shape("glptt-", "gitlab_token", Url, 20, Digit),
        shape("glft-", "gitlab_token", Url, 20, Digit),
        shape("glimt-", "gitlab_token", Url, 20, Digit),
        shape("glagent-", "gitlab_token", Url, 20, Digit),
        shape("gloas-", "gitlab_token", Url, 20, Digit),
        shape("glsoat-", "gitlab_token", Url, 20, Digit),
        shape("glffct-", "gitlab_token", Url, 20, Digit),
        shape("glwt-", "gitlab_token", Url, 20, Digit),
        shape("GR1348941", "gitlab_token", Url, 20, Prefix),
        shape("ATATT3", "atlassian_token", AnyBase64, 100, Prefix),
        shape("ATCTT3", "bitbucket_token", AnyBase64, 100, Prefix),
        shape("ATBB", "bitbucket_token", Word, 28, Digit),
        shape("AKIA", "aws_access_key", Capital, 16, Prefix),
        shape("ASIA", "aws_access_key", Capital, 16, Prefix),
        shape("ABIA", "aws_access_key", Capital, 16, Digit),
        shape("ACCA", "aws_access_key", Capital, 16, Digit),
        shape("bedrock-api-key-", "aws_bedrock_key", AnyBase64, 40, Prefix),
        shape("X-Amz-Signature=", "aws_signature", Hex, 64, Prefix),
        shape("LTAI", "alibaba_key", Word, 12, OwnWord),
        shape("ABSK", "aws_bedrock_key", AnyBase64, 100, Prefix),
        shape("AIza", "google_key", Url, 35, Prefix),
        shape("ya29.", "google_token", Url, 20, Prefix),
        shape("GOCSPX-", "google_client_secret", Url, 20, Prefix),
        shape("1//0", "google_refresh_token", Url, 30, Digit),
        shape("xoxe.xox", "slack_token", Dotted, 20, Prefix),
        shape("xoxa-", "slack_token", Url, 10, Prefix),
        shape("xoxb-", "slack_token", Url, 10, Prefix),
        shape("xoxc-", "slack_token", Url, 10, Prefix),
        shape("xoxd-", "slack_token", AnyBase64, 10, Prefix),
        shape("xoxe-", "slack_token", Url, 10, Prefix),
        shape("xoxo-", "slack_token", Url, 10, Digit),
        shape("xoxp-", "slack_token", Url, 10, Prefix),
        shape("xoxr-", "slack_token", Url, 10, Prefix),
        shape("xoxs-", "slack_token", Url, 10, Prefix),
        shape("xapp-", "slack_token", Url, 20, Digit),
        shape("hooks.slack.com/", "slack_webhook", AnyBase64, 30, Prefix),
        shape("discord.com/api/webhooks/", "discord_webhook", AnyBase64, 40, Prefix),
        shape("discordapp.com/api/webhooks/", "discord_webhook", AnyBase64, 40, Prefix),
        shape("webhook.office.com/webhookb2/", "teams_webhook", Opaque, 40, Prefix),
        shape("sk_live_", "stripe_key", Word, 16, Prefix),
        shape("rk_live_", "stripe_key", Word, 16, Prefix),
        shape("sk_test_", "stripe_key", Word, 16, Prefix),
        shape("rk_test_", "stripe_key", Word, 16, Prefix),
        shape("sk_prod_", "stripe_key", Word, 16, Prefix),
        shape("rk_prod_", "stripe_key", Word, 16, Prefix),
        shape("whsec_", "stripe_webhook_secret", AnyBase64, 24, Prefix),
        shape("sq0atp-", "square_token", Url, 20, Prefix),
        shape("sq0csp-", "square_token", Url, 40, Prefix),
        shape("EAAA", "square_token", Url, 56, Digit),
        shape("EAACEdEose0cBA", "facebook_token", Word, 20, Prefix),
        shape("EAA", "facebook_token", Word, 80, OwnWord),
        shape("SG.", "sendgrid_key", Dotted, 60, Digit),
        shape("npm_", "npm_token", Word, 36, Prefix),
        shape("pypi-AgE", "pypi_token", Url, 40, Prefix),
        shape("pypi-", "pypi_token", Url, 80, Digit),
        shape("rubygems_", "rubygems_key", Hex, 48, Prefix),
        shape("cio", "crates_token", Word, 32, OwnWord),
        shape("CLOJARS_", "clojars_token", Word, 60, Prefix),
        shape("oy2", "nuget_key", Word, 43, OwnWord),
        shape("hf_", "hugging_face_token", Word, 30, Prefix),
        shape("api_org_", "hugging_face_token", Word, 30, Prefix),
        shape("gsk_", "groq_key", Word, 40, Prefix),
        shape("xai-", "xai_key", Word, 60, Prefix),
        shape("pplx-", "perplexity_key", Word, 40, Prefix),
        shape("r8_", "replicate_token", Word, 37, Prefix),
        shape("lsv2_", "langsmith_key", Url, 40, Digit),
        shape("sk_", "api_key", Hex, 40, Digit),
        shape("dop_v1_", "digitalocean_token", Hex, 40, Prefix),
        shape("doo_v1_", "digitalocean_token", Hex, 40, Prefix),
        shape("dor_v1_", "digitalocean_token", Hex, 40, Prefix),
        shape("AGE-SECRET-KEY-", "age_key", Capital, 50, Prefix),
        shape("AGE-PLUGIN-", "age_key", Url, 50, Digit),
        shape("dckr_pat_", "docker_token", Url, 20, Prefix),
        shape("dckr_oat_", "docker_token", Url, 20, Prefix),
        shape("hvs.", "vault_token", Url, 24, Digit),
        shape("hvb.", "vault_token", Url, 24, Digit),
        shape("hvr.", "vault_token", Url, 24, Digit),
        shape("shpat_", "shopify_token", Hex, 32, Prefix),
        shape("shpca_", "shopify_token", Hex, 32, Prefix),
        shape("shppa_", "shopify_token", Hex, 32, Prefix),
        shape("shpss_", "shopify_token", Hex, 32, Prefix),
        shape("lin_api_", "linear_key", Word, 40, Prefix),
        shape("lin_oauth_", "linear_key", Word, 40, Prefix),
        shape("ntn_", "notion_token", Word, 40, Prefix),
        shape("secret_", "notion_token", Word, 43, Digit),
        shape("dapi", "databricks_token", Hex, 32, Digit),
        shape("pul-", "pulumi_token", Hex, 40, Prefix),
        shape("pscale_", "planetscale_token", Dotted, 32, Digit),
        shape("PMAK-", "postman_key", Url, 50, Prefix),
        shape("glsa_", "grafana_token", Url, 32, Prefix),
        shape("glc_", "grafana_token", AnyBase64, 32, Digit),
        shape("NRAK-", "new_relic_key", Capital, 27, Prefix),
        shape("NRRA-", "new_relic_key", Hex, 42, Prefix),
        shape("sntrys_", "sentry_token", AnyBase64, 60, Prefix),
        shape("sntryu_", "sentry_token", Hex, 60, Prefix),
        shape("HRKU-", "heroku_key", Url, 32, Prefix),
        shape("fm1_", "fly_token", AnyBase64, 60, Digit),
        shape("fm2_", "fly_token", AnyBase64, 60, Digit),
        shape("fo1_", "fly_token", Url, 40, Digit),
        shape("sbp_", "supabase_token", Hex, 40, Prefix),
        shape("sb_secret_", "supabase_key", Url, 20, Prefix),
        shape("nfp_", "netlify_token", Word, 36, Prefix),
        shape("vcp_", "vercel_token", Word, 24, Digit),
        shape("dp.pt.", "doppler_token", Word, 40, Prefix),
        shape("dp.st.", "doppler_token", Dotted, 40, Prefix),
        shape("dt0c01.", "dynatrace_token", Dotted, 60, Prefix),
        shape("tskey-", "tailscale_key", Url, 20, Digit),
        shape("figd_", "figma_token", Url, 36, Prefix),
        shape("ops_eyJ", "one_password_token", AnyBase64, 200, Prefix),
        shape("CCIPAT_", "circleci_token", Url, 40, Prefix),
        shape("bkua_", "buildkite_token", Hex, 40, Prefix),
        shape("EZAK", "easypost_key", Word, 54, Prefix),
        shape("EZTK", "easypost_key", Word, 54, Prefix),
        shape("FLWSECK", "flutterwave_key", Url, 28, Prefix),
        shape("fio-u-", "frameio_token", Url, 60, Prefix),
        shape("duffel_live_", "duffel_token", Url, 40, Prefix),
        shape("duffel_test_", "duffel_token", Url, 40, Prefix),
        shape("key-", "mailgun_key", Hex, 32, OwnWord),
        shape("aio_", "adafruit_key", Word, 28, Prefix),
        shape("xkeysib-", "brevo_key", Url, 60, Prefix),
        shape("AKCp", "artifactory_key", Word, 60, Digit),
        shape("cmVmd", "artifactory_token", Word, 59, Digit),
        shape("squ_", "sonar_token", Hex, 40, Prefix),
        shape("sqp_", "sonar_token", Hex, 40, Prefix),
        shape("sqa_", "sonar_token", Hex, 40, Prefix),
        shape("pat", "airtable_token", Dotted, 78, OwnWord),
        shape("sha256~", "openshift_token", Url, 40, Prefix),
        shape("pnu_", "prefect_token", Word, 36, Prefix),
        shape("rdme_", "readme_key", Word, 60, Prefix),
        shape("shippo_live_", "shippo_token", Hex, 40, Prefix),
        shape("shippo_test_", "shippo_token", Hex, 40, Prefix),
        shape("tfp_", "typeform_token", Url, 40, Digit),
        shape(".atlasv1.", "terraform_token", Url, 60, Prefix),
        shape("CFPAT-", "contentful_token", Url, 40, Prefix),
        shape("sgp_", "sourcegraph_token", Url, 40, Digit),
        shape("nvapi-", "nvidia_key", Url, 40, Digit),
        shape("v1.0-", "cloudflare_key", Url, 120, Digit),
        shape("pcsk_", "pinecone_key", Url, 40, Digit),
        shape("napi_", "neon_key", Word, 40, Digit),
        shape("rnd_", "render_key", Word, 28, Digit),
        shape("phx_", "posthog_key", Word, 40, Digit),
        shape("esecret_", "anyscale_key", Word, 20, Digit),
        shape("fw_", "fireworks_key", Word, 22, OwnWord),
        shape("ls__", "langsmith_key", Word, 30, Digit),
        shape("sk.eyJ", "mapbox_token", Dotted, 60, Prefix),
        shape("sl.", "dropbox_token", Url, 120, OwnWord),
    ]
};

/// Reads a credential of one shape whose prefix begins at the index.
pub(crate) fn read(shape: &Shape, scan: &mut Scan, at: usize) -> Option<FoundSecret> {
    let from = at + shape.prefix.len();
    let (length, has_digit) = scan.run_with_digit(shape.alphabet, from);
    let fits = length >= shape.least
        && match shape.sign {
            Sign::Prefix => true,
            Sign::Digit => has_digit,
            Sign::OwnWord => {
                // In `task-sk-learn` it is a part of a name.
                has_digit && begins_word(scan.text, at) && !scan.text[..at].ends_with(b"-")
            }
        };
    let end = from + length;
    fits.then(|| FoundSecret { kind: shape.kind, range: at..next_prefix(scan.text, from, end) })
}

/// The start of a following credential whose prefix the end of this one contains; the end if there is none.
fn next_prefix(text: &[u8], from: usize, end: usize) -> usize {
    let is_prefix = |at: &usize| {
        let prefixes = SHAPES.iter().map(|shape| shape.prefix.as_bytes());
        let mut longer = prefixes.filter(|prefix| at + prefix.len() > end);
        longer.any(|prefix| text[*at..].starts_with(prefix))
    };
    let first = end.saturating_sub(LONGEST_PREFIX).max(from);
    (first..end).find(is_prefix).unwrap_or(end)
}

/// No prefix that is cut by an end is longer before it.
const LONGEST_PREFIX: usize = 12;

/// Whether no letter, digit or `_` stands before the index. In JSON the letter of an escape such as
/// `\t` or `\u001b` is no part of a word.
pub(crate) fn begins_word(text: &[u8], at: usize) -> bool {
    let before = &text[..at];
    let Some(last) = before.last() else { return true };
    if !last.is_ascii_alphanumeric() && *last != b'_' {
        return true;
    }
    let is_escape = |length: usize, letters: &[u8]| {
        let start = before.len().checked_sub(length);
        start.is_some_and(|start| before[start] == b'\\' && letters.contains(&before[start + 1]))
    };
    is_escape(2, b"bfnrt") || is_escape(6, b"u")
}

/// `header.claims.signature`, each in base64 for URLs and the first two JSON objects. A token without
/// its signature is still one.
pub(crate) fn web_token(scan: &mut Scan, at: usize) -> Option<FoundSecret> {
    let text = scan.text;
    let header = scan.run(Class::TokenPart, at);
    let claims_at = at + header + 1;
    let is_token = header >= 12
        && text.get(at + header) == Some(&b'.')
        && text.get(claims_at..)?.starts_with(b"eyJ");
    if !is_token {
        return None;
    }
    let claims = scan.run(Class::TokenPart, claims_at);
    if claims < 12 {
        return None;
    }
    let mut end = claims_at + claims;
    // An encrypted token has five parts.
    while text.get(end) == Some(&b'.') {
        match scan.run(Class::TokenPart, end + 1) {
            0 => break,
            part => end += 1 + part,
        }
    }
    Some(FoundSecret { kind: "json_web_token", range: at..end })
}

/// A bot of Telegram: a number, `:AA` and 33 characters. The hint is `:AA`.
pub(crate) fn telegram(scan: &mut Scan, at: usize) -> Option<FoundSecret> {
    let before = scan.text[..at].iter().rev().take(13);
    let digits = before.take_while(|byte| byte.is_ascii_digit()).count();
    let key = scan.run(Class::Url, at + 1);
    let fits = (6..=12).contains(&digits) && key >= 33;
    fits.then_some(FoundSecret { kind: "telegram_token", range: at - digits..at + 1 + key })
}

/// A client secret of Azure: three characters, a digit, `Q~` and about thirty more. The hint is the digit
/// with `Q~`.
pub(crate) fn azure_client(scan: &mut Scan, at: usize) -> Option<FoundSecret> {
    let start = at.checked_sub(3)?;
    let after = scan.run(Class::Tilde, at + 3);
    let is_part = |byte: &u8| Class::Tilde.contains(*byte);
    let fits = scan.text[start..at].iter().all(is_part) && after >= 31;
    fits.then_some(FoundSecret { kind: "azure_client_secret", range: start..at + 3 + after })
}
