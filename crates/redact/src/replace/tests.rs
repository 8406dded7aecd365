//! Tests of texts that are removed, and of texts that stay.

use centurion_testkit::secrets::{Secret, secrets};
use proptest::prelude::{Just, Strategy, prop_oneof, proptest};
use proptest::{collection, prop_assert, prop_assert_eq, sample};

use super::*;

fn redacted(text: &str) -> String {
    String::from_utf8(redact(text.as_bytes()).into_owned()).unwrap()
}

/// The text as a string of JSON.
fn json(text: &str) -> String {
    let escaped =
        text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t");
    format!("\"{escaped}\"")
}

fn assert_gone(secret: &Secret, text: &str) {
    let piece: &str = &secret.piece[..secret.piece.len().min(16)];
    assert!(text.contains("[redacted: "), "{}: {text}", secret.kind);
    assert!(!text.contains(piece), "{}: {text}", secret.kind);
}

#[test]
fn every_kind_is_known_in_text_in_json_and_in_json_inside_json() {
    let secrets = secrets();
    assert!(secrets.len() >= 40, "{} kinds", secrets.len());
    for secret in &secrets {
        let text = format!("before {} after", secret.text);
        assert_gone(secret, &redacted(&text));
        assert_gone(secret, &redacted(&json(&text)));
        assert_gone(secret, &redacted(&json(&json(&text))));
        assert!(redacted(&text).starts_with("before "), "{}", secret.kind);
        assert!(
            redacted(&text).trim_end().ends_with("after"),
            "{}: {}",
            secret.kind,
            redacted(&text)
        );
    }
}

#[test]
fn a_key_is_known_by_its_lines_whatever_stands_before_them() {
    let margins: [fn(usize) -> String; 10] = [
        |_| "  ".to_owned(),
        |_| "\t\t".to_owned(),
        |_| "+".to_owned(),
        |_| "> ".to_owned(),
        |number| format!("{number:>6}\t"),
        |number| format!("{number:>6}→"),
        |number| format!("{number:>4} | "),
        |number| format!("{number}:"),
        |number| format!("some/key.pem:{number}:"),
        |number| format!("some/key.pem-{number}-"),
    ];
    for secret in secrets().iter().filter(|secret| secret.text.contains("PRIVATE KEY")) {
        for margin in margins {
            let lines = secret.text.lines().enumerate();
            let text: Vec<String> =
                lines.map(|(number, line)| format!("{}{line}", margin(number + 8))).collect();
            let text = format!("It is this:\n{}\n9 and more", text.join("\n"));
            let piece = &secret.piece[..16];
            for text in [text.clone(), json(&text), json(&json(&text))] {
                let left = redacted(&text);
                assert!(!left.contains(piece), "{}: {text}\nleaves {left}", secret.kind);
                assert!(
                    left.contains("It is this:") && left.contains("9 and more"),
                    "{}: {text}\nleaves {left}",
                    secret.kind
                );
            }
        }
    }
}

#[test]
fn every_kind_is_known_among_all_the_others() {
    let secrets = secrets();
    let text: Vec<&str> = secrets.iter().map(|secret| secret.text.as_str()).collect();
    let text = text.join("\n");
    for text in [redacted(&text), redacted(&json(&text))] {
        for secret in &secrets {
            let piece = &secret.piece[..secret.piece.len().min(16)];
            assert!(!text.contains(piece), "{}: {text}", secret.kind);
        }
    }
}

#[test]
fn a_key_beside_a_letter_or_an_underscore_is_still_one() {
    for secret in secrets().iter().filter(|secret| secret.kind != "OpenAI") {
        for before in ["x", "_", "KEY_", "9", "=", "\u{1b}[31m", "é"] {
            assert_gone(secret, &redacted(&format!("{before}{}", secret.text)));
            assert_gone(secret, &redacted(&json(&format!("{before}{}", secret.text))));
        }
        for after in ["_", ".", "\"", "é"] {
            assert_gone(secret, &redacted(&format!("{}{after}", secret.text)));
        }
    }
}

