//! The environment variables of the process, read once by the binary and handed down, and which of them
//! programs get that we start.

use std::collections::HashMap;
use std::time::Duration;

/// The variable with the directories in which programs are found.
const SEARCH_PATH: &str = "PATH";

/// A snapshot of environment variables. An empty value counts as unset, as shells users expect.
///
/// Its search path has absolute directories only. A relative one, or an empty one, is another directory wherever an agent
/// works: a repository that has an `ls` there would have it run.
#[derive(Clone, Debug, Default)]
pub struct Env(HashMap<String, String>);

impl Env {
    pub fn new(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut variables: HashMap<String, String> = variables.into_iter().collect();
        if let Some(path) = variables.get_mut(SEARCH_PATH) {
            let absolute: Vec<&str> = path.split(':').filter(|it| it.starts_with('/')).collect();
            *path = absolute.join(":");
        }
        Self(variables)
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Takes a variable out.
    pub fn remove(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    /// Whether a switch is on: `1`, `true`, `yes` or `on`.
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| {
            ["1", "true", "yes", "on"].iter().any(|word| value.eq_ignore_ascii_case(word))
        })
    }

    pub fn number<N: std::str::FromStr>(&self, name: &str) -> Option<N> {
        self.get(name).and_then(|value| value.trim().parse().ok())
    }

