//! Credentials of every kind that files of ours must not hold, made of parts: none of them is real, and
//! none stands in the source as a whole.

/// One credential: what it is, the text in which it stands, and a piece of it that must not be kept.
pub struct Secret {
    pub kind: &'static str,
    pub text: String,
    /// A part of the text that is secret.
    pub piece: String,
}

/// Letters and digits without any meaning, the same in every run.
fn noise(length: usize) -> String {
    let alphabet = b"q7Zt2Kx9Lm4Rb8Vw3Np6Yd5Hs1Jc0Fg";
    let letters = (0..length).map(|n| alphabet[(n * 7 + n / 31) % alphabet.len()] as char);
    letters.collect()
}

fn hex(length: usize) -> String {
    (0..length).map(|n| b"0f1e2d3c4b5a6978"[(n * 5 + n / 16) % 16] as char).collect()
}

fn capitals(length: usize) -> String {
    noise(length).to_ascii_uppercase()
}

fn prefixed(kind: &'static str, prefix: &str, body: String) -> Secret {
    Secret { kind, text: format!("{prefix}{body}"), piece: body }
}

fn within(kind: &'static str, before: &str, piece: String, after: &str) -> Secret {
    Secret { kind, text: format!("{before}{piece}{after}"), piece }
}

/// Lines of base64, as in a private key.
fn key_lines(end: &str) -> String {
    let lines: Vec<String> = (0..4).map(|line| format!("{}{line}{end}", noise(63))).collect();
    lines.concat()
}

fn key_block(kind: &'static str, label: &str, parts: (bool, bool)) -> Secret {
    let dashes = "-----";
    let begin = if parts.0 { format!("{dashes}BEGIN {label}{dashes}\n") } else { String::new() };
    let end = if parts.1 { format!("{dashes}END {label}{dashes}\n") } else { String::new() };
    Secret { kind, text: format!("{begin}{}{end}", key_lines("\n")), piece: noise(63) }
}

/// One credential of every kind.
pub fn secrets() -> Vec<Secret> {
    let all = [tokens(), services(), keys(), phrases()].into_iter().flatten();
    all.enumerate().map(|(number, secret)| secret.varied(number)).collect()
}

impl Secret {
    /// The same kind with other digits and, where they are not hexadecimal, other small letters: no two
    /// secrets look alike.
    fn varied(self, number: usize) -> Self {
        // These decode to something.
        if matches!(self.kind, "JWT" | "Basic" | "Docker login") {
            return self;
        }
        let is_hex = self.piece.chars().all(|it| it.is_ascii_hexdigit());
        let turn = |it: char, first: u8, size: usize, by: usize| {
            char::from(
                first + u8::try_from((it as usize - first as usize + by) % size).unwrap_or(0),
            )
        };
        let other = |it: char| match it {
            '0'..='9' => turn(it, b'0', 10, number % 10),
            'a'..='z' if !is_hex => turn(it, b'a', 26, number / 10 * 3 + 1),
            _ => it,
        };
        let piece: String = self.piece.chars().map(other).collect();
        Self { kind: self.kind, text: self.text.replace(&self.piece, &piece), piece }
    }
}

fn tokens() -> Vec<Secret> {
    let token = format!("eyJ{}.eyJ{}.{}", noise(20), noise(40), noise(43));
    vec![
        prefixed("Anthropic", "sk-ant-api03-", noise(80)),
        prefixed("OpenAI project", "sk-proj-", noise(60)),
        prefixed("OpenAI", "sk-", noise(48)),
        prefixed("OpenRouter", "sk-or-v1-", hex(64)),
        prefixed("GitHub", "ghp_", noise(36)),
        prefixed("GitHub app", "ghs_", noise(36)),
        prefixed("GitHub fine-grained", "github_pat_", noise(82)),
        prefixed("GitLab", "glpat-", noise(20)),
        prefixed("GitLab runner", "glrt-", noise(20)),
        prefixed("npm", "npm_", noise(36)),
        prefixed("PyPI", "pypi-AgEIcHlwaS5vcmc", noise(80)),
        prefixed("Hugging Face", "hf_", noise(34)),
        prefixed("Slack bot", "xoxb-", noise(40)),
        prefixed("Slack app", "xapp-1-", noise(40)),
        prefixed(
            "Slack hook",
            "https://hooks.slack.com/services/T",
            format!("{}/B{}/{}", capitals(8), capitals(8), noise(24)),
        ),
        prefixed("Stripe", "sk_live_", noise(24)),
        prefixed("Stripe restricted", "rk_test_", noise(24)),
        prefixed("SendGrid", "SG.", format!("{}.{}", noise(22), noise(43))),
        Secret { kind: "JWT", piece: token.clone(), text: token },
    ]
}