#[test]
fn a_key_whose_letters_are_escapes_of_json_is_still_one() {
    for secret in secrets() {
        let escaped: String = secret
            .text
            .chars()
            .map(|c| {
                if c.is_ascii_graphic() && c != '"' {
                    format!("\\u{:04x}", u32::from(c))
                } else {
                    c.escape_default().to_string()
                }
            })
            .collect();
        let line = redacted(&format!("{{\"text\":\"{escaped}\"}}"));
        assert!(line.contains("[redacted: "), "{}: {line}", secret.kind);
        let other = format!("ghp_{}", "a1".repeat(18));
        let line = redacted(&format!("{{\"other\":\"{other}\",\"text\":\"{escaped}\"}}"));
        assert!(line.matches("[redacted: ").count() >= 2, "{}: {line}", secret.kind);
    }
}

#[test]
fn a_key_with_colours_in_it_is_still_one() {
    for secret in secrets().iter().filter(|secret| !secret.text.contains('\n')) {
        let middle = secret.text.len() / 2;
        for at in [1, 3, middle] {
            let (before, after) = secret.text.split_at(at);
            let text = format!("x \u{1b}[01;31m\u{1b}[K{before}\u{1b}[m\u{1b}[K{after} y");
            assert_gone(secret, &redacted(&text));
            assert_gone(secret, &redacted(&json(&text).replace('\u{1b}', "\\u001b")));
        }
    }
    let plain = "\u{1b}[01;31mred\u{1b}[m text";
    assert_eq!(redacted(plain), plain);
}

#[test]
fn what_is_left_is_still_json() {
    for secret in secrets() {
        let line = format!("{{\"a\":{},\"b\":1}}", json(&secret.text));
        let line = redacted(&line);
        assert!(
            line.starts_with("{\"a\":\"") && line.ends_with("\",\"b\":1}"),
            "{}: {line}",
            secret.kind
        );
    }
}

#[test]
fn what_is_known_by_its_place_or_a_rare_prefix_is_taken_out() {
    let (hex, word) = ("a1b2c3d4".repeat(8), "a1B2c3D4".repeat(10));
    let uuid = "123e4567-e89b-12d3-a456-426614174000";
    for (text, left) in [
        ("Server=db;Uid=sa;Pwd=hunter22;".to_owned(), "hunter22"),
        ("jdbc:oracle:thin:scott/tiger9@db:1521".to_owned(), "tiger9"),
        (format!("https://{}@github.com/a/b", &word[..40]), "a1B2c3"),
        ("Authorization: Bearer abcDEFghiJKLmnoPQRstu".to_owned(), "abcDEF"),
        (format!("Ocp-Apim-Subscription-Key: {}", &hex[..32]), "a1b2c3"),
        (format!("glffct-{}", &word[..20]), "a1B2"),
        (format!("bedrock-api-key-{word}"), "a1B2"),
        (format!("xkeysib-{hex}-{}", &word[..16]), "a1b2"),
        (format!("X-Amz-Signature={hex}&x=1"), "a1b2"),
        (
            format!(
                "x.webhook.office.com/webhookb2/{uuid}@{uuid}/IncomingWebhook/{}/{uuid}",
                &hex[..32]
            ),
            "e89b",
        ),
        (format!("14chars.atlasv1.{word}"), "a1B2"),
        (format!("nvapi-{word}"), "a1B2"),
        (format!("squ_{}", &hex[..40]), "a1b2"),
        (format!("patAbCdEfGhIjKl12.{hex}"), "a1b2"),
    ] {
        let text_left = redacted(&text);
        assert!(text_left.contains("[redacted: ") && !text_left.contains(left), "{text_left}");
    }
    let [one, two] = ["a1", "b2"].map(|it| format!("ghp_{}", it.repeat(18)));
    let mark = "[redacted: github_token]";
    assert_eq!(redacted(&format!("{one}{two} x")), format!("{mark}{mark} x"));
}