    pub fn millis(&self, name: &str) -> Option<Duration> {
        self.number(name).map(Duration::from_millis)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// The variable with which a user keeps credentials from every program that we start.
const SCRUB: &str = "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB";

/// Prefixes of variables that hold credentials of model providers. A vendor with other products is named with
/// the product that serves models.
const MODEL_VENDORS: &[&str] = &[
    "ANTHROPIC_",
    "CLAUDE_CODE_",
    "CENTURION_",
    "OPENAI_",
    "OPENROUTER_",
    "GEMINI_",
    "MISTRAL_",
    "GROQ_",
    "DEEPSEEK_",
    "XAI_",
    "TOGETHER_",
    "FIREWORKS_",
    "CEREBRAS_",
    "COHERE_",
    "PERPLEXITY_",
    "HF_",
    "HUGGING_FACE_",
    "HUGGINGFACE_",
    "AI21_",
    "AI_GATEWAY_",
    "ANYSCALE_",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AZURE_AI_",
    "AZURE_INFERENCE_",
    "AZURE_OPENAI_",
    "BASETEN_",
    "BEDROCK_",
    "CODESTRAL_",
    "DASHSCOPE_",
    "DEEPINFRA_",
    "FRIENDLI_",
    "GLM_",
    "GOOGLE_AI_",
    "GOOGLE_API_KEY",
    "GOOGLE_GEMINI_",
    "GOOGLE_GENAI_",
    "GOOGLE_GENERATIVE_AI_",
    "HYPERBOLIC_",
    "INCEPTION_",
    "JINA_",
    "KIMI_",
    "LITELLM_",
    "MINIMAX_",
    "MODAL_",
    "MOONSHOT_",
    "NEBIUS_",
    "NGC_",
    "NOVITA_",
    "NVIDIA_",
    "OLLAMA_",
    "PALM_",
    "POE_",
    "PPLX_",
    "QWEN_",
    "REPLICATE_",
    "SAMBANOVA_",
    "SILICONFLOW_",
    "STABILITY_",
    "TOGETHERAI_",
    "UPSTAGE_",
    "VOYAGE_",
    "WATSONX_",
    "ZAI_",
    "ZHIPUAI_",
];

/// The same for clouds that serve models.
const CLOUDS: &[&str] = &["AWS_", "AZURE_", "GOOGLE_", "VERTEX_", "OTEL_EXPORTER_"];

/// Suffixes of such names.
const CREDENTIALS: [&str; 9] = [
    "_KEY",
    "_KEY_ID",
    "_TOKEN",
    "_SECRET",
    "_HEADERS",
    "_CREDENTIALS",
    "_PASSWORD",
    "_BEDROCK",
    "_KEY_FILE",
];

fn is_credential(name: &str, vendors: &[&str]) -> bool {
    vendors.iter().any(|vendor| name.starts_with(vendor))
        && CREDENTIALS.iter().any(|ending| name.ends_with(ending))
}

/// Variables of git's that it gets from us as they are.
const OF_GIT: [&str; 6] = [
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "GIT_SSL_NO_VERIFY",
];

impl Env {
    /// The environment of a program that Centurion starts: everything, unless the user keeps credentials of model
    /// providers and of clouds from all programs.
    pub fn of_programs(&self) -> impl Iterator<Item = (&str, &str)> {
        let is_scrubbed = self.is_on(SCRUB);
        self.iter().filter(move |(name, _)| {
            !is_scrubbed || !(is_credential(name, MODEL_VENDORS) || is_credential(name, CLOUDS))
        })
    }

    /// The environment of Centurion's own git. Of git's variables it has those that name the user's files and the way
    /// to
    /// reach a server. The others choose a repository, or programs to run in it.
    pub fn of_git(&self) -> impl Iterator<Item = (&str, &str)> {
        self.of_programs().filter(|(name, _)| !name.starts_with("GIT_") || OF_GIT.contains(name))
    }

    /// The environment of a confined program: never a key of a model provider.
    pub fn of_confined_programs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.of_programs().filter(|(name, _)| !is_credential(name, MODEL_VENDORS))
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Env {
    fn from(pairs: [(&str, &str); N]) -> Self {
        Self::new(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_path_has_absolute_directories_only() {
        for (given, kept) in [
            ("./bin:/usr/bin::bin:/bin:.", Some("/usr/bin:/bin")),
            ("/usr/bin:/bin", Some("/usr/bin:/bin")),
            (":node_modules/.bin", None),
        ] {
            assert_eq!(Env::from([("PATH", given)]).get("PATH"), kept, "{given}");
        }
    }

    fn names<'a>(variables: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<&'a str> {
        let mut names: Vec<&str> = variables.map(|(name, _)| name).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn credentials_are_kept_from_programs_where_the_user_says_so_and_from_confined_ones_always() {
        let variables = [
            ("PATH", "/bin"),
            ("ANTHROPIC_API_KEY", "k"),
            ("ANTHROPIC_AUTH_TOKEN", "k"),
            ("ANTHROPIC_BASE_URL", "u"),
            ("CLAUDE_CODE_OAUTH_TOKEN", "k"),
            ("OPENAI_API_KEY", "k"),
            ("AWS_SECRET_ACCESS_KEY", "k"),
            ("AWS_BEARER_TOKEN_BEDROCK", "k"),
            ("GOOGLE_APPLICATION_CREDENTIALS", "f"),
            ("AWS_REGION", "r"),
        ];
        let keys = ["AZURE_OPENAI_API_KEY", "GOOGLE_API_KEY", "NVIDIA_API_KEY", "MOONSHOT_API_KEY"];
        let others =
            ["AZURE_CLIENT_SECRET", "GOOGLE_MAPS_KEY", "NVIDIA_VISIBLE_DEVICES", "NPM_TOKEN"];
        let each =
            Env::new(keys.iter().chain(&others).map(|name| ((*name).to_owned(), "k".to_owned())));
        let mut left = others.to_vec();
        left.sort_unstable();
        assert_eq!(names(each.of_confined_programs()), left);
        let env = Env::from(variables);
        assert_eq!(names(env.of_programs()).len(), variables.len());
        let clouds = ["AWS_REGION", "AWS_SECRET_ACCESS_KEY", "GOOGLE_APPLICATION_CREDENTIALS"];
        let plain = ["ANTHROPIC_BASE_URL", "PATH"];
        let mut confined = [&clouds[..], &plain].concat();
        confined.sort_unstable();
        assert_eq!(names(env.of_confined_programs()), confined);
        let scrubbed = Env::new(
            variables
                .iter()
                .chain(&[(SCRUB, "1")])
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        );
        assert_eq!(
            names(scrubbed.of_programs()),
            ["ANTHROPIC_BASE_URL", "AWS_REGION", SCRUB, "PATH"]
        );
    }
}