fn services() -> Vec<Secret> {
    let number = "7412589630";
    vec![
        prefixed("AWS key id", "AKIA", capitals(16)),
        within("AWS secret key", "aws_secret_access_key = ", noise(40), "\n"),
        within("AWS secret in JSON", "{\"SecretAccessKey\": \"", noise(40), "\"}"),
        prefixed("Google key", "AIza", noise(35)),
        prefixed("Google token", "ya29.", noise(60)),
        prefixed("Google client", "GOCSPX-", noise(28)),
        within(
            "Azure storage",
            "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=",
            format!("{}==", noise(86)),
            ";EndpointSuffix=core",
        ),
        within("Azure client", "abc", format!("8Q~{}", noise(34)), ""),
        prefixed("DigitalOcean", "dop_v1_", hex(64)),
        within("Telegram", number, format!(":AA{}", noise(33)), ""),
        prefixed("age", "AGE-SECRET-KEY-1", capitals(58)),
        prefixed("Docker", "dckr_pat_", noise(27)),
        prefixed("Vault", "hvs.", noise(90)),
        prefixed("Shopify", "shpat_", hex(32)),
        prefixed("Linear", "lin_api_", noise(40)),
        prefixed("Databricks", "dapi", hex(32)),
        prefixed("Grafana", "glsa_", noise(40)),
        prefixed("Supabase", "sbp_", hex(40)),
        prefixed("Tailscale", "tskey-auth-", noise(30)),
        prefixed("Groq", "gsk_", noise(52)),
        prefixed("Bitbucket", "ATCTT3xFfGN0", noise(170)),
        prefixed("Pinecone", "pcsk_", noise(60)),
        prefixed("Neon", "napi_", noise(60)),
        prefixed("Render", "rnd_", noise(28)),
        prefixed("PostHog", "phx_", noise(43)),
        prefixed("Anyscale", "esecret_", noise(26)),
        prefixed("LangSmith, old", "ls__", noise(32)),
        prefixed("Mapbox", "sk.eyJ", format!("{}.{}", noise(60), noise(22))),
    ]
}

fn keys() -> Vec<Secret> {
    vec![
        key_block("PEM", "RSA PRIVATE KEY", (true, true)),
        key_block("PEM, plain", "PRIVATE KEY", (true, true)),
        key_block("OpenSSH", "OPENSSH PRIVATE KEY", (true, true)),
        key_block("PGP", "PGP PRIVATE KEY BLOCK", (true, true)),
        key_block("PEM without its end", "EC PRIVATE KEY", (true, false)),
        key_block("PEM without its beginning", "PRIVATE KEY", (false, true)),
    ]
}

fn phrases() -> Vec<Secret> {
    vec![
        within("URL password", "https://ada:", noise(14), "@example.com/x"),
        within("database URL", "postgres://app:", noise(14), "@db.internal:5432/main"),
        within("Redis URL", "redis://:", noise(14), "@cache:6379/0"),
        within("database variable", "PGPASSWORD=", noise(14), " psql"),
        within("connection string", "Server=db;User Id=sa;Password=", noise(14), ";Database=x"),
        within("password in JSON", "{\"user\":\"ada\",\"password\":\"", noise(14), "\"}"),
        within("Bearer", "Authorization: Bearer ", noise(40), ""),
        // `ada:` and a password.
        within(
            "Basic",
            "Authorization: Basic ",
            "YWRhOmNvcnJlY3QtaG9yc2UtYmF0dGVyeQ==".to_owned(),
            "",
        ),
        within("header", "x-api-key: ", noise(40), ""),
        within("variable", "SERVICE_API_KEY=", noise(32), "\n"),
        within("npmrc", "//registry.example.com/:_authToken=", noise(36), "\n"),
        within("netrc", "machine example.com login ada password ", noise(16), "\n"),
        within("netrc, any host", "default login ada password ", noise(16), "\n"),
        within("WireGuard", "PrivateKey = ", format!("{}=", noise(43)), "\n"),
        within("AWS session", "{\"SessionToken\": \"", noise(60), "\"}"),
        within("refresh token", "{\"refreshToken\": \"", noise(60), "\"}"),
        within("short name", "export DB_PASS=", noise(14), "\n"),
        within("passphrase", "passphrase: \"", noise(14), "\""),
        // `ada:` and a password.
        within("Docker login", "{\"auth\": \"", "YWRhOnN0YXBsZS1iYXR0ZXJ5LTEy".to_owned(), "\"}"),
        within("flag", "psql --password ", noise(14), " db"),
        within("flag for a token", "tool --token ", noise(40), ""),
        within("flag of curl", "curl -u ada:", noise(14), " https://example.com"),
        within("cookie", "curl -H 'Cookie: a=b; session=", noise(32), "; c=d'"),
    ]
}