#[test]
fn ordinary_text_is_left_alone() {
    for text in [
        "task-sk-learn-pipeline-version-2-update, secret_name: my-app-secret-v2-production",
        "apiKey: config.services.openai.apiKey2, OLD_PWD=/srv/app2, https://user@example.com/x",
        "pattern, path-to-some-very-long-name.with.dots.2, jdbc:oracle:thin:@host:1521",
        "task-notification of the risk-averse disk-operations-team-in-the-basement-2",
        "ghost_writer, AKIA, eyJhbGciOi without dots, npm_install, sk-learn-contrib, hf_hub_download",
        "-----BEGIN PUBLIC KEY----- abc -----END PUBLIC KEY-----",
        "{\"input_tokens\":12,\"output_tokens\":34,\"cache_read_input_tokens\":567890123456789012}",
        "password: String, password = read_password(), \"password\": \"string\", password=${PASSWORD}",
        "http://localhost:8080/@scope/name, git@github.com:a/b.git, https://example.com/a:b@c",
        "https://${USER}:${PASSWORD}@example.com, https://user:<password>@example.com",
        "let token = next_token(); secret_name = \"a\"; API_KEY = os.environ[\"API_KEY\"]",
        "Bearer of bad news; Basic Authentication is basic usage; authorization: required",
        "TOKEN_LIMIT=100000 MAX_TOKENS=128000 const ACCESS_KEY_HEADER: &str = \"x-amz-security\";",
        "src/components/secret/token/very/long/path/to/module_2.rs: secret=src/very/long/path/a1.rs",
        "const PRIVATE KEY is mentioned here without a block",
        "C:\\users\\ada, 12:AAB, 1Q~, sig=1",
        "docker run -u 1000:1000, git push -u origin/main:main2, prog --password $PW --token <token>",
        "Set-Cookie: theme=dark; Path=/, \"auth\": \"none\", ls __init__, rnd_state, TESTS_PASS=12",
        "SKIP SK sl.so re_export EAAS fw_update, --user root:wheel, privateKey: crypto.KeyObject",
        "The commit is 15ffefc2a9d4b1f0c3e5a7b9d8f6e4c2a0b1d3f5, uuid 123e4567-e89b-12d3-a456-426614174000",
    ] {
        assert_eq!(redacted(text), text);
    }
}

fn word() -> impl Strategy<Value = String> {
    let hints = [
        "://",
        "password=",
        "\"token\": \"",
        "PRIVATE KEY",
        "-----BEGIN ",
        "-----END ",
        "\\n",
        "\\u0041",
        "eyJ",
        "login ",
        "earer ",
        "asic ",
        ":AA",
        "Q~",
        "@",
        ":",
    ];
    prop_oneof![
        sample::select(hints.to_vec()).prop_map(str::to_owned),
        sample::select(secrets().into_iter().map(|secret| secret.text).collect::<Vec<_>>()),
        "[ -~\\n\\\\]{0,20}",
        Just("é😀".to_owned()),
    ]
}

proptest! {
    #[test]
    fn any_text_is_read_and_read_again_the_same(words in collection::vec(word(), 0..12)) {
        let text = words.concat();
        let once = redacted(&text);
        prop_assert_eq!(redact_text(&text).into_owned(), once.clone());
        prop_assert_eq!(redacted(&once), once.clone());
        prop_assert!(once.len() <= text.len() + 40 * words.len());
    }

    #[test]
    fn a_secret_is_found_among_any_words(words in collection::vec("[a-z]{0,8}", 1..6), index in 0..50_usize) {
        let all = secrets();
        let secret = &all[index % all.len()];
        let text = format!("{} {} {}", words.join(" "), secret.text, words.join(" "));
        let piece = &secret.piece[..secret.piece.len().min(16)];
        prop_assert!(!redacted(&text).contains(piece), "{}", secret.kind);
    }
}
